//! The only door: HTTP, schedules, teams and the command line all enter here.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{ActorRef, rpc::CallResult};
use tokio::sync::watch;

pub use crate::agent::Ticket;
use crate::agent::{Submission, closed, reused};
use crate::circuits::Circuits;
use crate::follow::{Follow, is_asking};
use crate::gateway::GatewayMsg;
use crate::kit::Kit;
use crate::model::code::Code;
use crate::model::event::{Event, Span};
use crate::model::execution::State;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::model::principal::{Caller, Right};
use crate::model::progress::{Progress, Raw};
use crate::model::queue::Queued;
use crate::model::record::{Filter, Page, PageQuery, Record};
use crate::model::request::Request;
use crate::monitor::Latest;
use crate::ports::ledger::{Acceptance, LedgerError};
use crate::ports::timebook::Timebook;
use crate::root::RootMsg;
use crate::scheduler::SchedulerMsg;

/// How long an actor may take to answer what never waits for work.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);
/// How long until an execution that lost its actor is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The door to the tree. Cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) root: ActorRef<RootMsg>,
    pub(crate) gateway: watch::Receiver<Option<ActorRef<GatewayMsg>>>,
    pub(crate) draining: watch::Receiver<bool>,
    pub(crate) pressure: watch::Receiver<Latest>,
    pub(crate) scheduler: watch::Receiver<Option<ActorRef<SchedulerMsg>>>,
    pub(crate) timebook: Option<Arc<dyn Timebook>>,
    pub(crate) kit: Kit,
}

impl Gateway {
    /// Asks for an execution, or answers the question of one. Answers when it is recorded, not
    /// when it has run.
    ///
    /// # Errors
    /// When it is refused; then nothing was recorded. When nobody answers in time it may have been:
    /// the same message sent again tells, and is not run twice.
    pub async fn submit(&self, caller: &Caller, mut request: Request) -> Result<Ticket, Failure> {
        let continues = match request.continues {
            None => match self.again(&request).await {
                Some(ticket) => return Ok(ticket),
                None => None,
            },
            Some(id) => match self.taken(&request).await? {
                Some(ticket) => return Ok(ticket),
                None => Some(self.open_question(caller, id, &request).await?),
            },
        };
        if let Some(record) = &continues {
            request.trace.clone_from(&record.trace);
            request.standing = record.overrides.clone(); // The work goes on where it was.
        }
        let span = tracing::Span::current();
        let submit =
            |reply| GatewayMsg::Submit(Box::new(Submission { request, continues, span, reply }));
        self.ask(submit).await.unwrap_or_else(|| {
            let message = "nobody answered in time; the same message can be sent again";
            Err(Failure::new(Code::Internal, message))
        })
    }

    /// The execution of a message that came more than once before: nobody has to be asked. While the
    /// service stops, whoever comes is refused alike.
    async fn again(&self, request: &Request) -> Option<Ticket> {
        let Kit { ledger, keyring, .. } = &self.kit;
        if request.idempotency.is_some() || *self.draining.borrow() {
            return None;
        }
        let key = keyring.message(request);
        let (execution, digest) = ledger.again(request.owner, &request.agent, key).await?;
        if digest != keyring.body(request) {
            return None; // It is refused where all are.
        }
        let ended = self.ended_as(execution).await;
        let progress = match ended {
            Some(_) => None,
            None => self.watch(&request.agent, execution).await,
        };
        Some(Ticket { execution, joined: true, progress, ended })
    }

    /// How an execution has ended; nothing while it has not, or where that cannot be told.
    async fn ended_as(&self, id: ExecutionId) -> Option<Box<Record>> {
        let read = self.kit.ledger.execution(id).await.inspect_err(|error| unread(id, error));
        read.ok().flatten().filter(|record| record.outcome.is_some()).map(Box::new)
    }

    /// The execution that has taken the same message before.
    async fn taken(&self, request: &Request) -> Result<Option<Ticket>, Failure> {
        let Kit { ledger, keyring, .. } = &self.kit;
        let mut found = Vec::new();
        for key in keyring.keys(request).each() {
            let taken = ledger.taken(request.owner, &request.agent, key).await;
            found.extend(taken.map_err(|error| unreadable(&error))?);
        }
        match Acceptance::of_known(&found, keyring.body(request)) {
            None | Some(Acceptance::Fresh | Acceptance::Equal(_)) => Ok(None),
            Some(Acceptance::Conflict) => Err(reused()),
            Some(Acceptance::Twin(execution)) => {
                Ok(Some(Ticket { execution, joined: true, progress: None, ended: None }))
            }
        }
    }

    async fn open_question(
        &self,
        caller: &Caller,
        id: ExecutionId,
        request: &Request,
    ) -> Result<Record, Failure> {
        let record = self.execution(caller, id).await?;
        if record.context != request.context {
            let message = "the context is not the one of the task";
            Err(Failure::new(Code::InvalidParams, message))
        } else if record.outcome.is_some() {
            let message = "the task has ended; send the message without its id";
            Err(Failure::new(Code::Unsupported, message))
        } else if is_asking(&record) {
            Ok(record)
        } else {
            Err(closed())
        }
    }

    /// Calls an execution off and answers when the order is given, with its progress while an
    /// actor holds it.
    ///
    /// # Errors
    /// When there is no such execution for the caller, or when it has ended.
    pub async fn cancel(
        &self,
        caller: &Caller,
        id: ExecutionId,
    ) -> Result<(Record, Option<watch::Receiver<Progress>>), Failure> {
        let record = self.execution(caller, id).await?;
        if record.outcome.is_some() {
            let state = record.shown();
            let message = format!("the execution has ended already: {state}");
            return Err(Failure::new(Code::ExecutionEnded, message));
        }
        let (named, why) = (Box::new(record.clone()), format!("called off by {}", caller.name));
        let progress = self.ask(|reply| GatewayMsg::Cancel { record: named, why, reply }).await;
        Ok((record, progress.flatten()))
    }

    /// Waits until an execution has ended, or waits for input. Returns early when the service
    /// drains and the execution has not begun: it will run after the next start. Gives the answer's
    /// text as it was given, where the agent is configured so: to be shown to the owner alone.
    pub async fn settled(
        &self,
        agent: &AgentId,
        id: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Option<Raw> {
        let seen = self.wait((agent, id), progress, Until::Rest).await?;
        seen.borrow().raw.clone()
    }

    /// Waits until an execution has ended; an open question is no end.
    pub async fn ended(&self, record: &Record, progress: Option<watch::Receiver<Progress>>) {
        self.wait((&record.agent, record.id), progress, Until::End).await;
    }

    async fn wait(
        &self,
        (agent, id): (&AgentId, ExecutionId),
        mut progress: Option<watch::Receiver<Progress>>,
        until: Until,
    ) -> Option<watch::Receiver<Progress>> {
        let mut draining = self.draining.clone();
        loop {
            tokio::select! {
                is_over = reached(&mut progress, until) => if is_over { return progress },
                () = drained(&mut draining) => if !is_begun(progress.as_ref()) { return progress },
            }
            if self.is_over(id, until).await {
                return progress;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            progress = self.watch(agent, id).await;
        }
    }

    async fn is_over(&self, id: ExecutionId, until: Until) -> bool {
        match self.kit.ledger.execution(id).await {
            Ok(Some(record)) => {
                record.outcome.is_some() || (until == Until::Rest && is_asking(&record))
            }
            Ok(None) => true,
            Err(error) => {
                unread(id, &error);
                false
            }
        }
    }

    /// One execution, if it is there for the caller: its own, or any for an administrator.
    ///
    /// # Errors
    /// `execution-unknown` both when it is not there and when it is somebody else's.
    pub async fn execution(&self, caller: &Caller, id: ExecutionId) -> Result<Record, Failure> {
        let record = self.kit.ledger.execution(id).await.map_err(|error| unreadable(&error))?;
        record.filter(|record| caller.may_see(record)).ok_or_else(|| unknown(id))
    }

    /// Executions of the caller, or of everybody for an administrator; newest first.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn executions(
        &self,
        caller: &Caller,
        mut filter: Filter,
    ) -> Result<Vec<Record>, Failure> {
        if !caller.scope.allows(Right::Read, None) {
            return Ok(Vec::new());
        }
        if !caller.scope.allows(Right::Admin, None) {
            filter.owner = Some(caller.principal);
        }
        filter.agents.clone_from(&caller.scope.agents); // Else what is left out would end a page.
        self.kit.ledger.executions(filter).await.map_err(|error| unreadable(&error))
    }

    /// A page of an agent's executions: of the caller, or of everybody for an administrator. For
    /// a caller who may not see the agent's executions there are none.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn page(&self, caller: &Caller, mut query: PageQuery) -> Result<Page, Failure> {
        let may = |right| caller.scope.allows(right, Some(&query.agent));
        match (may(Right::Admin), may(Right::Read)) {
            (true, _) => {}
            (false, true) => query.owner = Some(caller.principal),
            (false, false) => return Ok(Page::default()),
        }
        self.kit.ledger.page(query).await.map_err(|error| unreadable(&error))
    }

    /// Events of an execution after the given number, in order.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn events(&self, record: &Record, after: u64) -> Result<Vec<Event>, Failure> {
        self.kit.ledger.events(record.id, after).await.map_err(|error| unreadable(&error))
    }

    /// Redacted text of an execution.
    ///
    /// # Errors
    /// When it could not be read.
    pub async fn text(&self, record: &Record, span: Span) -> Result<String, Failure> {
        self.kit.ledger.text(record.id, span).await.map_err(|error| unreadable(&error))
    }

    /// Follows an execution from after the given event on.
    #[must_use]
    pub fn follow(
        &self,
        record: Record,
        after: u64,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Follow {
        Follow::new(self.clone(), record, after, progress)
    }

    /// The progress of an execution, while an actor holds it.
    pub(crate) async fn watch(
        &self,
        agent: &AgentId,
        id: ExecutionId,
    ) -> Option<watch::Receiver<Progress>> {
        let agent = agent.clone();
        self.ask(|reply| GatewayMsg::Watch(agent, id, reply)).await.flatten()
    }

    /// What an execution waits for, and in which place, as it is now; `None` when it waits for
    /// nothing before it goes on, or when no actor holds it.
    pub async fn queued(&self, record: &Record) -> Option<Queued> {
        let is_open = record.outcome.is_none() && !is_asking(record);
        let may_wait = matches!(record.state, State::Idle | State::Failed | State::Waiting);
        if !(is_open && may_wait) {
            return None;
        }
        self.watch(&record.agent, record.id).await.and_then(|progress| progress.borrow().queued)
    }

    /// What is known of the credentials of agents.
    #[must_use]
    pub fn circuits(&self) -> Circuits {
        self.kit.circuits.clone()
    }

    /// The record as it is now.
    ///
    /// # Errors
    /// When it could not be read, or is gone.
    pub async fn reread(&self, record: &Record) -> Result<Record, Failure> {
        let now = self.kit.ledger.execution(record.id).await.map_err(|error| unreadable(&error))?;
        now.ok_or_else(|| unknown(record.id))
    }

    /// The wall time, as the whole tree has it.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.kit.clock.now()
    }

    /// Asks the gateway; `None` when no actor answered.
    async fn ask<T: Send + 'static>(
        &self,
        msg: impl FnOnce(ractor::RpcReplyPort<T>) -> GatewayMsg + Send,
    ) -> Option<T> {
        let gateway = self.gateway.borrow().clone()?;
        match gateway.call(msg, Some(ANSWER)).await {
            Ok(CallResult::Success(answer)) => Some(answer),
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => None,
        }
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The end, or a question.
    Rest,
    /// The end.
    End,
}

/// Waits for it; `false` when the actor was lost before.
async fn reached(progress: &mut Option<watch::Receiver<Progress>>, until: Until) -> bool {
    match progress {
        Some(progress) => {
            let is_it = |progress: &Progress| {
                let asks = progress.state == State::Waiting;
                progress.outcome.is_some() || (until == Until::Rest && asks)
            };
            progress.wait_for(is_it).await.is_ok()
        }
        None => false,
    }
}

async fn drained(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn is_begun(progress: Option<&watch::Receiver<Progress>>) -> bool {
    progress.is_some_and(|progress| progress.borrow().state != State::Idle)
}

fn unknown(id: ExecutionId) -> Failure {
    Failure::new(Code::ExecutionUnknown, format!("there is no execution `{id}`"))
}

fn unread(id: ExecutionId, error: &LedgerError) {
    tracing::error!(execution = %id, %error, "read failed");
}

pub(crate) fn unreadable(error: &LedgerError) -> Failure {
    tracing::error!(%error, "read failed");
    Failure::new(Code::LedgerUnavailable, "the ledger could not be read")
}

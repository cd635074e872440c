//! How a request comes in: checked, put in line, recorded, answered, begun.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::watch;

use super::{AgentData, AgentMsg, Ticket, Waiting};
use crate::decide::admission::{Effect, Event as Arrival, step};
use crate::decide::execution::Event;
use crate::execution::Progress;
use crate::kit::Kit;
use crate::model::agent::Access;
use crate::model::code::Code;
use crate::model::execution::State;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::request::Request;
use crate::ports::ledger::{Accept, Acceptance, LedgerError};
use crate::recover::{Recovered, settle_unheard};

impl AgentData {
    /// Lets a request in, or refuses it at once.
    pub(super) fn submit(
        &mut self,
        me: &ActorRef<AgentMsg>,
        request: Request,
        reply: RpcReplyPort<Result<Ticket, Failure>>,
    ) {
        if let Err(failure) = self.check(&request) {
            _ = reply.send(Err(failure));
            return;
        }
        let id = ExecutionId::fresh();
        let one = Waiting {
            request: Arc::new(request),
            reply: Some(reply),
            progress: watch::Sender::new(Progress { state: State::Idle, outcome: None }),
            since: self.args.kit.clock.now(),
        };
        self.waiting.insert(id, one);
        self.arrive(me, Arrival::Arrived(id));
    }

    fn check(&self, request: &Request) -> Result<(), Failure> {
        let spec = &self.args.spec;
        let (given, limit) = (request.input.text.len(), spec.sizes.input);
        if !spec.enabled {
            Err(Failure::new(Code::AgentDisabled, format!("agent `{}` is disabled", spec.id)))
        } else if self.draining.is_some() {
            Err(Failure::new(Code::Draining, "the service is stopping"))
        } else if given > limit {
            let message = format!("the input has {given} bytes, agent `{}` takes {limit}", spec.id);
            Err(Failure::new(Code::InputTooLarge, message))
        } else {
            Ok(())
        }
    }

    /// An execution of an earlier life takes its place again.
    pub(super) fn recovered(&mut self, me: &ActorRef<AgentMsg>, one: Recovered) {
        let Recovered { record, request } = one;
        let progress = watch::Sender::new(Progress { state: State::Idle, outcome: None });
        let since = record.accepted_at;
        self.waiting.insert(record.id, Waiting { request, reply: None, progress, since });
        self.arrive(me, Arrival::Recovered(record.id));
        self.mind_patience(me);
    }

    /// The only place where the line changes, and the only place where its effects are performed.
    pub(super) fn arrive(&mut self, me: &ActorRef<AgentMsg>, event: Arrival) {
        let (line, effects) = step(mem::take(&mut self.line), event);
        self.line = line;
        for effect in effects {
            self.admit(me, effect);
        }
    }

    fn admit(&mut self, me: &ActorRef<AgentMsg>, effect: Effect) {
        match effect {
            Effect::Record(id) => self.record(me, id),
            Effect::Run(id) => self.run(me, id),
            Effect::Queue(id, _) => {
                self.answer(id, Ok(()));
                self.mind_patience(me);
            }
            Effect::Join(id, twin) => self.join(id, twin),
            Effect::Refuse(id) => {
                let (agent, depth) = (&self.args.spec.id, self.args.spec.capacity.waiting);
                let message = format!("queue of agent `{agent}` is full ({depth} waiting)");
                self.answer(id, Err(Failure::new(Code::QueueFull, message)));
                self.waiting.remove(&id);
            }
        }
    }

    fn record(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        let Some(one) = self.waiting.get(&id) else {
            return;
        };
        let (me, kit, since) = (me.clone(), self.args.kit.clone(), one.since);
        let (request, access) = (Arc::clone(&one.request), self.args.spec.access);
        // Not among the tasks that end with this actor: a record that is under way is finished.
        tokio::spawn(async move {
            let accept = accept(&kit, &request, id, access, since);
            let result = kit.ledger.accept(accept).await;
            let is_fresh = matches!(result, Ok(Acceptance::Fresh));
            if me.cast(AgentMsg::Recorded(id, result)).is_err() && is_fresh {
                settle_unheard(&kit, id).await; // A new actor may have looked too early.
            }
        });
    }

    /// The ledger has answered: the request is in, is another's twin, or is out.
    pub(super) fn recorded(
        &mut self,
        me: &ActorRef<AgentMsg>,
        id: ExecutionId,
        result: Result<Acceptance, LedgerError>,
    ) {
        let failure = match result {
            Ok(Acceptance::Fresh) => return self.heard(me, Arrival::Recorded(id)),
            Ok(Acceptance::Twin(twin)) => return self.heard(me, Arrival::Twin(id, twin)),
            Ok(Acceptance::Conflict) => {
                Failure::new(Code::MessageReused, "this message id was used for another message")
            }
            Err(error) => {
                tracing::error!(agent = %self.args.spec.id, %error, "accept failed");
                Failure::new(Code::LedgerUnavailable, "the request could not be recorded")
            }
        };
        self.answer(id, Err(failure));
        self.waiting.remove(&id);
        self.heard(me, Arrival::Left(id));
    }

    /// A submitter has its answer: the last one may be what a drain waits for.
    fn heard(&mut self, me: &ActorRef<AgentMsg>, event: Arrival) {
        self.arrive(me, event);
        self.tell_drained();
    }

    fn run(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        self.answer(id, Ok(()));
        if self.draining.is_some() {
            return; // It stays in the ledger, for the next start.
        }
        if let Some(one) = self.waiting.remove(&id) {
            self.begin(me, id, one, Event::Begin);
        }
    }

    /// Answers the submitter, once.
    fn answer(&mut self, id: ExecutionId, result: Result<(), Failure>) {
        let Some(one) = self.waiting.get_mut(&id) else {
            return;
        };
        let Some(reply) = one.reply.take() else {
            return;
        };
        let progress = Some(one.progress.subscribe());
        _ = reply.send(result.map(|()| Ticket { execution: id, joined: false, progress }));
    }

    fn join(&mut self, id: ExecutionId, twin: ExecutionId) {
        let progress = self.watch(twin);
        if let Some(reply) = self.waiting.remove(&id).and_then(|one| one.reply) {
            _ = reply.send(Ok(Ticket { execution: twin, joined: true, progress }));
        }
    }

    /// Lets one timer run for the first that is recorded: all wait for equally long.
    fn mind_patience(&mut self, me: &ActorRef<AgentMsg>) {
        let first = self.line.waiting().find(|id| self.is_heard(*id));
        let left = first.and_then(|id| self.patience_left(id));
        let Some(left) = left.filter(|_| !self.watched) else {
            return;
        };
        self.watched = true;
        let me = me.clone();
        self.spawn(async move {
            tokio::time::sleep(left).await;
            _ = me.cast(AgentMsg::PatienceDue); // The timer ends with the actor.
        });
    }

    /// Ends those who have waited too long, and minds the next.
    pub(super) fn patience_due(&mut self, me: &ActorRef<AgentMsg>) {
        self.watched = false;
        let is_due = |id: &ExecutionId| self.patience_left(*id) == Some(Duration::ZERO);
        let heard = self.line.waiting().filter(|id| self.is_heard(*id));
        let due: Vec<_> = heard.take_while(is_due).collect();
        for id in due {
            self.end_unrun(me, id, Event::QueueExpired);
        }
        self.mind_patience(me);
    }

    /// Whether its submitter was answered. Until then it cannot have waited too long: nobody can
    /// end what is not recorded.
    fn is_heard(&self, id: ExecutionId) -> bool {
        self.waiting.get(&id).is_some_and(|one| one.reply.is_none())
    }

    /// How long one may wait still.
    fn patience_left(&self, id: ExecutionId) -> Option<Duration> {
        let one = self.waiting.get(&id)?;
        let waited = (self.args.kit.clock.now() - one.since).to_std().unwrap_or(Duration::ZERO);
        Some(self.args.spec.capacity.patience.saturating_sub(waited))
    }
}

/// The record of a request: all text in it is redacted.
fn accept(
    kit: &Kit,
    request: &Request,
    id: ExecutionId,
    access: Access,
    at: chrono::DateTime<chrono::Utc>,
) -> Accept {
    let mask = |text: &str| kit.redactor.redact(text).into_owned();
    let input = mask(&request.input.text);
    let params: std::collections::BTreeMap<_, _> =
        request.input.params.iter().map(|(name, value)| (name.clone(), mask(value))).collect();
    Accept {
        id,
        agent: request.agent.clone(),
        owner: request.owner,
        message: request.message.clone(),
        key: kit.keyring.key(request),
        digest: kit.keyring.body(request),
        context: request.context.clone(),
        trigger: request.trigger.clone(),
        access,
        replayable: input == request.input.text && params == request.input.params,
        input,
        params,
        at,
    }
}

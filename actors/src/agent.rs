//! `AgentActor`: one per agent; lets requests in by its line, and owns their executions.

mod asked;
mod budget;
mod circuit;
mod glance;
mod intake;
mod leaning;
mod leaving;
mod lives;
mod parking;
mod patience;
mod places;
mod pool;
mod pressed;
mod resuming;
mod seated;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::alarm::alarmed;
use crate::circuits::{Probe, credential};
use crate::decide::admission::{Event as Arrival, Line};
use crate::decide::breaker::Circuit;
use crate::decide::restart::Restarts;
use crate::execution::{ExecutionMsg, Resumption};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::progress::Progress;
use crate::model::quota::{CredentialName, Parked};
use crate::model::record::Record;
use crate::model::request::Request;
use crate::model::status::LastOutcome;
use crate::monitor::Latest;
use crate::ports::driver::Driver;
use crate::ports::ledger::LedgerError;
use crate::recover::{Held, Recovered, take_up};
use crate::root::Seat;

use leaving::Leaving;

pub use glance::AgentView;
pub(crate) use intake::{closed, reused};
pub(crate) use leaving::removed;

/// Owns everything that one agent does.
pub struct AgentActor;

/// What a submitter gets at once: the execution's id, and a way to follow it.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// The execution.
    pub execution: ExecutionId,
    /// Whether it was there before: the same message was sent already.
    pub joined: bool,
    /// Its progress, while an actor holds it.
    pub progress: Option<watch::Receiver<Progress>>,
    /// How it has ended, where the door has looked.
    pub ended: Option<Box<Record>>,
}

/// What an agent is told.
pub enum AgentMsg {
    /// Asks for an execution. The answer comes when it is recorded, not when it has run.
    Submit(Box<Submission>),
    /// The ledger has answered about a request that was let in.
    Recorded(ExecutionId, Result<Recording, LedgerError>),
    /// The equal request that it waited for has ended; with the one whose result it takes.
    Freed(ExecutionId, Option<ExecutionId>),
    /// The first in line may have waited for as long as it may.
    PatienceDue,
    /// Those in a long line are told of their places.
    PlacesDue,
    /// Whether the machine can take more work is judged anew.
    Judged,
    /// A credential is of no use, or of use again, or the time has come to see.
    CircuitTurned,
    /// One that is parked has waited for as long as it was to.
    Woken(ExecutionId),
    /// Calls an execution off, if it is here. The answer does not wait for its end.
    Cancel {
        /// Which, as the ledger knows it.
        record: Box<Record>,
        /// Why, for its history.
        why: String,
        /// Its progress; `None` when it is not here.
        reply: RpcReplyPort<Option<watch::Receiver<Progress>>>,
    },
    /// Asks for the progress of an execution; `None` when it is not here.
    Watch(ExecutionId, RpcReplyPort<Option<watch::Receiver<Progress>>>),
    /// A question stayed open for as long as it may.
    Unanswered(Box<Record>),
    /// An open question is called off, for this reason.
    CallOff(Box<Record>, String),
    /// Nothing is left of an execution's work, and its end is in the ledger.
    AtRest(ExecutionId),
    /// An execution's actor was not born.
    Stillborn(ExecutionId),
    /// What a crashed execution worked on is claimed.
    TakenOver(Box<Held>),
    /// What a lost execution left is settled.
    CutOffSettled(ExecutionId),
    /// It is configured otherwise. What runs goes on as it began; what waits begins as it is now.
    Reseat(Seat),
    /// Takes nothing new. The answer comes when all that it has has ended; it does not come when the
    /// agent is seated again before.
    Leave(RpcReplyPort<()>),
    /// The questions that it left open are settled.
    QuestionsSettled,
    /// Nobody sends it anything more.
    Close,
    /// Takes nothing new and begins nothing more. The answer comes when nothing runs.
    Drain(RpcReplyPort<()>),
    /// Calls off all that runs.
    CancelAll {
        /// Why, for their history.
        why: String,
    },
    /// A task of this actor panicked: what it would have told never comes.
    Broken,
    /// Asks what there is. The answer never waits for the work.
    Inspect(RpcReplyPort<AgentView>),
}

/// A request on its way in.
pub struct Submission {
    /// What is asked.
    pub request: Request,
    /// The execution that it continues, as the ledger knows it.
    pub continues: Option<Record>,
    /// The request in the log.
    pub span: tracing::Span,
    /// Where the answer goes.
    pub reply: RpcReplyPort<Result<Ticket, Failure>>,
}

/// What the ledger made of a request that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// It is in.
    In,
    /// It is in, and this one was asked the same and is under way.
    Equal(ExecutionId),
    /// It is in, and this one was asked the same and has ended well.
    Answered(ExecutionId),
    /// It is the same as an earlier one.
    Twin(ExecutionId),
    /// Its message id was used for another message.
    Conflict,
    /// The question that it answers is not open any more.
    Closed,
}

impl Recording {
    /// Whether there is a new record.
    const fn is_in(self) -> bool {
        match self {
            Self::In | Self::Equal(_) | Self::Answered(_) => true,
            Self::Twin(_) | Self::Conflict | Self::Closed => false,
        }
    }
}

/// What an agent begins with.
#[derive(Clone)]
pub struct AgentArgs {
    /// The agent.
    pub spec: Arc<AgentSpec>,
    /// What does its work.
    pub driver: Arc<dyn Driver>,
    /// The world.
    pub kit: Arc<Kit>,
    /// Whether the ledger has nothing of it that has not ended, as its owner has just seen.
    pub begins_anew: bool,
    /// Whether the service is stopping: then what is taken up stays in the ledger.
    pub draining: bool,
    /// How hard-pressed the machine is.
    pub pressure: watch::Receiver<Latest>,
}

/// A request in the line.
struct Waiting {
    request: Arc<Request>,
    reply: Option<RpcReplyPort<Result<Ticket, Failure>>>,
    progress: watch::Sender<Progress>,
    /// Since when it waits, as it is shown.
    since: DateTime<Utc>,
    /// The request in the log.
    span: tracing::Span,
    /// Until when it may wait, by a clock that does not jump.
    due: Instant,
    from: Resumption,
    /// The one whose result it takes, where there is one.
    equal: Option<ExecutionId>,
    /// How it is parked, where it is.
    parked: Option<Parked>,
    /// Whether it tries the credential.
    probe: Option<Probe>,
}

/// An execution with an actor.
struct Live {
    actor: ActorRef<ExecutionMsg>,
    progress: watch::Sender<Progress>,
    /// As the agent was configured when it began.
    seat: Seat,
    /// What was asked, raw, for the time after it was parked.
    request: Arc<Request>,
    span: tracing::Span,
    /// Whether it tries the credential. To be held, not to be read.
    _probe: Option<Probe>,
}

/// Loop data. Maps that are seldom used are trees, which are small while they are empty: most agents rest.
pub struct AgentData {
    me: ActorRef<AgentMsg>,
    args: AgentArgs,
    line: Line,
    waiting: HashMap<ExecutionId, Waiting>,
    /// Whether a long line is to be told of its places.
    are_places_due: bool,
    live: HashMap<ExecutionId, Live>,
    by_actor: BTreeMap<ActorId, ExecutionId>,
    /// Those who wait for the result of an equal request, by that one.
    leaning: BTreeMap<ExecutionId, Vec<ExecutionId>>,
    /// Answers that came while the actor that asked was still letting go.
    early: BTreeMap<ExecutionId, Box<Submission>>,
    /// Orders to end that came in that while, with their reasons.
    early_ends: BTreeMap<ExecutionId, String>,
    /// Those whose actor has crashed, and who have another one.
    followed: BTreeSet<ExecutionId>,
    since: DateTime<Utc>,
    last: Option<LastOutcome>,
    counts: pool::Counts,
    /// Crashes of executions; too many at once are a fault of the agent.
    crashes: Restarts,
    born: Instant,
    /// Whether the timer of the first in line runs.
    watched: bool,
    /// The name of the credential under which it works.
    credential: CredentialName,
    /// What is known of that while it is of no use, and since when it was so here.
    circuit: Option<(Circuit, Instant)>,
    draining: Option<Vec<RpcReplyPort<()>>>,
    /// Whether the agent was taken out of the configuration.
    leaving: Option<Leaving>,
    tasks: JoinSet<()>,
}

impl Actor for AgentActor {
    type Msg = AgentMsg;
    type State = AgentData;
    type Arguments = AgentArgs;

    /// Takes up what the ledger holds of this agent: the same path after a restart of the service
    /// and after a crash of this actor.
    async fn pre_start(
        &self,
        me: ActorRef<AgentMsg>,
        args: AgentArgs,
    ) -> Result<AgentData, ActorProcessingErr> {
        let recovered = match args.begins_anew {
            true => Vec::new(),
            false => take_up(&args.kit, &args.spec, &*args.driver).await?,
        };
        budget::load(&args).await?;
        let mut data = AgentData::new(me.clone(), args);
        data.judged(&me); // Of each change the root tells.
        data.circuit_turned(&me);
        for one in recovered {
            match one {
                Recovered::Held(held) => data.resume(&me, *held),
                Recovered::Requeued(record, request) => data.recovered(&me, &record, request),
                Recovered::Parked(record, parked, request) => {
                    data.parked_before(&me, &record, parked, request);
                }
                Recovered::Asking(record) => {
                    let left = data.answer_left(&record);
                    data.mind_answer(&me, record.id, left);
                }
            }
        }
        Ok(data)
    }

    async fn handle(
        &self,
        me: ActorRef<AgentMsg>,
        msg: AgentMsg,
        data: &mut AgentData,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            AgentMsg::Submit(submission) => data.submit(&me, *submission),
            AgentMsg::Recorded(id, result) => data.recorded(&me, id, result),
            AgentMsg::Freed(id, equal) => data.freed(&me, id, equal),
            AgentMsg::AtRest(id) => data.arrive(&me, Arrival::Ended(id)),
            AgentMsg::PatienceDue => data.patience_due(&me),
            AgentMsg::PlacesDue => data.places_due(),
            AgentMsg::Judged => data.judged(&me),
            AgentMsg::CircuitTurned => data.circuit_turned(&me),
            AgentMsg::Woken(id) => data.woken(&me, id),
            AgentMsg::Cancel { record, why, reply } => {
                _ = reply.send(data.cancel(&me, &record, why));
            }
            AgentMsg::Unanswered(record) => data.unanswered(&me, &record),
            AgentMsg::CallOff(record, why) => _ = data.cancel(&me, &record, why),
            AgentMsg::Watch(id, reply) => _ = reply.send(data.watch(id)),
            AgentMsg::Stillborn(id) => data.cut_off(&me, id),
            AgentMsg::TakenOver(held) => data.taken_over(&me, *held),
            AgentMsg::CutOffSettled(id) => data.gone(&me, id),
            AgentMsg::Reseat(seat) => data.reseat(&me, seat),
            AgentMsg::Leave(reply) => data.leave(reply),
            AgentMsg::QuestionsSettled => data.questions_settled(),
            AgentMsg::Close => me.stop(None),
            AgentMsg::Drain(reply) => data.drain(reply),
            AgentMsg::CancelAll { why } => data.cancel_all(&why),
            AgentMsg::Broken => return Err("a task of the agent panicked".into()),
            AgentMsg::Inspect(reply) => _ = reply.send(data.view()),
        }
        Ok(())
    }

    /// Written out because the default stops the supervisor when any child ends, even well.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<AgentMsg>,
        event: SupervisionEvent,
        data: &mut AgentData,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(child, _, _) => {
                if let Some(id) = data.by_actor.get(&child.get_id()).copied() {
                    data.terminated(&me, id);
                }
                Ok(())
            }
            SupervisionEvent::ActorFailed(child, fault) => data.crashed(&me, &child, fault),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }
}

impl AgentData {
    fn new(me: ActorRef<AgentMsg>, args: AgentArgs) -> Self {
        let capacity = args.spec.capacity;
        Self {
            line: Line::new(capacity.running.map(Into::into), capacity.waiting),
            waiting: HashMap::new(),
            are_places_due: false,
            live: HashMap::new(),
            by_actor: BTreeMap::new(),
            leaning: BTreeMap::new(),
            early: BTreeMap::new(),
            early_ends: BTreeMap::new(),
            followed: BTreeSet::new(),
            since: args.kit.clock.now(),
            last: None,
            counts: pool::Counts::default(),
            crashes: Restarts::default(),
            born: Instant::now(),
            watched: false,
            credential: credential(&args.kit.keyring, &args.spec),
            circuit: None,
            draining: args.draining.then(Vec::new),
            leaving: None,
            tasks: JoinSet::new(),
            me,
            args,
        }
    }

    /// Begins a task that ends with this actor, and takes it along when it panics.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {} // What has ended is let go.
        let me = self.me.clone();
        self.tasks.spawn(alarmed(task, move || _ = me.cast(AgentMsg::Broken)));
    }

    /// How long an open question may stay open still.
    fn answer_left(&self, record: &Record) -> Duration {
        let open = (self.args.kit.clock.now() - record.changed_at).to_std();
        self.args.spec.deadlines.answer.saturating_sub(open.unwrap_or_default())
    }
}

//! `ExecutionActor`: one per execution; performs what [`decide::execution`](crate::decide::execution)
//! decides.

mod budget;
mod claiming;
mod ending;
mod heart;
mod log;
mod news;
mod quota;
mod resumption;
mod timers;
mod working;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::alarm::alarmed;
use crate::decide::execution::{Effect, Event, Phase, Policy, step};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::budget::Charge;
use crate::model::event::Fact;
use crate::model::execution::{Fence, Move, Stamp, State};
use crate::model::id::ExecutionId;
use crate::model::progress::Progress;
use crate::model::queue::Reason;
use crate::model::quota::Parked;
use crate::model::request::Request;
use crate::model::status::{ExecutionStatus, Health};
use crate::model::usage::Usage;
use crate::model::workspace::Workspace;
use crate::pen::{Pen, Stroke};
use crate::ports::driver::{Driver, Lease};
use crate::ports::ledger::Lines;
use crate::report::{Pulse, Report};

use claiming::Claiming;
use news::Account;
use quota::ended;

pub use claiming::Grant;
pub use resumption::Resumption;

/// Drives one execution to its outcome, then stops.
pub struct ExecutionActor;

/// What an execution is told.
pub enum ExecutionMsg {
    /// Something happened. Sent by a timer, by the pen, or by the owner.
    Happened(Event),
    /// The ledger gave what the attempt needs.
    Claimed(Grant),
    /// What the attempt needs is held by others; with the workspace that it asked for.
    HeldUp(Stamp, Reason, Option<Workspace>),
    /// The driver tells something.
    Reported(Report),
    /// The work takes so much of the machine.
    Measured(Stamp, Usage),
    /// Everything is written: the actor may stop.
    Written,
    /// A task of this actor panicked: what it would have told never comes.
    Broken,
    /// Asks for the present state. The answer never waits for the work.
    Inspect(RpcReplyPort<ExecutionStatus>),
}

/// What an execution begins with.
pub struct ExecutionArgs {
    /// Its id.
    pub id: ExecutionId,
    /// Where it takes up from: nothing done yet, or a question that was asked.
    pub from: Resumption,
    /// What happens to it first: `Begin` or `Answered`, or an end that comes before.
    pub first: Event,
    /// Since when it waits.
    pub since: DateTime<Utc>,
    /// What was asked, raw.
    pub request: Arc<Request>,
    /// The agent as it is configured now.
    pub spec: Arc<AgentSpec>,
    /// What does the work.
    pub driver: Arc<dyn Driver>,
    /// The world.
    pub kit: Arc<Kit>,
    /// Where its progress is told.
    pub progress: watch::Sender<Progress>,
    /// Names it in each line of the log.
    pub span: Span,
    /// Hears when nothing is left of its work and its end is in the ledger.
    pub at_rest: AtRest,
}

/// Takes the word that the place of an execution is free.
pub type AtRest = Box<dyn FnOnce() + Send>;

/// Loop data. The lease lives here because ractor drops this on every exit, also after a kill or a
/// panic, while `post_stop` runs only after a stop.
pub struct ExecutionData {
    me: ActorRef<ExecutionMsg>,
    id: ExecutionId,
    request: Arc<Request>,
    spec: Arc<AgentSpec>,
    driver: Arc<dyn Driver>,
    kit: Arc<Kit>,
    progress: watch::Sender<Progress>,
    span: Span,
    policy: Policy,
    phase: Phase,
    state: State,
    since: DateTime<Utc>,
    stamp: Stamp,
    fence: Fence,
    claiming: Claiming,
    at_rest: Option<AtRest>,
    pid: Option<u32>,
    /// What the present attempt took of the machine when that was last looked at.
    usage: Option<Usage>,
    account: Account,
    exit_code: Option<i32>,
    deadline: Option<DateTime<Utc>>,
    /// What waits for the pen until the present event is dealt with.
    lines: Lines,
    lease: Option<Lease>,
    /// What an earlier life told of the attempt that is taken up.
    known: Vec<Fact>,
    /// The signs of life of the present attempt.
    pulse: Pulse,
    cleaning: bool,
    /// Whether it lets go once nothing is left of the attempt that asked, or is parked.
    parking: bool,
    /// How it is parked.
    parked: Option<Parked>,
    /// What it has used up.
    spent: Charge,
    /// Since when the present attempt runs.
    runs_since: Option<Instant>,
    pen: mpsc::UnboundedSender<Stroke>,
    tasks: JoinSet<()>,
}

impl Actor for ExecutionActor {
    type Msg = ExecutionMsg;
    type State = ExecutionData;
    type Arguments = ExecutionArgs;

    async fn pre_start(
        &self,
        me: ActorRef<ExecutionMsg>,
        args: ExecutionArgs,
    ) -> Result<ExecutionData, ActorProcessingErr> {
        let (first, span) = (args.first.clone(), args.span.clone());
        let data = span.in_scope(|| ExecutionData::new(&me, args));
        me.cast(ExecutionMsg::Happened(first))?;
        Ok(data)
    }

    async fn handle(
        &self,
        me: ActorRef<ExecutionMsg>,
        msg: ExecutionMsg,
        data: &mut ExecutionData,
    ) -> Result<(), ActorProcessingErr> {
        let span = data.span.clone();
        span.in_scope(|| data.hear(&me, msg))
    }
}

impl ExecutionData {
    fn hear(
        &mut self,
        me: &ActorRef<ExecutionMsg>,
        msg: ExecutionMsg,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            ExecutionMsg::Happened(event) => self.happened(me, event),
            ExecutionMsg::Claimed(grant) => self.claimed(me, grant),
            ExecutionMsg::HeldUp(at, reason, wanted) => self.held_up(me, at, (reason, wanted)),
            ExecutionMsg::Reported(report) => self.reported(me, report),
            ExecutionMsg::Measured(at, usage) => self.measured(at, usage),
            ExecutionMsg::Written => self.written(me),
            ExecutionMsg::Inspect(reply) => _ = reply.send(self.status()),
            ExecutionMsg::Broken => return Err("a task of the execution panicked".into()),
        }
        Ok(())
    }

    fn new(me: &ActorRef<ExecutionMsg>, args: ExecutionArgs) -> Self {
        let ExecutionArgs { id, request, spec, driver, kit, progress, from, span, at_rest, .. } =
            args;
        let mut policy = Policy::of(&spec);
        policy.parks = from.parks;
        if !from.is_whole {
            policy.retry.max = 0;
            policy.parking.max = Duration::ZERO;
        }
        let since = kit.clock.now();
        let waited = (since - args.since).to_std().unwrap_or_default();
        Self {
            claiming: Claiming::new(&kit.turns, waited),
            pen: Pen::begin(id, &spec.id, &kit, (me.clone(), progress.clone())),
            since,
            phase: from.phase,
            state: from.state,
            stamp: from.stamp,
            fence: from.fence,
            at_rest: Some(at_rest),
            pid: None,
            usage: None,
            account: Account::default(),
            exit_code: None,
            deadline: None,
            lines: Lines::default(),
            lease: None,
            known: from.known,
            pulse: Pulse::default(),
            cleaning: false,
            parking: false,
            parked: None,
            spent: from.spent,
            runs_since: None,
            tasks: JoinSet::new(),
            me: me.clone(),
            id,
            request,
            spec,
            driver,
            kit,
            progress,
            span,
            policy,
        }
    }

    /// Begins a task that ends with this actor, and takes it along when it panics.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {} // What has ended is let go.
        let me = self.me.clone();
        let task = task.instrument(self.span.clone());
        self.tasks.spawn(alarmed(task, move || _ = me.cast(ExecutionMsg::Broken)));
    }

    /// The only place where the phase changes, and the only place where effects are performed.
    fn happened(&mut self, me: &ActorRef<ExecutionMsg>, event: Event) {
        match event {
            Event::TakenUp { at, ran } if self.state == State::Running => {
                self.mind_wall_time(me, at, ran);
            }
            Event::Settled => self.settled(),
            Event::Cleaned { .. } => {
                self.cleaning = false;
                self.claiming.go_ashore();
            }
            _ => {}
        }
        let phase = mem::replace(&mut self.phase, Phase::Idle);
        let (phase, effects) = step(phase, event, &self.policy);
        self.phase = phase;
        for effect in effects {
            self.perform(me, effect);
        }
        self.write_lines();
        if self.parking && !self.cleaning {
            self.rest();
        }
    }

    fn reported(&mut self, me: &ActorRef<ExecutionMsg>, report: Report) {
        match report {
            Report::Started { at, pid, spawned } => {
                if at == self.stamp {
                    self.pid = pid;
                    self.lines.facts.extend(spawned);
                }
                self.happened(me, Event::Started { at });
                self.mind_wall_time(me, at, Duration::ZERO);
            }
            Report::Used { at, tokens, charge } => self.used(me, at, (tokens, charge)),
            Report::Ended { at, verdict, exit_code, lines } => {
                self.take_end(at, exit_code, lines);
                self.attempt_ended(at, verdict.as_ref().err().map(|failure| failure.code));
                self.judge_credential(at, &verdict);
                self.happened(me, ended(at, verdict, || self.kit.clock.now()));
            }
            Report::Asked { at, exit_code, lines } => {
                self.take_end(at, exit_code, lines);
                self.attempt_ended(at, None);
                self.happened(me, Event::Asked { at });
            }
        }
    }

    fn perform(&mut self, me: &ActorRef<ExecutionMsg>, effect: Effect) {
        match effect {
            Effect::Claim { stamp, from } => self.claim(me, stamp, from),
            Effect::AskAgain { at, within } => self.ask_again(me, at, within),
            Effect::Start { stamp } => self.start(me, stamp),
            Effect::TakeUp { stamp } => self.take_up(me, stamp),
            Effect::Stop => self.lease.iter().for_each(|lease| lease.stop()),
            Effect::Wake { after, with } => self.wake(me, after, with),
            Effect::Look { at, after } => self.look(me, at, after),
            Effect::Measure { at } => self.measure(me, at),
            Effect::Warn { limit, left, message } => self.warn(limit, left, message),
            Effect::Move { from, to, stamp, why } => self.moved(from, to, stamp, why),
            Effect::Note { failure } => {
                self.lines.facts.push((self.kit.clock.now(), Fact::AttemptFailed(failure)));
            }
            Effect::Clean { stamp } => self.clean(me, stamp),
            Effect::Settle { stamp, ending } => self.settle(stamp, ending),
            Effect::Park => self.parking = true,
            Effect::ParkFor { wait, .. } => self.park(wait),
            Effect::Rest => self.rest(),
            Effect::Ignore { event } => {
                tracing::debug!(execution = %self.id, ?event, "ignored");
            }
        }
    }

    fn write_lines(&mut self) {
        let lines = mem::take(&mut self.lines);
        if !lines.is_empty() {
            self.write(Stroke::of(self.fence, lines));
        }
    }

    fn write(&self, stroke: Stroke) {
        _ = self.pen.send(stroke); // The pen ends after this actor.
    }

    fn moved(&mut self, from: State, to: State, stamp: Stamp, reason: String) {
        debug_assert!(from.may_become(to), "{from} -> {to}");
        let at = self.kit.clock.now();
        self.lines.facts.push((at, Fact::Moved(Move { from, to, stamp, at, reason })));
        self.publish(to);
    }

    fn publish(&mut self, state: State) {
        self.state = state;
        self.since = self.kit.clock.now();
        self.deadline = None;
        // A question is told once the ledger has it: whoever waits for it reads it there.
        if state != State::Waiting {
            self.progress.send_modify(|progress| (progress.state, progress.queued) = (state, None));
        }
        tracing::debug!(execution = %self.id, %state, "moved");
    }

    fn written(&self, me: &ActorRef<ExecutionMsg>) {
        if self.state == State::Waiting {
            self.progress.send_modify(|progress| progress.state = State::Waiting);
        }
        if let Some(stay) = self.stay() {
            self.progress.send_modify(|progress| progress.parked = Some(stay));
        }
        me.stop(None);
    }

    fn rest(&mut self) {
        let is_over = self.progress.borrow().outcome.is_some();
        if let Some(tell) = self.at_rest.take_if(|_| is_over) {
            tell(); // What is still to be written takes nobody's place.
        }
        self.write_lines();
        self.write(Stroke::Rest);
    }

    fn status(&self) -> ExecutionStatus {
        ExecutionStatus {
            id: self.id,
            health: Health::Alive,
            state: Some(self.state),
            since: Some(self.since),
            queued: self.progress.borrow().queued,
            stamp: Some(self.stamp),
            pid: self.pid,
            usage: self.usage.filter(|_| self.state == State::Running),
            deadline: self.deadline,
        }
    }
}

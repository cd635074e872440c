//! `SchedulerActor`: sleeps to the next due instant, decides, and asks at the door.
//!
//! What it decides is in the timebook before anything is asked for, and what is asked for is known
//! by its schedule and time: whoever goes on after a crash asks the same again, and the door joins
//! the two. One change of the timebook is under way at a time; the actor itself waits for nothing.

mod asking;
pub(crate) mod book;
mod changing;
mod entry;
mod errands;
mod kept;
mod leave;
mod looking;
mod settling;
mod waking;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::task::JoinSet;

use crate::door::Gateway;
use crate::kit::Kit;
use crate::model::failure::Failure;
use crate::model::occurrence::Ending;
use crate::model::schedule::{Configured, ScheduleId, ScheduleView};
use crate::model::status::Due;
use crate::ports::timebook::Timebook;
use crate::ports::wording::Wording;

pub use self::asking::Asked;
pub use self::changing::Change;
use self::changing::Changed;
use self::entry::Entry;
use self::errands::Errands;
use self::kept::Patterns;
use self::leave::Leave;
use self::looking::Advanced;
use self::settling::Settling;
pub use self::waking::NAP;
use self::waking::Waking;

/// Decides at the times of all schedules.
pub struct SchedulerActor;

/// What there is to be scheduled, and with what.
#[derive(Clone)]
pub struct Agenda {
    /// Where it is written down.
    pub timebook: Arc<dyn Timebook>,
    /// What puts it into words.
    pub wording: Arc<dyn Wording>,
    /// What the configuration says; `None` where that was taken up already, and the timebook has it.
    pub configured: Option<Vec<Configured>>,
    /// How long what happened is remembered.
    pub history: Duration,
    /// The longest sleep: a clock that is set meanwhile is seen after that. [`NAP`] is right.
    pub nap: Duration,
}

/// What the scheduler begins with.
pub struct SchedulerArgs {
    /// The world.
    pub kit: Kit,
    /// What is to be done.
    pub agenda: Agenda,
    /// Where it asks.
    pub door: Gateway,
}

/// Where a change is answered: with the schedule as it is then, where there is one.
pub type ChangeReply = RpcReplyPort<Result<Option<ScheduleView>, Failure>>;

/// One time of one schedule.
pub type Slot = (ScheduleId, DateTime<Utc>);

/// What the scheduler is told.
pub enum SchedulerMsg {
    /// Something may be due.
    Tick,
    /// The clock was set back.
    SetBack,
    /// Decisions were written down, or were not.
    Advanced(Box<Advanced>),
    /// What became of occurrences was written down.
    Settled,
    /// What became of a request.
    Asked(Slot, Asked),
    /// What it became has ended; so often the latest of its schedule failed in a row by then.
    Ended(Slot, Ending, u32),
    /// Changes what there is. Answers when that is written down.
    Change(Change, ChangeReply),
    /// A change was written down, or was not.
    Changed(Box<Changed>),
    /// Asks about one schedule.
    Show(ScheduleId, RpcReplyPort<Option<ScheduleView>>),
    /// Asks about so many schedules after an id.
    List(Option<ScheduleId>, usize, RpcReplyPort<Vec<ScheduleView>>),
    /// Asks how it is.
    Inspect(RpcReplyPort<Agendum>),
    /// Nothing is asked for any more.
    Drain,
    /// A task panicked.
    Broken,
}

/// How a scheduler is.
pub struct Agendum {
    /// Since when it lives.
    pub since: DateTime<Utc>,
    /// The schedules that are due at their times.
    pub active: usize,
    /// All schedules.
    pub schedules: usize,
    /// The first that is due next, of each agent.
    pub due: Vec<Due>,
}

/// Loop data.
pub struct SchedulerData {
    me: ActorRef<SchedulerMsg>,
    args: SchedulerArgs,
    since: DateTime<Utc>,
    entries: BTreeMap<ScheduleId, Entry>,
    patterns: Patterns,
    errands: Errands,
    waking: Waking,
    /// Whether a change of the timebook is under way.
    writing: bool,
    settling: Settling,
    /// Whether there was more to be done by now than is done before others are heard.
    behind: bool,
    changes: VecDeque<(Change, ChangeReply)>,
    /// Who is to be asked for, as soon as fewer are.
    ready: VecDeque<Slot>,
    /// Who may ask, as it was read for the decisions that were written down last.
    leave: Option<Arc<Leave>>,
    asking: usize,
    draining: bool,
    /// Everything under way, which ends with this actor.
    tasks: JoinSet<()>,
}

impl Actor for SchedulerActor {
    type Msg = SchedulerMsg;
    type State = SchedulerData;
    type Arguments = SchedulerArgs;

    /// Reads what there is, brings it to what the configuration says, and takes up what is open.
    async fn pre_start(
        &self,
        me: ActorRef<SchedulerMsg>,
        args: SchedulerArgs,
    ) -> Result<SchedulerData, ActorProcessingErr> {
        let mut data = SchedulerData::new(me, args);
        data.load().await?;
        data.take_up().await?;
        data.start_timer();
        data.go_on();
        Ok(data)
    }

    async fn handle(
        &self,
        _: ActorRef<SchedulerMsg>,
        msg: SchedulerMsg,
        data: &mut SchedulerData,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            SchedulerMsg::Tick => data.tick(),
            SchedulerMsg::SetBack => data.set_back(),
            SchedulerMsg::Advanced(advanced) => data.advanced(*advanced),
            SchedulerMsg::Settled => data.settled(),
            SchedulerMsg::Asked(slot, asked) => data.asked(&slot, asked),
            SchedulerMsg::Ended(slot, ending, streak) => data.ended(&slot, ending, streak),
            SchedulerMsg::Change(change, reply) => data.changes.push_back((change, reply)),
            SchedulerMsg::Changed(changed) => data.changed(*changed),
            SchedulerMsg::Show(id, reply) => _ = reply.send(data.show(&id)),
            SchedulerMsg::List(after, limit, reply) => _ = reply.send(data.list(after, limit)),
            SchedulerMsg::Inspect(reply) => _ = reply.send(data.inspect()),
            SchedulerMsg::Drain => data.draining = true,
            SchedulerMsg::Broken => return Err("a task of the scheduler panicked".into()),
        }
        data.go_on();
        Ok(())
    }

    /// Written out because the default stops the supervisor when any child ends, even well.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SchedulerMsg>,
        _: SupervisionEvent,
        _: &mut SchedulerData,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // It has no children.
    }
}

impl SchedulerData {
    fn new(me: ActorRef<SchedulerMsg>, args: SchedulerArgs) -> Self {
        let since = args.kit.clock.now();
        Self {
            waking: Waking::new(),
            me,
            args,
            since,
            entries: BTreeMap::new(),
            patterns: Patterns::default(),
            errands: Errands::default(),
            writing: false,
            settling: Settling::default(),
            behind: false,
            changes: VecDeque::new(),
            ready: VecDeque::new(),
            leave: None,
            asking: 0,
            draining: false,
            tasks: JoinSet::new(),
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.args.kit.clock.now()
    }

    /// Does what may be done now, after whatever was told.
    fn go_on(&mut self) {
        while self.tasks.try_join_next().is_some() {} // What is over is let go.
        self.write_settled();
        if self.draining {
            return;
        }
        if !self.writing {
            self.begin_change();
        }
        if !self.writing && (self.waking.rang() || self.behind) {
            self.look();
        }
        self.ask_the_ready();
        self.wake();
    }

    fn inspect(&self) -> Agendum {
        let active = self.entries.values().filter(|entry| entry.kept.is_active()).count();
        let mut first = BTreeMap::new();
        for due in self.entries.values().filter_map(Entry::due) {
            let known = first.entry(due.agent.clone()).or_insert_with(|| due.clone());
            if due.at < known.at {
                *known = due;
            }
        }
        let due = first.into_values().collect();
        Agendum { since: self.since, active, schedules: self.entries.len(), due }
    }
}

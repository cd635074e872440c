//! How an execution comes by what an attempt needs: a slot of its agent, and its workspace.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{ExecutionData, ExecutionMsg};
use crate::decide::execution::Event;
use crate::decide::turn::Waiters;
use crate::kit::Kit;
use crate::model::execution::{Fence, Move, Stamp, State};
use crate::model::queue::{Queued, Reason};
use crate::model::workspace::Workspace;
use crate::pen::{Bid, Stroke};
use crate::ports::ledger::ClaimOrder;
use crate::room::Berth;
use crate::turns::{Turn, Turns};

/// What the ledger gave for an attempt.
pub struct Grant {
    /// The attempt.
    pub at: Stamp,
    /// The generation under which it is made.
    pub fence: Fence,
    /// The folder that it alone may change.
    pub workspace: Option<Workspace>,
}

/// What an execution needs for its next attempt, and what it has.
pub(super) struct Claiming {
    /// The attempt that is asked for.
    stamp: Option<Stamp>,
    /// Since when.
    since: Instant,
    /// How long it had waited before.
    before: Duration,
    /// Its place among those who wait for a workspace.
    turn: Option<Turn>,
    /// Hears when something may be free.
    news: watch::Receiver<Waiters>,
    /// The workspace of the present attempt.
    held: Option<Held>,
    /// What it may take of the memory, for as long as something of its attempt is left.
    berth: Option<Berth>,
    /// When the first attempt was let in.
    begun: Option<Instant>,
}

/// A workspace. Dropping it tells those who wait for one.
struct Held {
    workspace: Workspace,
    turns: Turns,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.turns.stir();
    }
}

impl Claiming {
    /// Nothing is asked for yet; `before` was spent in the line of the agent.
    pub(super) fn new(turns: &Turns, before: Duration) -> Self {
        let (since, news) = (Instant::now(), turns.listen());
        Self { stamp: None, since, before, turn: None, news, held: None, berth: None, begun: None }
    }

    fn begin(&mut self, stamp: Stamp) {
        if self.stamp.is_some() {
            self.before = Duration::ZERO; // What an earlier attempt had waited is spent.
        }
        (self.stamp, self.since) = (Some(stamp), Instant::now());
    }

    /// How long the attempt has been waited for.
    fn waited(&self) -> Duration {
        self.before + self.since.elapsed()
    }

    /// The workspace of the present attempt.
    pub(super) fn workspace(&self) -> Option<Workspace> {
        self.held.as_ref().map(|held| held.workspace.clone())
    }

    /// How long ago the first attempt was let in.
    pub(super) fn took(&self) -> Option<Duration> {
        self.begun.map(|begun| begun.elapsed())
    }

    /// Nothing is left of its attempt.
    pub(super) fn go_ashore(&mut self) {
        if let Some(berth) = self.berth.take() {
            berth.leave();
        }
    }

    /// Needs nothing more.
    pub(super) fn leave(&mut self) {
        self.turn = None;
    }

    /// The ledger has its end: others may have what it held.
    pub(super) fn release(&mut self) {
        self.held = None;
    }
}

impl ExecutionData {
    pub(super) fn claim(&mut self, me: &ActorRef<ExecutionMsg>, stamp: Stamp, from: State) {
        if self.claiming.stamp != Some(stamp) {
            self.claiming.begin(stamp);
        }
        if !self.has_room() {
            self.claiming.news.mark_unchanged();
            return self.held_up(me, stamp, (Reason::MemoryShort, None));
        }
        let (at, reason) = (self.kit.clock.now(), "its turn has come".to_owned());
        let order = ClaimOrder {
            id: self.id,
            agent: self.spec.id.clone(),
            limit: self.spec.capacity.running.map(Into::into),
            workspace: None, // Where it really is, is seen at the last moment.
            in_turn: self.driver.takes_turns(),
            fence: self.fence,
            moved: Move { from, to: State::Starting, stamp, at, reason },
        };
        self.claiming.news.mark_unchanged(); // What is freed from now on is news.
        self.write(Stroke::Claim(Box::new(Bid {
            order,
            driver: Arc::clone(&self.driver),
            spec: Arc::clone(&self.spec),
            request: Arc::clone(&self.request),
            turns: self.kit.turns.clone(),
        })));
    }

    /// Whether there is memory for its attempt, which it has from then on.
    fn has_room(&mut self) -> bool {
        let Some(bytes) = self.spec.expects else { return true };
        self.claiming.berth = None; // Of an earlier try, which was held up elsewhere.
        self.claiming.berth = self.kit.room.enter(self.id, bytes, &self.kit.turns);
        self.claiming.berth.is_some()
    }

    /// It goes on, whatever others take.
    pub(super) fn keep_room(&mut self) {
        let Kit { room, turns, .. } = &*self.kit;
        self.claiming.berth = self.spec.expects.map(|bytes| room.occupy(self.id, bytes, turns));
    }

    pub(super) fn claimed(&mut self, me: &ActorRef<ExecutionMsg>, grant: Grant) {
        let Grant { at, fence, workspace } = grant;
        self.fence = fence;
        self.stamp = at;
        let turns = self.kit.turns.clone();
        self.claiming.held = workspace.map(|workspace| Held { workspace, turns });
        self.claiming.leave();
        self.claiming.begun.get_or_insert_with(Instant::now);
        self.publish(State::Starting);
        self.happened(me, Event::Claimed { at });
    }

    /// What it needs is held by others.
    pub(super) fn held_up(
        &mut self,
        me: &ActorRef<ExecutionMsg>,
        at: Stamp,
        (reason, workspace): (Reason, Option<Workspace>),
    ) {
        if reason != Reason::MemoryShort {
            self.claiming.berth = None; // Others may begin meanwhile.
        }
        let mut position = 1;
        match workspace.filter(|_| reason == Reason::WorkspaceBusy) {
            None => self.claiming.leave(),
            Some(wanted) => {
                position = self.kit.turns.place(self.id, &wanted);
                match &self.claiming.turn {
                    Some(turn) => turn.wants(wanted),
                    None => self.claiming.turn = Some(self.kit.turns.join(self.id, wanted)),
                }
            }
        }
        let queued = Some(Queued::new(position, reason));
        self.progress.send_if_modified(|progress| progress.waits(queued));
        self.happened(me, Event::Busy { at, waited: self.claiming.waited() });
    }

    /// Asks again when something may be free, and at the latest after a while.
    pub(super) fn ask_again(&mut self, me: &ActorRef<ExecutionMsg>, at: Stamp, within: Duration) {
        let (me, mut news) = (me.clone(), self.claiming.news.clone());
        self.spawn(async move {
            _ = timeout(within, news.changed()).await; // Either way it asks.
            _ = me.cast(ExecutionMsg::Happened(Event::ClaimDue { at })); // It ends with the actor.
        });
    }
}

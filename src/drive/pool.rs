//! Programs that are kept between the messages of their conversations.
//!
//! Each conversation has one at most. While it is idle a task of its own holds it: reads away what it
//! writes, and lets it go when its time is over, when it takes too much or has ended, or when another
//! needs its place. Dropping the pool ends all that are idle.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use algonius_actors::model::dialogue::Keeping;
use algonius_actors::model::resources::Resources;
use algonius_actors::model::session::Conversation;
use algonius_actors::model::status::KeptStatus;
use algonius_actors::model::usage::Usage;
use chrono::{DateTime, Utc};
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::kept::Kept;
use super::limits::exceeded;
use crate::warden::{Gauge, Pipe};

/// From one look at what an idle program takes to the next.
const LOOK: Duration = Duration::from_secs(2);

/// How an idle program is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// How long it may take for its end.
    pub(super) grace: Duration,
    /// What it may take of the machine.
    pub(super) resources: Resources,
}

/// The programs of one agent.
pub(super) struct Pool {
    keeping: Keeping,
    seats: watch::Sender<Seats>,
}

#[derive(Default)]
struct Seats {
    by_conversation: HashMap<Conversation, Seat>,
    /// How many were ever taken.
    taken: u64,
}

/// The place of one program.
struct Seat {
    number: u64,
    status: KeptStatus,
    /// `None` while a message is worked on.
    idle: Option<Idle>,
}

/// The way to the task that holds an idle program. Dropping it ends the program.
struct Idle {
    asks: oneshot::Sender<oneshot::Sender<Kept>>,
    /// Ends with the program.
    gone: oneshot::Receiver<()>,
}

/// A place in the pool, for one program. Dropping it gives it up.
pub(super) struct Ticket {
    of: Conversation,
    number: u64,
    pool: Weak<Pool>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.seats.send_modify(|seats| {
                let is_mine = |seat: &Seat| seat.number == self.number;
                if seats.by_conversation.get(&self.of).is_some_and(is_mine) {
                    seats.by_conversation.remove(&self.of);
                }
            });
        }
    }
}

impl Pool {
    /// An empty one.
    pub(super) fn new(keeping: Keeping) -> Arc<Self> {
        Arc::new(Self { keeping, seats: watch::Sender::default() })
    }

    /// The programs that live, the oldest first.
    pub(super) fn all(&self) -> Vec<KeptStatus> {
        let seats = self.seats.borrow();
        let mut all: Vec<_> = seats.by_conversation.values().map(|seat| seat.status).collect();
        all.sort_by_key(|status| (status.since, status.pid));
        all
    }

    /// Takes the idle program of a conversation, if it lives.
    pub(super) async fn take(&self, of: &Conversation) -> Option<Kept> {
        let mut idle = None;
        self.seats.send_modify(|seats| {
            if let Some(seat) = seats.by_conversation.get_mut(of) {
                (idle, seat.status.busy) = (seat.idle.take(), true);
            }
        });
        let (reply, kept) = oneshot::channel();
        idle?.asks.send(reply).ok()?;
        kept.await.ok()
    }

    /// A place for a program that is about to be started. Where all are taken, the one that is idle for
    /// longest is ended first.
    pub(super) async fn enter(self: &Arc<Self>, of: &Conversation, now: DateTime<Utc>) -> Ticket {
        while let Some(Idle { asks, gone }) = self.superfluous() {
            drop(asks);
            _ = gone.await; // An error too says that it is gone.
        }
        let mut number = 0;
        self.seats.send_modify(|seats| {
            seats.taken += 1;
            number = seats.taken;
            let status = KeptStatus { pid: 0, busy: true, since: now, used: now, usage: None };
            let seat = Seat { number, status, idle: None };
            seats.by_conversation.insert(of.clone(), seat);
        });
        Ticket { of: of.clone(), number, pool: Arc::downgrade(self) }
    }

    /// The program that goes where another one needs a place.
    fn superfluous(&self) -> Option<Idle> {
        let mut idle = None;
        self.seats.send_if_modified(|seats| {
            if seats.by_conversation.len() < self.keeping.most {
                return false;
            }
            let idlers = seats.by_conversation.iter().filter(|(_, seat)| seat.idle.is_some());
            let longest = idlers.min_by_key(|(_, seat)| seat.status.used);
            let longest = longest.map(|(of, _)| of.clone());
            idle = longest.and_then(|of| seats.by_conversation.remove(&of)?.idle);
            idle.is_some()
        });
        idle
    }

    /// Notes which process has a place.
    pub(super) fn started(&self, ticket: &Ticket, pid: u32) {
        self.change(ticket, |seat| seat.status.pid = pid);
    }

    /// Keeps a program until the next message of its conversation.
    pub(super) fn give_back(self: &Arc<Self>, kept: Kept, terms: Terms, now: DateTime<Utc>) {
        let ((asks, asked), (over, gone)) = (oneshot::channel(), oneshot::channel());
        self.change(&kept.ticket, |seat| {
            (seat.status.busy, seat.status.used) = (false, now);
            seat.idle = Some(Idle { asks, gone });
        });
        let pool = Arc::downgrade(self);
        let idle = self.keeping.idle;
        tokio::spawn(async move {
            hold(kept, asked, (pool, idle, terms)).await;
            drop(over);
        });
    }

    fn change(&self, ticket: &Ticket, change: impl FnOnce(&mut Seat)) {
        self.seats.send_modify(|seats| {
            let seat = seats.by_conversation.get_mut(&ticket.of);
            if let Some(seat) = seat.filter(|seat| seat.number == ticket.number) {
                change(seat);
            }
        });
    }
}

/// What becomes of an idle program.
enum Fate {
    Wanted(oneshot::Sender<Kept>),
    Ended,
    LetGo(&'static str),
}

/// Holds an idle program until it is wanted or not wanted any more.
async fn hold(
    mut kept: Kept,
    asked: oneshot::Receiver<oneshot::Sender<Kept>>,
    (pool, idle, terms): (Weak<Pool>, Duration, Terms),
) {
    let Kept { stdout, stderr, ending, tree, ticket, .. } = &mut kept;
    let fate = tokio::select! {
        biased;
        asked = asked => match asked {
            Ok(reply) => Fate::Wanted(reply),
            Err(_) => Fate::LetGo("its place is needed, or its agent is"),
        },
        _ = ending => Fate::Ended,
        failure = exceeded(&terms.resources, &**tree) => {
            tracing::warn!(%failure, "an idle program takes too much");
            Fate::LetGo("it took more than it may")
        }
        () = read_both_away(stdout, stderr) => Fate::LetGo("it has closed its output"),
        () = look(&pool, ticket, tree.gauge()) => Fate::LetGo("its agent is gone"),
        _late = timeout(idle, std::future::pending::<()>()) => Fate::LetGo("it was idle for too long"),
    };
    match fate {
        Fate::Wanted(reply) => {
            if let Err(kept) = reply.send(kept) {
                kept.end(terms.grace).await; // Whoever wanted it is gone.
            }
        }
        Fate::Ended => {
            tracing::info!(pid = kept.pid, "a kept program has ended between two messages");
            kept.clear().await;
        }
        Fate::LetGo(why) => {
            tracing::info!(pid = kept.pid, why, "a kept program is let go");
            kept.end(terms.grace).await;
        }
    }
}

/// Reads what nobody asked for, so that no program waits at a full pipe. Returns when standard output
/// has ended.
async fn read_both_away(stdout: &mut Pipe, stderr: &mut Pipe) {
    let away = async |pipe: &mut Pipe| {
        let mut bytes = [0; 4096];
        while pipe.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    };
    let errors = async {
        away(stderr).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = away(stdout) => {}
        () = errors => {}
    }
}

/// Looks again and again what it takes; returns when there is nobody to be told.
async fn look(pool: &Weak<Pool>, ticket: &Ticket, gauge: Gauge) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let usage: Option<Usage> = gauge.clone().read().await;
        let Some(pool) = pool.upgrade() else { return };
        pool.change(ticket, |seat| seat.status.usage = usage.or(seat.status.usage));
    }
}

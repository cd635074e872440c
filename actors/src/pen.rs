//! Writes what one execution does into the ledger, in order, and tells when it is there.
//!
//! A task of its own, so that no actor waits for a disk. It does not give up while its actor lives: what
//! happened must be written, so a store that is full is asked again until it takes the record. Once the
//! actor is gone somebody follows it from what the ledger has, and the first failure is the end.
//!
//! That work lives is written with what comes next, if that comes soon: to those who follow, and to
//! whoever takes it up after a crash, it is the same as that it starts.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::{Instrument, Span};

use crate::alarm::alarmed;
use crate::decide::execution::Event;
use crate::execution::{ExecutionMsg, Grant};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::event::Fact;
use crate::model::execution::{Fence, State};
use crate::model::id::{AgentId, ExecutionId};
use crate::model::progress::Progress;
use crate::model::queue::Reason;
use crate::model::request::Request;
use crate::pens::Held;
use crate::ports::driver::Driver;
use crate::ports::ledger::{Claim, ClaimOrder, Ledger, LedgerError, Lines, Settlement};
use crate::turns::Turns;

/// Pause before a store that did not commit is asked again.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a beginning may wait for the end.
const MOMENT: Duration = Duration::from_millis(50);

/// One thing to write.
pub(crate) enum Stroke {
    /// Take what an attempt needs.
    Claim(Box<Bid>),
    /// Append text and facts.
    Record(Fence, Lines),
    /// Append them with what comes next, or after a moment: nobody needs them at once.
    Begin(Fence, Lines),
    /// End it.
    Settle(Settlement),
    /// Nothing more will come.
    Rest,
}

impl Stroke {
    /// Lines to write: at once, unless all that they say is that the work lives.
    pub(crate) fn of(fence: Fence, lines: Lines) -> Self {
        let begins = |fact: &Fact| match fact {
            Fact::Spawned { .. } => true,
            Fact::Moved(moved) => moved.to == State::Running,
            _ => false,
        };
        if lines.chunks.is_empty() && lines.facts.iter().all(|(_, fact)| begins(fact)) {
            Self::Begin(fence, lines)
        } else {
            Self::Record(fence, lines)
        }
    }
}

/// An attempt that would begin.
pub(crate) struct Bid {
    /// What is ordered, but for the workspace.
    pub(crate) order: ClaimOrder,
    /// Knows the workspace.
    pub(crate) driver: Arc<dyn Driver>,
    /// The agent.
    pub(crate) spec: Arc<AgentSpec>,
    /// What was asked, raw.
    pub(crate) request: Arc<Request>,
    /// Who waits for a workspace.
    pub(crate) turns: Turns,
}

/// The writer of one execution.
pub(crate) struct Pen {
    id: ExecutionId,
    ledger: Arc<dyn Ledger>,
    actor: ActorRef<ExecutionMsg>,
    progress: watch::Sender<Progress>,
    strokes: mpsc::UnboundedReceiver<Stroke>,
    /// What came while a beginning waited, and is no part of it.
    then: Option<Stroke>,
    /// Whoever follows the actor waits for its end. To be held, not to be read.
    _held: Held,
}

impl Pen {
    /// Begins to write. It ends when the execution's actor is gone.
    pub(crate) fn begin(
        id: ExecutionId,
        agent: &AgentId,
        kit: &Kit,
        (actor, progress): (ActorRef<ExecutionMsg>, watch::Sender<Progress>),
    ) -> mpsc::UnboundedSender<Stroke> {
        let (sender, strokes) = mpsc::unbounded_channel();
        let (ledger, held) = (Arc::clone(&kit.ledger), kit.pens.hold(agent.clone(), id));
        let lost = actor.clone();
        let pen = Self { id, ledger, actor, progress, strokes, then: None, _held: held };
        let writing = pen.write_all().instrument(Span::current());
        tokio::spawn(alarmed(writing, move || _ = lost.cast(ExecutionMsg::Broken)));
        sender
    }

    async fn write_all(mut self) {
        while let Some(stroke) = self.next().await {
            if self.write(stroke).await.is_break() {
                return;
            }
            self.progress.send_modify(Progress::has_news);
        }
    }

    /// What is written next. A beginning waits a moment for what it may be written with.
    async fn next(&mut self) -> Option<Stroke> {
        let stroke = match self.then.take() {
            Some(stroke) => stroke,
            None => self.strokes.recv().await?,
        };
        let Stroke::Begin(fence, lines) = stroke else { return Some(stroke) };
        let next = timeout(MOMENT, self.strokes.recv()).await.ok().flatten();
        let (stroke, then) = joined(fence, lines, next);
        self.then = then;
        Some(stroke)
    }

    async fn write(&self, stroke: Stroke) -> ControlFlow<()> {
        match stroke {
            Stroke::Claim(_) if self.strokes.is_closed() => {} // Nobody would do the work.
            Stroke::Claim(bid) => self.claim(*bid).await,
            Stroke::Record(fence, lines) | Stroke::Begin(fence, lines) => {
                while let Err(error) = self.ledger.write(self.id, fence, lines.clone()).await {
                    self.wait(&error).await?;
                }
            }
            Stroke::Settle(settlement) => {
                while let Err(error) = self.ledger.settle(settlement.clone()).await {
                    self.wait(&error).await?;
                }
                self.tell(ExecutionMsg::Happened(Event::Settled));
            }
            Stroke::Rest => self.tell(ExecutionMsg::Written),
        }
        ControlFlow::Continue(())
    }

    async fn claim(&self, bid: Bid) {
        let Bid { mut order, driver, spec, request, turns } = bid;
        let workspace = driver.workspace(&spec, &request).await;
        let (id, at) = (self.id, order.moved.stamp);
        order.workspace.clone_from(&workspace);
        let is_first = workspace.as_ref().is_none_or(|wanted| turns.place(id, wanted) == 1);
        let claim = if is_first {
            self.ledger.claim(order).await
        } else {
            Ok(Claim::Busy(Reason::WorkspaceBusy)) // It is for those to ask who came before.
        };
        self.tell(match claim {
            Ok(Claim::Granted(fence)) => ExecutionMsg::Claimed(Grant { at, fence, workspace }),
            Ok(Claim::Busy(reason)) => ExecutionMsg::HeldUp(at, reason, workspace),
            Ok(Claim::Gone) => ExecutionMsg::Happened(Event::Gone),
            Err(error) => {
                tracing::error!(execution = %self.id, %error, "claim failed");
                ExecutionMsg::Happened(Event::ClaimFailed { at })
            }
        });
    }

    /// Pauses before the next try; there is none when the actor is gone.
    async fn wait(&self, error: &LedgerError) -> ControlFlow<()> {
        tracing::error!(execution = %self.id, %error, "write failed, will be tried again");
        tokio::time::sleep(PATIENCE).await;
        if self.strokes.is_closed() {
            tracing::error!(execution = %self.id, "write given up, its actor is gone");
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn tell(&self, msg: ExecutionMsg) {
        _ = self.actor.cast(msg); // An actor that is gone needs to hear nothing.
    }
}

/// A beginning together with what came next, where they are of one claim; else what is left of both.
fn joined(fence: Fence, mut lines: Lines, next: Option<Stroke>) -> (Stroke, Option<Stroke>) {
    match next {
        Some(Stroke::Record(of, more) | Stroke::Begin(of, more)) if of == fence => {
            lines.extend(more);
            (Stroke::Record(fence, lines), None)
        }
        Some(Stroke::Settle(end)) if end.fence == fence => {
            lines.extend(end.lines);
            (Stroke::Settle(Settlement { lines, ..end }), None)
        }
        next => (Stroke::Record(fence, lines), next),
    }
}

//! Writes what one execution does into the ledger, in order, and tells when it is there.
//!
//! A task of its own, so that no actor waits for a disk. It does not give up while its actor lives: what
//! happened must be written, so a store that is full is asked again until it takes the record. Once the
//! actor is gone somebody follows it from what the ledger has, and the first failure is the end.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::{mpsc, watch};
use tracing::{Instrument, Span};

use crate::alarm::alarmed;
use crate::decide::execution::Event;
use crate::execution::{ExecutionMsg, Grant};
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::execution::Fence;
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

/// One thing to write.
pub(crate) enum Stroke {
    /// Take what an attempt needs.
    Claim(Box<Bid>),
    /// Append text and facts.
    Record(Fence, Lines),
    /// End it.
    Settle(Settlement),
    /// Nothing more will come.
    Rest,
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
        let pen = Self { id, ledger, actor, progress, strokes, _held: held };
        let writing = pen.write_all().instrument(Span::current());
        tokio::spawn(alarmed(writing, move || _ = lost.cast(ExecutionMsg::Broken)));
        sender
    }

    async fn write_all(mut self) {
        while let Some(stroke) = self.strokes.recv().await {
            if self.write(stroke).await.is_break() {
                return;
            }
            self.progress.send_modify(Progress::has_news);
        }
    }

    async fn write(&self, stroke: Stroke) -> ControlFlow<()> {
        match stroke {
            Stroke::Claim(_) if self.strokes.is_closed() => {} // Nobody would do the work.
            Stroke::Claim(bid) => self.claim(*bid).await,
            Stroke::Record(fence, lines) => {
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

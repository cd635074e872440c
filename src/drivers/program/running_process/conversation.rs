//! Dialogue with a program over its standard input while it runs.

use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use algonius_warden::{StdinJournal, StdinPipe};
use tokio::sync::watch;

use crate::drivers::adapters::event_reader::EventReader;
use crate::drivers::control::Control;
use crate::drivers::output::pump::{OutputSource, PumpedText, RawWriter};
use crate::drivers::stdio::agent_turn::{AgentTurn, TurnPlan};
use crate::drivers::stdio::protocol::StdioTurn;
use crate::drivers::stdio::session::Talk;

/// Dialogue that an attempt will have with its program.
pub(in crate::drivers) enum Dialogue {
    /// One call or message.
    Stdio(Box<StdioTurn>),
    /// Turn of an interactive agent, with the orders of the lease.
    Agent(Box<TurnPlan>, Control),
}

/// Dialogue that runs.
pub(super) enum RunningDialogue {
    Stdio(Box<Talk>),
    Agent(Box<AgentTurn>),
}

impl RunningDialogue {
    /// Starts a dialogue; `None` if the standard input is not available, so that only the output is read.
    pub(super) fn begin(
        dialogue: Dialogue,
        (stdin, journal): (Option<StdinPipe>, Option<StdinJournal>),
        is_text: bool,
    ) -> Option<Self> {
        match dialogue {
            Dialogue::Stdio(turn) => {
                let talk = Talk::new(stdin, *turn);
                Some(Self::Stdio(Box::new(if is_text { talk.in_text() } else { talk })))
            }
            Dialogue::Agent(plan, orders) => {
                let answers = orders.take_answers()?;
                match AgentTurn::new(*plan, journal?, (answers, orders)) {
                    Ok(turn) => Some(Self::Agent(Box::new(turn))),
                    Err(error) => {
                        tracing::error!(%error, "journal of standard input cannot be read");
                        None
                    }
                }
            }
        }
    }

    /// Returns true if the answer is the last of several messages.
    pub(super) const fn has_messages(&self) -> bool {
        matches!(self, Self::Agent(_))
    }

    /// Runs the dialogue to its end, and reads until the program has closed its output.
    pub(super) async fn run(
        self,
        source: OutputSource,
        note: RawWriter,
        (events, report): (&mut EventReader<'_>, &Reporter),
        over: &watch::Sender<bool>,
    ) -> Result<PumpedText, LedgerError> {
        match self {
            Self::Stdio(talk) => talk.once(source, note, events, over).await,
            Self::Agent(turn) => turn.run(source, note, (events, report), over).await,
        }
    }
}

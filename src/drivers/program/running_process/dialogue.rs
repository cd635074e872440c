//! Dialogue with a program over its standard input while it runs.

use algonius_actors::driver::report::Reporter;
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::{StdinJournal, StdinPipe};
use tokio::sync::watch;

use crate::drivers::adapters::event_reader::EventReader;
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter, OutputSource};
use crate::drivers::stdio::agent_turn::{AgentTurn, TurnPlan};
use crate::drivers::stdio::protocol::StdioTurn;
use crate::drivers::stdio::stdio_exchange::StdioExchange;

/// Dialogue that an attempt will have with its program.
pub(in crate::drivers) enum DialoguePlan {
    /// One call or message.
    Exchange(Box<StdioTurn>),
    /// Turn of an interactive agent, with the commands of the lease.
    Agent(Box<TurnPlan>, LeaseCommandReceiver),
}

/// Dialogue that runs.
pub(super) enum RunningDialogue {
    Exchange(Box<StdioExchange>),
    Agent(Box<AgentTurn>),
}

impl RunningDialogue {
    /// Starts a dialogue; `None` if the standard input is not available, so that only the output is read.
    pub(super) fn start(
        dialogue: DialoguePlan,
        (stdin, journal): (Option<StdinPipe>, Option<StdinJournal>),
        has_text_answer: bool,
    ) -> Option<Self> {
        match dialogue {
            DialoguePlan::Exchange(turn) => {
                let exchange = StdioExchange::new(stdin, *turn);
                Some(Self::Exchange(Box::new(if has_text_answer {
                    exchange.with_text_answer()
                } else {
                    exchange
                })))
            }
            DialoguePlan::Agent(plan, commands) => {
                let answers = commands.take_answer_receiver()?;
                match AgentTurn::new(*plan, journal?, (answers, commands)) {
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
    pub(super) const fn is_last_message_answer(&self) -> bool {
        matches!(self, Self::Agent(_))
    }

    /// Runs the dialogue to its end, and reads until the program has closed its output.
    pub(super) async fn run(
        self,
        source: OutputSource,
        channel_writer: ChannelWriter,
        (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
        answered_sender: &watch::Sender<bool>,
    ) -> Result<ChannelText, LedgerError> {
        match self {
            Self::Exchange(exchange) => {
                exchange
                    .run_turn_and_close(source, channel_writer, event_reader, answered_sender)
                    .await
            }
            Self::Agent(turn) => {
                turn.run(source, channel_writer, (event_reader, reporter), answered_sender).await
            }
        }
    }
}

//! Protocol session with a program: writes the messages of its dialogue, and shows the answers.

use std::io::{self, ErrorKind};
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::StdinPipe;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::protocol::{StdioAction, StdioTurn, UnreadableMessageText};
use crate::drivers::adapters::event_line::ProgramEvent;
use crate::drivers::adapters::event_reader::EventReader;
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::output::channel_writer::{
    ChannelText, ChannelWriter, OutputSource, record_output,
};

const INCOMPLETE_ANSWER_MESSAGE: &str = "the program ended before its answer was complete";

/// Silence after which text that ends like the prompt is taken for the prompt.
const PROMPT_SILENCE: Duration = Duration::from_millis(100);
/// Time within which a program continues whose empty answer was no answer.
const EMPTY_ANSWER_GRACE: Duration = Duration::from_millis(250);

/// Time to write what is left when a turn is over.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// Outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum ExchangeEnd {
    /// The program marked the end of its answer.
    Completed,
    /// The program has closed its output.
    OutputClosed,
    /// A stop was ordered, and the protocol has no cancel message.
    Stopped,
    /// A message of the program could not be read. What the program writes next may belong to the same turn.
    UnreadableMessage,
}

/// One turn of the protocol.
pub(in crate::drivers) struct StdioExchange {
    /// Standard input; `None` after the program stopped reading.
    stdin: Option<StdinPipe>,
    turn: StdioTurn,
    /// True if the bytes of an answer are events, false if they are text.
    reads_events: bool,
    /// Commands that may cancel the turn.
    commands: Option<LeaseCommandReceiver>,
    unwritten_bytes: Vec<u8>,
}

impl StdioExchange {
    /// Returns a turn over a standard input.
    pub(in crate::drivers) fn new(stdin_pipe: Option<StdinPipe>, turn: StdioTurn) -> Self {
        let (commands, unwritten_bytes) = (None, Vec::new());
        Self { stdin: stdin_pipe, turn, reads_events: true, commands, unwritten_bytes }
    }

    /// Returns the same turn, for a program that answers in plain text.
    pub(in crate::drivers) const fn with_text_answer(mut self) -> Self {
        self.reads_events = false;
        self
    }

    /// Returns the same turn, which stops when that is ordered.
    pub(in crate::drivers) fn with_commands(mut self, commands: LeaseCommandReceiver) -> Self {
        self.commands = Some(commands);
        self
    }

    /// Returns the standard input for the next turn; `None` if the program does not read any more.
    pub(in crate::drivers) fn into_stdin(self) -> Option<StdinPipe> {
        self.stdin
    }

    /// Runs one call of a program that ends after it: closes its input after the answer, and continues reading until
    /// the program has closed its output.
    pub(in crate::drivers) async fn run_turn_and_close(
        mut self,
        mut source: OutputSource,
        mut channel_writer: ChannelWriter,
        event_reader: &mut EventReader<'_>,
        answered_sender: &watch::Sender<bool>,
    ) -> Result<ChannelText, LedgerError> {
        let end = self.run_turn(&mut source, &mut channel_writer, event_reader).await?;
        // The end of its input tells the program to end.
        drop(self);
        answered_sender
            .send_replace(matches!(end, ExchangeEnd::Completed | ExchangeEnd::UnreadableMessage));
        record_output(source, channel_writer, event_reader.release_timer()).await
    }

    /// Sends the message, and shows the answer, until the turn is over.
    pub(in crate::drivers) async fn run_turn(
        &mut self,
        source: &mut OutputSource,
        channel_writer: &mut ChannelWriter,
        event_reader: &mut EventReader<'_>,
    ) -> Result<ExchangeEnd, LedgerError> {
        self.unwritten_bytes = self.turn.take_first_bytes();
        let mut release_timer = event_reader.release_timer();
        let mut silence_deadline: Option<Instant> = None;
        loop {
            let Self { stdin: stdin_pipe, unwritten_bytes, commands, .. } = self;
            tokio::select! {
                () = sleep_until_silence_deadline(silence_deadline) => {
                    silence_deadline = None;
                    let actions = self.turn.end_on_silence();
                    if self.perform_actions(actions, event_reader).await?.is_some() {
                        self.flush_input(event_reader).await?;
                        return finish_turn(self.turn.suspected_premature_end(), source, event_reader).await;
                    }
                }
                // Input is written while output is read. Otherwise a program that answers before it has read everything
                // would block at a full pipe, and the service with it.
                written = write_some(stdin_pipe, unwritten_bytes) => match written {
                    Ok(count) => drop(unwritten_bytes.drain(..count)),
                    Err(error) => self.handle_write_error(error, event_reader).await?,
                },
                () = wait_for_stop(commands) => {
                    // The command stays in the channel, and would be found again at once.
                    *commands = None;
                    let Some(interrupt) = self.turn.interrupt_bytes() else {
                        return Ok(ExchangeEnd::Stopped);
                    };
                    self.unwritten_bytes.extend(interrupt);
                }
                bytes = source.next_unless_release_due(&release_timer) => {
                    let end = match bytes {
                        Some(bytes) => {
                            let end = self.receive(bytes, channel_writer, event_reader).await?;
                            let may_be_over = end.is_none() && self.turn.may_be_over();
                            silence_deadline = may_be_over.then(|| Instant::now() + PROMPT_SILENCE);
                            end
                        }
                        None => None,
                    };
                    match end {
                        Some(ExchangeEnd::Completed) => {
                            self.flush_input(event_reader).await?;
                            return finish_turn(self.turn.suspected_premature_end(), source, event_reader).await;
                        }
                        Some(end) => return Ok(end),
                        None => {}
                    }
                    release_timer.mark_read();
                    if release_timer.must_release(bytes) {
                        channel_writer.release_visible_text().await?;
                        event_reader.release_visible_text().await?;
                        release_timer.mark_released();
                    }
                }
            }
        }
    }

    /// Processes output of the program, nothing at its end. Returns the end of the turn, once it has ended.
    async fn receive(
        &mut self,
        bytes: &[u8],
        channel_writer: &mut ChannelWriter,
        event_reader: &mut EventReader<'_>,
    ) -> Result<Option<ExchangeEnd>, LedgerError> {
        if bytes.is_empty() {
            let actions = self.turn.handle_end_of_output();
            let end = self.perform_actions(actions, event_reader).await?;
            event_reader.process_output_end_without_raw().await?;
            if end.is_none() {
                event_reader.fail_with(incomplete_answer_failure());
            }
            return Ok(Some(ExchangeEnd::OutputClosed));
        }
        channel_writer.write(bytes).await?;
        let actions = self.turn.receive(bytes);
        let end = self.perform_actions(actions, event_reader).await?;
        if end == Some(ExchangeEnd::UnreadableMessage) {
            event_reader.process_output_end_without_raw().await?;
        }
        Ok(end)
    }

    /// Performs the actions, and returns the end of the turn, once it has ended.
    async fn perform_actions(
        &mut self,
        actions: Vec<StdioAction>,
        event_reader: &mut EventReader<'_>,
    ) -> Result<Option<ExchangeEnd>, LedgerError> {
        for action in actions {
            match action {
                StdioAction::Write(bytes) => self.unwritten_bytes.extend(bytes),
                StdioAction::Event(event) => event_reader.handle_event(event).await?,
                StdioAction::Output(bytes) if self.reads_events => {
                    event_reader.process_output_without_raw(&bytes).await?;
                }
                StdioAction::Output(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    event_reader.handle_event(ProgramEvent::Text { text }).await?;
                }
                StdioAction::Warn(message) => event_reader.warn(&message).await?,
                StdioAction::UnreadableMessage(UnreadableMessageText { reason, text }) => {
                    event_reader.fail_with_unreadable_message((reason, &text));
                    return Ok(Some(ExchangeEnd::UnreadableMessage));
                }
                StdioAction::Desynchronized(failure) => {
                    event_reader.fail_with(failure);
                    return Ok(Some(ExchangeEnd::UnreadableMessage));
                }
                StdioAction::End(failure) => {
                    failure.into_iter().for_each(|failure| event_reader.fail_with(failure));
                    return Ok(Some(ExchangeEnd::Completed));
                }
            }
        }
        Ok(None)
    }
}

impl StdioExchange {
    /// Drops the standard input after a failed write. The output of the program still counts if it has closed its
    /// input itself.
    async fn handle_write_error(
        &mut self,
        error: io::Error,
        event_reader: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        self.stdin = None;
        if error.kind() == ErrorKind::BrokenPipe {
            let message = format!(
                "the program closed its standard input, and {} bytes for it were not delivered",
                self.unwritten_bytes.len()
            );
            return event_reader.warn(&message).await;
        }
        tracing::error!(%error, "message to the program was not written");
        event_reader.fail_with(Failure::new(Code::Internal, "the message could not be written"));
        Ok(())
    }

    /// Writes what is left at the end of a turn. A part of a message would otherwise precede the next message.
    async fn flush_input(&mut self, event_reader: &mut EventReader<'_>) -> Result<(), LedgerError> {
        if self.stdin.is_none() || self.unwritten_bytes.is_empty() {
            return Ok(());
        }
        let write_rest = async {
            while !self.unwritten_bytes.is_empty() {
                let count = write_some(&mut self.stdin, &self.unwritten_bytes).await?;
                self.unwritten_bytes.drain(..count);
            }
            Ok(())
        };
        match timeout(LAST_WRITE_TIMEOUT, write_rest).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => self.handle_write_error(error, event_reader).await,
            Err(_) => {
                self.stdin = None;
                let message = format!(
                    "the program answered before it had read its input, and {} bytes for it were not delivered",
                    self.unwritten_bytes.len()
                );
                event_reader.warn(&message).await
            }
        }
    }
}

/// Writes some of the bytes; never returns while there is nothing to write.
async fn write_some(
    stdin_pipe: &mut Option<StdinPipe>,
    unwritten_bytes: &[u8],
) -> io::Result<usize> {
    match stdin_pipe {
        Some(stdin_pipe) if !unwritten_bytes.is_empty() => {
            match stdin_pipe.write(unwritten_bytes).await {
                Ok(0) => Err(ErrorKind::BrokenPipe.into()),
                written => written,
            }
        }
        _ => std::future::pending().await,
    }
}

/// Ends a turn. An empty answer after which the program continues is a failure: the end mark matched too early.
async fn finish_turn(
    suspected_premature_end: Option<(bool, Failure)>,
    source: &mut OutputSource,
    event_reader: &mut EventReader<'_>,
) -> Result<ExchangeEnd, LedgerError> {
    if let Some((has_output_after_end, failure)) = suspected_premature_end {
        let more_output = async { !source.next().await.trim_ascii().is_empty() };
        let has_continued = has_output_after_end
            || timeout(EMPTY_ANSWER_GRACE, more_output).await.unwrap_or_default();
        if has_continued {
            event_reader.fail_with(failure);
        }
    }
    event_reader.process_output_end_without_raw().await?;
    Ok(ExchangeEnd::Completed)
}

/// Returns at this time; never if there is none.
async fn sleep_until_silence_deadline(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn wait_for_stop(commands: &mut Option<LeaseCommandReceiver>) {
    match commands {
        Some(commands) => commands.wait_for_stop().await,
        None => std::future::pending().await,
    }
}

/// Returns the failure of a program that ended within its turn. An unsuccessful exit of its own is more specific.
pub(in crate::drivers) fn incomplete_answer_failure() -> Failure {
    Failure::new(Code::AnswerMissing, INCOMPLETE_ANSWER_MESSAGE)
}

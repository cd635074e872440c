//! Reads a program's events: one JSON object on each line of standard output, in this project's format or in a native
//! one.
//!
//! A line that is no event stays in the output, is not part of the answer, and is reported. It fails the attempt if a
//! part of the result may be lost with it, or if the result is empty.

mod answer;
mod answer_stream;
mod completion;
mod draft_answer;
mod effects;
mod event_handler;
mod ids;
mod line_reader;
mod malformed_lines;
mod part_recorder;
mod step_recorder;

use algonius_actors::decide::classify::success_evaluation::{ReportedResult, UnreadableLine};
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::Interruption;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::EventDialect;
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::MemoryAccount;

use self::event_handler::EventHandler;
use self::line_reader::LineReader;
use super::event_line::ProgramEvent;
use crate::drivers::files::file_access::AllowedFolders;
use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter};
use crate::drivers::output::line_limit::max_line_bytes;
use crate::drivers::output::raw_text::LongTextStorage;
use crate::drivers::output::release_timer::ReleaseTimer;

/// Reader of a program's output that shows the events in it.
pub(in crate::drivers) struct EventReader<'r> {
    line_reader: LineReader,
    handler: EventHandler<'r>,
}

/// Summary of a program's events.
pub(in crate::drivers) struct EventSummary {
    /// Text of the answer.
    pub(in crate::drivers) answer_text: ChannelText,
    /// Result that the program reported.
    pub(in crate::drivers) reported_result: ReportedResult,
    /// Input that the program needs from its caller; the last such event counts.
    pub(in crate::drivers) required_input: Option<Interruption>,
    /// True if there was output besides the answer's text: an artifact, a reply, an outcome message or a question.
    pub(in crate::drivers) has_output_outside_answer: bool,
}

impl<'r> EventReader<'r> {
    /// Opens the channels of the answer and of parts. Named files are read within `allowed_folders`.
    pub(in crate::drivers) fn open(
        reporter: &'r Reporter,
        work: &AttemptWork,
        (allowed_folders, dialect): (&'r AllowedFolders, Option<EventDialect>),
        memory: &MemoryAccount,
    ) -> Self {
        Self::open_channels(reporter, work, allowed_folders, (dialect, dialect.is_some()), memory)
    }

    /// Opens the channels for events that do not come from lines. The answer is the last of several messages.
    pub(in crate::drivers) fn for_messages(
        reporter: &'r Reporter,
        work: &AttemptWork,
        allowed_folders: &'r AllowedFolders,
        memory: &MemoryAccount,
    ) -> Self {
        Self::open_channels(reporter, work, allowed_folders, (None, true), memory)
    }

    fn open_channels(
        reporter: &'r Reporter,
        work: &AttemptWork,
        allowed_folders: &'r AllowedFolders,
        (dialect, is_last_message_answer): (Option<EventDialect>, bool),
        memory: &MemoryAccount,
    ) -> Self {
        let storage = LongTextStorage { memory_account: memory.clone(), recording: None };
        let answer = (is_last_message_answer, storage);
        let handler = EventHandler::open(reporter, work, allowed_folders, answer);
        let max_line_bytes = max_line_bytes(work.spec.limits.sizes.max_output_bytes);
        Self { line_reader: LineReader::new(dialect, max_line_bytes), handler }
    }

    /// Returns a timer for the release of output.
    pub(in crate::drivers) fn release_timer(&self) -> ReleaseTimer {
        ReleaseTimer::new(self.handler.reporter.followers())
    }

    /// Takes the next bytes of standard output into the raw output, and shows their events. If a program writes each
    /// message in pieces and as a whole, the raw output omits the pieces.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn process_output(
        &mut self,
        bytes: &[u8],
        raw: &mut ChannelWriter,
    ) -> Result<(), LedgerError> {
        let mut raw_output = Vec::new();
        let events = self.line_reader.decode(bytes, &mut raw_output);
        raw.write(if self.line_reader.is_native() { &raw_output } else { bytes }).await?;
        self.handle_events(events).await
    }

    /// Takes the next bytes, and shows their events, without the raw output.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn process_output_without_raw(
        &mut self,
        bytes: &[u8],
    ) -> Result<(), LedgerError> {
        let events = self.line_reader.decode(bytes, &mut Vec::new());
        self.handle_events(events).await
    }

    /// Handles the end of the output, for the raw output too.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn process_output_end(
        &mut self,
        raw: &mut ChannelWriter,
    ) -> Result<(), LedgerError> {
        let mut raw_output = Vec::new();
        let events = self.line_reader.decode_end(&mut raw_output);
        if self.line_reader.is_native() {
            raw.write(&raw_output).await?;
        }
        self.handle_events(events).await
    }

    /// Handles the end of the output, without the raw output.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn process_output_end_without_raw(
        &mut self,
    ) -> Result<(), LedgerError> {
        let events = self.line_reader.decode_end(&mut Vec::new());
        self.handle_events(events).await
    }

    /// Handles an event that did not come from a line.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn handle_event(
        &mut self,
        event: ProgramEvent,
    ) -> Result<(), LedgerError> {
        let is_text = matches!(event, ProgramEvent::Text { .. });
        if !is_text {
            self.handler.answer.flush().await?;
        }
        self.handler.handle(event).await?;
        if is_text { self.handler.answer.flush().await } else { Ok(()) }
    }

    /// Releases the safe part of the answer and of unfinished artifacts, although more of them will come.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn release_visible_text(&mut self) -> Result<(), LedgerError> {
        self.handler.answer.release_visible_text().await?;
        self.handler.part_recorder.release_visible_text().await
    }

    /// Records a warning, whose text may contain words of the program.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn warn(&mut self, message: &str) -> Result<(), LedgerError> {
        self.handler.warn(message).await
    }

    /// Records that the agent does not know the session of the conversation.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) async fn record_lost_session(
        &mut self,
        message: &str,
    ) -> Result<(), LedgerError> {
        self.handler.record_lost_session(message).await
    }

    /// Fails the attempt for a reason of the service, unless it has failed before.
    pub(in crate::drivers) fn fail_with(&mut self, failure: Failure) {
        self.handler.completion.record_service_failure(failure);
    }

    /// Fails the attempt because a message of the program could not be read, unless it has failed before. `reason` is
    /// a clause that follows "the message", and `text` is what the program wrote.
    pub(in crate::drivers) fn fail_with_unreadable_message(
        &mut self,
        unreadable_message: (String, &str),
    ) {
        self.fail_with(self.unreadable_message_failure(unreadable_message));
    }

    /// Returns the failure of an attempt of which a message could not be read.
    pub(in crate::drivers) fn unreadable_message_failure(
        &self,
        (reason, text): (String, &str),
    ) -> Failure {
        let text = self.handler.redact(text);
        UnreadableLine { line: 0, reason, text, is_result_lost: true }.to_failure()
    }

    /// Closes the channels.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(in crate::drivers) fn close(
        self,
    ) -> impl Future<Output = Result<EventSummary, LedgerError>> {
        // An `async fn` would hold a second copy of the handler in its future, with all buffers of its redactors.
        effects::close_handler(self.handler, self.line_reader.is_native())
    }

    async fn handle_events(&mut self, events: Vec<(u64, ProgramEvent)>) -> Result<(), LedgerError> {
        for (line_number, event) in events {
            self.handler.line_number = line_number;
            if !matches!(event, ProgramEvent::Text { .. }) {
                self.handler.answer.flush().await?; // Text that came before the event is shown before it.
            }
            self.handler.handle(event).await?;
        }
        self.handler.answer.flush().await
    }
}

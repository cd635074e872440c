//! Output of an attempt's program, up to its end and a little beyond.

use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use algonius_actors::decide::budget::usage_parser;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::agent::success_criteria::UsagePattern;
use algonius_actors::model::execution::Interruption;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::OutputRecording;
use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::dialogue::RunningDialogue;
use super::final_output::redacted_last_lines;
use super::{AnswerLocation, ExitReport, RunningProcess};
use crate::drivers::adapters::event_reader::{EventReader, EventSummary};
use crate::drivers::output::channel_writer::{
    ChannelText, ChannelWriter, OutputSource, record_output,
};
use crate::drivers::output::raw_text::LongTextStorage;
use crate::drivers::output::release_timer::ReleaseTimer;

/// Time for which the pipes may stay open after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for which the last piece of a text may be held back, so that it is written with the end.
const MAX_FLUSH_DELAY: Duration = Duration::from_millis(50);

/// Output of the program.
pub(super) struct ProgramOutput {
    pub(super) stdout: ChannelText,
    pub(super) stderr: ChannelText,
    pub(super) event_summary: Option<EventSummary>,
}

impl ProgramOutput {
    /// Returns true if reading the texts takes much memory.
    pub(super) fn is_long(&self) -> bool {
        let answer_text = self.event_summary.as_ref().map(|summary| &summary.answer_text);
        [&self.stdout, &self.stderr].into_iter().chain(answer_text).any(|text| text.raw.is_long())
    }

    /// Returns the last lines for a person. Event lines are not shown.
    pub(super) fn redacted_last_lines(
        &self,
        location: &AnswerLocation,
        reporter: &Reporter,
    ) -> String {
        let has_events = matches!(location, AnswerLocation::Events(..));
        let stdout = if has_events { "" } else { self.stdout.raw() };
        redacted_last_lines(&[self.stderr.raw(), stdout], reporter)
    }

    /// Counts the usage that the program wrote to its output.
    pub(super) async fn record_reported_usage(
        &self,
        usage_pattern: &UsagePattern,
        reporter: &Reporter,
    ) {
        let counters =
            usage_parser::sum_usage(usage_pattern, [self.stdout.raw(), self.stderr.raw()]);
        if counters.is_empty() {
            return;
        }
        let usage_event = EventKind::UsageReported { counters, cumulative: false };
        if let Err(error) = reporter.record_event(usage_event).await {
            tracing::warn!(%error, "failed to record usage of agent");
        }
    }

    /// Returns the input that the program needs from its caller.
    pub(super) fn required_input(&self) -> Option<Interruption> {
        self.event_summary.as_ref().and_then(|summary| summary.required_input)
    }
}

impl RunningProcess {
    /// Reads both streams to their ends.
    pub(super) async fn read_output(
        &self,
        reporter: &Reporter,
        ((stdout, stderr), [stdout_recording, stderr_recording]): (
            (OutputSource, OutputSource),
            [OutputRecording; 2],
        ),
        (dialogue, answered_sender): (Option<RunningDialogue>, &watch::Sender<bool>),
    ) -> Result<ProgramOutput, LedgerError> {
        let limit = self.evaluator.work.spec.limits.sizes.max_output_bytes;
        let open_writer = |channel, recording| {
            let storage =
                LongTextStorage { memory_account: self.memory_account.clone(), recording };
            ChannelWriter::open(reporter, channel, (limit, storage))
        };
        let new_timer = || ReleaseTimer::new(reporter.followers());
        let stderr_pump = record_output(
            stderr,
            open_writer(TextChannel::Stderr, Some(stderr_recording)),
            new_timer(),
        );
        if let AnswerLocation::Events(allowed_folders, dialect) = &self.evaluator.answer_location {
            let work = &self.evaluator.work;
            let is_last_message_answer =
                dialogue.as_ref().is_some_and(RunningDialogue::is_last_message_answer);
            let account = &self.memory_account;
            let mut event_reader = match is_last_message_answer {
                true => EventReader::for_messages(reporter, work, allowed_folders, account),
                false => EventReader::open(reporter, work, (allowed_folders, *dialect), account),
            };
            // The raw output omits pieces of native messages, so it differs from the recording.
            let stdout_recording = dialect.is_none().then_some(stdout_recording);
            let channel_writer = open_writer(TextChannel::Stdout, stdout_recording);
            let stdout_pump = async {
                match dialogue {
                    Some(dialogue) => {
                        let events = (&mut event_reader, reporter);
                        dialogue.run(stdout, channel_writer, events, answered_sender).await
                    }
                    None => {
                        record_events(stdout, channel_writer, (&mut event_reader, new_timer()))
                            .await
                    }
                }
            };
            let (stdout, stderr) =
                join_streams(pin!(stdout_pump), pin!(stderr_pump), reporter).await?;
            let event_summary = Some(event_reader.close().await?);
            return Ok(ProgramOutput { stdout, stderr, event_summary });
        }
        let stdout_pump = record_output(
            stdout,
            open_writer(TextChannel::Stdout, Some(stdout_recording)),
            new_timer(),
        );
        let (stdout, stderr) = join_streams(pin!(stdout_pump), pin!(stderr_pump), reporter).await?;
        Ok(ProgramOutput { stdout, stderr, event_summary: None })
    }

    /// Reads the rest of the pipes. Another process may hold them open, so their end is not awaited.
    pub(super) async fn drain(
        &self,
        mut output_future: Pin<&mut impl Future<Output = Result<ProgramOutput, LedgerError>>>,
        drain_sender: &watch::Sender<bool>,
    ) -> Result<ProgramOutput, LedgerError> {
        if let Ok(output) = timeout(DRAIN_TIMEOUT, &mut output_future).await {
            return output;
        }
        self.tree.kill();
        // A process that escaped from the tree may hold the pipes open, so the kill alone does not end them.
        drain_sender.send_replace(true);
        output_future.await
    }

    /// Waits for the exit of a program that has closed its output.
    pub(super) async fn wait_for_exit_after_output(
        &self,
        mut end_future: Pin<&mut impl Future<Output = io::Result<ExitReport>>>,
        reporter: &Reporter,
    ) -> io::Result<ExitReport> {
        // Most programs exit at once after they closed their output. Their last text then goes into the commit of the
        // outcome.
        if let Ok(end) = timeout(MAX_FLUSH_DELAY, end_future.as_mut()).await {
            return end;
        }
        flush_pending_text(reporter).await;
        end_future.await
    }
}

/// Reads two texts, either of which may end long before the other.
async fn join_streams(
    first_stream: impl Future<Output = Result<ChannelText, LedgerError>>,
    second_stream: impl Future<Output = Result<ChannelText, LedgerError>>,
    reporter: &Reporter,
) -> Result<(ChannelText, ChannelText), LedgerError> {
    let stream_ended = Notify::new();
    let first_stream = first_stream.inspect(|_| stream_ended.notify_one());
    let second_stream = second_stream.inspect(|_| stream_ended.notify_one());
    let flush_after_first_end = async {
        stream_ended.notified().await;
        // Usually both streams end together. Their last text then goes into the commit of the outcome.
        sleep(MAX_FLUSH_DELAY).await;
        flush_pending_text(reporter).await;
        std::future::pending().await
    };
    tokio::select! {
        biased;
        texts = async { tokio::try_join!(first_stream, second_stream) } => texts,
        texts = flush_after_first_end => texts,
    }
}

/// Moves a pipe of events into its channel, and handles the events.
///
/// # Errors
/// Fails if the ledger did not commit.
async fn record_events(
    mut source: OutputSource,
    mut channel_writer: ChannelWriter,
    (event_reader, mut release_timer): (&mut EventReader<'_>, ReleaseTimer),
) -> Result<ChannelText, LedgerError> {
    loop {
        let bytes = source.next_unless_release_due(&release_timer).await;
        match bytes {
            Some([]) => {
                event_reader.process_output_end(&mut channel_writer).await?;
                return channel_writer.close().await;
            }
            Some(bytes) => {
                event_reader.process_output(bytes, &mut channel_writer).await?;
                release_timer.mark_read();
            }
            None => {}
        }
        if release_timer.must_release(bytes) {
            channel_writer.release_visible_text().await?;
            event_reader.release_visible_text().await?;
            release_timer.mark_released();
        }
    }
}

/// Writes the text that was held back, so that it can be read now. After a failure it is written with the end.
pub(super) async fn flush_pending_text(reporter: &Reporter) {
    if let Err(error) = reporter.flush_unless_superseded().await {
        tracing::warn!(%error, "failed to write last text, which is written with the outcome");
    }
}

/// Returns when the call is answered; never if there is no call.
pub(super) async fn wait_until_answered(answered_receiver: &mut watch::Receiver<bool>) {
    if answered_receiver.wait_for(|is_answered| *is_answered).await.is_err() {
        std::future::pending::<()>().await;
    }
}

//! Reads one answer of a session process.

use std::mem;
use std::time::Duration;

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{OutputMethod, ProcessExit};
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::{OutputPipe, ProcessTree, ProgramExit};
use tokio::sync::watch;
use tokio::time::timeout;

use super::process::SessionProcess;
use super::{SessionTurn, success_exit};
use crate::drivers::adapters::event_reader::{EventReader, EventSummary};
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter, OutputSource};
use crate::drivers::output::prompt_detection::OutputObserver;
use crate::drivers::output::raw_text::LongTextStorage;
use crate::drivers::output::release_timer::ReleaseTimer;
use crate::drivers::program::limit_monitor::wait_until_limit_exceeded;
use crate::drivers::stdio::protocol::StdioTurn;
use crate::drivers::stdio::stdio_exchange::{
    ExchangeEnd, StdioExchange, incomplete_answer_failure,
};

/// Time for which the pipes may stay open after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason for the end of a turn.
pub(super) enum AnswerEnd {
    /// End mark of the answer.
    Completed,
    /// Message that could not be read, after which the program must be ended: it may still work on this turn.
    UnreadableOutput,
    /// Exit of the program.
    Exit(ProcessExit),
    /// Failure for which the program must be ended.
    Fault(Failure),
}

impl AnswerEnd {
    /// Returns the exit of the program, a successful one if it still runs.
    pub(super) fn effective_exit(&self) -> Result<ProcessExit, Failure> {
        match self {
            Self::Completed | Self::UnreadableOutput => Ok(success_exit()),
            Self::Exit(exit) => Ok(*exit),
            Self::Fault(failure) => Err(failure.clone()),
        }
    }
}

/// Output of one turn.
pub(super) struct ReceivedAnswer {
    pub(super) end: AnswerEnd,
    pub(super) summary: EventSummary,
    pub(super) stdout: ChannelText,
    pub(super) stderr: ChannelText,
}

impl SessionTurn {
    /// Sends the message, and reads the answer to its end.
    pub(super) async fn exchange_message(
        &self,
        process: &mut SessionProcess,
        stdio_turn: StdioTurn,
        reporter: &Reporter,
    ) -> Result<ReceivedAnswer, LedgerError> {
        let (program, work) = (&self.attempt.program, &self.attempt.work);
        let (_drain_sender, drain_signal) = watch::channel(false);
        let source = |pipe: &mut OutputPipe| {
            let pipe = mem::replace(pipe, Box::pin(tokio::io::empty()));
            OutputSource::new(pipe, drain_signal.clone(), OutputObserver::default(), 0)
        };
        let (mut stdout_source, mut stderr_source) =
            (source(&mut process.stdout), source(&mut process.stderr));
        let storage =
            LongTextStorage { memory_account: process.memory_account.clone(), recording: None };
        let max_bytes = work.spec.limits.sizes.max_output_bytes;
        let open_writer =
            |channel| ChannelWriter::open(reporter, channel, (max_bytes, storage.clone()));
        let (mut stdout_writer, mut stderr_writer) =
            (open_writer(TextChannel::Stdout), open_writer(TextChannel::Stderr));
        let event_source = (&process.allowed_folders, process.dialect);
        let mut event_reader =
            EventReader::open(reporter, work, event_source, &process.memory_account);
        let mut exchange = StdioExchange::new(process.stdin.take(), stdio_turn)
            .with_commands(self.commands.clone());
        if program.output_method == OutputMethod::Stdout {
            exchange = exchange.with_text_answer();
        }
        let end = {
            let turn = exchange.run_turn(&mut stdout_source, &mut stdout_writer, &mut event_reader);
            let mut turn = std::pin::pin!(turn);
            tokio::select! {
                biased;
                end = &mut turn => match end? {
                    ExchangeEnd::Completed => AnswerEnd::Completed,
                    ExchangeEnd::UnreadableMessage => AnswerEnd::UnreadableOutput,
                    ExchangeEnd::OutputClosed => AnswerEnd::Exit(wait_for_exit_or_kill(&mut process.program_exit, &*process.tree).await),
                    ExchangeEnd::Stopped => AnswerEnd::Fault(cancelled_failure()),
                },
                error = record_stderr(&mut stderr_source, &mut stderr_writer, ReleaseTimer::new(reporter.followers())) => {
                    return Err(error);
                }
                exit = &mut process.program_exit => match timeout(DRAIN_TIMEOUT, &mut turn).await {
                    Ok(Ok(ExchangeEnd::Completed | ExchangeEnd::UnreadableMessage)) => AnswerEnd::Exit(success_exit()),
                    Ok(Err(error)) => return Err(error),
                    Ok(Ok(_)) | Err(_) => AnswerEnd::Exit(exit.unwrap_or(ProcessExit::Signal(0))),
                },
                failure = wait_until_limit_exceeded(&program.resource_limits, &*process.tree) => AnswerEnd::Fault(failure),
                () = wait_until_stop_overdue(self.commands.clone(), work.spec.limits.timeouts.grace) => {
                    AnswerEnd::Fault(cancelled_failure())
                }
            }
        };
        if matches!(end, AnswerEnd::Exit(exit) if exit != success_exit()) {
            event_reader.fail_with(incomplete_answer_failure());
        }
        record_available_output(&mut stderr_source, &mut stderr_writer).await?;
        (process.stdout, process.stderr, process.stdin) =
            (stdout_source.into_pipe(), stderr_source.into_pipe(), exchange.into_stdin());
        let (stdout, stderr) = (stdout_writer.close().await?, stderr_writer.close().await?);
        Ok(ReceivedAnswer { end, summary: event_reader.close().await?, stdout, stderr })
    }
}

/// Records standard error. Returns only if recording fails.
async fn record_stderr(
    source: &mut OutputSource,
    channel_writer: &mut ChannelWriter,
    mut release_timer: ReleaseTimer,
) -> LedgerError {
    loop {
        let bytes = source.next_unless_release_due(&release_timer).await;
        let written = match bytes {
            Some([]) => return std::future::pending().await,
            Some(bytes) => channel_writer.write(bytes).await,
            None => Ok(()),
        };
        release_timer.mark_read();
        let released = match written {
            Ok(()) if release_timer.must_release(bytes) => {
                let released = channel_writer.release_visible_text().await;
                release_timer.mark_released();
                released.map(|_| ())
            }
            written => written,
        };
        if let Err(error) = released {
            return error;
        }
    }
}

/// Records the bytes that are available now.
async fn record_available_output(
    source: &mut OutputSource,
    channel_writer: &mut ChannelWriter,
) -> Result<(), LedgerError> {
    loop {
        let bytes = tokio::select! {
            biased;
            bytes = source.next() => bytes,
            () = std::future::ready(()) => return Ok(()),
        };
        if bytes.is_empty() {
            return Ok(());
        }
        channel_writer.write(bytes).await?;
    }
}

/// Waits for the exit of a program that has closed its output, and kills it after a delay.
async fn wait_for_exit_or_kill(
    program_exit: &mut ProgramExit,
    tree: &dyn ProcessTree,
) -> ProcessExit {
    let exit = match timeout(DRAIN_TIMEOUT, &mut *program_exit).await {
        Ok(exit) => exit,
        Err(_elapsed) => {
            tree.kill();
            program_exit.await
        }
    };
    exit.unwrap_or(ProcessExit::Signal(0)) // The process holder was lost, and the program is killed.
}

/// Returns after the grace period that follows a stop order, or when the holder of the lease is gone.
async fn wait_until_stop_overdue(mut commands: LeaseCommandReceiver, grace: Duration) {
    let mut release_commands = commands.clone();
    tokio::select! {
        () = commands.wait_for_stop() => { _ = timeout(grace, std::future::pending::<()>()).await; }
        _ = release_commands.wait_for_release_or_drop() => {}
    }
}

fn cancelled_failure() -> Failure {
    Failure::new(Code::Cancelled, "it was cancelled")
}

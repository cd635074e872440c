//! Reads one answer of a session process.

use std::mem;
use std::time::Duration;

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{Exit, OutputMethod};
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::{OutputPipe, ProcessTree, ProgramExit};
use tokio::sync::watch;
use tokio::time::timeout;

use super::process::PersistentProcess;
use super::{SessionTurn, success_exit};
use crate::drivers::adapters::event_reader::{EventReader, EventSummary};
use crate::drivers::lease_orders::LeaseOrderReceiver;
use crate::drivers::output::prompt_detection::PromptWatcher;
use crate::drivers::output::pump::{OutputSource, PumpedText, RawWriter};
use crate::drivers::output::raw_text::TextStorage;
use crate::drivers::output::release_timer::ReleaseTimer;
use crate::drivers::program::limits::wait_until_exceeded;
use crate::drivers::stdio::protocol::StdioTurn;
use crate::drivers::stdio::session::{ExchangeEnd, StdioExchange, incomplete_failure};

/// Time for which the pipes may stay open after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason for the end of a turn.
pub(super) enum AnswerEnd {
    /// End mark of the answer.
    Over,
    /// Exit of the program.
    Exit(Exit),
    /// Failure for which the program must be ended.
    Fault(Failure),
}

/// Output of one turn.
pub(super) struct ReceivedAnswer {
    pub(super) end: AnswerEnd,
    pub(super) summary: EventSummary,
    pub(super) stdout: PumpedText,
    pub(super) stderr: PumpedText,
}

impl SessionTurn {
    /// Sends the message, and reads the answer to its end.
    pub(super) async fn exchange_message(
        &self,
        process: &mut PersistentProcess,
        dialogue: StdioTurn,
        report: &Reporter,
    ) -> Result<ReceivedAnswer, LedgerError> {
        let (program, work) = (&self.attempt.program, &self.attempt.work);
        let (_cut, is_cut) = watch::channel(false);
        let source = |pipe: &mut OutputPipe| {
            let pipe = mem::replace(pipe, Box::pin(tokio::io::empty()));
            OutputSource::new(pipe, is_cut.clone(), PromptWatcher::default(), 0)
        };
        let (mut out, mut err) = (source(&mut process.stdout), source(&mut process.stderr));
        let storage = TextStorage { account: process.account.clone(), recording: None };
        let open_writer = |channel| {
            RawWriter::open(report, channel, (work.spec.limits.sizes.output, storage.clone()))
        };
        let (mut stdout_writer, mut stderr_writer) =
            (open_writer(TextChannel::Stdout), open_writer(TextChannel::Stderr));
        let mut events = EventReader::open(
            report,
            work,
            (&process.allowed_folders, process.dialect),
            &process.account,
        );
        let exchange =
            StdioExchange::new(process.stdin.take(), dialogue).with_orders(self.orders.clone());
        let mut exchange = if program.output == OutputMethod::Stdout {
            exchange.with_text_answer()
        } else {
            exchange
        };
        let end = {
            let mut turn =
                std::pin::pin!(exchange.run_turn(&mut out, &mut stdout_writer, &mut events));
            tokio::select! {
                biased;
                end = &mut turn => match end? {
                    ExchangeEnd::Over => AnswerEnd::Over,
                    ExchangeEnd::Closed => AnswerEnd::Exit(wait_for_exit(&mut process.program_exit, &*process.tree).await),
                    ExchangeEnd::Stopped => AnswerEnd::Fault(cancelled_failure()),
                },
                error = drain_after_error(&mut err, &mut stderr_writer, ReleaseTimer::of(report.followers())) => {
                    return Err(error);
                }
                exit = &mut process.program_exit => match timeout(DRAIN_TIMEOUT, &mut turn).await {
                    Ok(Ok(ExchangeEnd::Over)) => AnswerEnd::Exit(success_exit()),
                    Ok(Err(error)) => return Err(error),
                    Ok(Ok(_)) | Err(_) => AnswerEnd::Exit(exit.unwrap_or(Exit::Signal(0))),
                },
                failure = wait_until_exceeded(&program.resources, &*process.tree) => AnswerEnd::Fault(failure),
                () = wait_until_overdue(self.orders.clone(), work.spec.limits.deadlines.grace) => {
                    AnswerEnd::Fault(cancelled_failure())
                }
            }
        };
        if matches!(end, AnswerEnd::Exit(exit) if exit != success_exit()) {
            events.fail_for(incomplete_failure());
        }
        read_remainder(&mut err, &mut stderr_writer).await?;
        (process.stdout, process.stderr, process.stdin) =
            (out.into_pipe(), err.into_pipe(), exchange.into_stdin());
        let (stdout, stderr) = (stdout_writer.close().await?, stderr_writer.close().await?);
        Ok(ReceivedAnswer { end, summary: events.close().await?, stdout, stderr })
    }
}

/// Records standard error. Returns only if recording fails.
async fn drain_after_error(
    source: &mut OutputSource,
    raw_writer: &mut RawWriter,
    mut release_timer: ReleaseTimer,
) -> LedgerError {
    loop {
        let bytes = source.next_unless_due(&release_timer).await;
        let written = match bytes {
            Some([]) => return std::future::pending().await,
            Some(bytes) => raw_writer.write(bytes).await,
            None => Ok(()),
        };
        release_timer.mark_read();
        let released = match written {
            Ok(()) if release_timer.must_release(bytes) => {
                let released = raw_writer.release().await;
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
async fn read_remainder(
    source: &mut OutputSource,
    raw_writer: &mut RawWriter,
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
        raw_writer.write(bytes).await?;
    }
}

/// Waits for the exit of a program that has closed its output, and kills it after a delay.
async fn wait_for_exit(program_exit: &mut ProgramExit, tree: &dyn ProcessTree) -> Exit {
    let exit = match timeout(DRAIN_TIMEOUT, &mut *program_exit).await {
        Ok(exit) => exit,
        Err(_elapsed) => {
            tree.kill();
            program_exit.await
        }
    };
    exit.unwrap_or(Exit::Signal(0)) // The process holder was lost, and the program is killed.
}

/// Returns after the grace period that follows a stop order, or when the holder of the lease is gone.
async fn wait_until_overdue(mut orders: LeaseOrderReceiver, grace: Duration) {
    let mut release_orders = orders.clone();
    tokio::select! {
        () = orders.wait_for_stop() => { _ = timeout(grace, std::future::pending::<()>()).await; }
        _ = release_orders.wait_for_release() => {}
    }
}

fn cancelled_failure() -> Failure {
    Failure::new(Code::Cancelled, "it was cancelled")
}

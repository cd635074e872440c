//! Reads one answer of a session process.

use std::mem;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{Exit, OutputPattern};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use algonius_warden::{OutputPipe, ProcessTree, ProgramExit};
use tokio::sync::watch;
use tokio::time::timeout;

use super::process::PersistentProcess;
use super::{SessionTurn, well};
use crate::drivers::adapters::event_reader::{EventReader, EventSummary};
use crate::drivers::control::Control;
use crate::drivers::output::pace::Pace;
use crate::drivers::output::prompt_detection::PromptWatcher;
use crate::drivers::output::pump::{OutputSource, PumpedText, RawWriter};
use crate::drivers::output::raw_text::Storage;
use crate::drivers::program::limits::exceeded;
use crate::drivers::stdio::protocol::StdioTurn;
use crate::drivers::stdio::session::{Spoken, Talk, unanswered};

/// Time for which the pipes may stay open after the program has ended.
const DRAIN: Duration = Duration::from_secs(1);

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
    pub(super) told: EventSummary,
    pub(super) stdout: PumpedText,
    pub(super) stderr: PumpedText,
}

impl SessionTurn {
    /// Sends the message, and reads the answer to its end.
    pub(super) async fn listen(
        &self,
        kept: &mut PersistentProcess,
        dialogue: StdioTurn,
        report: &Reporter,
    ) -> Result<ReceivedAnswer, LedgerError> {
        let (program, work) = (&self.attempt.program, &self.attempt.work);
        let (_cut, is_cut) = watch::channel(false);
        let source = |pipe: &mut OutputPipe| {
            let pipe = mem::replace(pipe, Box::pin(tokio::io::empty()));
            OutputSource::new(pipe, is_cut.clone(), PromptWatcher::default(), 0)
        };
        let (mut out, mut err) = (source(&mut kept.stdout), source(&mut kept.stderr));
        let storage = Storage { account: kept.account.clone(), recorded: None };
        let note = |channel| {
            RawWriter::open(report, channel, (work.spec.limits.sizes.output, storage.clone()))
        };
        let (mut said, mut complained) = (note(TextChannel::Stdout), note(TextChannel::Stderr));
        let mut events =
            EventReader::open(report, work, (&kept.reach, kept.dialect), &kept.account);
        let talk = Talk::new(kept.stdin.take(), dialogue).heeding(self.orders.clone());
        let mut talk = if program.output == OutputPattern::Stdout { talk.in_text() } else { talk };
        let end = {
            let mut speaking = std::pin::pin!(talk.turn(&mut out, &mut said, &mut events));
            tokio::select! {
                biased;
                spoken = &mut speaking => match spoken? {
                    Spoken::Over => AnswerEnd::Over,
                    Spoken::Closed => AnswerEnd::Exit(wait_for_exit(&mut kept.ending, &*kept.tree).await),
                    Spoken::Stopped => AnswerEnd::Fault(cancelled()),
                },
                error = drain_after_error(&mut err, &mut complained, Pace::of(report.followers())) => {
                    return Err(error);
                }
                exit = &mut kept.ending => match timeout(DRAIN, &mut speaking).await {
                    Ok(Ok(Spoken::Over)) => AnswerEnd::Exit(well()),
                    Ok(Err(error)) => return Err(error),
                    Ok(Ok(_)) | Err(_) => AnswerEnd::Exit(exit.unwrap_or(Exit::Signal(0))),
                },
                failure = exceeded(&program.resources, &*kept.tree) => AnswerEnd::Fault(failure),
                () = overdue(self.orders.clone(), work.spec.limits.deadlines.grace) => {
                    AnswerEnd::Fault(cancelled())
                }
            }
        };
        if matches!(end, AnswerEnd::Exit(exit) if exit != well()) {
            events.fail_for(unanswered());
        }
        read_remainder(&mut err, &mut complained).await?;
        (kept.stdout, kept.stderr, kept.stdin) =
            (out.into_pipe(), err.into_pipe(), talk.into_feed());
        let (stdout, stderr) = (said.close().await?, complained.close().await?);
        Ok(ReceivedAnswer { end, told: events.close().await?, stdout, stderr })
    }
}

/// Records standard error. Returns only if recording fails.
async fn drain_after_error(
    source: &mut OutputSource,
    note: &mut RawWriter,
    mut pace: Pace,
) -> LedgerError {
    loop {
        let bytes = source.next_unless_due(&pace).await;
        let written = match bytes {
            Some([]) => return std::future::pending().await,
            Some(bytes) => note.take(bytes).await,
            None => Ok(()),
        };
        pace.read();
        let released = match written {
            Ok(()) if pace.must_release(bytes) => {
                let released = note.release().await;
                pace.released();
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
    note: &mut RawWriter,
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
        note.take(bytes).await?;
    }
}

/// Waits for the exit of a program that has closed its output, and kills it after a delay.
async fn wait_for_exit(ending: &mut ProgramExit, tree: &dyn ProcessTree) -> Exit {
    let exit = match timeout(DRAIN, &mut *ending).await {
        Ok(exit) => exit,
        Err(_elapsed) => {
            tree.kill();
            ending.await
        }
    };
    exit.unwrap_or(Exit::Signal(0)) // The warden was lost, and the program is swept.
}

/// Returns after the grace period that follows a stop order, or when the holder of the lease is gone.
async fn overdue(mut orders: Control, grace: Duration) {
    let mut lost = orders.clone();
    tokio::select! {
        () = orders.stopped() => { _ = timeout(grace, std::future::pending::<()>()).await; }
        _ = lost.released() => {}
    }
}

fn cancelled() -> Failure {
    Failure::new(Code::Cancelled, "it was cancelled")
}

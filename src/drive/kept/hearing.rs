//! Hears one answer of a program that is kept.

use std::mem;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::event::Channel;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{Exit, OutputPattern};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use tokio::sync::watch;
use tokio::time::timeout;

use super::super::dialogue::Dialogue;
use super::super::events::{Events, Told};
use super::super::limits::exceeded;
use super::super::process::Orders;
use super::super::prompts::Ear;
use super::super::pump::{Note, Source};
use super::super::talk::{Spoken, Talk, unanswered};
use super::{Kept, Turn, well};
use crate::warden::{Ending, Pipe, Tree};

/// How long the pipes may stay open after the program has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// What a turn was ended by.
pub(super) enum End {
    /// The program said that its answer is over.
    Over,
    /// It has ended.
    Exit(Exit),
    /// It has to be ended for this.
    Fault(Failure),
}

/// What was heard in a turn.
pub(super) struct Heard {
    pub(super) end: End,
    pub(super) told: Told,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Turn {
    /// Says what there is to say, and hears the answer to its end.
    pub(super) async fn listen(
        &self,
        kept: &mut Kept,
        dialogue: Dialogue,
        report: &Reporter,
    ) -> Result<Heard, LedgerError> {
        let (program, work) = (&self.attempt.program, &self.attempt.work);
        let (_cut, is_cut) = watch::channel(false);
        let source = |pipe: &mut Pipe| {
            let pipe = mem::replace(pipe, Box::pin(tokio::io::empty()));
            Source::new(pipe, is_cut.clone(), Ear::default(), 0)
        };
        let (mut out, mut err) = (source(&mut kept.stdout), source(&mut kept.stderr));
        let note = |channel| Note::open(report, channel, work.spec.sizes.output);
        let (mut said, mut complained) = (note(Channel::Stdout), note(Channel::Stderr));
        let mut events = Events::open(report, work, (&kept.reach, kept.dialect));
        let talk = Talk::new(kept.feed.take(), dialogue).heeding(self.orders.clone());
        let mut talk = if program.output == OutputPattern::Stdout { talk.in_text() } else { talk };
        let end = {
            let mut speaking = std::pin::pin!(talk.turn(&mut out, &mut said, &mut events));
            tokio::select! {
                biased;
                spoken = &mut speaking => match spoken? {
                    Spoken::Over => End::Over,
                    Spoken::Closed => End::Exit(see_off(&mut kept.ending, &*kept.tree).await),
                    Spoken::Stopped => End::Fault(called_off()),
                },
                error = hear_out(&mut err, &mut complained) => return Err(error),
                exit = &mut kept.ending => match timeout(DRAIN, &mut speaking).await {
                    Ok(Ok(Spoken::Over)) => End::Exit(well()),
                    Ok(Err(error)) => return Err(error),
                    Ok(Ok(_)) | Err(_) => End::Exit(exit.unwrap_or(Exit::Signal(0))),
                },
                failure = exceeded(&program.resources, &*kept.tree) => End::Fault(failure),
                () = overdue(self.orders.clone(), work.spec.deadlines.grace) => {
                    End::Fault(called_off())
                }
            }
        };
        if matches!(end, End::Exit(exit) if exit != well()) {
            events.fail_for(unanswered());
        }
        hear_the_rest(&mut err, &mut complained).await?;
        (kept.stdout, kept.stderr, kept.feed) =
            (out.into_pipe(), err.into_pipe(), talk.into_feed());
        let (stdout, stderr) = (said.close().await?.raw, complained.close().await?.raw);
        Ok(Heard { end, told: events.close().await?, stdout, stderr })
    }
}

/// Writes down what comes on standard error. Returns only when that does not work.
async fn hear_out(source: &mut Source, note: &mut Note) -> LedgerError {
    loop {
        let bytes = source.next().await;
        if bytes.is_empty() {
            return std::future::pending().await;
        }
        if let Err(error) = note.take(bytes).await {
            return error;
        }
    }
}

/// Writes down what is there by now.
async fn hear_the_rest(source: &mut Source, note: &mut Note) -> Result<(), LedgerError> {
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

/// Waits for the end of a program that has closed its output, and brings it about.
async fn see_off(ending: &mut Ending, tree: &dyn Tree) -> Exit {
    let exit = match timeout(DRAIN, &mut *ending).await {
        Ok(exit) => exit,
        Err(_elapsed) => {
            tree.kill();
            ending.await
        }
    };
    exit.unwrap_or(Exit::Signal(0)) // Its warden was lost, and it is swept.
}

/// Returns when the end was asked for and was not reached within the grace, or when nobody can ask.
async fn overdue(mut orders: Orders, grace: Duration) {
    let mut lost = orders.clone();
    tokio::select! {
        () = orders.stopped() => { _ = timeout(grace, std::future::pending::<()>()).await; }
        _ = lost.released() => {}
    }
}

fn called_off() -> Failure {
    Failure::new(Code::Cancelled, "it was told to end")
}

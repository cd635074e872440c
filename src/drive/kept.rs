//! A message to a program that is kept for the rest of its conversation.

mod hearing;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::contract::{Evidence, judge};
use algonius_actors::decide::counters::Numbers;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::{Dialect, Exit};
use algonius_actors::model::request::Overrides;
use algonius_actors::model::session::{Conversation, SessionId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use tokio::sync::watch;
use tokio::time::timeout;

use self::hearing::{End, Heard};
use super::attempt::{Attempt, Begun};
use super::dialogue::Dialogue;
use super::events::Told;
use super::folder::Folder;
use super::handed;
use super::live::{Ended, Output};
use super::pool::{Pool, Terms, Ticket};
use super::process::{Orders, Place};
use super::reach::Reach;
use super::thread::{self, Thread};
use crate::warden::{Ending, Feed, Gauge, Pipe, Tree};

/// A program that is kept. Dropping it kills all of it.
pub(super) struct Kept {
    pub(super) pid: u32,
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
    pub(super) ending: Ending,
    pub(super) tree: Box<dyn Tree>,
    pub(super) ticket: Ticket,
    /// `None` once it reads no more.
    feed: Option<Feed>,
    folder: Option<Folder>,
    reach: Reach,
    /// What it has counted since it was started, where it counts so.
    counted: Numbers,
    /// The words in which it says what happens, where they are its own.
    dialect: Option<Dialect>,
    fit: Fit,
    /// How many messages it has had.
    calls: u64,
    /// How it calls the conversation.
    session: Option<SessionId>,
}

/// What a program was started for: it serves no message that wants something else.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fit {
    place: PathBuf,
    overrides: Overrides,
}

impl Kept {
    /// Ends it: politely by the end of its input, then by a signal, then by force.
    pub(super) async fn end(self, grace: Duration) {
        let Self { mut ending, tree, feed, folder, ticket, .. } = self;
        drop(feed);
        if timeout(grace, &mut ending).await.is_err() {
            tree.terminate();
            _ = timeout(grace, &mut ending).await; // What is left is swept.
        }
        sweep(tree, folder).await;
        drop(ticket);
    }

    /// Removes what is left of one that has ended.
    pub(super) async fn clear(self) {
        let Self { tree, folder, ticket, .. } = self;
        sweep(tree, folder).await;
        drop(ticket);
    }
}

async fn sweep(tree: Box<dyn Tree>, folder: Option<Folder>) {
    tree.sweep().await;
    if let Some(folder) = folder {
        folder.clear().await;
    }
}

/// One message from its order to its end. Whatever it ends with, the program is back in the pool, or
/// nothing of it is left.
pub(super) async fn serve(
    attempt: Attempt,
    pool: Arc<Pool>,
    (report, gauge): (Reporter, watch::Sender<Option<Gauge>>),
    orders: Orders,
) {
    let turn = Turn { attempt, pool, orders };
    match turn.take(&report, &gauge).await {
        Ok(ended) => ended.tell(report),
        Err(failure) => report.ended(Err(failure), None),
    }
}

/// The exit of a program that did what it should. One that lives on has done so too.
const fn well() -> Exit {
    Exit::Code(0)
}

struct Turn {
    attempt: Attempt,
    pool: Arc<Pool>,
    orders: Orders,
}

impl Turn {
    async fn take(
        mut self,
        report: &Reporter,
        gauge: &watch::Sender<Option<Gauge>>,
    ) -> Result<Ended, Failure> {
        let work = &self.attempt.work;
        if handed::has_files(&work.request.input.parts) {
            let why = "the agent takes no files, since its program is kept between messages";
            return Err(Failure::new(Code::InputRejected, why));
        }
        loop {
            let ended = self.once(report, gauge).await?;
            if !ended.is_lost() || self.orders.is_stopped() {
                return Ok(ended);
            }
            // A new program knew nothing to go on with, and did no work.
            let Place { sessions, .. } = &*self.attempt.place;
            thread::give_up(&self.attempt.work, &**sessions, report).await?;
        }
    }

    async fn once(
        &mut self,
        report: &Reporter,
        gauge: &watch::Sender<Option<Gauge>>,
    ) -> Result<Ended, Failure> {
        let kept = self.program(report).await?;
        let dialogue = match self.dialogue(&kept) {
            Ok(dialogue) => dialogue,
            Err(failure) => {
                self.give_back(kept, report);
                return Err(failure);
            }
        };
        gauge.send_replace(Some(kept.tree.gauge()));
        report.started(Some(kept.pid));
        let heard = self.hear(kept, dialogue, report).await;
        heard.unwrap_or_else(|error| {
            tracing::error!(%error, "what a kept program wrote is lost");
            let why = "what the agent wrote could not be recorded";
            Err(Failure::new(Code::LedgerUnavailable, why))
        })
    }

    fn terms(&self) -> Terms {
        let grace = self.attempt.work.spec.deadlines.grace;
        Terms { grace, resources: self.attempt.program.resources }
    }

    fn give_back(&self, kept: Kept, report: &Reporter) {
        self.pool.give_back(kept, self.terms(), report.now());
    }

    fn dialogue(&self, kept: &Kept) -> Result<Dialogue, Failure> {
        let Some(spec) = &self.attempt.program.dialogue else {
            return Err(Failure::new(Code::Internal, "a kept program is not spoken to"));
        };
        let mut values = self.attempt.values();
        if let Some(id) = &kept.session {
            id.expose().clone_into(&mut values.session_id);
        }
        Dialogue::of(spec, &values, kept.calls)
    }

    /// The program of the conversation: the one that is kept, or another one.
    async fn program(&mut self, report: &Reporter) -> Result<Kept, Failure> {
        let conversation = Conversation::of(&self.attempt.work.request);
        let fit = Fit {
            place: self.attempt.workplace().await?,
            overrides: self.attempt.work.request.overrides(),
        };
        match self.pool.take(&conversation).await {
            Some(kept) if kept.fit == fit => return Ok(kept),
            Some(kept) => kept.end(self.terms().grace).await,
            None => {}
        }
        let Place { sessions, .. } = &*self.attempt.place;
        let (program, work) = (&self.attempt.program, &self.attempt.work);
        self.attempt.thread = Thread::find(program, work, &**sessions, report).await?;
        if program.session.is_none() {
            thread::mention_loss(work, &**sessions, report).await?;
        }
        let ticket = self.pool.enter(&conversation, report.now()).await;
        self.start(ticket, fit).await
    }

    async fn start(&self, ticket: Ticket, fit: Fit) -> Result<Kept, Failure> {
        // It is of no execution: what holds it knows it by an id of its own.
        let mut attempt = self.attempt.clone();
        (attempt.work.execution, attempt.work.stamp) = (ExecutionId::fresh(), Stamp::FIRST);
        let Begun { spawned, folder, output, .. } = attempt.launch_for(&self.orders).await?;
        let Output::Events(reach, dialect) = output else {
            return Err(Failure::new(Code::Internal, "a kept program is not listened to"));
        };
        self.pool.started(&ticket, spawned.pid);
        let session = attempt.thread.id(&attempt.program, &attempt.work);
        Ok(Kept {
            pid: spawned.pid,
            stdout: spawned.stdout,
            stderr: spawned.stderr,
            ending: spawned.ending,
            tree: spawned.tree,
            ticket,
            feed: spawned.stdin,
            folder,
            reach,
            counted: Numbers::default(),
            dialect,
            fit,
            calls: 0,
            session,
        })
    }

    /// Speaks with the program, and judges what it answers.
    async fn hear(
        &self,
        mut kept: Kept,
        dialogue: Dialogue,
        report: &Reporter,
    ) -> Result<Result<Ended, Failure>, LedgerError> {
        if kept.calls > 0 {
            report.count_from(kept.counted.clone());
        }
        let Heard { end, told, stdout, stderr } = self.listen(&mut kept, dialogue, report).await?;
        let exit = match &end {
            End::Over => well(),
            End::Exit(exit) => *exit,
            End::Fault(failure) => {
                kept.end(self.terms().grace).await;
                return Ok(Err(failure.clone()));
            }
        };
        let Told { text, testimony, asks, has_more } = told;
        let (stdout, stderr) = (stdout.as_str(), stderr.as_str());
        let (answer, now) = (Some(text.raw.as_str()), report.now());
        let evidence = Evidence { exit, answer, has_more, stdout, stderr, told: testimony, now };
        let verdict = judge(&self.attempt.program, &evidence);
        if verdict.is_ok() {
            report.answered(&text.raw);
        }
        let aftermath = self.attempt.thread.after(&self.attempt.program, exit, [stdout, stderr]);
        let exit_code = if matches!(end, End::Exit(_)) { exit.code() } else { None };
        let mut ended = Ended { verdict, exit_code, asked: asks, aftermath };
        self.conclude(&end, kept, &mut ended, report).await;
        Ok(Ok(ended))
    }

    /// Leaves the program to the next message where it lives.
    async fn conclude(&self, end: &End, mut kept: Kept, ended: &mut Ended, report: &Reporter) {
        let named = ended.remembered();
        kept.session = report.session().or(kept.session).or_else(|| named.clone().flatten());
        kept.counted = report.counts();
        self.remember(named.is_some(), kept.session.clone(), report).await;
        kept.calls += 1;
        match end {
            End::Over if !self.orders.is_lost() && kept.feed.is_some() => {
                self.give_back(kept, report);
            }
            End::Over | End::Fault(_) => kept.end(self.terms().grace).await,
            End::Exit(_) => kept.clear().await,
        }
    }

    /// Keeps in the ledger that there is something to go on with.
    async fn remember(&self, is_well: bool, session: Option<SessionId>, report: &Reporter) {
        let Attempt { program, work, thread, place, .. } = &self.attempt;
        let Place { sessions, .. } = &**place;
        let kept = match &program.session {
            Some(_) if is_well => thread.keep(program, work, (&**sessions, report), session).await,
            Some(_) => Ok(()),
            None => thread::mark(work, &**sessions, report).await,
        };
        if let Err(error) = kept {
            tracing::error!(execution = %work.execution, %error, "a session is not kept");
        }
    }
}

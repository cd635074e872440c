//! An attempt whose program lives: reads it, ends it when told to, and judges how it ended.

mod ended;
mod listening;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::contract::{Evidence, Testimony, judge};
use algonius_actors::decide::prompt;
use algonius_actors::decide::resources::explain;
use algonius_actors::decide::sandbox::{complains, is_unmade};
use algonius_actors::model::code::Code;
use algonius_actors::model::event::Fact;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{Dialect, Exit, OutputPattern, ProgramSpec};
use algonius_actors::ports::driver::Work;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

pub(super) use self::ended::Ended;
use self::listening::{Heard, catch_up};
use super::answer::{Answer, of_file, of_stdout};
use super::dialogue::Dialogue;
use super::events::Told;
use super::folder::Folder;
use super::limits;
use super::process::Orders;
use super::prompts::Prompts;
use super::proof::Proof;
use super::pump::{Source, Text};
use super::reach::Reach;
use super::sandbox::{self, is_confined};
use super::talk::Talk;
use super::thread::Thread;
use crate::warden::{Ending, Gauge, Pipe, Spawned, Tree};

/// A running attempt. Dropping it kills all of it and removes the folder, unless it was left.
pub(super) struct Live {
    program: Arc<ProgramSpec>,
    work: Work,
    thread: Thread,
    pid: u32,
    tree: Box<dyn Tree>,
    output: Output,
    folder: Option<Folder>,
    proof: Mutex<Option<Proof>>,
}

/// Where the answer comes from.
pub(super) enum Output {
    /// Standard output.
    Stdout,
    /// This file.
    File(PathBuf),
    /// Events on standard output, of ours or of another kind, which may name files within reach.
    Events(Reach, Option<Dialect>),
}

/// The ends of a program that are used up by the run.
pub(super) struct Process {
    stdout: Pipe,
    stderr: Pipe,
    ending: Ending,
    /// What is said to it while it runs.
    talk: Option<Talk>,
}

/// How a program ended.
struct End {
    exit: Exit,
    /// What it was ended for, where it was for something that it did.
    fault: Option<Failure>,
}

impl Live {
    /// Takes over a program that was started.
    pub(super) fn new(
        program: Arc<ProgramSpec>,
        (work, thread): (Work, Thread),
        spawned: Spawned,
        folder: Option<Folder>,
        (output, dialogue, proof): (Output, Option<Dialogue>, Option<Proof>),
    ) -> (Self, Process) {
        let Spawned { pid, stdin, stdout, stderr, ending, tree } = spawned;
        let talk = dialogue.map(|dialogue| Talk::new(stdin, dialogue));
        let is_text = program.output == OutputPattern::Stdout;
        let talk = talk.map(|talk| if is_text { talk.in_text() } else { talk });
        let proof = Mutex::new(proof);
        let live = Self { program, work, thread, pid, tree, output, folder, proof };
        (live, Process { stdout, stderr, ending, talk })
    }

    /// Runs to the end. When it returns, everything is written and nothing of it lives.
    pub(super) async fn run(
        &self,
        process: Process,
        report: &Reporter,
        mut orders: Orders,
    ) -> Ended {
        let Process { stdout, stderr, ending, talk } = process;
        report.started(Some(self.pid));
        let (cut, is_cut) = watch::channel(false);
        let prompts = Prompts::new(Arc::clone(&self.program));
        let held = self.work.spec.sizes.output;
        let source = |pipe| Source::new(pipe, is_cut.clone(), prompts.ear(), held);
        let sources = (source(stdout), source(stderr));
        let over = watch::Sender::new(false);
        let mut listening = std::pin::pin!(self.listen(report, sources, (talk, &over)));
        let ends = (orders.clone(), over.subscribe());
        let mut exiting = std::pin::pin!(self.see_to_the_end(ending, ends, &prompts));
        let (exit, heard) = tokio::select! {
            exit = &mut exiting => {
                // Its warden is lost, and with it whoever could tell how it ends.
                if exit.is_err() { self.tree.sweep().await; }
                (exit, self.drain(listening.as_mut(), &cut).await)
            }
            heard = &mut listening => {
                // Nobody reads on, so nobody waits for a program that would write.
                if heard.is_err() { self.tree.kill(); }
                (self.see_out(exiting, report).await, heard)
            }
        };
        self.tree.sweep().await;
        self.account(report);
        self.conclude(exit, heard, (report, &mut orders)).await
    }

    /// What looks at what it takes of the machine.
    pub(super) fn gauge(&self) -> Gauge {
        self.tree.gauge()
    }

    /// Returns when somebody else drives the program.
    pub(super) async fn taken(&self) {
        self.tree.taken().await;
    }

    /// Leaves all of it to the one who has taken it.
    pub(super) fn leave(self) {
        if let Some(folder) = self.folder {
            folder.leave();
        }
    }

    /// Removes what the attempt left. Returns when nothing is left.
    pub(super) async fn clear(self) {
        self.tree.sweep().await;
        if let Some(folder) = self.folder {
            folder.clear().await;
        }
    }

    /// Waits for the program's end; once it is asked for, or the program asks a person or takes too
    /// much, brings it about.
    async fn see_to_the_end(
        &self,
        mut ending: Ending,
        (mut orders, mut over): (Orders, watch::Receiver<bool>),
        prompts: &Prompts,
    ) -> io::Result<End> {
        let fault = tokio::select! {
            biased;
            exit = &mut ending => return Ok(End { exit: exit?, fault: None }),
            () = orders.stopped() => None,
            () = turned(&mut over) => return self.see_off(ending).await,
            () = prompts.asked() => Some(prompt::failure()),
            excess = limits::exceeded(&self.program.resources, &*self.tree) => {
                // It is not asked to end: whatever it did meanwhile, it would take more for it.
                self.tree.kill();
                return Ok(End { exit: ending.await?, fault: Some(excess) });
            }
        };
        self.tree.terminate();
        if let Ok(exit) = timeout(self.work.spec.deadlines.grace, &mut ending).await {
            return Ok(End { exit: exit?, fault });
        }
        self.tree.kill();
        Ok(End { exit: ending.await?, fault })
    }

    /// Lets a program end that has answered its call. One that does not, as servers may not, is ended,
    /// which says nothing about its answer.
    async fn see_off(&self, mut ending: Ending) -> io::Result<End> {
        let grace = self.work.spec.deadlines.grace;
        if let Ok(exit) = timeout(grace, &mut ending).await {
            return Ok(End { exit: exit?, fault: None });
        }
        self.tree.terminate();
        if timeout(grace, &mut ending).await.is_err() {
            self.tree.kill();
            ending.await?;
        }
        let well = self.program.success.exit_codes.first().copied().unwrap_or_default();
        Ok(End { exit: Exit::Code(well), fault: None })
    }

    /// Records what it took.
    fn account(&self, report: &Reporter) {
        if let Some(spent) = self.tree.spent() {
            report.add(Fact::Spent(spent));
        }
    }

    async fn conclude(
        &self,
        end: io::Result<End>,
        heard: Result<Heard, LedgerError>,
        (report, orders): (&Reporter, &mut Orders),
    ) -> Ended {
        let End { exit, fault } = match end {
            Ok(end) => end,
            Err(error) => {
                tracing::error!(execution = %self.work.execution, %error, "no exit status");
                return Ended::unexplained(error.kind());
            }
        };
        let asked = heard.as_ref().is_ok_and(Heard::asks);
        let after = |heard: &Heard| {
            self.thread.after(&self.program, exit, [&heard.stdout.raw, &heard.stderr.raw])
        };
        let aftermath = heard.as_ref().map(after).unwrap_or_default();
        let is_refused = heard.as_ref().is_ok_and(|heard| self.is_refused(heard));
        let mut verdict = match (heard, fault) {
            (Ok(_), Some(fault)) => Ok(Err(fault)),
            (Ok(heard), None) => self.verdict(exit, heard, (report, orders)).await,
            (Err(error), _) => Err(error),
        };
        if let Ok(Err(failure)) = &mut verdict
            && let Some(cause) = explain(&self.program.resources, self.tree.refusals())
        {
            *failure = cause;
        }
        if is_refused && matches!(verdict, Ok(Err(_))) {
            let told = report.note(Fact::Warned { message: sandbox::ABOUT.to_owned() }).await;
            verdict = told.and(verdict);
        }
        Ended {
            verdict: verdict.unwrap_or_else(|error| Err(self.unwritten(&error))),
            exit_code: exit.code(),
            asked,
            aftermath,
        }
    }

    /// Whether it complains of what its sandbox may have refused.
    fn is_refused(&self, heard: &Heard) -> bool {
        is_confined(&self.work) && complains(&heard.stderr.raw)
    }

    async fn verdict(
        &self,
        exit: Exit,
        heard: Heard,
        (report, orders): (&Reporter, &mut Orders),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let Heard { stdout, stderr, events } = heard;
        let stderr = &stderr.raw;
        if is_unmade(self.work.spec.isolation, exit, &stdout.raw, stderr) {
            return Ok(Err(sandbox::unmade()));
        }
        match events {
            Some(told) => {
                self.verdict_on_events(exit, (&stdout.raw, stderr), told, (report, orders)).await
            }
            None => self.verdict_on_output(exit, (&stdout, stderr), (report, orders)).await,
        }
    }

    /// What seems to be a success is looked at once more.
    async fn judge(
        &self,
        evidence: &Evidence<'_>,
        told: (&Reporter, &mut Orders),
    ) -> Result<(), Failure> {
        judge(&self.program, evidence)?;
        let Some(proof) = self.proof.lock().await.take() else { return Ok(()) };
        catch_up(told.0).await; // A proof may take long.
        proof.show(evidence.answer.unwrap_or_default(), told).await
    }

    /// What was told is recorded by now, whatever is thought of it.
    async fn verdict_on_events(
        &self,
        exit: Exit,
        (stdout, stderr): (&str, &str),
        told: Told,
        (report, orders): (&Reporter, &mut Orders),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let Told { text, testimony, has_more, .. } = told;
        let (answer, now) = (Some(text.raw.as_str()), report.now());
        let denied = testimony.denied.join(", ");
        let evidence = Evidence { exit, answer, has_more, stdout, stderr, told: testimony, now };
        let verdict = self.judge(&evidence, (report, orders)).await;
        if verdict.is_ok() {
            report.answered(&text.raw);
            if !denied.is_empty() {
                let message = format!("it answered, but was not let use {denied}");
                report.note(Fact::Warned { message }).await?;
            }
        }
        Ok(verdict)
    }

    async fn verdict_on_output(
        &self,
        exit: Exit,
        (stdout, stderr): (&Text, &str),
        (report, orders): (&Reporter, &mut Orders),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let limit = self.work.spec.sizes.output;
        let found = match &self.output {
            Output::File(path) => of_file(&self.program, path, limit, report).await?,
            Output::Stdout | Output::Events(..) => of_stdout(&self.program, stdout, report).await?,
        };
        let answer = found.as_ref().map(|answer| answer.raw.as_ref());
        let (stdout, has_more, now) = (&stdout.raw, false, report.now());
        let told = Testimony::default();
        let evidence = Evidence { exit, answer, has_more, stdout, stderr, told, now };
        let verdict = self.judge(&evidence, (report, orders)).await;
        if let (Ok(()), Some(Answer { raw, piece })) = (&verdict, found) {
            report.add(Fact::answer(piece));
            report.answered(&raw);
        }
        Ok(verdict)
    }

    fn unwritten(&self, error: &LedgerError) -> Failure {
        tracing::error!(execution = %self.work.execution, %error, "what the agent wrote is lost");
        Failure::new(Code::LedgerUnavailable, "what the agent wrote could not be recorded")
    }
}

/// Returns when the call is answered; never where there is none.
async fn turned(over: &mut watch::Receiver<bool>) {
    if over.wait_for(|over| *over).await.is_err() {
        std::future::pending::<()>().await;
    }
}

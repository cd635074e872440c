//! Judge of a run: turns the end of a program and its output into the result of the attempt.

use std::io;
use std::sync::Arc;

use algonius_actors::decide::classify::contract::{AttemptOutcome, ReportedResult, judge};
use algonius_actors::decide::host::resources::explain;
use algonius_actors::decide::host::sandbox::{complains, is_unmade};
use algonius_actors::driver::Work;
use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::resources::Refusals;
use algonius_actors::model::program::{Exit, ProgramSpec};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use algonius_warden::MemoryAccount;
use tokio::sync::{Mutex, OwnedSemaphorePermit};

use super::answer::{FoundAnswer, is_long, of_file, of_stdout};
use super::end_report::{EndedRun, RunEnd};
use super::output::Output;
use super::read_output::{ReadOutput, catch_up};
use crate::drivers::adapters::event_reader::EventSummary;
use crate::drivers::control::Control;
use crate::drivers::output::model_retries::gave_up;
use crate::drivers::output::pump::PumpedText;
use crate::drivers::output::raw_text::Storage;
use crate::drivers::program::sandbox::{self, is_confined};
use crate::drivers::program::session_resume::SessionResume;
use crate::drivers::program::success_checks::SuccessProof;

/// Judge of one run.
pub(super) struct RunJudge {
    pub(super) program: Arc<ProgramSpec>,
    pub(super) work: Work,
    /// Source of the answer.
    pub(super) output: Output,
    session: SessionResume,
    /// Success checks, until they run.
    proof: Mutex<Option<SuccessProof>>,
    memory: ReadingMemory,
}

/// Memory for the long texts of a run.
struct ReadingMemory {
    account: MemoryAccount,
    /// Permit to hold long texts in the heap, while the run has it.
    turn: Mutex<Option<OwnedSemaphorePermit>>,
}

impl ReadingMemory {
    /// Waits for the permit, unless the run has it.
    async fn take_turn(&self) {
        let mut turn = self.turn.lock().await;
        if turn.is_none() {
            *turn = self.account.reading_turn().await;
        }
    }

    /// Returns the permit.
    async fn release(&self) {
        self.turn.lock().await.take();
    }
}

impl RunJudge {
    /// Returns the judge of a program that has started.
    pub(super) fn new(
        program: Arc<ProgramSpec>,
        (work, session): (Work, SessionResume),
        (output, proof): (Output, Option<SuccessProof>),
        account: MemoryAccount,
    ) -> Self {
        let memory = ReadingMemory { account, turn: Mutex::default() };
        Self { program, work, output, session, proof: Mutex::new(proof), memory }
    }

    /// Judges the end of a run, and records what explains it. `refusals` are those of the program's control group.
    pub(super) async fn conclude(
        &self,
        end: io::Result<RunEnd>,
        output: Result<ReadOutput, LedgerError>,
        refusals: Refusals,
        (report, orders): (&Reporter, &mut Control),
    ) -> EndedRun {
        let RunEnd { exit, fault, is_exhausted } = match end {
            Ok(end) => end,
            Err(error) => {
                tracing::error!(execution = %self.work.execution, %error, "exit status of program is unknown");
                return EndedRun::unexplained(error.kind());
            }
        };
        // From here on the long texts are in the heap, for which only two executions at a time have a permit.
        if output.as_ref().is_ok_and(ReadOutput::is_long) {
            self.memory.take_turn().await;
        }
        let interruption = output.as_ref().ok().and_then(ReadOutput::interruption);
        let after = |output: &ReadOutput| {
            self.session.after(
                &self.program,
                exit,
                [&output.stdout, &output.stderr].map(PumpedText::raw),
            )
        };
        let session_update = output.as_ref().map(after).unwrap_or_default();
        if let Ok(output) = &output {
            output.count(&self.program.usage, report).await;
        }
        // Found before the verdict, which consumes the texts.
        let is_refused = output.as_ref().is_ok_and(|output| self.is_refused(output));
        let words_of = |output: &ReadOutput| output.last_words(&self.output, report);
        let last_words = output.as_ref().ok().filter(|_| orders.is_stopped()).map(words_of);
        let last_words = last_words.unwrap_or_default();
        // A fault for which the service ended the program outweighs its exit status.
        let mut verdict = match (output, fault) {
            (Ok(_), Some(fault)) => Ok(Err(fault)),
            (Ok(output), None) => self.verdict(exit, output, (report, orders)).await,
            (Err(error), _) => Err(error),
        };
        if let Ok(Err(failure)) = &mut verdict {
            // A kill or a refused fork by the control group explains the failure better than the exit does.
            if let Some(cause) = explain(&self.program.resources, refusals) {
                *failure = cause;
            } else if is_exhausted && failure.category() == Category::Agent {
                *failure = gave_up(*report.failed_requests().borrow());
            }
            failure.last_words = last_words;
        }
        // The complaint is a guess from standard error, so it explains a failure but never makes one.
        if is_refused && matches!(verdict, Ok(Err(_))) {
            let told = report.note(EventKind::Warning { message: sandbox::ABOUT.to_owned() }).await;
            verdict = told.and(verdict);
        }
        self.memory.release().await;
        EndedRun {
            verdict: verdict.unwrap_or_else(|error| Err(self.unwritten(&error))),
            exit_code: exit.code(),
            interruption,
            session_update,
        }
    }

    /// Returns true if standard error contains complaints that the sandbox may have caused.
    fn is_refused(&self, output: &ReadOutput) -> bool {
        is_confined(&self.work, &self.program) && complains(output.stderr.raw())
    }

    async fn verdict(
        &self,
        exit: Exit,
        output: ReadOutput,
        (report, orders): (&Reporter, &mut Control),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let ReadOutput { stdout, stderr, events } = output;
        let stderr = stderr.raw();
        // Bubblewrap reports its own failure in words only, with the exit code 1.
        if is_unmade(sandbox::isolation(&self.work), exit, stdout.raw(), stderr) {
            return Ok(Err(sandbox::unmade()));
        }
        match events {
            Some(told) => {
                self.verdict_on_events(exit, (stdout.raw(), stderr), told, (report, orders)).await
            }
            None => self.verdict_on_output(exit, (&stdout, stderr), (report, orders)).await,
        }
    }

    /// Judges the outcome, and runs the success checks for an apparent success.
    async fn judge(
        &self,
        evidence: &AttemptOutcome<'_>,
        told: (&Reporter, &mut Control),
    ) -> Result<(), Failure> {
        judge(&self.program, evidence)?;
        let Some(proof) = self.proof.lock().await.take() else { return Ok(()) };
        catch_up(told.0).await; // A check may take long: others wait for the permit, and followers for the text.
        self.memory.release().await;
        proof.show(evidence.answer.unwrap_or_default(), told).await
    }

    /// Judges a program with events, which the ledger has recorded already.
    async fn verdict_on_events(
        &self,
        exit: Exit,
        (stdout, stderr): (&str, &str),
        told: EventSummary,
        (report, orders): (&Reporter, &mut Control),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let EventSummary { text, testimony, has_more, .. } = told;
        let (answer, now) = (Some(text.raw()), report.now());
        let denied = testimony.denied.join(", ");
        let told = testimony;
        let evidence = AttemptOutcome { exit, answer, has_more, stdout, stderr, told, now };
        let verdict = self.judge(&evidence, (report, orders)).await;
        if verdict.is_ok() {
            report.answered(text.raw());
            // Many programs succeed although nobody allowed them a tool, and neither exit nor answer shows it.
            if !denied.is_empty() {
                let message = format!("it answered, but was not permitted to use {denied}");
                report.note(EventKind::Warning { message }).await?;
            }
        }
        Ok(verdict)
    }

    async fn verdict_on_output(
        &self,
        exit: Exit,
        (stdout, stderr): (&PumpedText, &str),
        (report, orders): (&Reporter, &mut Control),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let limit = self.work.spec.limits.sizes.output;
        let found = match &self.output {
            Output::File(None) => None,
            Output::File(Some(file)) => {
                if is_long(file).await {
                    self.memory.take_turn().await;
                }
                let storage = Storage { account: self.memory.account.clone(), recorded: None };
                of_file(&self.program, file, (limit, storage), report).await?
            }
            Output::Stdout | Output::Events(..) => of_stdout(&self.program, stdout, report).await?,
        };
        let answer = found.as_ref().map(|answer| answer.raw.as_ref());
        let (stdout, has_more, now) = (stdout.raw(), false, report.now());
        let told = ReportedResult::default();
        let evidence = AttemptOutcome { exit, answer, has_more, stdout, stderr, told, now };
        let verdict = self.judge(&evidence, (report, orders)).await;
        if let (Ok(()), Some(FoundAnswer { raw, piece })) = (&verdict, found) {
            report.add(EventKind::answer(piece));
            report.answered(&raw);
        }
        Ok(verdict)
    }

    fn unwritten(&self, error: &LedgerError) -> Failure {
        tracing::error!(execution = %self.work.execution, %error, "failed to persist output of agent");
        Failure::new(Code::LedgerUnavailable, "the output of the agent could not be recorded")
    }
}

//! Attempt at a run of a cognitive agent: from its recorded steps to its end.

use std::sync::Arc;

use tokio::time::sleep;

use super::recording::RunRecorder;
use super::stored_run::{StoredCognitiveRun, read_stored_run};
use crate::decide::recovery::interruption_failure;
use crate::decide::runs::cognitive::{CognitiveAction, CognitiveRun};
use crate::driver::AttemptWork;
use crate::driver::report::Reporter;
use crate::gateway::requests::RunRequestHandle;
use crate::model::agent::cognitive::CognitiveSpec;
use crate::model::code::Code;
use crate::model::execution::ExecutionState;
use crate::model::execution::event::EventKind;
use crate::model::execution::step::StepPlan;
use crate::model::failure::Failure;
use crate::ports::completion::CompletionClient;
use crate::ports::ledger::LedgerError;
use crate::ports::tools::ToolExecutor;
use crate::runs::attempt::{LEDGER_RETRY_PAUSE, RunExit, RunStart, RunStopReceiver};

/// Attempt at a run.
pub(super) struct CognitiveAttempt {
    pub(super) request_handle: RunRequestHandle,
    pub(super) completions: Arc<dyn CompletionClient>,
    pub(super) tools: Arc<dyn ToolExecutor>,
    pub(super) work: AttemptWork,
    pub(super) start: RunStart,
}

impl CognitiveAttempt {
    /// Runs the attempt, and reports its end.
    pub(super) async fn run(self, reporter: Reporter, mut stop: RunStopReceiver) {
        let exit = loop {
            let error = match self.run_until_exit(&reporter, &mut stop).await {
                Ok(exit) => break exit,
                Err(error) => error,
            };
            tracing::error!(execution = %self.work.execution, %error, "reading the run failed, retrying");
            tokio::select! {
                () = sleep(LEDGER_RETRY_PAUSE) => {}
                () = stop.wait() => break RunExit::Stopped,
                () = self.request_handle.wait_for_drain_start() => break RunExit::Suspended,
            }
        };
        exit.report(reporter);
    }

    /// Reads the facts of the run, and performs one action after the other until the run has ended.
    async fn run_until_exit(
        &self,
        reporter: &Reporter,
        stop: &mut RunStopReceiver,
    ) -> Result<RunExit, LedgerError> {
        let AttemptWork { execution, attempt_id, spec, request, .. } = &self.work;
        let Some(spec) = spec.cognitive() else {
            let failure = Failure::new(Code::Internal, "the agent is not cognitive");
            return Ok(RunExit::Failed(failure));
        };
        if request.input.has_files() {
            let message = "a cognitive agent reads text and data, and no files";
            return Ok(RunExit::Failed(Failure::new(Code::InputRejected, message)));
        }
        let ledger = &self.request_handle.services().ledger;
        let mut stored_run = read_stored_run(&**ledger, (*execution, *attempt_id), spec).await?;
        let mut recorder = RunRecorder::new(reporter, &stored_run);
        let run = match stored_run.run.take() {
            Some(run) => Ok(run),
            None => self.start_new_run(spec, &recorder, stop).await?,
        };
        let mut run = match run {
            Ok(run) => run,
            Err(exit) => return Ok(exit),
        };
        reporter.report_start(None);
        if let Some(failure) = self.resume_failure(&stored_run, &run).await? {
            return Ok(RunExit::Failed(failure));
        }
        loop {
            if let Err(exit) = self.perform_next_action(spec, &mut run, &mut recorder, stop).await {
                return Ok(exit);
            }
        }
    }

    /// Records the plan of a run that has none.
    async fn start_new_run(
        &self,
        spec: &CognitiveSpec,
        recorder: &RunRecorder<'_>,
        stop: &mut RunStopReceiver,
    ) -> Result<Result<CognitiveRun, RunExit>, LedgerError> {
        let record = self.request_handle.services().ledger.execution(self.work.execution).await?;
        if record.is_none_or(|record| record.state == ExecutionState::Running) {
            // A run records its plan before it runs. Its agent was of another kind when it started.
            return Ok(Err(RunExit::Failed(interruption_failure())));
        }
        let plan = StepPlan { model: spec.model.to_string(), max_steps: spec.max_steps.get() };
        recorder.reporter.record_later(EventKind::StepsPlanned { plan: plan.clone() });
        Ok(recorder.commit(stop).await.map(|()| CognitiveRun::new(plan)))
    }

    /// Returns the failure of a run whose conversation would differ from the earlier one: the original input is lost,
    /// or a recorded step was redacted.
    async fn resume_failure(
        &self,
        stored_run: &StoredCognitiveRun,
        run: &CognitiveRun,
    ) -> Result<Option<Failure>, LedgerError> {
        if matches!(run.next_action(), CognitiveAction::Finish(_)) {
            return Ok(None);
        }
        if stored_run.has_redacted_step {
            let message =
                "a step held secrets that are not stored, so the interrupted run cannot continue";
            return Ok(Some(Failure::new(Code::Interrupted, message)));
        }
        if self.start == RunStart::Resumed
            && !self.request_handle.has_original_input(self.work.execution).await?
        {
            let message = "the input held secrets that are not stored, so the interrupted run cannot continue";
            return Ok(Some(Failure::new(Code::NotReplayable, message)));
        }
        Ok(None)
    }
}

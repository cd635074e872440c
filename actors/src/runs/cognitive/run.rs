//! Run of a cognitive agent: performs the actions of [`decide::runs::steps`](crate::decide::runs::steps), and records the
//! steps between them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout};

use super::recording::RunRecorder;
use super::restoring::{StoredRun, read_run};
use crate::decide::recovery::interruption_failure;
use crate::decide::runs::steps::reply::{step_of_unusable_answer, steps_of_reply};
use crate::decide::runs::steps::{CallResult, RunStep, StepAction, StepRun, conversation};
use crate::driver::Work;
use crate::driver::report::Reporter;
use crate::gateway::requests::RunRequests;
use crate::model::agent::cognitive::CognitiveSpec;
use crate::model::code::Code;
use crate::model::execution::State;
use crate::model::execution::content::Content;
use crate::model::execution::event::EventKind;
use crate::model::execution::step::{StepPlan, StepRow};
use crate::model::failure::Failure;
use crate::model::observation::telemetry_events::TokenCounts;
use crate::ports::completion::{CompletionError, Completions};
use crate::ports::ledger::LedgerError;
use crate::ports::tools::{TextRedactor, ToolInvocation, Tools};
use crate::runs::stop_order::StopOrder;

/// Pause before an action is repeated that failed because of the ledger.
const LEDGER_PAUSE: Duration = Duration::from_secs(1);

/// Attempt at a run.
pub(super) struct CognitiveAttempt {
    pub(super) requests: RunRequests,
    pub(super) completions: Arc<dyn Completions>,
    pub(super) tools: Arc<dyn Tools>,
    pub(super) work: Work,
    /// True if the run continues after a crash, a suspension or an upgrade.
    pub(super) is_resumed: bool,
}

/// End of an attempt at a run.
enum CognitiveRunEnd {
    /// The model gave its answer.
    Completed,
    /// The run has failed.
    Failed(Failure),
    /// The run has to stop.
    Stopped,
    /// The run continues after the next start of the service.
    Suspended,
    /// Another actor has the run now.
    Replaced,
}

impl CognitiveAttempt {
    /// Runs the attempt, and reports its end.
    pub(super) async fn run(self, reporter: Reporter, mut stop: StopOrder) {
        let end = loop {
            let error = match self.drive(&reporter, &mut stop).await {
                Ok(end) => break end,
                Err(error) => error,
            };
            tracing::error!(execution = %self.work.execution, %error, "run not read or recorded");
            tokio::select! {
                () = sleep(LEDGER_PAUSE) => {}
                () = stop.wait() => break CognitiveRunEnd::Stopped,
            }
        };
        match end {
            CognitiveRunEnd::Completed => reporter.report_exit(Ok(()), None),
            CognitiveRunEnd::Failed(failure) => reporter.report_exit(Err(failure), None),
            CognitiveRunEnd::Stopped => {
                let failure = Failure::new(Code::Cancelled, "the run was stopped");
                reporter.report_exit(Err(failure), None);
            }
            CognitiveRunEnd::Suspended => reporter.suspend(),
            CognitiveRunEnd::Replaced => reporter.detach(),
        }
    }

    /// Reads the facts of the run, and performs one action after the other until the run has ended.
    async fn drive(
        &self,
        reporter: &Reporter,
        stop: &mut StopOrder,
    ) -> Result<CognitiveRunEnd, LedgerError> {
        let Work { execution, attempt_id, spec, request, .. } = &self.work;
        let Some(spec) = spec.cognitive() else {
            return Ok(CognitiveRunEnd::Failed(Failure::new(
                Code::Internal,
                "the agent is not cognitive",
            )));
        };
        if request
            .input
            .parts
            .iter()
            .any(|part| matches!(part.content, Content::Bytes(_) | Content::Url(_)))
        {
            let message = "a cognitive agent reads text and data, and no files";
            return Ok(CognitiveRunEnd::Failed(Failure::new(Code::InputRejected, message)));
        }
        let ledger = &self.requests.services().ledger;
        let mut stored = read_run(&**ledger, (*execution, *attempt_id)).await?;
        let mut recorder = RunRecorder::new(reporter, &stored);
        let mut run = match stored.run.take() {
            Some(run) => run,
            None => match self.begin(spec, &recorder).await? {
                Ok(run) => run,
                Err(end) => return Ok(end),
            },
        };
        reporter.report_start(None);
        if let Some(failure) = self.loss(&stored, &run).await? {
            return Ok(CognitiveRunEnd::Failed(failure));
        }
        loop {
            if stop.is_given() {
                return Ok(CognitiveRunEnd::Stopped);
            }
            if self.requests.is_draining() {
                return Ok(CognitiveRunEnd::Suspended);
            }
            if let Some(end) = self.advance(spec, &mut run, &mut recorder, stop).await? {
                return Ok(end);
            }
        }
    }

    /// Records the plan of a run that has none.
    async fn begin(
        &self,
        spec: &CognitiveSpec,
        recorder: &RunRecorder<'_>,
    ) -> Result<Result<StepRun, CognitiveRunEnd>, LedgerError> {
        let record = self.requests.services().ledger.execution(self.work.execution).await?;
        if record.is_none_or(|record| record.state == State::Running) {
            // A run records its plan before it runs. Its agent was of another kind when it started.
            return Ok(Err(CognitiveRunEnd::Failed(interruption_failure())));
        }
        let plan = StepPlan { model: spec.model.to_string(), max_steps: spec.max_steps.get() };
        recorder.reporter.record_later(EventKind::StepsPlanned { plan: plan.clone() });
        Ok(if recorder.commit(None).await {
            Ok(StepRun::new(plan))
        } else {
            Err(CognitiveRunEnd::Replaced)
        })
    }

    /// Returns the failure of a run that would show the model something else than before: the original input is lost, or
    /// a recorded step was redacted.
    async fn loss(
        &self,
        stored: &StoredRun,
        run: &StepRun,
    ) -> Result<Option<Failure>, LedgerError> {
        if matches!(run.next_action(), StepAction::Finish(_)) {
            return Ok(None);
        }
        if stored.is_redacted {
            let message =
                "a step held secrets that are not stored, so the interrupted run cannot continue";
            return Ok(Some(Failure::new(Code::Interrupted, message)));
        }
        if self.is_resumed && !self.requests.has_original_input(self.work.execution).await? {
            let message = "the input held secrets that are not stored, so the interrupted run cannot continue";
            return Ok(Some(Failure::new(Code::NotReplayable, message)));
        }
        Ok(None)
    }

    /// Performs the next action. Returns the end of the run, if the run has ended.
    async fn advance(
        &self,
        spec: &CognitiveSpec,
        run: &mut StepRun,
        recorder: &mut RunRecorder<'_>,
        stop: &mut StopOrder,
    ) -> Result<Option<CognitiveRunEnd>, LedgerError> {
        let is_valid = match run.next_action() {
            StepAction::Complete(turn) => {
                tokio::select! {
                    biased;
                    () = stop.wait() => return Ok(Some(CognitiveRunEnd::Stopped)),
                    // The reply may take longer than the stop of the service. It is requested again after the next start.
                    () = self.requests.wait_for_drain() => return Ok(Some(CognitiveRunEnd::Suspended)),
                    reply = self.reply(spec, run, turn) => match reply {
                        Ok((steps, tokens)) => recorder.record_reply(run, steps, tokens).await,
                        Err(failure) => return Ok(Some(CognitiveRunEnd::Failed(failure))),
                    },
                }
            }
            StepAction::Call(call) => {
                let started_at = Instant::now();
                let result = tokio::select! {
                    biased;
                    () = stop.wait() => return Ok(Some(CognitiveRunEnd::Stopped)),
                    () = self.requests.wait_for_drain(), if call.row.idempotent => {
                        return Ok(Some(CognitiveRunEnd::Suspended));
                    }
                    result = self.call(spec, call) => result,
                };
                let end = run.end_of_call(&call.row, result, started_at.elapsed());
                recorder.record_end(run, end).await
            }
            StepAction::Abandon(call) => {
                let end = run.unknown_end(&call.row);
                recorder.record_end(run, end).await
            }
            StepAction::Finish(answer) => {
                recorder.record_answer(answer).await?;
                return Ok(Some(CognitiveRunEnd::Completed));
            }
            StepAction::Exhaust => {
                let turns = run.plan().max_steps;
                let message = format!("the model gave no answer within {turns} turns");
                let failure = Failure::new(Code::StepsExhausted, message);
                return Ok(Some(CognitiveRunEnd::Failed(failure)));
            }
            StepAction::GiveUp => {
                let message = "three replies of the model in a row could not be used";
                return Ok(Some(CognitiveRunEnd::Failed(Failure::new(
                    Code::ModelUnusable,
                    message,
                ))));
            }
        };
        Ok((!is_valid).then_some(CognitiveRunEnd::Replaced))
    }
}

impl CognitiveAttempt {
    /// Requests a reply of the model, and returns the steps that it causes with its tokens.
    async fn reply(
        &self,
        spec: &CognitiveSpec,
        run: &StepRun,
        turn: u32,
    ) -> Result<(Vec<RunStep>, Option<TokenCounts>), Failure> {
        let input = self.work.request.input.text();
        match self.completions.complete(conversation::request(run, spec, &input)).await {
            Ok(reply) => {
                let tokens = reply.tokens;
                Ok((steps_of_reply(run, spec, turn, reply), tokens))
            }
            Err(CompletionError::Unusable(reason)) => {
                Ok((step_of_unusable_answer(run, turn, &reason), None))
            }
            Err(CompletionError::Failed(failure)) => Err(failure),
        }
    }

    /// Calls a tool. A tool that the agent no longer has fails.
    async fn call(&self, spec: &CognitiveSpec, call: &RunStep) -> CallResult {
        let StepRow { number, tool, .. } = &call.row;
        let name = tool.as_deref().unwrap_or_default();
        let Some(tool) = spec.tool(name) else {
            return Err(format!("the agent has no tool `{name}` any more"));
        };
        let arguments: Map<String, Value> = serde_json::from_str(&call.text)
            .map_err(|_syntax| "the arguments are not a JSON object".to_owned())?;
        let redactor = self.requests.services().redactor.current();
        let call = ToolInvocation {
            agent: self.work.spec.id.clone(),
            execution: self.work.execution,
            step: *number,
            tool: Arc::clone(tool),
            arguments,
            redactor: TextRedactor(Arc::new(move |text| redactor.redact(text).into_owned())),
        };
        let seconds = tool.timeout.as_secs_f64();
        let result = timeout(tool.timeout, self.tools.call(call)).await;
        result.unwrap_or_else(|_elapsed| {
            Err(format!(
                "the tool gave no result within {seconds} s; the call may have had its effect"
            ))
        })
    }
}

//! Actions of [`decide::runs::cognitive`](crate::decide::runs::cognitive): requests to the model, calls of tools, and
//! ends.

use std::pin::pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::recording::RunRecorder;
use super::run::CognitiveAttempt;
use crate::decide::runs::cognitive::arguments::check_arguments;
use crate::decide::runs::cognitive::reply::{steps_of_reply, steps_of_unusable_response};
use crate::decide::runs::cognitive::{
    CognitiveAction, CognitiveRun, RunStep, ToolCallOutcome, conversation,
};
use crate::model::agent::cognitive::CognitiveSpec;
use crate::model::code::Code;
use crate::model::execution::step::StepRecord;
use crate::model::failure::Failure;
use crate::model::observation::telemetry_events::TokenCounts;
use crate::ports::completion::CompletionError;
use crate::ports::tools::{TextRedactor, ToolInvocation, ToolStopReceiver, ToolStopSender};
use crate::runs::attempt::{RunExit, RunStopReceiver};

impl CognitiveAttempt {
    /// Performs the next action, and records its steps.
    ///
    /// # Errors
    /// Returns the end of the attempt if no action follows.
    pub(super) async fn perform_next_action(
        &self,
        spec: &CognitiveSpec,
        run: &mut CognitiveRun,
        recorder: &mut RunRecorder<'_>,
        stop: &mut RunStopReceiver,
    ) -> Result<(), RunExit> {
        if stop.is_stop_requested() {
            return Err(RunExit::Stopped);
        }
        match run.next_action() {
            CognitiveAction::RequestReply(turn) => {
                let (steps, tokens) = self.request_reply(spec, (run, turn), stop).await?;
                recorder.record_reply(run, steps, tokens, stop).await
            }
            CognitiveAction::Call(call) => {
                let end_step = self.perform_call(spec, run, call, stop).await?;
                recorder.record_call_end(run, end_step, stop).await
            }
            CognitiveAction::RecordUnknownOutcome(call) => {
                let end_step = run.unknown_outcome_step(&call.record);
                recorder.record_call_end(run, end_step, stop).await
            }
            CognitiveAction::Finish(answer) => {
                recorder.record_answer(answer);
                Err(RunExit::Completed)
            }
            CognitiveAction::FailTurnsExhausted => {
                let turns = run.plan().max_steps;
                let message = format!("the model gave no answer within {turns} turns");
                Err(failed_exit(Code::StepsExhausted, message))
            }
            CognitiveAction::FailTextTooLong => {
                let message = "the steps of the run have more than 8 MiB of text";
                Err(failed_exit(Code::StepsExhausted, message))
            }
            CognitiveAction::FailUnusableReplies => {
                let message = "three replies of the model in a row could not be used";
                Err(failed_exit(Code::ModelUnusable, message))
            }
        }
    }

    /// Requests a reply of the model, and returns the steps that it causes with its tokens.
    async fn request_reply(
        &self,
        spec: &CognitiveSpec,
        (run, turn): (&CognitiveRun, u32),
        stop: &mut RunStopReceiver,
    ) -> Result<(Vec<RunStep>, Option<TokenCounts>), RunExit> {
        let input = self.work.request.input.text();
        let reply = async {
            let definitions = self.tools.mcp_tool_definitions(&spec.tools, &self.redactor()).await;
            let request = conversation::completion_request(run, (spec, &definitions), &input);
            self.completions.complete(request).await
        };
        let reply = tokio::select! {
            biased;
            () = stop.wait() => return Err(RunExit::Stopped),
            // The reply may take longer than the stop of the service. It is requested again after the next start.
            () = self.request_handle.wait_for_drain_start() => return Err(RunExit::Suspended),
            reply = reply => reply,
        };
        match reply {
            Ok(reply) => {
                let tokens = reply.tokens;
                Ok((steps_of_reply(run, spec, turn, reply), tokens))
            }
            Err(CompletionError::Unusable(reason)) => {
                Ok((steps_of_unusable_response(run, turn, &reason), None))
            }
            Err(CompletionError::Failed(failure)) => Err(RunExit::Failed(failure)),
        }
    }

    /// Calls a tool, and returns the step that ends the call.
    async fn perform_call(
        &self,
        spec: &CognitiveSpec,
        run: &CognitiveRun,
        call: &RunStep,
        stop: &mut RunStopReceiver,
    ) -> Result<RunStep, RunExit> {
        let started_at = Instant::now();
        let (stop_sender, stop_receiver) = ToolStopReceiver::channel();
        let mut result = pin!(self.invoke_tool(spec, call, (&stop_sender, stop_receiver)));
        let exit = tokio::select! {
            biased;
            () = stop.wait() => RunExit::Stopped,
            // Another call would have an unknown outcome after the next start, even if it has not been sent yet.
            () = self.request_handle.wait_for_drain_start(), if call.record.idempotent => RunExit::Suspended,
            result = &mut result => {
                return Ok(run.call_end_step(&call.record, result, started_at.elapsed()));
            }
        };
        // Nothing of the call may be left when the attempt ends: the next one could repeat the call.
        stop_sender.request_stop();
        _ = result.await;
        Err(exit)
    }

    /// Calls a tool. The tools may have changed since the call was recorded.
    async fn invoke_tool(
        &self,
        spec: &CognitiveSpec,
        call: &RunStep,
        (stop_sender, stop): (&ToolStopSender, ToolStopReceiver),
    ) -> ToolCallOutcome {
        let StepRecord { number, tool, .. } = &call.record;
        let name = tool.as_deref().unwrap_or_default();
        let Some(tool) = spec.tool(name) else {
            return Err(format!("the agent has no tool `{name}` any more"));
        };
        let arguments: Map<String, Value> = serde_json::from_str(&call.text)
            .map_err(|_syntax| "the arguments are not a JSON object".to_owned())?;
        check_arguments(tool, &arguments)?;
        let call = ToolInvocation {
            agent: self.work.spec.id.clone(),
            execution: self.work.execution,
            step_number: *number,
            tool: Arc::clone(tool),
            arguments,
            redactor: self.redactor(),
        };
        let seconds = tool.timeout.as_secs_f64();
        let mut result = self.tools.call(call, stop);
        if let Ok(result) = timeout(tool.timeout, &mut result).await {
            return result;
        }
        // The next call may use the same files.
        stop_sender.request_stop();
        _ = result.await;
        Err(format!("the tool gave no result within {seconds} s; the call may have had its effect"))
    }
}

impl CognitiveAttempt {
    /// Returns the redactor with the present secrets.
    fn redactor(&self) -> TextRedactor {
        let redactor = self.request_handle.services().redactor.current();
        TextRedactor(Arc::new(move |text| redactor.redact(text).into_owned()))
    }
}

fn failed_exit(code: Code, message: impl Into<String>) -> RunExit {
    RunExit::Failed(Failure::new(code, message))
}

//! Sending of hops: their requests, and the repetition of refused ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::run_failure::lost_input_failure;
use crate::agent::SubmitReply;
use crate::decide::runs::team::{Hop, TeamRun};
use crate::driver::AttemptWork;
use crate::driver::report::{AnswerText, Reporter, StoredOutputReader, report_ledger_wait};
use crate::gateway::requests::RunRequestHandle;
use crate::model::agent::team::TeamStep;
use crate::model::code::{Category, Code};
use crate::model::execution::hop::{HopPosition, HopStage};
use crate::model::execution::message_details::MessageDetails;
use crate::model::execution::progress::Progress;
use crate::model::execution::request::{Input, Overrides, Request, RequestOrigin, Trigger};
use crate::model::execution::trace::TraceContext;
use crate::model::id::{AgentId, ExecutionId, MessageId};
use crate::ports::ledger::LedgerError;
use crate::runs::attempt::{LEDGER_RETRY_PAUSE, RunExit, RunStopReceiver};

/// First pause before a refused request is sent again; each further pause is twice as long.
const FIRST_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a refused request is sent again.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);

/// Sender of the hops of one run.
pub(super) struct HopSender {
    pub(super) request_handle: RunRequestHandle,
    pub(super) work: AttemptWork,
}

/// Result of sending a hop.
pub(super) enum HopSendResult {
    /// The member has the request, as this execution.
    Accepted(ExecutionId, Option<watch::Receiver<Progress>>),
    /// The member refused the request for good.
    Refused(Code),
    /// The run ends, or is suspended.
    RunExited(RunExit),
}

/// Request of a hop.
pub(super) struct HopRequest {
    pub(super) request: Request,
    /// Number of files and addresses in the answer before that the request does not have.
    pub(super) omitted_files: usize,
}

/// Pauses before a refused request is sent again.
struct RetryPause(Duration);

impl RetryPause {
    /// Waits for the present pause. The next pause is twice as long.
    async fn wait(&mut self) {
        let pause = self.0;
        self.0 = (pause * 2).min(MAX_RETRY_PAUSE);
        sleep(pause).await;
    }
}

impl HopSender {
    /// Returns the fact that a hop with this request is planned.
    pub(super) fn planned_stage(&self, step: &TeamStep, request: &Request) -> HopStage {
        let (step, agent) = (step.id.clone(), step.agent.clone());
        HopStage::Planned { step, agent, input: self.input_digest(request) }
    }

    /// Sends a hop, unless its member has it. Without the planned request, an earlier process planned the hop.
    pub(super) async fn send(
        &self,
        run: &TeamRun,
        hop: &Hop,
        planned_request: &mut Option<Request>,
        run_control: (&Reporter, &mut RunStopReceiver),
    ) -> Result<HopSendResult, LedgerError> {
        let request = match planned_request.take() {
            Some(request) => request,
            None => {
                let HopRequest { request, .. } =
                    self.build_request(run, (hop.number, &hop.agent)).await?;
                // The crash may have come between the request and its record here.
                if let Some(execution) = self.find_hop_execution(hop).await? {
                    return Ok(HopSendResult::Accepted(execution, None));
                }
                if self.input_digest(&request) != hop.input_digest {
                    return Ok(HopSendResult::RunExited(RunExit::Failed(lost_input_failure())));
                }
                request
            }
        };
        let reporter = run_control.0;
        let result = self.submit(hop, &request, run_control).await;
        if result.is_ok() {
            report_ledger_wait(reporter, false); // The submission may have waited.
        }
        result
    }

    /// Submits the request of a hop until its member has accepted or refused it.
    async fn submit(
        &self,
        hop: &Hop,
        request: &Request,
        (reporter, stop): (&Reporter, &mut RunStopReceiver),
    ) -> Result<HopSendResult, LedgerError> {
        let mut pause = RetryPause(FIRST_RETRY_PAUSE);
        loop {
            let failure = match self.request_handle.submit_hop(request.clone()).await {
                Ok(SubmitReply { execution, progress_receiver: progress, .. }) => {
                    return Ok(HopSendResult::Accepted(execution, progress));
                }
                Err(failure) if failure.code == Code::Draining => {
                    return Ok(HopSendResult::RunExited(RunExit::Suspended));
                }
                Err(failure) if is_transient(failure.code) => failure,
                Err(failure) => {
                    // An earlier submission without an answer may have been accepted.
                    return Ok(match self.find_hop_execution(hop).await? {
                        Some(execution) => HopSendResult::Accepted(execution, None),
                        None => HopSendResult::Refused(failure.code),
                    });
                }
            };
            let (execution, number) = (self.work.execution, hop.number);
            tracing::warn!(%execution, hop = number, %failure, "hop refused, trying again");
            let awaits_ledger = failure.code == Code::LedgerUnavailable;
            report_ledger_wait(reporter, awaits_ledger);
            let next_try = async {
                match awaits_ledger {
                    // Callers wait for the ledger too, so the run continues as soon as it can.
                    true => sleep(LEDGER_RETRY_PAUSE).await,
                    false => pause.wait().await,
                }
            };
            // The member may have accepted the request. Only another submission shows this, so a stop does not end the
            // pause.
            let may_be_accepted = matches!(failure.code, Code::AcceptTimeout | Code::Internal);
            tokio::select! {
                () = next_try => {}
                () = stop.wait(), if !may_be_accepted => {
                    return Ok(HopSendResult::RunExited(RunExit::Stopped));
                }
                () = self.request_handle.wait_for_drain_start() => {
                    return Ok(HopSendResult::RunExited(RunExit::Suspended));
                }
            }
        }
    }

    /// Returns the request of a hop: the first hop has the input of the run, and each other one the latest answer.
    pub(super) async fn build_request(
        &self,
        run: &TeamRun,
        (number, agent): (u32, &AgentId),
    ) -> Result<HopRequest, LedgerError> {
        let AttemptWork { execution, attempt_id, request, .. } = &self.work;
        let mut omitted_files = 0;
        let input = match run.answered_hop_before(number).and_then(|hop| hop.execution) {
            Some(answered_execution) => {
                let ledger = Arc::clone(&self.request_handle.services().ledger);
                let AnswerText { text, file_count } =
                    StoredOutputReader::new(answered_execution, ledger).answer_text().await?;
                omitted_files = file_count;
                Input::from_text(text)
            }
            None => Input {
                parts: request.input.parts.clone(),
                details: first_hop_details(&request.input.details),
                ..Input::default()
            },
        };
        let root = request.origin.trigger.hop_position().map_or(*execution, |hop| hop.root);
        let trigger = Trigger::Hop(HopPosition { parent: *execution, root, number });
        let trace =
            TraceContext::for_attempt(request.origin.trace.as_ref(), *execution, *attempt_id);
        let (owner, service_hops) = (request.origin.owner, request.origin.service_hops);
        let request = Request {
            agent: agent.clone(),
            origin: RequestOrigin { owner, trigger, trace: Some(trace), service_hops },
            message_id: MessageId(format!("{execution}-hop-{number}")),
            idempotency_key: None,
            context: request.context.clone(),
            starts_context: request.starts_context,
            continued_execution: None,
            inherited_overrides: Overrides::default(),
            input,
        };
        Ok(HopRequest { request, omitted_files })
    }

    /// Returns the execution of a hop, if the member has accepted its request.
    pub(super) async fn find_hop_execution(
        &self,
        hop: &Hop,
    ) -> Result<Option<ExecutionId>, LedgerError> {
        let AttemptWork { execution, request, .. } = &self.work;
        self.request_handle.reader().find_hop_by_key((*execution, request.origin.owner), hop).await
    }

    fn input_digest(&self, request: &Request) -> String {
        let digest = self.request_handle.services().keyed_hasher.content_digest(request);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the details for the first hop. The media types that the caller can read concern the answer of the team.
fn first_hop_details(details: &MessageDetails) -> MessageDetails {
    let mut details = details.clone();
    details.request.accepted_output_modes.clear();
    details
}

/// Returns true if the member may accept the same request soon.
fn is_transient(code: Code) -> bool {
    // `internal` is the answer when the actor of the member is being replaced.
    code.category() == Category::Transient
        || matches!(code, Code::LedgerUnavailable | Code::Internal)
}

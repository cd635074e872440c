//! Watch over the tool calls of a turn: their number, and calls without permission.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use algonius_actors::decide::permission;
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::permission::{PermissionVerdict, UnauthorizedCallAction};
use algonius_actors::ports::ledger::LedgerError;
use algonius_protocols::{AnsweredCall, ToolCall};
use tokio::time::{Instant, sleep_until};

use super::open_requests::{call_subject, tool_name};
use crate::drivers::adapters::event_reader::EventReader;
use crate::drivers::output::display_label::redacted_display_text;

/// Watch over the tool calls of a turn. It sees what the agent reports, after a restart of the service too: the replay
/// reports every call and every answer again.
#[derive(Debug, Clone)]
pub(in crate::drivers) struct ToolCallMonitor {
    /// Agent with its permission policy.
    spec: Arc<AgentSpec>,
    /// Canonical folder of the execution.
    workspace: Option<String>,
    /// Calls of the turn by their ids.
    calls: HashMap<String, MonitoredCall>,
    /// Time at which a turn that must end is no longer awaited.
    turn_end_deadline: Option<Instant>,
}

/// Tool call of the turn.
#[derive(Debug, Clone, Default)]
struct MonitoredCall {
    /// Latest answer to a permission request about the call.
    verdict: Option<PermissionVerdict>,
    is_violation_reported: bool,
}

impl ToolCallMonitor {
    /// Creates the watch over a turn that has not begun.
    pub(in crate::drivers) fn new(work: &AttemptWork) -> Self {
        let path = work.workspace.as_ref().map(|workspace| workspace.path().to_string_lossy());
        Self {
            spec: Arc::clone(&work.spec),
            workspace: path.map(Cow::into_owned),
            calls: HashMap::new(),
            turn_end_deadline: None,
        }
    }

    /// Counts a call when the agent first names it, in a report or in a permission request. Returns the failure of a
    /// turn that must end because of the call.
    pub(super) fn count_against_limit(&mut self, call: &ToolCall) -> Option<Failure> {
        self.calls.entry(call.id.clone()).or_default();
        let call_count = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        let policy = self.spec.permission_policy();
        if self.turn_end_deadline.is_some() || !permission::exceeds_call_limit(policy, call_count) {
            return None;
        }
        let limit = policy.max_tool_calls.unwrap_or_default();
        let message = format!("the agent began more than {limit} tool calls in its turn");
        Some(self.require_turn_end(Code::ToolLimit, message))
    }

    /// Records the answer to a permission request.
    pub(super) fn record_answer(&mut self, call: AnsweredCall) {
        let verdict =
            if call.is_allowed { PermissionVerdict::Allow } else { PermissionVerdict::Deny };
        self.calls.entry(call.id).or_default().verdict = Some(verdict);
    }

    /// Counts and judges a call that the agent reports. Returns the failure of a turn that must end because of the
    /// call.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn judge_reported_call(
        &mut self,
        call: &ToolCall,
        (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<Option<Failure>, LedgerError> {
        if let Some(failure) = self.count_against_limit(call) {
            return Ok(Some(failure));
        }
        let Some(cause) = self.find_new_violation(call) else { return Ok(None) };
        let message = format!(
            "the agent used the tool `{}` {cause}",
            redacted_display_text(reporter, &tool_name(call))
        );
        tracing::warn!(agent = %self.spec.id, violation = %message, "tool call without permission");
        match self.spec.permission_policy().on_unauthorized {
            UnauthorizedCallAction::Stop => {
                Ok(Some(self.require_turn_end(Code::UnauthorizedTool, message)))
            }
            UnauthorizedCallAction::Report => event_reader.warn(&message).await.map(|()| None),
        }
    }

    /// Returns in which way a call violates the policy, as the rest of a clause; each call violates it once.
    fn find_new_violation(&mut self, call: &ToolCall) -> Option<String> {
        let monitored_call = self.calls.get_mut(&call.id)?;
        // A turn that is being cancelled has its failure, and its calls may end in any way.
        let is_exempt = monitored_call.is_violation_reported || self.turn_end_deadline.is_some();
        if is_exempt
            || !permission::is_unauthorized_call(monitored_call.verdict, call.status.as_str())
        {
            return None;
        }
        let (policy, workspace) = (self.spec.permission_policy(), self.workspace.as_deref());
        let subject = call_subject(call.clone());
        let (decision, rule) = permission::evaluate_policy(policy, &subject, workspace);
        let cause = match (monitored_call.verdict, decision) {
            (Some(_), _) => "although it was denied".to_owned(),
            (None, PermissionVerdict::Allow) => return None, // An allowed call needs no request.
            (None, PermissionVerdict::Deny) => format!("which the policy denies: {rule}"),
            (None, PermissionVerdict::Ask) => {
                if !permission::requires_permission_request(&rule, subject.kind.as_deref()) {
                    return None;
                }
                format!("without a request for permission, which the policy requires: {rule}")
            }
        };
        monitored_call.is_violation_reported = true;
        Some(cause)
    }

    /// Returns when an agent that should end its turn has not done so within its grace period.
    pub(super) async fn wait_until_turn_overdue(&self) {
        match self.turn_end_deadline {
            Some(time) => sleep_until(time).await,
            None => std::future::pending().await,
        }
    }

    /// Ends the wait for the turn.
    pub(super) fn expire_turn_end_deadline(&mut self) {
        self.turn_end_deadline = Some(Instant::now());
    }

    /// Returns true if the turn is no longer awaited.
    pub(super) fn is_turn_overdue(&self) -> bool {
        self.turn_end_deadline.is_some_and(|time| time <= Instant::now())
    }

    fn require_turn_end(&mut self, code: Code, message: String) -> Failure {
        self.turn_end_deadline = Some(Instant::now() + self.spec.limits.timeouts.grace);
        Failure::new(code, message)
    }
}

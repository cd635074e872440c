//! Failures of a team's run.

use crate::decide::runs::team::{Hop, HopEnd};
use crate::model::code::Code;
use crate::model::execution::Outcome;
use crate::model::failure::Failure;

/// Returns the failure of a run whose input is lost.
pub(super) fn lost_input_failure() -> Failure {
    let message = "the service stopped before a member had the input, and the input held secrets that are not stored";
    Failure::new(Code::NotReplayable, message)
}

/// Returns the failure of a run because of a failed hop. It names no text of the member.
pub(super) fn hop_failure(hop: &Hop, HopEnd { outcome, code }: HopEnd) -> Failure {
    let Hop { step, agent, .. } = hop;
    let reason = match (outcome, code) {
        (_, Some(Code::Unsupported)) => {
            "requested input of the caller, which a team does not pass on yet".to_owned()
        }
        (_, Some(code)) if hop.execution.is_none() => format!("was refused with `{code}`"),
        (Outcome::Cancelled, _) => "was cancelled".to_owned(),
        (_, Some(code)) => format!("ended with `{code}`"),
        (outcome, None) => format!("ended as {outcome}"),
    };
    let is_unavailable = hop.execution.is_none()
        && matches!(
            code,
            Some(
                Code::AgentDisabled
                    | Code::AgentQuarantined
                    | Code::AgentRemoved
                    | Code::AgentUnavailable
                    | Code::AgentUnknown
            )
        );
    let code = if is_unavailable { Code::MemberUnavailable } else { Code::MemberFailed };
    Failure::new(code, format!("step `{step}` by agent `{agent}` {reason}"))
}

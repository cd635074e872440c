//! Permission of tool calls: the verdict of a policy, the people who may answer, and calls without permission.
//!
//! A verdict depends on the policy and on what the agent reports about the call. The sandbox decides what a call can
//! do; this module decides which calls the service answers with allow.

pub mod answer;
mod answer_fault;
mod command;
mod form;
mod paths;
mod pattern;
mod verdict;

pub use self::answer_fault::{AnswerFault, MAX_ANSWER_BYTES};
pub use self::verdict::evaluate_policy;
use crate::model::interaction::ApproverRules;
use crate::model::permission::{OWNER_APPROVER, PermissionPolicy, PermissionVerdict};

/// Statuses with which an agent reports that a call has ended.
const COMPLETED_STATUS: &str = "completed";
const FAILED_STATUS: &str = "failed";

/// Kinds of calls that change nothing.
const READ_ONLY_KINDS: [&str; 3] = ["read", "search", "think"];

/// Returns true if the turn must end because of this call. `calls` is the number of calls of the turn, with this one.
#[must_use]
pub fn exceeds_call_limit(policy: &PermissionPolicy, calls: u32) -> bool {
    policy.max_tool_calls.is_some_and(|max| calls > max)
}

/// Returns true if the agent made a call without permission.
///
/// `sent_verdict` is the last verdict that was sent to the agent for this call, by a rule or by a person; `None` if the
/// agent never requested permission. `status` is the status that the agent reports. Every agent reports a call that was
/// denied as `failed`, so only a `completed` call violates a denial. For a call without a request, both statuses
/// show that it ran.
#[must_use]
pub fn is_unauthorized_call(sent_verdict: Option<PermissionVerdict>, status: &str) -> bool {
    match sent_verdict {
        Some(PermissionVerdict::Allow) => false,
        Some(PermissionVerdict::Deny) => status == COMPLETED_STATUS,
        Some(PermissionVerdict::Ask) | None => {
            status == COMPLETED_STATUS || status == FAILED_STATUS
        }
    }
}

/// Returns true if a verdict of `ask` by this rule requires that the agent has requested permission.
///
/// Agents request no permission to read or search, in any of their modes. Only a rule or an entry for tools requires
/// that; the default of a policy does not.
#[must_use]
pub fn requires_permission_request(rule: &str, kind: Option<&str>) -> bool {
    rule != verdict::DEFAULT_RULE_NAME || !kind.is_some_and(|kind| READ_ONLY_KINDS.contains(&kind))
}

/// Reason why a principal may not answer an interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefusal {
    /// The policy requires a second person.
    #[error(
        "the owner of the execution may not answer, because the agent requires a second person"
    )]
    RequiresSecondPerson,
    /// The policy does not name the principal.
    #[error("the principal is not among the approvers of the agent")]
    NotApprover,
}

/// Checks that a principal may answer.
///
/// # Errors
/// Returns the reason for the refusal. `four_eyes` also excludes an administrator who owns the execution.
pub fn check_approver(
    approver_rules: &ApproverRules,
    principal_name: &str,
    is_owner: bool,
    is_admin: bool,
) -> Result<(), AnswerRefusal> {
    if approver_rules.four_eyes && is_owner {
        return Err(AnswerRefusal::RequiresSecondPerson);
    }
    // A principal with the name `owner` gains nothing by it: the word stands for the owner of the execution.
    let is_named =
        |entry: &String| if entry == OWNER_APPROVER { is_owner } else { entry == principal_name };
    if is_admin || approver_rules.approvers.iter().any(is_named) {
        return Ok(());
    }
    Err(AnswerRefusal::NotApprover)
}

#[cfg(test)]
mod tests {
    use PermissionVerdict::{Allow, Ask, Deny};

    use super::*;

    #[test]
    fn the_call_after_the_limit_ends_the_turn() {
        let policy_with_limit =
            |max| PermissionPolicy { max_tool_calls: max, ..Default::default() };
        for (max, calls, expected) in [
            (None, u32::MAX, false),
            (Some(3), 3, false),
            (Some(3), 4, true),
            (Some(0), 1, true),
            (Some(0), 0, false),
        ] {
            assert_eq!(
                exceeds_call_limit(&policy_with_limit(max), calls),
                expected,
                "{calls} of {max:?}"
            );
        }
    }

    #[test]
    fn calls_that_ran_without_permission_are_unauthorized() {
        for (sent_verdict, status, expected) in [
            (Some(Allow), "completed", false),
            (Some(Allow), "failed", false),
            (Some(Deny), "completed", true),
            (Some(Deny), "failed", false),
            (Some(Ask), "completed", true),
            (Some(Ask), "failed", true),
            (None, "completed", true),
            (None, "failed", true),
            (None, "pending", false),
            (None, "in_progress", false),
            (None, "", false),
        ] {
            assert_eq!(
                is_unauthorized_call(sent_verdict, status),
                expected,
                "{sent_verdict:?} {status}"
            );
        }
    }

    #[test]
    fn owners_named_approvers_and_administrators_may_answer() {
        use AnswerRefusal::{NotApprover, RequiresSecondPerson};
        let rules = |approvers: &[&str], four_eyes| ApproverRules {
            approvers: approvers.iter().map(ToString::to_string).collect(),
            four_eyes,
        };
        for (approvers, four_eyes, (name, is_owner, is_admin), expected) in [
            (&["owner"][..], false, ("mia", true, false), Ok(())),
            (&["owner"], false, ("max", false, false), Err(NotApprover)),
            (&["owner"], false, ("owner", false, false), Err(NotApprover)),
            (&["owner"], false, ("max", false, true), Ok(())),
            (&["max"], false, ("max", false, false), Ok(())),
            (&["max"], false, ("mia", true, false), Err(NotApprover)),
            (&["Max"], false, ("max", false, false), Err(NotApprover)),
            (&["max*"], false, ("maximilian", false, false), Err(NotApprover)),
            (&[], false, ("mia", true, false), Err(NotApprover)),
            (&[], false, ("max", false, true), Ok(())),
            (&["owner", "max"], true, ("mia", true, false), Err(RequiresSecondPerson)),
            (&["owner", "max"], true, ("mia", true, true), Err(RequiresSecondPerson)),
            (&["owner", "max"], true, ("max", false, false), Ok(())),
            (&["owner"], true, ("max", false, true), Ok(())),
        ] {
            let result = check_approver(&rules(approvers, four_eyes), name, is_owner, is_admin);
            assert_eq!(result, expected, "{name} {is_owner} {is_admin} of {approvers:?}");
        }
    }

    #[test]
    fn reading_requires_a_request_only_by_a_rule() {
        assert!(!requires_permission_request("default", Some("read")));
        assert!(!requires_permission_request("default", Some("search")));
        for (rule, kind) in [("rules[0]", Some("read")), ("tools.read", Some("read"))] {
            assert!(requires_permission_request(rule, kind), "{rule}");
        }
        assert!(
            requires_permission_request("default", Some("edit"))
                && requires_permission_request("default", None)
        );
    }
}

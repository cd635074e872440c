//! Attempts to bypass permission rules, and properties of every verdict.

mod bypasses;
mod properties;

use algonius_actors::decide::permission::evaluate_policy;
use algonius_actors::model::interaction::ToolCallSubject;
use algonius_actors::model::permission::{PermissionPolicy, PermissionRule, PermissionVerdict};

/// Returns the call of a shell that runs this line.
fn shell_call(line: &str) -> ToolCallSubject {
    ToolCallSubject {
        id: "1".to_owned(),
        tool: "Bash".to_owned(),
        kind: Some("execute".to_owned()),
        command: Some(line.to_owned()),
        ..Default::default()
    }
}

fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// Returns a policy that allows commands by these patterns and asks about all other calls.
fn policy_allowing(patterns: &[&str]) -> PermissionPolicy {
    let rule = PermissionRule {
        tool_kinds: to_strings(&["execute"]),
        command_patterns: to_strings(patterns),
        verdict: Some(PermissionVerdict::Allow),
        ..Default::default()
    };
    PermissionPolicy { rules: vec![rule], ..Default::default() }
}

fn decide_permission(policy: &PermissionPolicy, subject: &ToolCallSubject) -> PermissionVerdict {
    evaluate_policy(policy, subject, Some("/srv/ws")).0
}

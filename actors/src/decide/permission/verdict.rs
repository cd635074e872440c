//! Verdict of a policy about a tool call.

use super::{command, paths, pattern};
use crate::model::interaction::ToolCallSubject;
use crate::model::permission::{PermissionPolicy, PermissionRule, PermissionVerdict};

/// Kinds of calls whose paths are those of files.
const FILE_KINDS: [&str; 5] = ["read", "edit", "delete", "move", "search"];

/// Name of the rule that decides where no other rule does.
pub(super) const DEFAULT_RULE_NAME: &str = "default";

/// Returns the verdict of a policy and the rule that gave it: `rules[2]`, `tools.edit` or `default`.
///
/// The first rule that fits decides; the first rule is `rules[0]`. If none fits, the entries for tools decide: a denial
/// before a question before a permission, and the longest pattern among equals. Otherwise, the default of the policy
/// decides. `workspace` is the canonical folder of the execution, with U+FFFD for bytes that are not UTF-8.
///
/// Rules that allow and rules that restrict read a call differently: a rule that allows fits only a call that it
/// covers without doubt, and a rule that denies or asks fits as soon as any part of the call matches.
#[must_use]
pub fn evaluate_policy(
    policy: &PermissionPolicy,
    subject: &ToolCallSubject,
    workspace: Option<&str>,
) -> (PermissionVerdict, String) {
    for (index, rule) in policy.rules.iter().enumerate() {
        // A rule without a verdict must not widen anything.
        let verdict = rule.verdict.unwrap_or(PermissionVerdict::Ask);
        let fits = match verdict {
            PermissionVerdict::Allow => covers(rule, subject, workspace),
            PermissionVerdict::Deny | PermissionVerdict::Ask => {
                matches_any_part(rule, subject, workspace)
            }
        };
        if fits {
            return (verdict, format!("rules[{index}]"));
        }
    }
    verdict_by_tool(policy, subject)
        .unwrap_or_else(|| (policy.default_verdict, DEFAULT_RULE_NAME.to_owned()))
}

/// Returns true if a rule that allows covers the call completely.
///
/// The paths that an agent reports for a command or for an address say nothing about everything that the call does.
/// Patterns of paths alone therefore never allow such a call.
fn covers(rule: &PermissionRule, subject: &ToolCallSubject, workspace: Option<&str>) -> bool {
    let has_command_or_url = subject.command.is_some() || subject.url.is_some();
    has_unambiguous_arguments(rule, subject)
        && fits_tool(&rule.tool_patterns, subject)
        && fits_kind(&rule.tool_kinds, subject.kind.as_deref())
        && (rule.command_patterns.is_empty()
            || subject
                .command
                .as_deref()
                .is_some_and(|line| command::covers(&rule.command_patterns, line)))
        && (rule.path_patterns.is_empty()
            || (!has_command_or_url || !rule.command_patterns.is_empty())
                && paths::covers(&rule.path_patterns, &subject.paths, workspace))
}

/// Returns true if the arguments of a call can have only the meaning that the patterns of a rule describe.
///
/// Any tool may have an argument that is named like a command or a path. A rule that names no tool and no kind
/// therefore covers commands of the kind `execute` and paths of the kinds for files only. A command with further
/// arguments is more than its text.
fn has_unambiguous_arguments(rule: &PermissionRule, subject: &ToolCallSubject) -> bool {
    let applies_to_any_tool = rule.tool_patterns.is_empty() && rule.tool_kinds.is_empty();
    let kind = subject.kind.as_deref().unwrap_or_default();
    let fits_command = rule.command_patterns.is_empty()
        || ((!applies_to_any_tool || kind == "execute") && subject.args.get("args").is_none());
    let fits_path =
        rule.path_patterns.is_empty() || !applies_to_any_tool || FILE_KINDS.contains(&kind);
    fits_command && (fits_path || !rule.command_patterns.is_empty())
}

/// Returns true if a rule that denies or asks matches any part of the call.
fn matches_any_part(
    rule: &PermissionRule,
    subject: &ToolCallSubject,
    workspace: Option<&str>,
) -> bool {
    fits_tool(&rule.tool_patterns, subject)
        && (fits_kind(&rule.tool_kinds, subject.kind.as_deref())
            || fits_kind(&rule.tool_kinds, Some(&subject.tool)))
        && (rule.command_patterns.is_empty()
            || subject
                .command
                .as_deref()
                .is_some_and(|line| command::matches_any_part(&rule.command_patterns, line)))
        && (rule.path_patterns.is_empty()
            || paths::matches_any_path(&rule.path_patterns, &subject.paths, workspace))
}

fn fits_tool(patterns: &[String], subject: &ToolCallSubject) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches_tool(pattern, subject))
}

fn fits_kind(patterns: &[String], kind: Option<&str>) -> bool {
    patterns.is_empty()
        || kind.is_some_and(|kind| patterns.iter().any(|it| pattern::matches(it, kind)))
}

/// Returns true if a pattern matches the name or the kind of a tool.
fn matches_tool(pattern: &str, subject: &ToolCallSubject) -> bool {
    let kind = subject.kind.as_deref();
    pattern::matches(pattern, &subject.tool)
        || kind.is_some_and(|kind| pattern::matches(pattern, kind))
}

/// Returns the verdict of the entries for tools.
fn verdict_by_tool(
    policy: &PermissionPolicy,
    subject: &ToolCallSubject,
) -> Option<(PermissionVerdict, String)> {
    let matching_entries =
        policy.tool_verdicts.iter().filter(|(pattern, _)| matches_tool(pattern, subject));
    let (pattern, verdict) = matching_entries
        .max_by_key(|(pattern, verdict)| (restriction_rank(**verdict), pattern.len()))?;
    Some((*verdict, format!("tools.{pattern}")))
}

/// Returns a number that is greater for a verdict that restricts more.
const fn restriction_rank(verdict: PermissionVerdict) -> u8 {
    match verdict {
        PermissionVerdict::Allow => 0,
        PermissionVerdict::Ask => 1,
        PermissionVerdict::Deny => 2,
    }
}

#[cfg(test)]
mod tests {
    use PermissionVerdict::{Allow, Ask, Deny};

    use super::*;

    fn list(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(ToString::to_string).collect()
    }

    fn rule(verdict: PermissionVerdict) -> PermissionRule {
        PermissionRule { verdict: Some(verdict), ..Default::default() }
    }

    fn edit_call(path: &str) -> ToolCallSubject {
        ToolCallSubject {
            tool: "Write".to_owned(),
            kind: Some("edit".to_owned()),
            paths: vec![path.to_owned()],
            ..Default::default()
        }
    }

    fn command_call(line: &str) -> ToolCallSubject {
        ToolCallSubject {
            tool: "Bash".to_owned(),
            kind: Some("execute".to_owned()),
            command: Some(line.to_owned()),
            ..Default::default()
        }
    }

    fn policy(rules: Vec<PermissionRule>, tools: &[(&str, PermissionVerdict)]) -> PermissionPolicy {
        let tool_verdicts =
            tools.iter().map(|(name, verdict)| ((*name).to_owned(), *verdict)).collect();
        PermissionPolicy { rules, tool_verdicts, ..Default::default() }
    }

    fn decide(policy: &PermissionPolicy, subject: &ToolCallSubject) -> (PermissionVerdict, String) {
        evaluate_policy(policy, subject, Some("/srv/ws"))
    }

    #[test]
    fn a_rule_without_a_tool_covers_no_arguments_of_other_tools() {
        let command_rule =
            PermissionRule { command_patterns: list(&["git status"]), ..rule(Allow) };
        let path_rule = PermissionRule { path_patterns: list(&["src/**"]), ..rule(Allow) };
        let policy = policy(vec![command_rule, path_rule], &[]);
        let call_of_other_tool = |call: ToolCallSubject| ToolCallSubject {
            tool: "mcp__prod__delete".to_owned(),
            kind: Some("other".to_owned()),
            ..call
        };
        let call_with_args = ToolCallSubject {
            args: serde_json::json!({"command": "git status", "args": ["--x"]}),
            ..command_call("git status")
        };
        assert_eq!(decide(&policy, &command_call("git status")).0, Allow);
        assert_eq!(decide(&policy, &edit_call("src/a")).0, Allow);
        for call in [
            call_of_other_tool(command_call("git status")),
            call_of_other_tool(edit_call("src/a")),
            call_with_args,
        ] {
            assert_eq!(decide(&policy, &call).0, Ask, "{call:?}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = vec![
            PermissionRule { command_patterns: list(&["git push*"]), ..rule(Deny) },
            PermissionRule {
                tool_kinds: list(&["execute"]),
                command_patterns: list(&["git *"]),
                ..rule(Allow)
            },
            PermissionRule { tool_patterns: list(&["Bash"]), ..rule(Deny) },
        ];
        let policy = policy(rules, &[("execute", Allow)]);
        for (line, expected, rule_name) in [
            ("git push origin", Deny, "rules[0]"),
            ("git status", Allow, "rules[1]"),
            ("git status && git push", Deny, "rules[0]"),
            ("git status; ls", Deny, "rules[2]"),
            ("ls", Deny, "rules[2]"),
        ] {
            assert_eq!(
                decide(&policy, &command_call(line)),
                (expected, rule_name.to_owned()),
                "{line}"
            );
        }
        assert_eq!(decide(&policy, &edit_call("a")), (Ask, "default".to_owned()));
    }

    #[test]
    fn entries_for_tools_restrict_before_they_allow() {
        for (tools, expected, rule_name) in [
            (&[("Write", Allow)][..], Allow, "tools.Write"),
            (&[("edit", Allow)], Allow, "tools.edit"),
            (&[("write", Allow)], Ask, "default"),
            (&[("Writer", Allow), ("Wri", Allow)], Ask, "default"),
            (&[("*", Deny), ("Write", Allow)], Deny, "tools.*"),
            (&[("*", Ask), ("Write", Allow)], Ask, "tools.*"),
            (&[("*", Deny), ("Write", Ask)], Deny, "tools.*"),
            (&[("*", Allow), ("W*", Allow)], Allow, "tools.W*"),
            (&[("*", Deny), ("W*", Deny), ("ed*", Deny)], Deny, "tools.ed*"),
        ] {
            let decision = decide(&policy(Vec::new(), tools), &edit_call("a"));
            assert_eq!(decision, (expected, rule_name.to_owned()), "{tools:?}");
        }
    }

    #[test]
    fn all_conditions_of_a_rule_must_fit() {
        let narrow = PermissionRule {
            tool_patterns: list(&["Write", "Edit"]),
            tool_kinds: list(&["edit"]),
            path_patterns: list(&["src/*"]),
            ..rule(Allow)
        };
        let policy = policy(vec![narrow], &[]);
        let is_allowed = |subject: &ToolCallSubject| decide(&policy, subject).0 == Allow;
        assert!(is_allowed(&edit_call("src/a.rs")));
        assert!(!is_allowed(&edit_call("docs/a.md")));
        assert!(!is_allowed(&ToolCallSubject {
            tool: "Other".to_owned(),
            ..edit_call("src/a.rs")
        }));
        assert!(!is_allowed(&ToolCallSubject { kind: None, ..edit_call("src/a.rs") }));
        assert!(!is_allowed(&ToolCallSubject { paths: Vec::new(), ..edit_call("src/a.rs") }));
    }

    #[test]
    fn paths_alone_allow_no_command_and_no_address() {
        let policy =
            policy(vec![PermissionRule { path_patterns: list(&["*"]), ..rule(Allow) }], &[]);
        let call_with = |command: Option<&str>, url: Option<&str>| ToolCallSubject {
            command: command.map(str::to_owned),
            url: url.map(str::to_owned),
            ..edit_call("src/a.rs")
        };
        assert_eq!(decide(&policy, &call_with(None, None)).0, Allow);
        assert_eq!(decide(&policy, &call_with(Some("rm src/a.rs"), None)).0, Ask);
        assert_eq!(decide(&policy, &call_with(None, Some("https://example.org"))).0, Ask);
    }

    #[test]
    fn a_kind_in_place_of_a_name_is_restricted_but_not_allowed() {
        let subject = ToolCallSubject { tool: "execute".to_owned(), ..Default::default() };
        let policy_with = |verdict| {
            policy(vec![PermissionRule { tool_kinds: list(&["exec*"]), ..rule(verdict) }], &[])
        };
        assert_eq!(decide(&policy_with(Deny), &subject).0, Deny);
        assert_eq!(decide(&policy_with(Allow), &subject).0, Ask);
    }

    #[test]
    fn a_rule_without_a_verdict_asks() {
        let mut policy = policy(vec![PermissionRule::default()], &[("*", Allow)]);
        policy.default_verdict = Allow;
        assert_eq!(decide(&policy, &edit_call("a")), (Ask, "rules[0]".to_owned()));
    }
}

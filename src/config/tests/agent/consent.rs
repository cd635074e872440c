//! Tests of the permission policy of an interactive agent.

use algonius_actors::model::permission::{PermissionPolicy, PermissionVerdict, TimeoutAction};

use super::*;

/// Returns the policy of an agent that speaks ACP, with these lines.
fn policy(lines: &str) -> PermissionPolicy {
    let agent = load_settings(&format!("{CAT}protocol = \"acp\"\n{lines}\n")).agents.remove(0);
    agent.spec.permission_policy().clone()
}

#[test]
fn a_person_decides_unless_a_policy_says_otherwise() {
    let default = policy("");
    assert_eq!(default.default_verdict, PermissionVerdict::Ask);
    assert_eq!(
        (default.interaction_timeout, default.on_timeout),
        (Duration::from_secs(300), TimeoutAction::Deny)
    );
    assert!(default.rules.is_empty() && default.tool_verdicts.is_empty());
    let configured =
        policy("consent = { default = \"deny\", timeout = \"10m\", on_timeout = \"cancel\" }");
    assert_eq!(configured.default_verdict, PermissionVerdict::Deny);
    assert_eq!(
        (configured.interaction_timeout, configured.on_timeout),
        (Duration::from_secs(600), TimeoutAction::Cancel)
    );
}

#[test]
fn approve_is_another_word_for_ask() {
    let policy = policy(
        "consent = { default = \"approve\", \
         tools = { a = \"approve\", b = \"ask\", c = \"allow\", d = \"deny\" } }",
    );
    assert_eq!(policy.default_verdict, PermissionVerdict::Ask);
    let verdicts: Vec<_> = policy.tool_verdicts.into_iter().collect();
    let expected = [
        ("a", PermissionVerdict::Ask),
        ("b", PermissionVerdict::Ask),
        ("c", PermissionVerdict::Allow),
        ("d", PermissionVerdict::Deny),
    ];
    assert_eq!(verdicts, expected.map(|(tool, verdict)| (tool.to_owned(), verdict)));
}

#[test]
fn an_unusable_policy_is_refused() {
    for (line, position, fault) in [
        (
            r#"tools = { Bash = "yes" }"#,
            "4:30",
            r#"tools.Bash: must be "allow", "deny", "ask" or "approve""#,
        ),
        (
            r#"default = "alow""#,
            "4:23",
            r#"default = "alow": must be "allow" or "deny" or "ask" or "approve"; did you mean `allow`?"#,
        ),
        (r#"timeout = "2d""#, "4:23", r#"timeout = "2d": must be 1 to 86400 seconds"#),
        (
            r#"rules = [{ then = "allow" }]"#,
            "4:22",
            r#"rules[0]: needs a condition: `tool`, `kind`, `command` or `path`"#,
        ),
        (r#"rules = [{ kind = ["edit"] }]"#, "4:22", r#"rules[0].then: is needed"#),
        (
            r#"by = "hook""#,
            "4:13",
            r#"by: unknown key; known: rules, tools, default, timeout, on_timeout, unauthorized, approvers, four_eyes, max_tool_calls"#,
        ),
    ] {
        let lines = format!("protocol = \"acp\"\nconsent = {{ {line} }}");
        let expected = format!("c:{position}: error: agents.a.consent.{fault}");
        assert_agent_faults(&[(&lines, &[&expected])]);
    }
    assert_agent_faults(&[(
        "consent = { default = \"ask\" }",
        &["c:1:1: error: agents.a.consent: has a meaning with `protocol` only"],
    )]);
}

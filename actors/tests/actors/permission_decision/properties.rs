//! Properties of verdicts, for arbitrary policies, calls and command lines.

use algonius_actors::decide::permission::evaluate_policy;
use algonius_actors::model::interaction::ToolCallSubject;
use algonius_actors::model::permission::{PermissionPolicy, PermissionRule, PermissionVerdict};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::{decide_permission, policy_allowing, shell_call};

/// Characters that a shell interprets, also between double quotes.
const SHELL_SPECIAL_CHARS: &str = ";&|<>$(){}`\\\n\r\0\u{2028}\u{2029}\u{85}";

fn verdicts() -> impl Strategy<Value = PermissionVerdict> {
    prop::sample::select(PermissionVerdict::ALL)
}

/// Patterns and values from few words, so that they often match.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "*", "Bash", "execute", "ls", "ls *", "a/b", "*.rs", "../x", "ls; a", ""
        ])
        .prop_map(str::to_owned),
        "[a-c*/ .;'\"$\\\\-]{0,8}",
        any::<String>(),
    ]
}

prop_compose! {
    fn rules()(
        tool_patterns in vec(words(), 0..2),
        tool_kinds in vec(words(), 0..2),
        command_patterns in vec(words(), 0..2),
        path_patterns in vec(words(), 0..2),
        verdict in option::of(verdicts()),
    ) -> PermissionRule {
        PermissionRule { tool_patterns, tool_kinds, command_patterns, path_patterns, verdict }
    }
}

prop_compose! {
    fn policies()(
        rules in vec(rules(), 0..4),
        tool_verdicts in btree_map(words(), verdicts(), 0..4),
        default_verdict in verdicts(),
    ) -> PermissionPolicy {
        PermissionPolicy { rules, tool_verdicts, default_verdict, ..Default::default() }
    }
}

prop_compose! {
    fn calls()(
        tool in words(),
        kind in option::of(words()),
        command in option::of(words()),
        paths in vec(words(), 0..3),
        url in option::of(words()),
    ) -> ToolCallSubject {
        ToolCallSubject { tool, kind, command, paths, url, ..Default::default() }
    }
}

/// Parts of a line, each complete: plain words, and text in single or double quotes.
fn line_parts() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z /._-]{0,6}", "'[^'\\\\]{0,4}'", "\"[a-z '#*]{0,4}\""]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The rule of a verdict exists in the policy and has this verdict.
    #[test]
    fn a_verdict_names_the_rule_that_gave_it(
        policy in policies(), call in calls(), workspace in option::of(words())
    ) {
        let (actual, rule_name) = evaluate_policy(&policy, &call, workspace.as_deref());
        let rule_verdict = if rule_name == "default" {
            Some(policy.default_verdict)
        } else if let Some(name) = rule_name.strip_prefix("tools.") {
            policy.tool_verdicts.get(name).copied()
        } else {
            let index = rule_name.strip_prefix("rules[").and_then(|rest| rest.strip_suffix(']'));
            let rule = index.and_then(|index| policy.rules.get(index.parse::<usize>().ok()?));
            rule.map(|rule| rule.verdict.unwrap_or(PermissionVerdict::Ask))
        };
        prop_assert_eq!(rule_verdict, Some(actual), "{}", rule_name);
    }

    /// An earlier rule that does not decide has no effect on the verdict of later ones.
    #[test]
    fn the_first_fitting_rule_decides(policy in policies(), call in calls()) {
        let (actual, rule_name) = evaluate_policy(&policy, &call, Some("/srv/ws"));
        let evaluate_rule_alone = |rule: &PermissionRule| {
            let policy = PermissionPolicy { rules: vec![rule.clone()], ..Default::default() };
            evaluate_policy(&policy, &call, Some("/srv/ws"))
        };
        let first_fitting_index = policy.rules.iter().position(|rule| evaluate_rule_alone(rule).1 == "rules[0]");
        match first_fitting_index {
            Some(index) => {
                prop_assert_eq!(rule_name, format!("rules[{index}]"));
                prop_assert_eq!(actual, evaluate_rule_alone(&policy.rules[index]).0);
            }
            None => prop_assert!(!rule_name.starts_with("rules")),
        }
    }

    /// No character that a shell interprets passes a rule that allows, at any place outside of single quotes.
    #[test]
    fn special_characters_outside_single_quotes_never_pass(
        before in vec(line_parts(), 0..4),
        after in vec(line_parts(), 0..4),
        special in prop::sample::select(SHELL_SPECIAL_CHARS.chars().collect::<Vec<_>>()),
        in_double_quotes in any::<bool>(),
        pattern in prop::sample::select(vec!["*", "ls*", "ls *", "*a", "* *"]),
    ) {
        let quote = if in_double_quotes { "\"" } else { "" };
        let line = format!("ls {}{quote}{special}{quote}{}", before.concat(), after.concat());
        prop_assert_eq!(decide_permission(&policy_allowing(&[pattern]), &shell_call(&line)), PermissionVerdict::Ask);
        // Not even if the pattern repeats the line.
        prop_assert_eq!(decide_permission(&policy_allowing(&[&line]), &shell_call(&line)), PermissionVerdict::Ask);
    }

    /// A line of any characters is allowed only if a simple reading of it has no special character.
    #[test]
    fn an_allowed_line_has_no_special_character(line in "[a-c ';&|$`\\\\\"\n=~*#{}-]{0,12}") {
        if decide_permission(&policy_allowing(&["*"]), &shell_call(&line)) == PermissionVerdict::Allow {
            let mut quote = None;
            for letter in line.chars() {
                match (quote, letter) {
                    (None, '\'' | '"') => quote = Some(letter),
                    (Some(open), _) if open == letter => quote = None,
                    (Some('\''), _) => prop_assert!(letter != '\n'),
                    (Some(_), _) => prop_assert!(!";&|$`\\\n{}".contains(letter), "{line:?}"),
                    (None, _) => prop_assert!(!";&|$`\\\n*#{}".contains(letter), "{line:?}"),
                }
            }
            prop_assert_eq!(quote, None);
        }
    }

    /// Among the entries for tools, a denial wins over every other entry that fits.
    #[test]
    fn a_denied_tool_is_never_allowed(
        tool_verdicts in btree_map(words(), verdicts(), 0..6), call in calls(), default_verdict in verdicts()
    ) {
        let mut policy = PermissionPolicy { tool_verdicts, default_verdict, ..Default::default() };
        for pattern in ["*".to_owned(), call.tool.clone()] {
            policy.tool_verdicts.insert(pattern.clone(), PermissionVerdict::Deny);
            prop_assert_eq!(decide_permission(&policy, &call), PermissionVerdict::Deny);
            policy.tool_verdicts.remove(&pattern);
        }
    }

    /// A denial of a command is found behind every other command and in quotes.
    #[test]
    fn a_denied_command_is_found_anywhere(before in "[a-z ;&|'\"]{0,8}", after in "[a-z ;&|'\"]{0,8}") {
        let rule = PermissionRule {
            command_patterns: vec!["rm *".to_owned()],
            verdict: Some(PermissionVerdict::Deny),
            ..Default::default()
        };
        let policy = PermissionPolicy {
            rules: vec![rule],
            default_verdict: PermissionVerdict::Allow,
            ..Default::default()
        };
        for separator in [" ", ";", "|", "&", "\n", "(", "`", "'", "\"", " /bin/"] {
            let line = format!("{before}{separator}rm x{after}");
            let is_joined = matches!(separator, "'" | "\"") && before.ends_with(char::is_alphabetic);
            prop_assert!(is_joined || decide_permission(&policy, &shell_call(&line)) == PermissionVerdict::Deny, "{line:?}");
        }
    }
}

//! `[agents.<id>.consent]`: the permission policy of an interactive agent.

use std::collections::BTreeMap;

use algonius_actors::model::interaction::ApproverRules;
use algonius_actors::model::permission::{
    OWNER_APPROVER, PermissionPolicy, PermissionRule, PermissionVerdict, TimeoutAction,
    UnauthorizedCallAction,
};

use crate::config::table::{Positioned, RangeWithDefault, Section, ValueShape, value};

/// Words of the configuration. `approve` is another word for `ask`: a person approves the call.
const VERDICTS: [(&str, PermissionVerdict); 4] = [
    ("allow", PermissionVerdict::Allow),
    ("deny", PermissionVerdict::Deny),
    ("ask", PermissionVerdict::Ask),
    ("approve", PermissionVerdict::Ask),
];

/// Bounds of the time in seconds within which a person answers.
const TIMEOUT_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(1.0, 86_400.0, 300.0);

/// Bounds of the number of tool calls in a turn.
const TOOL_CALL_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(1, 100_000, 1000);

/// Reads the policy. Returns `None` for an agent that asks nobody.
pub(crate) fn read(
    agent: &mut Section<'_>,
    has_control_protocol: bool,
) -> Option<PermissionPolicy> {
    let is_given = agent.has_key("consent");
    if is_given && !has_control_protocol {
        let position = agent.position.child("consent").without_excerpt();
        agent.reader.report_error(&position, "has a meaning with `protocol` only");
    }
    let mut section = agent.section("consent");
    let policy = PermissionPolicy {
        rules: read_rules(&mut section),
        tool_verdicts: read_tool_verdicts(section.section("tools")),
        default_verdict: section
            .keyword("default", &VERDICTS)
            .map_or(PermissionVerdict::Ask, |found| found.value),
        interaction_timeout: section.duration("timeout", TIMEOUT_BOUNDS),
        on_timeout: section
            .keyword(
                "on_timeout",
                &[("deny", TimeoutAction::Deny), ("cancel", TimeoutAction::Cancel)],
            )
            .map(|found| found.value)
            .unwrap_or_default(),
        on_unauthorized: section
            .keyword(
                "unauthorized",
                &[
                    ("stop", UnauthorizedCallAction::Stop),
                    ("report", UnauthorizedCallAction::Report),
                ],
            )
            .map(|found| found.value)
            .unwrap_or_default(),
        approver_rules: ApproverRules {
            approvers: read_approvers(&mut section),
            four_eyes: section.flag("four_eyes", false),
        },
        max_tool_calls: read_max_tool_calls(&mut section),
    };
    section.report_unknown_keys();
    has_control_protocol.then_some(policy)
}

fn read_approvers(section: &mut Section<'_>) -> Vec<String> {
    let configured = section.text_list("approvers");
    configured.map_or_else(
        || vec![OWNER_APPROVER.to_owned()],
        |names| names.into_iter().map(|name| name.value).collect(),
    )
}

/// Reads the limit of a turn; `None` is unlimited.
fn read_max_tool_calls(section: &mut Section<'_>) -> Option<u32> {
    let entry = section.entry("max_tool_calls");
    let max = entry.and_then(|entry| value::count(section.reader, &entry, TOOL_CALL_BOUNDS));
    section.record_shape("max_tool_calls", || ValueShape::Count(TOOL_CALL_BOUNDS, false));
    max.map(|max| u32::try_from(max).unwrap_or(u32::MAX))
}

fn read_rules(section: &mut Section<'_>) -> Vec<PermissionRule> {
    let reader = section.reader;
    let mut rules = Vec::new();
    for item in section.list("rules").unwrap_or_default() {
        let Some(mut rule_section) = Section::from_entry(reader, item) else { continue };
        let verdict = rule_section.keyword("then", &VERDICTS).map(|found| found.value);
        let permission_rule = PermissionRule {
            tool_patterns: read_patterns(&mut rule_section, "tool"),
            tool_kinds: read_patterns(&mut rule_section, "kind"),
            command_patterns: read_patterns(&mut rule_section, "command"),
            path_patterns: read_patterns(&mut rule_section, "path"),
            verdict,
        };
        let conditions = [
            &permission_rule.tool_patterns,
            &permission_rule.tool_kinds,
            &permission_rule.command_patterns,
            &permission_rule.path_patterns,
        ];
        if verdict.is_none() && !rule_section.has_key("then") {
            reader
                .report_error(&rule_section.position.child("then").without_excerpt(), "is needed");
        }
        if conditions.iter().all(|patterns| patterns.is_empty()) {
            let diagnostic = "needs a condition: `tool`, `kind`, `command` or `path`";
            reader.report_error(&rule_section.position.clone().without_excerpt(), diagnostic);
        }
        rule_section.report_unknown_keys();
        rules.push(permission_rule);
    }
    rules
}

fn read_patterns(rule_section: &mut Section<'_>, key: &'static str) -> Vec<String> {
    let texts = rule_section.text_list(key).unwrap_or_default();
    let mut patterns = Vec::new();
    for pattern in texts {
        if pattern.value.trim().is_empty() {
            rule_section.reader.report_error(&pattern.position, "must not be blank");
        }
        patterns.push(pattern.value);
    }
    patterns
}

fn read_tool_verdicts(section: Section<'_>) -> BTreeMap<String, PermissionVerdict> {
    let reader = section.reader;
    let mut tool_verdicts = BTreeMap::new();
    for (name, entry) in section.entries() {
        let entry = Positioned { position: entry.position.without_excerpt(), ..entry };
        let Some(word) = value::text(reader, &entry) else { continue };
        match VERDICTS.iter().find(|(known, _)| *known == word) {
            Some((_, verdict)) => _ = tool_verdicts.insert(name.value, *verdict),
            None => {
                let diagnostic = "must be \"allow\", \"deny\", \"ask\" or \"approve\"";
                reader.report_error(&entry.position, diagnostic);
            }
        }
    }
    tool_verdicts
}

//! `[scheduler]` and `[schedules.<id>]`: requests at scheduled times.

use std::collections::BTreeMap;
use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::id::{AgentId, ScheduleId};
use algonius_actors::model::schedule::recurrence::{RecurrenceError, RecurrenceRule};
use algonius_actors::model::schedule::{MissedPolicy, OverlapPolicy, ScheduleSpec};

use super::agent::ConfiguredAgent;
use super::agent::overrides::has_param;
use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{ConfigReader, Positioned, RangeWithDefault, Section, value};
use crate::platform::template::{ScheduleValues, Template};

/// Default owner of the configured schedules: the command line's own principal.
const OPERATOR_PRINCIPAL: &str = "operator";

const OVERLAP_POLICIES: [(&str, OverlapPolicy); 4] = [
    ("skip", OverlapPolicy::Skip),
    ("queue", OverlapPolicy::Queue),
    ("cancel_previous", OverlapPolicy::CancelPrevious),
    ("allow", OverlapPolicy::Allow),
];

/// Greatest window of missed occurrences in seconds.
const MAX_MISSED_WINDOW_SECONDS: f64 = 7.0 * 86_400.0;

/// Settings of the scheduler and its schedules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerSettings {
    /// Time zone of a schedule without its own.
    pub timezone: String,
    /// True if expressions may have seconds.
    pub allows_seconds: bool,
    /// Time for which past occurrences are stored.
    pub history_retention: Duration,
    /// Schedules in the order of the file.
    pub schedules: Vec<ScheduleWithOwner>,
}

/// Schedule with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleWithOwner {
    /// Specification of the schedule.
    pub spec: ScheduleSpec,
    /// Name of the owner's token.
    pub owner: String,
}

/// Names that a schedule may refer to.
pub(crate) struct ScheduleReferenceTargets<'k> {
    /// Known agents.
    pub(crate) agents: Vec<&'k ConfiguredAgent>,
    /// Names of tokens.
    pub(crate) tokens: Vec<&'k str>,
}

/// Reads both sections.
pub(crate) fn read(
    root: &mut Section<'_>,
    targets: &ScheduleReferenceTargets<'_>,
) -> SchedulerSettings {
    let reader = root.reader;
    let mut section = root.section("scheduler");
    let zone = section.nonblank_text("timezone");
    if let Some(zone) = &zone
        && let Err(error) = RecurrenceRule::new("@daily", &zone.value, false)
    {
        reader.report_error(&zone.position, error.to_string());
    }
    let has_default_zone = zone.is_some();
    let mut settings = SchedulerSettings {
        timezone: zone.map_or_else(|| "UTC".to_owned(), |zone| zone.value),
        allows_seconds: section.flag("seconds", false),
        history_retention: section
            .duration("history", RangeWithDefault::new(86_400.0, 3.2e8, 90.0 * 86_400.0)),
        schedules: Vec::new(),
    };
    section.report_unknown_keys();
    let mut ids_by_name = BTreeMap::new();
    for (name, section) in root.sections("schedules") {
        let id = match ScheduleId::new(name.value.as_str()) {
            Ok(id) => id,
            Err(error) => {
                reader.report_error(&name.position, error.to_string());
                continue;
            }
        };
        let schedule_id = Positioned { value: id, position: name.position };
        let Some(owned_schedule) =
            read_schedule(section, &schedule_id, (&settings, has_default_zone), targets)
        else {
            continue;
        };
        if let Some(other) = ids_by_name.insert(owned_schedule.spec.name.clone(), schedule_id.value)
        {
            let message = format!("has the same name as the schedule `{other}`");
            reader.report_error(&schedule_id.position, message);
        }
        settings.schedules.push(owned_schedule);
    }
    settings
}

/// Reads one schedule.
fn read_schedule(
    mut section: Section<'_>,
    id: &Positioned<ScheduleId>,
    (settings, has_default_zone): (&SchedulerSettings, bool),
    targets: &ScheduleReferenceTargets<'_>,
) -> Option<ScheduleWithOwner> {
    let table = &mut section;
    let name = table.nonblank_text("name").map_or_else(|| id.value.to_string(), |name| name.value);
    let enabled = table.flag("enabled", true);
    let agent = read_agent(table, id, enabled, targets);
    let recurrence = read_recurrence_rule(table, id, settings, has_default_zone);
    let (input, params) = read_input_and_params(table, id, agent);
    let missed = read_missed_policy(table);
    let overlap = read_overlap_policy(table, missed, agent.map(|agent| agent.spec.access));
    let jitter = table.duration("jitter", RangeWithDefault::new(0.0, 86_400.0, 0.0));
    let deadline = table.entry("deadline");
    let bounds = RangeWithDefault::new(1.0, 7.0 * 86_400.0, 0.0);
    let deadline = deadline.and_then(|entry| value::seconds(table.reader, &entry, bounds));
    let alert_after = table.count("alert_after", RangeWithDefault::new(0, 100, 3));
    let owner = read_owner(table, targets);
    section.report_unknown_keys();
    let spec = ScheduleSpec {
        id: id.value.clone(),
        name,
        agent: agent?.spec.id.clone(),
        recurrence: recurrence?,
        input: input?,
        params,
        missed,
        overlap,
        jitter,
        deadline: deadline.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        alert_after: u32::try_from(alert_after).unwrap_or_default(),
        enabled,
    };
    Some(ScheduleWithOwner { spec, owner })
}

/// Returns the agent of the schedule, which must exist and be enabled.
fn read_agent<'k>(
    section: &mut Section<'_>,
    id: &Positioned<ScheduleId>,
    enabled: bool,
    targets: &ScheduleReferenceTargets<'k>,
) -> Option<&'k ConfiguredAgent> {
    let reader = section.reader;
    let Some(agent_name) = section.nonblank_text("agent") else {
        report_missing_key(reader, id, "agent", "the agent that receives the message");
        return None;
    };
    let ids: Vec<AgentId> = targets.agents.iter().map(|agent| agent.spec.id.clone()).collect();
    let agent_id = super::tokens::find_agent(section, &agent_name, &ids)?;
    let agent = targets.agents.iter().find(|known| known.spec.id == agent_id)?;
    if enabled && !agent.spec.enabled {
        reader.report_error(
            &agent_name.position,
            new_diagnostic("is switched off").with_hint("set `enabled = true` for it"),
        );
    }
    Some(agent)
}

fn read_recurrence_rule(
    section: &mut Section<'_>,
    id: &Positioned<ScheduleId>,
    settings: &SchedulerSettings,
    has_default_zone: bool,
) -> Option<RecurrenceRule> {
    let reader = section.reader;
    let zone = section.nonblank_text("timezone");
    let Some(cron) = section.nonblank_text("cron") else {
        report_missing_key(reader, id, "cron", "the due times, such as \"0 3 * * *\"");
        return None;
    };
    if zone.is_none() && !has_default_zone && !cron.value.starts_with("@every") {
        let diagnostic =
            new_diagnostic("is taken to be in UTC").with_hint("give the schedule a `timezone`");
        reader.report_warning(&cron.position, diagnostic);
    }
    let zone_name = zone.as_ref().map_or(settings.timezone.as_str(), |zone| zone.value.as_str());
    match RecurrenceRule::new(&cron.value, zone_name, settings.allows_seconds) {
        Ok(rule) => Some(rule),
        Err(error @ RecurrenceError::Zone { .. }) => {
            if let Some(zone) = zone {
                reader.report_error(&zone.position, error.to_string()); // An invalid default time zone has its own fault.
            }
            None
        }
        Err(error) => {
            reader.report_error(&cron.position, error.to_string());
            None
        }
    }
}

/// Reads the input text and its parameters. A parameter should be one of the agent, or be used in the text.
fn read_input_and_params(
    section: &mut Section<'_>,
    id: &Positioned<ScheduleId>,
    agent: Option<&ConfiguredAgent>,
) -> (Option<String>, BTreeMap<String, String>) {
    let reader = section.reader;
    let (mut params, mut names) = (BTreeMap::new(), Vec::new());
    for (name, entry) in section.section("params").entries() {
        if let Some(text) = value::scalar(reader, &entry) {
            params.insert(name.value.clone(), text);
            names.push(name);
        }
    }
    let Some(input) = section.nonblank_text("input") else {
        report_missing_key(reader, id, "input", "the message to the agent");
        return (None, params);
    };
    let values = ScheduleValues { params: params.clone(), ..ScheduleValues::default() };
    let template = Template::for_values::<ScheduleValues>(&input.value);
    if let (Ok(template), Some(agent)) = (&template, agent) {
        let program = agent.program().map(|program| &**program);
        let is_known = |name: &&Positioned<String>| {
            template.used_params().contains(&name.value) || has_param(program, &name.value)
        };
        names.iter().filter(|name| !is_known(name)).for_each(|name| {
            let known = template.used_params().iter().map(String::as_str);
            let known =
                known.chain(program.iter().flat_map(|it| it.params.keys()).map(String::as_str));
            let diagnostic = "neither `input` nor the agent has a parameter of this name";
            let diagnostic = new_diagnostic(diagnostic).suggest_from(&name.value, known);
            // The program finds it among its variables nevertheless.
            reader.report_warning(&name.position, diagnostic);
        });
    }
    match template.and_then(|it| it.render(&values)) {
        Ok(_) => (Some(input.value), params),
        Err(error) => {
            reader.report_error(&input.position, error.to_string());
            (None, params)
        }
    }
}

fn read_missed_policy(section: &mut Section<'_>) -> MissedPolicy {
    let words = [("skip", 0), ("once", 1), ("all", 2)];
    let policy_index = section.keyword("missed", &words).map_or(1, |found| found.value);
    let window = section
        .duration("missed_window", RangeWithDefault::new(1.0, MAX_MISSED_WINDOW_SECONDS, 3600.0));
    let max = section.count("missed_max", RangeWithDefault::new(1, 1000, 10));
    match policy_index {
        0 => MissedPolicy::Skip,
        1 => MissedPolicy::Once { window },
        _ => MissedPolicy::All { max: u32::try_from(max).unwrap_or(u32::MAX), window },
    }
}

/// Reads the overlap policy for an occurrence during a previous run. With `missed = "all"` every occurrence must be
/// able to wait.
fn read_overlap_policy(
    section: &mut Section<'_>,
    missed: MissedPolicy,
    access: Option<Access>,
) -> OverlapPolicy {
    let default = OverlapPolicy::default_for(missed, access.unwrap_or(Access::ReadWrite));
    let Some(policy) = section.keyword("overlap", &OVERLAP_POLICIES) else { return default };
    if policy.value.loses_occurrences(missed) {
        let diagnostic = new_diagnostic("would lose what `missed = \"all\"` makes up for");
        section
            .reader
            .report_error(&policy.position, diagnostic.with_hint("use \"queue\" or \"allow\""));
    }
    policy.value
}

fn read_owner(section: &mut Section<'_>, targets: &ScheduleReferenceTargets<'_>) -> String {
    let Some(name) = section.nonblank_text("owner") else { return OPERATOR_PRINCIPAL.to_owned() };
    if name.value != OPERATOR_PRINCIPAL && !targets.tokens.contains(&name.value.as_str()) {
        let names = targets.tokens.iter().copied().chain([OPERATOR_PRINCIPAL]);
        let diagnostic = new_diagnostic("there is no such token").suggest_from(&name.value, names);
        section.reader.report_error(&name.position, diagnostic);
    }
    name.value
}

fn report_missing_key(
    reader: &ConfigReader<'_>,
    id: &Positioned<ScheduleId>,
    key: &str,
    description: &str,
) {
    reader.report_error(
        &id.position,
        new_diagnostic(format!("`{key}` is missing")).with_hint(format!("it is {description}")),
    );
}

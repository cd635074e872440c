//! `[scheduler]` and `[schedules.<id>]`: what is asked for at set times.

use std::collections::BTreeMap;
use std::time::Duration;

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::id::AgentId;
use algonius_actors::model::schedule::{Missed, Overlap, ScheduleId, ScheduleSpec};
use algonius_actors::model::timetable::{Timetable, TimetableError};

use super::fault::said;
use super::reader::{Found, Reader};
use super::section::Section;
use super::value::{self, Bounds};
use crate::template::{Moment, Template};

/// Whose the schedules of the configuration are when they do not say: the command line's own.
const OPERATOR: &str = "operator";

const OVERLAPS: [(&str, Overlap); 4] = [
    ("skip", Overlap::Skip),
    ("queue", Overlap::Queue),
    ("cancel_previous", Overlap::CancelPrevious),
    ("allow", Overlap::Allow),
];

/// Longest time that missed occurrences are made up for, in seconds.
const WINDOW: f64 = 7.0 * 86_400.0;

/// What is asked for at set times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduling {
    /// Where a schedule without a zone is.
    pub timezone: String,
    /// Whether expressions may have seconds.
    pub seconds: bool,
    /// How long what happened is remembered.
    pub history: Duration,
    /// The schedules, in the order of the file.
    pub schedules: Vec<Scheduled>,
}

/// A schedule and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// What it says.
    pub spec: ScheduleSpec,
    /// The name of a token.
    pub owner: String,
}

/// What a schedule may refer to.
pub(super) struct Known<'k> {
    /// The agents.
    pub(super) agents: Vec<&'k AgentSpec>,
    /// The names of tokens.
    pub(super) tokens: Vec<&'k str>,
}

/// Reads both.
pub(super) fn read(root: &mut Section<'_>, known: &Known<'_>) -> Scheduling {
    let reader = root.reader;
    let mut section = root.section("scheduler");
    let zone = section.nonblank("timezone");
    if let Some(zone) = &zone
        && let Err(error) = Timetable::new("@daily", &zone.value, false)
    {
        reader.error(&zone.place, error.to_string());
    }
    let has_zone = zone.is_some();
    let mut all = Scheduling {
        timezone: zone.map_or_else(|| "UTC".to_owned(), |zone| zone.value),
        seconds: section.flag("seconds", false),
        history: section.seconds("history", Bounds::new(86_400.0, 3.2e8, 90.0 * 86_400.0)),
        schedules: Vec::new(),
    };
    section.finish();
    let mut names = BTreeMap::new();
    for (name, section) in root.sections("schedules") {
        let id = match ScheduleId::new(name.value.as_str()) {
            Ok(id) => id,
            Err(error) => {
                reader.error(&name.place, error.to_string());
                continue;
            }
        };
        let named = Found { value: id, place: name.place };
        let Some(scheduled) = schedule(section, &named, (&all, has_zone), known) else { continue };
        if let Some(other) = names.insert(scheduled.spec.name.clone(), named.value) {
            let message = format!("has the same name as the schedule `{other}`");
            reader.error(&named.place, message);
        }
        all.schedules.push(scheduled);
    }
    all
}

/// Reads one schedule.
fn schedule(
    mut section: Section<'_>,
    id: &Found<ScheduleId>,
    (all, has_zone): (&Scheduling, bool),
    known: &Known<'_>,
) -> Option<Scheduled> {
    let from = &mut section;
    let name = from.nonblank("name").map_or_else(|| id.value.to_string(), |name| name.value);
    let enabled = from.flag("enabled", true);
    let agent = agent(from, id, enabled, known);
    let timetable = timetable(from, id, all, has_zone);
    let (input, params) = words(from, id);
    let missed = missed(from);
    let overlap = overlap(from, missed, agent.map(|agent| agent.access));
    let jitter = from.seconds("jitter", Bounds::new(0.0, 86_400.0, 0.0));
    let deadline = from.entry("deadline");
    let bounds = Bounds::new(1.0, 7.0 * 86_400.0, 0.0);
    let deadline = deadline.and_then(|entry| value::seconds(from.reader, &entry, bounds));
    let alert_after = from.count("alert_after", Bounds::new(0, 100, 3));
    let owner = owner(from, known);
    section.finish();
    let spec = ScheduleSpec {
        id: id.value.clone(),
        name,
        agent: agent?.id.clone(),
        timetable: timetable?,
        input: input?,
        params,
        missed,
        overlap,
        jitter,
        deadline: deadline.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        alert_after: u32::try_from(alert_after).unwrap_or_default(),
        enabled,
    };
    Some(Scheduled { spec, owner })
}

/// The agent that is asked: it must be there, and switched on.
fn agent<'k>(
    section: &mut Section<'_>,
    id: &Found<ScheduleId>,
    enabled: bool,
    known: &Known<'k>,
) -> Option<&'k AgentSpec> {
    let reader = section.reader;
    let Some(given) = section.nonblank("agent") else {
        missing(reader, id, "agent", "the agent that is asked");
        return None;
    };
    let ids: Vec<AgentId> = known.agents.iter().map(|agent| agent.id.clone()).collect();
    let agent = super::tokens::existing(section, &given, &ids)?;
    let agent = known.agents.iter().find(|known| known.id == agent)?;
    if enabled && !agent.enabled {
        reader.error(&given.place, said("is switched off").hint("set `enabled = true` for it"));
    }
    Some(agent)
}

fn timetable(
    section: &mut Section<'_>,
    id: &Found<ScheduleId>,
    all: &Scheduling,
    has_zone: bool,
) -> Option<Timetable> {
    let reader = section.reader;
    let zone = section.nonblank("timezone");
    let Some(cron) = section.nonblank("cron") else {
        missing(reader, id, "cron", "when it is asked, such as \"0 3 * * *\"");
        return None;
    };
    if zone.is_none() && !has_zone && !cron.value.starts_with("@every") {
        let complaint = said("is taken to be in UTC").hint("give the schedule a `timezone`");
        reader.warning(&cron.place, complaint);
    }
    let name = zone.as_ref().map_or(all.timezone.as_str(), |zone| zone.value.as_str());
    match Timetable::new(&cron.value, name, all.seconds) {
        Ok(table) => Some(table),
        Err(error @ TimetableError::Zone { .. }) => {
            if let Some(zone) = zone {
                reader.error(&zone.place, error.to_string()); // That of all has its own fault.
            }
            None
        }
        Err(error) => {
            reader.error(&cron.place, error.to_string());
            None
        }
    }
}

/// What is said, and with which parameters.
fn words(
    section: &mut Section<'_>,
    id: &Found<ScheduleId>,
) -> (Option<String>, BTreeMap<String, String>) {
    let reader = section.reader;
    let given = section.section("params").entries().into_iter();
    let params: BTreeMap<_, _> = given
        .filter_map(|(name, entry)| Some((name.value, value::scalar(reader, &entry)?)))
        .collect();
    let Some(input) = section.nonblank("input") else {
        missing(reader, id, "input", "what the agent is asked");
        return (None, params);
    };
    let moment = Moment { param: params.clone(), ..Moment::default() };
    let filled = Template::of::<Moment>(&input.value).and_then(|it| it.render(&moment));
    match filled {
        Ok(_) => (Some(input.value), params),
        Err(error) => {
            reader.error(&input.place, error.to_string());
            (None, params)
        }
    }
}

fn missed(section: &mut Section<'_>) -> Missed {
    let words = [("skip", 0), ("once", 1), ("all", 2)];
    let word = section.word("missed", &words).map_or(1, |found| found.value);
    let window = section.seconds("missed_window", Bounds::new(1.0, WINDOW, 3600.0));
    let max = section.count("missed_max", Bounds::new(1, 1000, 10));
    match word {
        0 => Missed::Skip,
        1 => Missed::Once { window },
        _ => Missed::All { max: u32::try_from(max).unwrap_or(u32::MAX), window },
    }
}

/// What becomes of a time at which it is still busy. All that is missed must be able to wait.
fn overlap(section: &mut Section<'_>, missed: Missed, access: Option<Access>) -> Overlap {
    let usual = Overlap::usual(missed, access.unwrap_or(Access::ReadWrite));
    let Some(given) = section.word("overlap", &OVERLAPS) else { return usual };
    if given.value.loses(missed) {
        let complaint = said("would lose what `missed = \"all\"` makes up for");
        section.reader.error(&given.place, complaint.hint("use \"queue\" or \"allow\""));
    }
    given.value
}

fn owner(section: &mut Section<'_>, known: &Known<'_>) -> String {
    let Some(given) = section.nonblank("owner") else { return OPERATOR.to_owned() };
    if given.value != OPERATOR && !known.tokens.contains(&given.value.as_str()) {
        let names = known.tokens.iter().copied().chain([OPERATOR]);
        let complaint = said("there is no such token").among(&given.value, names);
        section.reader.error(&given.place, complaint);
    }
    given.value
}

fn missing(reader: &Reader<'_>, id: &Found<ScheduleId>, key: &str, what: &str) {
    reader.error(&id.place, said(format!("`{key}` is missing")).hint(format!("it is {what}")));
}

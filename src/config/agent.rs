//! `[agents.<id>]`: what the card and the tree need to know of an agent.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::{Access, AgentSpec, Capacity, RetrySpec, Sizes, Skill};
use algonius_actors::model::id::AgentId;
use algonius_actors::model::outfit::PresetName;
use algonius_actors::model::program::{InputPattern, ProgramSpec};
use algonius_actors::model::resources::Holding;
use algonius_actors::model::sandbox::Enforcement;

use super::allowance;
use super::budget;
use super::deadlines;
use super::exposure::{self, Doors};
use super::fault::{Severity, said};
use super::interactive;
use super::limits::Limits;
use super::presets::{About, Behind};
use super::program;
use super::quota;
use super::reader::{Found, Reader};
use super::resources;
use super::sandbox;
use super::section::{Entry, Section};
use super::value::{self, Bounds};

/// Longest input that fits into one argument of a program with room to spare.
const ARGUMENT: u64 = 100 << 10;

/// An agent and the program behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// What the card and the tree know of it.
    pub spec: Arc<AgentSpec>,
    /// How its work is done. Shared by all who keep the agent.
    pub program: Arc<ProgramSpec>,
    /// What the preset behind it says of itself.
    pub about: About,
}

/// What every agent is read with.
pub(super) struct Basis<'b> {
    /// How far its settings may go.
    pub(super) limits: &'b Limits,
    /// Where the service keeps its things.
    pub(super) data_dir: &'b Path,
    /// The presets behind the agents; nothing behind one whose preset cannot be used.
    pub(super) behind: &'b BTreeMap<String, Option<Behind>>,
}

/// Reads every agent. A section whose name is no id is a fault and left out.
pub(super) fn read_all(
    reader: &Reader<'_>,
    sections: Vec<(Found<AgentId>, Section<'_>)>,
    basis: &Basis<'_>,
    doors: &mut Doors,
) -> Vec<Agent> {
    let mut names = BTreeSet::new();
    let mut agents = Vec::new();
    for (id, mut section) in sections {
        let name = section.nonblank("name");
        let name = name.unwrap_or(Found { value: id.value.to_string(), place: id.place });
        if !names.insert(name.value.clone()) {
            reader.error(&name.place, format!("another agent has the name `{}`", name.value));
        }
        agents.extend(read(section, id.value, name.value, basis, doors));
    }
    agents
}

/// Reads one agent.
fn read(
    mut from: Section<'_>,
    id: AgentId,
    name: String,
    basis: &Basis<'_>,
    doors: &mut Doors,
) -> Option<Agent> {
    let (section, limits) = (&mut from, basis.limits);
    let preset = preset(section, basis.behind.get(id.as_str()))?;
    let enabled = section.flag("enabled", true);
    let lacking = if enabled { Severity::Error } else { Severity::Lack };
    let accesses = [("read-only", Access::ReadOnly), ("read-write", Access::ReadWrite)];
    let access = section.word("access", &accesses).map(|found| found.value).unwrap_or_default();
    let mut program = program::read(section, (&id, basis.data_dir), access, lacking);
    sandbox::read(section, program.as_mut(), access, lacking);
    let expects = resources::read(section, program.as_mut());
    let capacity = capacity(section, limits, access);
    interactive::read(section, limits, capacity, program.as_mut());
    let input = program.as_ref().map(|program| program.input);
    let remembers = program.as_ref().is_some_and(ProgramSpec::remembers);
    let described = section.nonblank("description").map(|text| text.value);
    let description = described.unwrap_or_else(|| format!("The agent `{name}`."));
    let spec = AgentSpec {
        version: section.nonblank("version").map_or_else(|| "1.0.0".to_owned(), |text| text.value),
        skills: skills(section, &id, &name, &description),
        enabled,
        access,
        // What the system can do is known when the service starts.
        enforcement: Enforcement::default(),
        isolation: None,
        holding: Holding::default(),
        expects,
        capacity,
        deadlines: deadlines::read(section, limits),
        heartbeat: Some(section.seconds("heartbeat", limits.heartbeat)),
        retry: retry(section.section("retry"), limits),
        quota: quota::read(section.section("quota"), program.as_ref()),
        budget: budget::read(section.section("budget")),
        sizes: sizes(section, limits, input),
        dedup_window: dedup(section, limits, remembers),
        allowance: allowance::read(section, program.as_ref(), lacking),
        exposure: exposure::read(section, &id, doors),
        id,
        name,
        description,
    };
    from.finish();
    let mut program = program?;
    program.outfit.preset = preset.as_ref().map(|preset| PresetName {
        name: preset.name.clone(),
        is_verified: preset.about.is_verified,
    });
    let program = Arc::new(program);
    let spec = Arc::new(spec);
    Some(Agent { spec, program, about: preset.map(|preset| preset.about).unwrap_or_default() })
}

/// The preset behind an agent, if there is one; outer `None` where it cannot be used, so that nothing
/// can be said of the rest.
#[expect(clippy::option_option, reason = "no preset and one that cannot be used are two things")]
fn preset(section: &mut Section<'_>, behind: Option<&Option<Behind>>) -> Option<Option<Behind>> {
    let name = section.text("preset");
    let Some(behind) = behind else { return Some(None) };
    let behind = behind.as_ref()?;
    if let Some(name) = name.filter(|_| !behind.about.is_verified) {
        let complaint = said("this preset was written from documents, and never run")
            .hint("look closely at the first answers");
        section.reader.warning(&name.place, complaint);
    }
    Some(Some(behind.clone()))
}

/// The skills on the card: as given, or one made from the agent itself.
fn skills(from: &mut Section<'_>, id: &AgentId, name: &str, description: &str) -> Vec<Skill> {
    let reader = from.reader;
    let usual = || Skill {
        id: id.to_string(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec![id.to_string()],
    };
    let Some(items) = from.list("skills") else { return vec![usual()] };
    if items.is_empty() {
        reader.error(&from.place.below("skills").hidden(), "must hold one skill at least");
    }
    let mut skills: Vec<Skill> = Vec::new();
    for item in items {
        let place = item.place.clone().hidden();
        let Some(skill) = Section::of(reader, item).and_then(skill) else { continue };
        if skills.iter().any(|other| other.id == skill.id) {
            reader.error(&place, format!("another skill has the id `{}`", skill.id));
        }
        skills.push(skill);
    }
    skills
}

/// Reads one skill; its id is needed.
fn skill(mut section: Section<'_>) -> Option<Skill> {
    let id = section.nonblank("id").map(|text| text.value);
    if id.is_none() {
        section.reader.error(&section.place.below("id").hidden(), "is needed");
    }
    let name = section.nonblank("name").map(|text| text.value).or_else(|| id.clone());
    let description =
        section.nonblank("description").map(|text| text.value).or_else(|| name.clone());
    let tags = section.texts("tags").unwrap_or_default();
    let tags = tags.into_iter().map(|tag| tag.value).collect();
    section.finish();
    Some(Skill { id: id?, name: name?, description: description?, tags })
}

/// For how long equal requests are taken for one; by default never.
fn dedup(section: &mut Section<'_>, limits: &Limits, remembers: bool) -> Option<Duration> {
    let wanted = section.word("dedup", &[("message", false), ("content", true)]);
    let wanted = wanted.filter(|found| found.value);
    if let Some(found) = wanted.as_ref().filter(|_| remembers) {
        let complaint =
            "means nothing to an agent with sessions: what is said twice is meant twice";
        section.reader.error(&found.place, complaint);
    }
    let is_wanted = wanted.is_some();
    let window = section.entry("dedup_window");
    if let Some(window) = window.as_ref().filter(|_| !is_wanted) {
        section.reader.error(&window.place, "has a meaning with `dedup = \"content\"` only");
    }
    let window = section.seconds("dedup_window", limits.dedup_window);
    is_wanted.then_some(window)
}

/// How many run and wait.
fn capacity(section: &mut Section<'_>, limits: &Limits, access: Access) -> Capacity {
    let running = match access {
        Access::ReadOnly => {
            let Bounds { max, default, .. } = limits.max_concurrent;
            NonZeroU32::new(whole(section.count("max_concurrent", Bounds::new(0, max, default))))
        }
        Access::ReadWrite => Some(alone(section)),
    };
    Capacity {
        running,
        waiting: whole(section.count("queue_depth", limits.queue_depth)),
        patience: section.seconds("queue_timeout", limits.queue_timeout),
    }
}

/// The one execution at once of an agent that changes things; another number is a fault.
fn alone(section: &mut Section<'_>) -> NonZeroU32 {
    let given = section.entry("max_concurrent");
    let is_one = |entry: &Entry<'_>| entry.value.as_integer().and_then(value::whole) == Some(1);
    if let Some(entry) = given.filter(|entry| !is_one(entry)) {
        let complaint = said("must be 1: an agent with access = \"read-write\" runs alone")
            .hint("leave it out, or make the agent read-only");
        section.reader.error(&entry.place, complaint);
    }
    NonZeroU32::MIN
}

/// Which failures are tried again, and when.
fn retry(mut section: Section<'_>, limits: &Limits) -> RetrySpec {
    let usual = RetrySpec::default();
    let retry = RetrySpec {
        max: whole(section.count("max", limits.retry_max)),
        base: section.seconds("base", limits.retry_base),
        factor: section.number("factor", Bounds::new(1.0, 10.0, usual.factor)),
        after_start: section.flag("after_start", usual.after_start),
    };
    section.finish();
    retry
}

/// How much goes in and out. What is passed as an argument must fit into one.
fn sizes(section: &mut Section<'_>, limits: &Limits, input: Option<InputPattern>) -> Sizes {
    let Bounds { min, max, default } = limits.max_input_bytes;
    let max = if input == Some(InputPattern::Args) { max.min(ARGUMENT) } else { max };
    let inputs = Bounds::new(min, max, default.min(max));
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Sizes {
        input: size(section.count("max_input_bytes", inputs)),
        output: size(section.count("max_output_bytes", limits.max_output_bytes)),
    }
}

/// A number of a few thousand at most.
fn whole(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

//! `[agents.<id>]`: settings of an agent for its card and its supervision.

mod budget;
pub(crate) mod card;
mod consent;
mod deadlines;
pub(crate) mod exposure;
pub(crate) mod kind;
pub(crate) mod network;
pub(crate) mod overrides;
pub(crate) mod program;
mod quota;
pub(crate) mod remote;
mod resources;
mod team;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::agent::remote::RemoteSpec;
use algonius_actors::model::agent::{
    Access, AgentKind, AgentProfile, AgentSpec, Capacity, OverridePolicy, RetrySpec, SizeLimits,
    Skill, WorkLimits,
};
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::backend_program::{BackendProgram, BackendRole};
use algonius_actors::model::program::tool_backends::ToolBackends;
use algonius_actors::model::program::{InputMethod, ProgramSpec};

use super::cognition::CognitionCatalog;
use super::limits::AgentSettingBounds;
use super::programs::search::ProgramSearch;
use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::presets::{AgentPreset, PresetMetadata};
use crate::config::table::{
    ConfigReader, Positioned, PositionedValue, RangeWithDefault, Section, value,
};
use exposure::ExposureReadState;
use program::file_delivery;
use team::ConfiguredTeams;
use worker::{ConfiguredWorker, WorkerReadContext};

/// Greatest input in bytes that fits into one argument of a program with room to spare.
const MAX_ARGUMENT_BYTES: u64 = 100 << 10;

/// Agent and what performs its work.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredAgent {
    /// Specification for the card and the supervision tree.
    pub spec: Arc<AgentSpec>,
    /// Worker behind the agent. All users of the agent share it.
    pub worker: AgentWorker,
    /// Description of its preset.
    pub preset_metadata: PresetMetadata,
}

/// Worker behind an agent, by the kind of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentWorker {
    /// Program on this machine.
    Program {
        /// Settings of the program.
        program: Arc<ProgramSpec>,
        /// Search for its file.
        search: Arc<ProgramSearch>,
    },
    /// A2A agent of another service.
    Remote(Arc<RemoteSpec>),
    /// Team of other agents, with the plan in the specification of the agent.
    Team,
    /// Language model, with the rest in the specification of the agent.
    Cognitive {
        /// Provider of the model.
        provider: Arc<ModelProvider>,
        /// Programs behind its tools.
        tool_backends: ToolBackends,
    },
}

impl ConfiguredAgent {
    /// Returns the program of the agent, or `None` for an agent of another kind.
    #[must_use]
    pub const fn program(&self) -> Option<&Arc<ProgramSpec>> {
        match &self.worker {
            AgentWorker::Program { program, .. } => Some(program),
            _ => None,
        }
    }

    /// Returns the program of the agent to change it, or `None` for an agent of another kind.
    pub fn program_mut(&mut self) -> Option<&mut ProgramSpec> {
        match &mut self.worker {
            AgentWorker::Program { program, .. } => Some(Arc::make_mut(program)),
            _ => None,
        }
    }

    /// Returns the programs behind the agent's tools.
    pub fn backends(&self) -> impl Iterator<Item = (BackendRole, &BackendProgram)> {
        let tool_backends = match &self.worker {
            AgentWorker::Cognitive { tool_backends, .. } => Some(tool_backends),
            _ => None,
        };
        tool_backends.into_iter().flat_map(ToolBackends::backends)
    }

    /// Returns mutable access to the programs behind the agent's tools.
    pub fn backends_mut(&mut self) -> impl Iterator<Item = (BackendRole, &mut BackendProgram)> {
        let tool_backends = match &mut self.worker {
            AgentWorker::Cognitive { tool_backends, .. } => Some(tool_backends),
            _ => None,
        };
        tool_backends.into_iter().flat_map(ToolBackends::backends_mut)
    }
}

/// Context for reading every agent.
pub(crate) struct AgentReadContext<'b> {
    /// Bounds of its settings.
    pub(crate) bounds: &'b AgentSettingBounds,
    /// Data directory of the service.
    pub(crate) data_dir: &'b Path,
    /// Providers and tools of cognitive agents.
    pub(crate) cognition: &'b CognitionCatalog,
    /// Presets of the agents; an inner `None` if the preset cannot be used.
    pub(crate) agent_presets: &'b BTreeMap<String, Option<AgentPreset>>,
}

/// Reads every agent. A section whose name is not an id is a fault and is skipped.
pub(crate) fn read_all(
    reader: &ConfigReader<'_>,
    sections: Vec<(Positioned<AgentId>, Section<'_>)>,
    context: &AgentReadContext<'_>,
    exposure_state: &mut ExposureReadState,
) -> Vec<ConfiguredAgent> {
    let mut names = BTreeSet::new();
    let (mut agents, mut teams) = (Vec::new(), ConfiguredTeams::new());
    let ids: Vec<AgentId> = sections.iter().map(|(id, _)| id.value.clone()).collect();
    for (id, mut section) in sections {
        let name = section.nonblank_text("name");
        let name =
            name.unwrap_or(Positioned { value: id.value.to_string(), position: id.position });
        if !names.insert(name.value.clone()) {
            reader.report_error(
                &name.position,
                format!("another agent has the name `{}`", name.value),
            );
        }
        agents.extend(read(section, (id.value, name.value), context, exposure_state, &mut teams));
    }
    team::resolve_teams(reader, &ids, &teams, &mut agents);
    agents
}

/// Reads one agent.
fn read(
    mut table: Section<'_>,
    (id, name): (AgentId, String),
    context: &AgentReadContext<'_>,
    exposure_state: &mut ExposureReadState,
    teams: &mut ConfiguredTeams,
) -> Option<ConfiguredAgent> {
    let section = &mut table;
    let preset = read_preset(section, context.agent_presets.get(id.as_str()))?;
    let enabled = section.flag("enabled", true);
    let machine_fault_severity =
        if enabled { Severity::Error } else { Severity::WarningWhileDisabled };
    let kind = kind::read(section);
    let bounds = &kind::bounds(context.bounds, kind);
    let accesses = [("read-only", Access::ReadOnly), ("read-write", Access::ReadWrite)];
    let access = section.keyword("access", &accesses).map(|found| found.value).unwrap_or_default();
    // The members of a team limit their own executions, and backend programs change only the folders of their
    // sandboxes.
    let can_write = matches!(kind, AgentKind::Program | AgentKind::Remote);
    let is_exclusive = access == Access::ReadWrite && can_write;
    let capacity = read_capacity(section, bounds, is_exclusive);
    let worker_context = WorkerReadContext { bounds, capacity, access, machine_fault_severity };
    let mut worker = ConfiguredWorker::read(section, (kind, &id), context, &worker_context);
    let program = worker.program.as_ref().map(|configured| &configured.spec);
    let input_method = program.map(|program| program.input_method);
    let has_sessions = program.is_some_and(ProgramSpec::keeps_conversation);
    let spec = AgentSpec {
        profile: read_profile(section, &id, name),
        enabled,
        access,
        worker: worker.spec.clone(),
        limits: WorkLimits {
            capacity,
            timeouts: deadlines::read(section, bounds),
            sizes: read_size_limits(section, bounds, input_method),
        },
        retry: match kind {
            AgentKind::Program | AgentKind::Remote => read_retry(section.section("retry"), bounds),
            AgentKind::Team | AgentKind::Cognitive => {
                RetrySpec { max_retries: 0, ..RetrySpec::default() }
            }
        },
        quota: quota::read(section.section("quota"), program, worker.address_and_secret()),
        budget: budget::read(section.section("budget")),
        dedup_window: read_dedup_window(section, bounds, has_sessions),
        override_policy: match kind {
            AgentKind::Program => overrides::read(section, program, machine_fault_severity),
            _ => OverridePolicy::default(),
        },
        endpoint_config: exposure::read(section, &id, exposure_state),
        id,
    };
    file_delivery::check_input_modes(section, &spec, program);
    table.report_unknown_keys();
    if let Some(team) = worker.team.take() {
        teams.insert(spec.id.clone(), team);
    }
    let worker = worker.into_worker(kind, preset.as_ref())?;
    let preset_metadata = preset.map(|preset| preset.metadata).unwrap_or_default();
    Some(ConfiguredAgent { spec: Arc::new(spec), worker, preset_metadata })
}

/// Reads the presentation of an agent: its version, its description and its skills.
fn read_profile(section: &mut Section<'_>, id: &AgentId, name: String) -> AgentProfile {
    let version =
        section.nonblank_text("version").map_or_else(|| "1.0.0".to_owned(), |it| it.value);
    let description = section.nonblank_text("description").map(|text| text.value);
    let description = description.unwrap_or_else(|| format!("The agent `{name}`."));
    let skills = read_skills(section, id, &name, &description);
    AgentProfile { name, description, version, skills }
}

/// Returns the preset of an agent, if it has one; the outer `None` if the preset cannot be used, so that the rest
/// cannot be checked.
#[expect(clippy::option_option, reason = "no preset and one that cannot be used are two things")]
fn read_preset(
    section: &mut Section<'_>,
    agent_preset: Option<&Option<AgentPreset>>,
) -> Option<Option<AgentPreset>> {
    let name = section.text("preset");
    let Some(agent_preset) = agent_preset else { return Some(None) };
    let agent_preset = agent_preset.as_ref()?;
    if let Some(name) = name.filter(|_| !agent_preset.metadata.is_verified) {
        let diagnostic = new_diagnostic("this preset was written from documents, and never run")
            .with_hint("look closely at the first answers");
        section.reader.report_warning(&name.position, diagnostic);
    }
    Some(Some(agent_preset.clone()))
}

/// Returns the skills of the card: as configured, or one derived from the agent itself.
fn read_skills(table: &mut Section<'_>, id: &AgentId, name: &str, description: &str) -> Vec<Skill> {
    let reader = table.reader;
    let default = || Skill {
        id: id.to_string(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec![id.to_string()],
        ..Skill::default()
    };
    let Some(items) = table.list("skills") else { return vec![default()] };
    if items.is_empty() {
        reader.report_error(
            &table.position.child("skills").without_excerpt(),
            "must hold one skill at least",
        );
    }
    let mut skills: Vec<Skill> = Vec::new();
    for item in items {
        let position = item.position.clone().without_excerpt();
        let Some(skill) = Section::from_entry(reader, item).and_then(read_skill) else { continue };
        if skills.iter().any(|other| other.id == skill.id) {
            reader.report_error(&position, format!("another skill has the id `{}`", skill.id));
        }
        skills.push(skill);
    }
    skills
}

/// Reads one skill; its id is required.
fn read_skill(mut section: Section<'_>) -> Option<Skill> {
    let id = section.nonblank_text("id").map(|text| text.value);
    if id.is_none() {
        section.reader.report_error(&section.position.child("id").without_excerpt(), "is needed");
    }
    let name = section.nonblank_text("name").map(|text| text.value).or_else(|| id.clone());
    let description =
        section.nonblank_text("description").map(|text| text.value).or_else(|| name.clone());
    let tags = section.text_list("tags").unwrap_or_default();
    let tags = tags.into_iter().map(|tag| tag.value).collect();
    let examples = card::read_examples(&mut section);
    let input_modes = exposure::read_media_types(&mut section, "input_modes").unwrap_or_default();
    let output_modes = exposure::read_media_types(&mut section, "output_modes").unwrap_or_default();
    section.report_unknown_keys();
    let (id, name, description) = (id?, name?, description?);
    Some(Skill { id, name, description, tags, examples, input_modes, output_modes })
}

/// Returns the window within which equal requests are merged; `None`, the default, is never.
fn read_dedup_window(
    section: &mut Section<'_>,
    bounds: &AgentSettingBounds,
    has_sessions: bool,
) -> Option<Duration> {
    let content_dedup = section.keyword("dedup", &[("message", false), ("content", true)]);
    let content_dedup = content_dedup.filter(|found| found.value);
    if let Some(found) = content_dedup.as_ref().filter(|_| has_sessions) {
        let diagnostic =
            "has no effect on an agent with sessions: a repeated message is a new message";
        section.reader.report_error(&found.position, diagnostic);
    }
    let is_enabled = content_dedup.is_some();
    let window_entry = section.entry("dedup_window");
    if let Some(window_entry) = window_entry.as_ref().filter(|_| !is_enabled) {
        section
            .reader
            .report_error(&window_entry.position, "has a meaning with `dedup = \"content\"` only");
    }
    let window = section.duration("dedup_window", bounds.dedup_window);
    is_enabled.then_some(window)
}

/// Reads the numbers of running and waiting executions. An agent that writes runs them alone.
fn read_capacity(
    section: &mut Section<'_>,
    bounds: &AgentSettingBounds,
    is_exclusive: bool,
) -> Capacity {
    let running = match is_exclusive {
        false => {
            let RangeWithDefault { max, default, .. } = bounds.max_concurrent;
            NonZeroU32::new(to_u32(
                section.count("max_concurrent", RangeWithDefault::new(0, max, default)),
            ))
        }
        true => Some(read_single_concurrency(section)),
    };
    Capacity {
        max_running: running,
        max_waiting: to_u32(section.count("queue_depth", bounds.queue.depth)),
        queue_timeout: section.duration("queue_timeout", bounds.queue.timeout),
    }
}

/// Returns 1, the only concurrency of a writing agent; another number is a fault.
fn read_single_concurrency(section: &mut Section<'_>) -> NonZeroU32 {
    let entry = section.entry("max_concurrent");
    let is_one = |entry: &PositionedValue<'_>| {
        entry.value.as_integer().and_then(value::parse_integer) == Some(1)
    };
    if let Some(entry) = entry.filter(|entry| !is_one(entry)) {
        let diagnostic =
            new_diagnostic("must be 1: an agent with access = \"read-write\" runs alone")
                .with_hint("leave it out, or make the agent read-only");
        section.reader.report_error(&entry.position, diagnostic);
    }
    NonZeroU32::MIN
}

/// Reads the kinds of failures that are retried, and the delays.
fn read_retry(mut section: Section<'_>, bounds: &AgentSettingBounds) -> RetrySpec {
    let default = RetrySpec::default();
    let retry = RetrySpec {
        max_retries: to_u32(section.count("max", bounds.retry.max_retries)),
        base_delay: section.duration("base", bounds.retry.base_delay),
        backoff_factor: section
            .number("factor", RangeWithDefault::new(1.0, 10.0, default.backoff_factor)),
        retries_after_start: section.flag("after_start", default.retries_after_start),
    };
    section.report_unknown_keys();
    retry
}

/// Reads the limits of input and output. Input that is passed as an argument must fit into one.
fn read_size_limits(
    section: &mut Section<'_>,
    bounds: &AgentSettingBounds,
    input_method: Option<InputMethod>,
) -> SizeLimits {
    let RangeWithDefault { min, max, default } = bounds.sizes.input;
    let max =
        if input_method == Some(InputMethod::Args) { max.min(MAX_ARGUMENT_BYTES) } else { max };
    let input_bounds = RangeWithDefault::new(min, max, default.min(max));
    let to_usize = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    SizeLimits {
        max_input_bytes: to_usize(section.count("max_input_bytes", input_bounds)),
        max_output_bytes: to_usize(section.count("max_output_bytes", bounds.sizes.output)),
    }
}

/// Converts a number of a few thousand at most.
fn to_u32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

//! `[agents.<id>.team]`: steps of a team, and the check of all teams together.

mod check;

use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::team::{TeamPlan, TeamStep};
use algonius_actors::model::id::AgentId;

pub(super) use self::check::{ConfiguredTeams, resolve_teams};
use crate::config::keys::limits::AgentSettingBounds;
use crate::config::table::{
    ConfigReader, Positioned, PositionedValue, RangeWithDefault, Section, SourcePosition,
    ValueShape, value,
};

/// Keys of a team that are not supported yet.
const UNSUPPORTED_KEYS: [&str; 16] = [
    "answer",
    "at_limit",
    "at_once",
    "max_depth",
    "max_hops",
    "max_iterations",
    "members",
    "memory",
    "mode",
    "order",
    "prompt",
    "quote_bytes",
    "repair",
    "routers",
    "show",
    "supervisor",
];
/// Keys of a step that are not supported yet.
const UNSUPPORTED_STEP_KEYS: [&str; 9] =
    ["again", "branches", "each", "input", "join", "on_failure", "revisit", "then", "when"];

/// Bounds of the time of a run in seconds, with its default.
const RUN_TIMEOUT_BOUNDS: RangeWithDefault<f64> =
    RangeWithDefault { min: 1.0, max: 86_400.0, default: 3600.0 };
/// Number of runs at the same time, and of runs that wait, by default.
const DEFAULT_MAX_RUNS: u64 = 100;

/// Team as it is written: its plan, with the position of each member.
pub(crate) struct ConfiguredTeam {
    pub(super) steps: Vec<(TeamStep, SourcePosition)>,
}

impl ConfiguredTeam {
    /// Returns the plan.
    pub(super) fn plan(&self) -> TeamPlan {
        TeamPlan { steps: self.steps.iter().map(|(step, _)| step.clone()).collect() }
    }
}

/// Returns the bounds of a team's settings: a run lasts as long as all its hops together.
pub(super) fn bounds(mut bounds: AgentSettingBounds) -> AgentSettingBounds {
    bounds.timeout = RUN_TIMEOUT_BOUNDS;
    bounds.max_concurrent.default = DEFAULT_MAX_RUNS.min(bounds.max_concurrent.max);
    bounds.queue.depth.default = DEFAULT_MAX_RUNS.min(bounds.queue.depth.max);
    bounds
}

/// Reads the section of a team. In an agent of another kind, the section is a fault.
pub(super) fn read(agent: &mut Section<'_>, kind: AgentKind) -> Option<ConfiguredTeam> {
    let is_team = kind == AgentKind::Team;
    let position = agent.position.child("team").without_excerpt();
    if agent.has_key("team") && !is_team {
        agent.reader.report_error(&position, "has a meaning with `kind = \"team\"` only");
    }
    let mut section = agent.section("team");
    let reader = section.reader;
    section.refuse_unsupported_keys(&UNSUPPORTED_KEYS);
    let position = section.position.child("steps").without_excerpt();
    let items = section.list("steps");
    section.record_shape("steps", || ValueShape::TextOrTableList);
    let is_given = section.has_key("steps");
    section.report_unknown_keys();
    let Some(items) = items else {
        if is_team && !is_given {
            reader.report_error(&position, "is needed");
        }
        return None;
    };
    if items.is_empty() || items.len() > TeamPlan::MAX_STEPS {
        let max = TeamPlan::MAX_STEPS;
        reader.report_error(&position, format!("must hold 1 to {max} steps"));
    }
    let mut steps: Vec<(TeamStep, SourcePosition)> = Vec::new();
    for item in items {
        let item_position = item.position.clone().without_excerpt();
        let Some(ConfiguredStep { id, member }) = read_step(reader, item) else { continue };
        let is_taken = |id: &str| steps.iter().any(|(step, _)| step.id == id);
        if let Some(id) = id.as_ref().filter(|id| is_taken(id)) {
            reader.report_error(&item_position, format!("another step has the id `{id}`"));
            continue;
        }
        let id = id.unwrap_or_else(|| unused_id(&member.value, is_taken));
        steps.push((TeamStep { id, agent: member.value }, member.position));
    }
    is_team.then_some(ConfiguredTeam { steps })
}

/// Step as it is written.
struct ConfiguredStep {
    id: Option<String>,
    member: Positioned<AgentId>,
}

/// Reads one step: the id of its member, or a table.
fn read_step<'c>(
    reader: &'c ConfigReader<'c>,
    item: PositionedValue<'c>,
) -> Option<ConfiguredStep> {
    if item.value.is_str() {
        let text = value::text(reader, &item)?.to_owned();
        let member = parse_member(reader, Positioned { value: text, position: item.position })?;
        return Some(ConfiguredStep { id: None, member });
    }
    let mut section = Section::from_entry(reader, item)?;
    section.refuse_unsupported_keys(&UNSUPPORTED_STEP_KEYS);
    let id = section.nonblank_text("id");
    let agent = section.nonblank_text("agent");
    section.report_if_missing("agent");
    section.report_unknown_keys();
    let id = match id {
        Some(id) => Some(
            AgentId::new(id.value.as_str())
                .map_err(|error| {
                    reader.report_error(&id.position, error.to_string());
                })
                .ok()?,
        ),
        None => None,
    };
    let member = parse_member(reader, agent?)?;
    Some(ConfiguredStep { id: id.map(|id| id.to_string()), member })
}

fn parse_member(
    reader: &ConfigReader<'_>,
    text: Positioned<String>,
) -> Option<Positioned<AgentId>> {
    match AgentId::new(text.value) {
        Ok(value) => Some(Positioned { value, position: text.position }),
        Err(error) => {
            reader.report_error(&text.position, error.to_string());
            None
        }
    }
}

/// Returns the id of a step without one: the id of its member, with a number if that is taken.
fn unused_id(member: &AgentId, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2_u32..).map(|number| format!("{member}-{number}"));
    let mut candidates = std::iter::once(member.to_string()).chain(numbered);
    candidates.find(|id| !is_taken(id)).unwrap_or_default()
}

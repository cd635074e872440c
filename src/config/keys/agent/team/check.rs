//! Check of all teams together: their members exist, no team is a member of itself, and teams are not nested too deep.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::agent::team::TeamPlan;
use algonius_actors::model::id::AgentId;

use super::ConfiguredTeam;
use crate::config::diagnostics::new_diagnostic;
use crate::config::keys::agent::ConfiguredAgent;
use crate::config::table::{ConfigReader, SourcePosition};

/// Time that a team gets to stop, beyond that of its members.
const EXTRA_GRACE: Duration = Duration::from_secs(2);

/// Teams by their ids.
pub(crate) type ConfiguredTeams = BTreeMap<AgentId, ConfiguredTeam>;

/// Checks the teams, and derives what follows from their members. `agent_ids` are all agents of the file, also those
/// with faults of their own.
pub(crate) fn resolve_teams(
    reader: &ConfigReader<'_>,
    agent_ids: &[AgentId],
    teams: &ConfiguredTeams,
    agents: &mut [ConfiguredAgent],
) {
    let mut search =
        TeamNestingCheck { reader, agent_ids, teams, depths: BTreeMap::new(), path: Vec::new() };
    for id in teams.keys() {
        search.visit(id);
    }
    let depths = search.depths;
    let mut by_depth: Vec<_> = teams.keys().collect();
    by_depth.sort_by_key(|id| depths.get(*id).copied().unwrap_or_default());
    // A member that is a team comes first: its own access and grace period are known then.
    for id in by_depth {
        derive_access_and_grace(id, teams, agents);
    }
}

/// Search through the members of teams, depth first.
struct TeamNestingCheck<'s, 'c> {
    reader: &'s ConfigReader<'c>,
    agent_ids: &'s [AgentId],
    teams: &'s ConfiguredTeams,
    /// Depth of each team that was visited: 1 for a team without teams among its members.
    depths: BTreeMap<AgentId, usize>,
    /// Teams between the first one and the present one.
    path: Vec<AgentId>,
}

impl TeamNestingCheck<'_, '_> {
    /// Visits a team, and returns its depth; 0 for an agent of another kind.
    fn visit(&mut self, id: &AgentId) -> usize {
        if let Some(depth) = self.depths.get(id) {
            return *depth;
        }
        let Some(team) = self.teams.get(id) else { return 0 };
        self.path.push(id.clone());
        let mut depth = 1;
        for (step, position) in &team.steps {
            if !self.agent_ids.contains(&step.agent) {
                let known = self.agent_ids.iter().map(AgentId::as_str);
                let diagnostic = new_diagnostic("no agent has this id");
                self.reader
                    .report_error(position, diagnostic.suggest_from(step.agent.as_str(), known));
            } else if self.path.contains(&step.agent) {
                self.report_cycle(&step.agent, position);
            } else {
                depth = depth.max(1 + self.visit(&step.agent));
            }
        }
        self.path.pop();
        if depth == TeamPlan::MAX_DEPTH + 1 {
            let max = TeamPlan::MAX_DEPTH;
            let message = format!("teams are nested {depth} levels deep; {max} is the most");
            if let Some((_, position)) = team.steps.first() {
                self.reader.report_error(&position.clone().without_excerpt(), message);
            }
        }
        self.depths.insert(id.clone(), depth);
        depth
    }

    fn report_cycle(&self, id: &AgentId, position: &SourcePosition) {
        let cycle = self.path.iter().skip_while(|team| *team != id).chain([id]);
        let cycle: Vec<_> = cycle.map(AgentId::as_str).collect();
        let diagnostic = new_diagnostic(format!("the teams form a cycle: {}", cycle.join(" → ")))
            .with_hint("a team cannot be a member of itself, directly or through other teams");
        self.reader.report_error(position, diagnostic);
    }
}

/// Sets the access and the grace period of a team.
fn derive_access_and_grace(id: &AgentId, teams: &ConfiguredTeams, agents: &mut [ConfiguredAgent]) {
    let Some(team) = teams.get(id) else { return };
    let is_member =
        |agent: &&ConfiguredAgent| team.steps.iter().any(|(step, _)| step.agent == agent.spec.id);
    let members: Vec<_> = agents.iter().filter(is_member).map(|agent| &agent.spec).collect();
    let writes = members.iter().any(|member| member.access == Access::ReadWrite);
    let access = if writes { Access::ReadWrite } else { Access::ReadOnly };
    let grace = members.iter().map(|member| member.limits.timeouts.grace).max();
    let grace = grace.unwrap_or_default() + EXTRA_GRACE;
    if let Some(agent) = agents.iter_mut().find(|agent| agent.spec.id == *id) {
        let spec = Arc::make_mut(&mut agent.spec);
        (spec.access, spec.limits.timeouts.grace) = (access, grace);
    }
}

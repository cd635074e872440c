//! Teams: their steps, and the check of all teams together.

use std::time::Duration;

use algonius_actors::model::agent::AgentKind;

use super::*;

const MEMBERS: &str = "[agents.one]\ncommand = \"cat\"\naccess = \"read-only\"\n\
                       [agents.two]\ncommand = \"cat\"\naccess = \"read-write\"\nstop_grace = 9\n";

fn team_config(id: &str, agent: &str, team: &str) -> String {
    format!("[agents.{id}]\nkind = \"team\"\n{agent}\n[agents.{id}.team]\n{team}\n")
}

fn crew_config(agent: &str, team: &str) -> String {
    format!("{MEMBERS}{}", team_config("crew", agent, team))
}

fn fault_keys_and_messages(config: &str) -> Vec<String> {
    let faults = load_text(config).unwrap_err();
    faults.iter().map(|fault| format!("{}: {}", fault.key_path, fault.message)).collect()
}

#[test]
fn a_team_has_steps_in_order_with_ids_of_their_own() {
    let steps = "steps = [\"one\", { id = \"think\", agent = \"two\" }, { agent = \"one\" }]";
    let settings = load_settings(&crew_config("", steps));
    let spec = &settings.agents[2].spec;
    assert_eq!(spec.kind(), AgentKind::Team);
    let plan = spec.team().unwrap();
    let found: Vec<_> =
        plan.steps.iter().map(|step| (step.id.as_str(), step.agent.as_str())).collect();
    assert_eq!(found, [("one", "one"), ("think", "two"), ("one-2", "one")]);
    // What follows from its members, and the limits of a team.
    assert_eq!(spec.access, Access::ReadWrite);
    assert_eq!(spec.limits.timeouts.grace, Duration::from_secs(11));
    assert_eq!(spec.limits.timeouts.run, Duration::from_secs(3600));
    assert_eq!(
        (spec.limits.capacity.max_running.map(Into::into), spec.retry.max_retries),
        (Some(100), 0)
    );
    let day_long_spec = crew_spec("timeout = \"24h\"");
    assert_eq!(day_long_spec.limits.timeouts.run, Duration::from_secs(86_400));
    assert_eq!(crew_spec("timeout = 1").limits.timeouts.run, Duration::from_secs(1));
}

fn crew_spec(agent: &str) -> Arc<AgentSpec> {
    Arc::clone(&load_settings(&crew_config(agent, "steps = [\"one\"]")).agents[2].spec)
}

#[test]
fn wrong_steps_are_faults_with_their_place() {
    for (steps, expected) in [
        ("", "agents.crew.team.steps: is needed"),
        ("steps = []", "agents.crew.team.steps: must hold 1 to 100 steps"),
        ("steps = [7]", "agents.crew.team.steps[0]: must be a table"),
        ("steps = \"one\"", "agents.crew.team.steps: must be a list in brackets"),
        ("steps = [\"nobody\"]", "agents.crew.team.steps[0]: no agent has this id"),
        ("steps = [\"a b\"]", "agents.crew.team.steps[0]: `a b` is not an id"),
        ("steps = [{ id = \"x\" }]", "agents.crew.team.steps[0].agent: is needed"),
        (
            "steps = [{ id = \"x\", agent = \"one\" }, { id = \"x\", agent = \"two\" }]",
            "agents.crew.team.steps[1]: another step has the id `x`",
        ),
        (
            "steps = [{ agent = \"one\", when = \"ok\" }]",
            "agents.crew.team.steps[0].when: is not supported yet",
        ),
        (
            "steps = [\"one\"]\nsupervisor = \"one\"",
            "agents.crew.team.supervisor: is not supported yet",
        ),
        ("steps = [\"one\"]\nwhatever = 1", "agents.crew.team.whatever: unknown key"),
    ] {
        let found = fault_keys_and_messages(&crew_config("", steps));
        assert!(found.len() == 1 && found[0].starts_with(expected), "{steps}: {found:?}");
    }
    let too_many_steps: Vec<_> = (0..101).map(|_| "\"one\"").collect();
    let found = fault_keys_and_messages(&crew_config(
        "",
        &format!("steps = [{}]", too_many_steps.join(", ")),
    ));
    assert_eq!(found, ["agents.crew.team.steps: must hold 1 to 100 steps"]);
}

#[test]
fn a_cycle_of_teams_is_a_fault_with_its_path() {
    let [a, b, c] = [("a", "b"), ("b", "c"), ("c", "a")]
        .map(|(id, member)| team_config(id, "", &format!("steps = [\"{member}\"]")));
    let found = fault_keys_and_messages(&[a, b, c].concat());
    assert_eq!(found, ["agents.c.team.steps[0]: the teams form a cycle: a → b → c → a"]);
    let found = fault_keys_and_messages(&team_config("own", "", "steps = [\"own\"]"));
    assert_eq!(found, ["agents.own.team.steps[0]: the teams form a cycle: own → own"]);
    // A member that occurs twice is no cycle.
    let teams =
        [team_config("x", "", "steps = [\"one\"]"), team_config("y", "", "steps = [\"x\", \"x\"]")];
    load_settings(&format!("{MEMBERS}{}", teams.concat()));
}

#[test]
fn teams_are_nested_to_a_limited_depth() {
    let nested = |depth: usize| {
        let teams = (1..=depth).map(|level| match level {
            1 => team_config("t1", "", "steps = [\"one\"]"),
            _ => team_config(&format!("t{level}"), "", &format!("steps = [\"t{}\"]", level - 1)),
        });
        format!("{MEMBERS}{}", teams.collect::<String>())
    };
    load_settings(&nested(3));
    assert_eq!(
        fault_keys_and_messages(&nested(4)),
        ["agents.t4.team.steps[0]: teams are nested 4 levels deep; 3 is the most"]
    );
}

#[test]
fn keys_of_other_kinds_are_faults_of_a_team() {
    for (line, expected) in [
        ("command = \"cat\"", "agents.crew.command: has a meaning for agents with a program only"),
        ("access = \"read-only\"", "agents.crew.access: has no meaning for a team"),
        ("retry.max = 1", "agents.crew.retry: has no meaning for a team"),
        ("idle_timeout = 60", "agents.crew.idle_timeout: has no meaning for a team"),
        ("budget.run.turns = 1", "agents.crew.budget: is not supported for a team yet"),
        ("timeout = 0.5", "agents.crew.timeout: "),
        ("timeout = \"25h\"", "agents.crew.timeout: "),
    ] {
        let found = fault_keys_and_messages(&crew_config(line, "steps = [\"one\"]"));
        assert!(found.len() == 1 && found[0].starts_with(expected), "{line}: {found:?}");
    }
    let found =
        fault_keys_and_messages("[agents.a]\ncommand = \"cat\"\n[agents.a.team]\nsteps = [\"a\"]");
    assert_eq!(found, ["agents.a.team: has a meaning with `kind = \"team\"` only"]);
}

//! Cognitive agents: their keys, and the keys that they do not have.

use std::time::Duration;

use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::cognitive::{CognitiveLayer, CognitiveSpec};

use super::*;
use crate::config::keys::agent::kind::PROGRAM_KEYS;

const SECTIONS: &str = "[models.local]\nbase_url = \"http://127.0.0.1:11434/v1\"\n\
                        [tools.now]\nsource = \"handler\"\nhandler = { kind = \"clock\" }\n";

/// Returns an agent with these lines, of which the first is line 3, and the sections that it names.
fn agent_config(lines: &str) -> String {
    format!("[agents.a]\nkind = \"cognitive\"\n{lines}\n{SECTIONS}")
}

/// Returns an agent with the keys that are needed and these lines, of which the first is line 5.
fn complete_agent_config(lines: &str) -> String {
    agent_config(&format!("layer = \"perceptual\"\nmodel_id = \"local/qwen3\"\n{lines}"))
}

fn load_specs(lines: &str) -> (Arc<AgentSpec>, CognitiveSpec) {
    let spec = load_settings(&complete_agent_config(lines)).agents.remove(0).spec;
    let cognitive = (**spec.cognitive().unwrap()).clone();
    (spec, cognitive)
}

/// Checks the faults of a complete agent with further lines.
fn assert_faults(rows: &[(&str, &str)]) {
    for (lines, expected) in rows {
        assert_eq!(fault_messages(&complete_agent_config(lines)), [*expected], "{lines}");
    }
}

#[test]
fn a_cognitive_agent_has_a_layer_a_model_and_tools() {
    let notes = "[tools.note]\nsource = \"handler\"\n\
                 handler = { kind = \"notes\", operation = \"add\" }\n";
    let config = agent_config(
        "layer = \"metacognitive\"\nagent_type = \"tool_calling_agent\"\n\
         model_id = \"local/org/qwen3:8b\"\ninstructions = \"Be brief.\"\ntemperature = 2\n\
         max_steps = 50\ntools = [\"note\", \"now\"]\ndescription = \"Thinks.\"\n\
         access = \"read-only\"\ntimeout = 60",
    );
    let settings = load_settings(&format!("{config}{notes}"));
    let spec = &settings.agents[0].spec;
    assert_eq!((spec.kind(), spec.access), (AgentKind::Cognitive, Access::ReadOnly));
    assert_eq!((&*spec.profile.description, spec.retry.max_retries), ("Thinks.", 0));
    assert_eq!(spec.limits.timeouts.run, Duration::from_secs(60));
    let cognitive = spec.cognitive().unwrap();
    assert_eq!(cognitive.layer, CognitiveLayer::Metacognitive);
    assert_eq!((&*cognitive.model.provider, &*cognitive.model.name), ("local", "org/qwen3:8b"));
    assert_eq!((&*cognitive.instructions, cognitive.temperature), ("Be brief.", 2.0));
    assert_eq!(cognitive.max_steps.get(), 50);
    let tools: Vec<_> = cognitive.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["note", "now"]);
    let worker = &settings.agents[0].worker;
    assert!(
        matches!(worker, AgentWorker::Cognitive { provider, .. } if provider.name == "local"),
        "{worker:?}"
    );
}

#[test]
fn a_cognitive_agent_of_two_keys_gets_every_default() {
    let (agent, cognitive) = load_specs("");
    assert_eq!((&*cognitive.instructions, cognitive.temperature), ("", 0.2));
    assert_eq!((cognitive.max_steps.get(), cognitive.tools.len()), (10, 0));
    assert_eq!(agent.limits.timeouts.run, Duration::from_secs(600));
    assert_eq!(agent.limits.capacity.max_running, NonZeroU32::new(10));
    let bounded =
        load_settings(&format!("{}[limits]\ntimeout_max = 400\n", complete_agent_config("")));
    assert_eq!(bounded.agents[0].spec.limits.timeouts.run, Duration::from_secs(400));
    // Agents of one provider share its limits.
    let both = format!(
        "{}[agents.b]\nkind = \"cognitive\"\nlayer = \"abstract\"\nmodel_id = \"local/x\"\n",
        complete_agent_config("")
    );
    let settings = load_settings(&both);
    match (&settings.agents[0].worker, &settings.agents[1].worker) {
        (
            AgentWorker::Cognitive { provider: one, .. },
            AgentWorker::Cognitive { provider: two, .. },
        ) => {
            assert!(Arc::ptr_eq(one, two));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_layer_is_one_of_the_five_words() {
    let model = "model_id = \"local/qwen3\"";
    for layer in CognitiveLayer::ALL {
        let config = agent_config(&format!("layer = \"{}\"\n{model}", layer.as_str()));
        assert_eq!(load_settings(&config).agents[0].spec.cognitive().unwrap().layer, *layer);
    }
    assert_eq!(
        fault_messages(&agent_config(&format!("layer = \"perceptul\"\n{model}"))),
        [
            "c:3:9: error: agents.a.layer = \"perceptul\": must be \"perceptual\" or \"conceptual\" or \
          \"abstract\" or \"metacognitive\" or \"consciousness\"; did you mean `perceptual`?"
        ]
    );
    assert_eq!(fault_messages(&agent_config(model)), ["c:1:1: error: agents.a.layer: is needed"]);
}

#[test]
fn a_model_needs_a_prefix_with_a_section() {
    let model_faults =
        |line: &str| fault_messages(&agent_config(&format!("layer = \"abstract\"\n{line}")));
    assert_eq!(model_faults(""), ["c:1:1: error: agents.a.model_id: is needed"]);
    assert_eq!(
        model_faults("model_id = \"lokal/qwen3\""),
        ["c:4:12: error: agents.a.model_id = \"lokal/qwen3\": there is no section \
          `[models.lokal]`; did you mean `local`?"]
    );
    for wrong in ["qwen3", "local/", "local/a b"] {
        let expected = format!(
            "c:4:12: error: agents.a.model_id = \"{wrong}\": must be the prefix of a provider and \
             the name of a model, such as \"local/qwen3\""
        );
        assert_eq!(model_faults(&format!("model_id = \"{wrong}\"")), [expected]);
    }
    assert_eq!(
        model_faults("model_id = [\"local/qwen3\"]"),
        ["c:4:12: error: agents.a.model_id: is not supported yet; name one model"]
    );
    let agent_without_provider =
        "[agents.a]\nkind = \"cognitive\"\nlayer = \"abstract\"\nmodel_id = \"local/x\"\n";
    let missing = fault_messages(agent_without_provider);
    assert!(
        missing.len() == 1 && missing[0].ends_with("no section `[models.local]`"),
        "{missing:?}"
    );
    // A provider with a fault causes no other fault.
    let faulty = fault_messages(&format!("{agent_without_provider}[models.local]\n"));
    assert_eq!(faulty, ["c:5:1: error: models.local.base_url: is needed"]);
}

#[test]
fn numbers_of_a_cognitive_agent_have_bounds() {
    assert_faults(&[
        ("max_steps = 0", "c:5:13: error: agents.a.max_steps = 0: must be 1 to 50"),
        ("max_steps = 51", "c:5:13: error: agents.a.max_steps = 51: must be 1 to 50"),
        ("temperature = 2.1", "c:5:15: error: agents.a.temperature = 2.1: must be 0 to 2"),
        ("temperature = -0.1", "c:5:15: error: agents.a.temperature = -0.1: must be 0 to 2"),
        (
            "agent_type = \"code_agent\"",
            "c:5:14: error: agents.a.agent_type = \"code_agent\": is not supported yet",
        ),
        (
            "agent_type = \"x\"",
            "c:5:14: error: agents.a.agent_type = \"x\": must be \"tool_calling_agent\"",
        ),
    ]);
    assert_eq!(load_specs("max_steps = 1\ntemperature = 0").1.max_steps.get(), 1);
}

#[test]
fn tools_are_named_once_and_have_a_section() {
    assert_faults(&[
        (
            "tools = [\"now\", \"nov\"]",
            "c:5:17: error: agents.a.tools[1] = \"nov\": there is no section `[tools.nov]`; did \
             you mean `now`?",
        ),
        (
            "tools = [\"now\", \"now\"]",
            "c:5:17: error: agents.a.tools[1] = \"now\": is named twice",
        ),
        ("tools = \"now\"", "c:5:9: error: agents.a.tools: must be a list in brackets, not text"),
    ]);
    let config_with_tools = |count: usize| {
        let (names, sections): (Vec<_>, Vec<_>) = (0..count)
            .map(|number| {
                let clock = "source = \"handler\"\nhandler = { kind = \"clock\" }\n";
                (format!("\"t{number}\""), format!("[tools.t{number}]\n{clock}"))
            })
            .unzip();
        format!(
            "{}{}",
            complete_agent_config(&format!("tools = [{}]", names.join(", "))),
            sections.concat()
        )
    };
    assert_eq!(
        load_settings(&config_with_tools(64)).agents[0].spec.cognitive().unwrap().tools.len(),
        64
    );
    assert_eq!(
        fault_messages(&config_with_tools(65)),
        ["c:5:9: error: agents.a.tools: must name 64 tools at most"]
    );
    // A tool with a fault causes no other fault.
    let faulty = format!("{}[tools.bad]\n", complete_agent_config("tools = [\"bad\"]"));
    assert_eq!(fault_messages(&faulty), ["c:11:1: error: tools.bad.source: is needed"]);
}

#[test]
fn keys_of_other_kinds_are_faults_of_a_cognitive_agent() {
    let no_meaning = "has no meaning for a cognitive agent";
    let hint = "leave it out, or leave out `kind = \"cognitive\"`";
    for (line, expected) in [
        ("command = \"cat\"", format!("has a meaning for agents with a program only; {hint}")),
        ("working_dir = \"/\"", format!("has a meaning for agents with a program only; {hint}")),
        ("remote.url = \"https://x.org\"", "has a meaning with `kind = \"remote\"` only".into()),
        ("team.steps = [\"a\"]", "has a meaning with `kind = \"team\"` only".into()),
        (
            "retry.max = 1",
            format!("{no_meaning}; a model call is repeated three times; a run is not tried again"),
        ),
        (
            "idle_timeout = 60",
            format!("{no_meaning}; `timeout` of `[models.<prefix>]` limits a reply"),
        ),
        ("answer_timeout = 60", format!("{no_meaning}; a cognitive agent requests no input")),
        (
            "max_output_bytes = 100",
            format!("{no_meaning}; a run with 8 MiB of text requests no further reply"),
        ),
        ("access = \"read-write\"", "a cognitive agent has no access of its own: `sandbox.writable` of a tool or of an MCP server permits changes".into()),
    ] {
        let found = fault_messages(&complete_agent_config(line));
        // A section of another kind is reported at the agent.
        let is_section = line.starts_with("remote") || line.starts_with("team");
        let start = if is_section { "c:1:1: " } else { "c:5:" };
        let end = format!(": {expected}");
        assert!(
            found.len() == 1 && found[0].starts_with(start) && found[0].ends_with(&end),
            "{line}: {found:?}"
        );
    }
}

#[test]
fn keys_of_later_cognitive_agents_are_reported_once() {
    for line in [
        "consent.default = \"ask\"",
        "energy = 1",
        "engine = \"x\"",
        "fallback = \"x\"",
        "is_manager = true",
        "keep_observations = 1",
        "managed = []",
        "on_max_steps = \"fail\"",
        "parallel_tools = 1",
        "planning_interval = 1",
        "quota.max_wait = 60",
        "sandbox_config = {}",
        "unredacted_response = true",
    ] {
        let key = line.split(['.', ' ']).next().unwrap();
        let found = fault_messages(&complete_agent_config(line));
        let expected = format!("error: agents.a.{key}: is not supported for a cognitive agent yet");
        assert!(
            found.len() == 1 && found[0].starts_with("c:5:") && found[0].ends_with(&expected),
            "{line}: {found:?}"
        );
    }
    let preset_faults = fault_messages(&complete_agent_config("preset = \"claude-code\""));
    assert!(
        preset_faults.len() == 1 && preset_faults[0].starts_with("c:5:10: error: agents.a.preset"),
        "{preset_faults:?}"
    );
}

#[test]
fn cognitive_keys_are_faults_of_other_kinds() {
    for (line, column) in [
        ("layer = \"abstract\"", 9),
        ("agent_type = \"code_agent\"", 14),
        ("model_id = \"local/x\"", 12),
        ("instructions = \"x\"", 16),
        ("temperature = 9", 15),
        ("max_steps = 99", 13),
        ("tools = [\"nov\"]", 9),
    ] {
        let (key, _) = line.split_once(" = ").unwrap();
        assert!(!PROGRAM_KEYS.contains(&key));
        let expected = format!(
            "c:3:{column}: error: agents.a.{key}: has a meaning with `kind = \"cognitive\"` only"
        );
        assert_eq!(fault_messages(&format!("{CAT}{line}\n")), [expected]);
    }
}

//! Tools that run programs: their inputs, their programs and their sandboxes, and faults with positions.

use algonius_actors::model::agent::cognitive::{InputType, ToolHandler, ToolSpec};
use algonius_actors::model::host::resources::{CgroupMode, ResourceLimits};
use algonius_actors::model::host::sandbox::IsolationRequirement;
use algonius_actors::model::program::tool_program::ToolProgram;
use algonius_actors::model::program::{EnvVariable, VariableSecrecy};

use super::*;

/// Returns a cognitive agent with the tool `t`; `lines` are its lines from line 8 on.
fn tool_config(lines: &str) -> String {
    format!(
        "[agents.a]\nkind = \"cognitive\"\nlayer = \"abstract\"\nmodel_id = \"p/m\"\ntools = [\"t\"]\n\
         [tools.t]\nsource = \"handler\"\n{lines}\n[models.p]\nbase_url = \"https://x.org\"\n"
    )
}

fn tool(lines: &str) -> (Arc<ToolSpec>, Arc<ToolProgram>) {
    let agent = load_settings(&tool_config(lines)).agents.remove(0);
    let spec = Arc::clone(&agent.spec.cognitive().unwrap().tools[0]);
    let AgentWorker::Cognitive { tool_backends, .. } = agent.worker else { panic!("{agent:?}") };
    let tool_program = Arc::clone(&tool_backends.programs[&spec.name]);
    (spec, tool_program)
}

/// Checks the faults of tools.
fn assert_tool_faults(rows: &[(&str, &[&str])]) {
    for (lines, expected) in rows {
        assert_eq!(fault_messages(&tool_config(lines)), *expected, "{lines}");
    }
}

#[test]
fn a_tool_with_a_program_has_inputs_of_its_own() {
    let (spec, tool_program) = tool(
        "description = \"Finds.\"\ntimeout = 5\n\
         inputs.text = { type = \"string\", description = \"What.\" }\n\
         inputs.limit = { type = \"integer\", optional = true }\n\
         [tools.t.handler]\nkind = \"command\"\ncommand = \"sort\"\n\
         args = [\"-n{{ limit }}\", \"--\", \"{{ text | upper }}\"]\nstdin = \"{{ arguments }}\"",
    );
    assert_eq!((spec.handler, spec.idempotent), (ToolHandler::Command, false));
    let inputs: Vec<_> = spec
        .inputs
        .as_ref()
        .unwrap()
        .iter()
        .map(|(name, it)| (name.as_str(), it.input_type, it.optional))
        .collect();
    let expected = [("limit", InputType::Integer, true), ("text", InputType::String, false)];
    assert_eq!(inputs, expected);
    assert!(
        tool_program.program.command.ends_with("sort")
            && tool_program.program.command.is_absolute()
    );
    assert_eq!(tool_program.args, ["-n{{ limit }}", "--", "{{ text | upper }}"]);
    assert_eq!(
        (tool_program.stdin_template.as_str(), &tool_program.program.working_dir),
        ("{{ arguments }}", &None)
    );
}

#[test]
fn the_program_of_a_tool_has_strict_defaults() {
    let (_, tool_program) =
        tool("description = \"x\"\nhandler = { kind = \"command\", command = \"sort\" }");
    let sandbox = &tool_program.program.sandbox;
    assert_eq!(
        (sandbox.is_enforced, sandbox.allows_network, &sandbox.writable),
        (true, false, &None)
    );
    assert_eq!(sandbox.isolation_requirement, IsolationRequirement::Sandbox);
    let (_, with_network) = tool(
        "description = \"x\"\n[tools.t.handler]\nkind = \"command\"\ncommand = \"sort\"\n\
         sandbox.network = true",
    );
    assert_eq!(with_network.program.sandbox.isolation_requirement, IsolationRequirement::Sandbox);
}

#[test]
fn the_keys_of_a_tool_program_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let (spec, tool_program) = tool(&format!(
        "description = \"x\"\nidempotent = true\n[tools.t.handler]\nkind = \"command\"\n\
         command = \"sort\"\nworking_dir = \"{path}\"\nenv = {{ LANG = \"C\" }}\n\
         env_from = {{ API_KEY = \"MY_KEY\" }}\n\
         sandbox = {{ writable = [\"{path}\"], network = true, required = false }}\n\
         resources = {{ memory_bytes = 2_000_000, group = \"off\" }}"
    ));
    let sandbox = &tool_program.program.sandbox;
    assert!(spec.idempotent && sandbox.allows_network);
    assert_eq!(sandbox.isolation_requirement, IsolationRequirement::Nothing);
    let limits = ResourceLimits {
        max_memory_bytes: Some(2_000_000),
        max_processes: None,
        cgroup_mode: CgroupMode::Off,
    };
    assert_eq!(tool_program.program.resource_limits, limits);
    assert_eq!(sandbox.writable.as_deref(), Some(&[folder.path().to_owned()][..]));
    assert_eq!(tool_program.program.working_dir.as_deref(), Some(folder.path()));
    let variable = |value: &str, secrecy| EnvVariable { value: value.to_owned(), secrecy };
    assert!(tool_program.program.env["LANG"] == variable("C", VariableSecrecy::Plain));
    assert!(tool_program.program.env["API_KEY"] == variable(CANARY, VariableSecrecy::Secret));
}

/// Returns the lines of a tool whose handler has further keys.
fn tool_lines(keys: &str) -> String {
    format!("description = \"x\"\nhandler = {{ kind = \"command\", command = \"sort\"{keys} }}")
}

#[test]
fn faults_of_inputs_and_templates_have_a_position() {
    assert_tool_faults(&[
        (
            &tool_lines(", args = [\"{{ town }}\"]"),
            &["c:9:57: error: tools.t.handler.args[0] = \"{{ town }}\": `town` is not known to \
               templates; known: arguments"],
        ),
        (
            &format!(
                "inputs.city = {{ type = \"string\" }}\n{}",
                tool_lines(", stdin = \"{{ cty }}\"")
            ),
            &["c:10:57: error: tools.t.handler.stdin = \"{{ cty }}\": `cty` is not known to \
               templates; did you mean `city`?"],
        ),
        (
            &format!(
                "inputs.arguments = {{ type = \"string\" }}\ninputs.true = {{ type = \"text\" }}\n{}",
                tool_lines(", stdin = \"{{ arguments }}\"")
            ),
            &[
                "c:8:8: error: tools.t.inputs.arguments: `arguments` is the name of all arguments \
               together",
                "c:9:8: error: tools.t.inputs.true: must be a name with letters, digits and `_`, and \
               no word of templates such as `true`",
                "c:9:24: error: tools.t.inputs.true.type = \"text\": must be \"string\" or \
               \"integer\" or \"number\" or \"boolean\" or \"array\" or \"object\" or \"any\"",
            ],
        ),
        (
            &format!("inputs.city = {{ type = \"string\" }}\n{}", tool_lines("")),
            &["c:8:8: warning: tools.t.inputs.city: no template of the handler uses `city`"],
        ),
    ]);
}

#[test]
fn faults_of_tool_programs_have_a_position() {
    assert_tool_faults(&[
        (
            "handler = { kind = \"command\" }",
            &[
                "c:6:1: error: tools.t.description: is needed",
                "c:8:11: error: tools.t.handler.command: is needed",
            ],
        ),
        (
            &tool_lines(", sandbox.protected = [\"out\"]"),
            &["c:9:11: error: tools.t.handler.sandbox.protected: a relative path needs \
               `working_dir`"],
        ),
        (
            &tool_lines(", sandbox.nested = true"),
            &["c:9:11: error: tools.t.handler.sandbox.nested: is not supported for a tool"],
        ),
        (
            &tool_lines(", sandbox.enforce = false"),
            &[
                "c:9:49: error: tools.t.handler.sandbox.enforce: `enforce = false` leaves nothing to \
               require or to refuse; write `network = true` too: by default the network is refused",
            ],
        ),
        (
            &tool_lines(", resources.expected_bytes = 2_000_000"),
            &["c:9:59: error: tools.t.handler.resources.expected_bytes: unknown key; known: \
               memory_bytes, processes, group"],
        ),
        (
            &tool_lines(", user = \"nobody\""),
            &["c:9:56: error: tools.t.handler.user: is not supported yet"],
        ),
        (
            "inputs.x = { type = \"any\" }\nhandler = { kind = \"clock\", command = \"sort\" }",
            &[
                "c:8:1: error: tools.t.inputs: has a meaning with `kind = \"command\"` only",
                "c:9:39: error: tools.t.handler.command: has a meaning with `kind = \"command\"` only",
            ],
        ),
        (
            &tool_lines(", working_dir = \"/nonexistent\""),
            &["c:9:63: error: tools.t.handler.working_dir = \"/nonexistent\": there is no such \
               folder"],
        ),
    ]);
}

#[test]
fn a_fault_of_the_machine_affects_only_enabled_agents() {
    let lines = "description = \"x\"\n[tools.t.handler]\nkind = \"command\"\n\
                 command = \"no-such-program\"\nenv_from = { API_KEY = \"NOT_THERE\" }";
    let missing = "warning: tools.t.handler.command = \"no-such-program\": no such program on the \
                   PATH";
    let hint = "; install it, and run `algonius reload`; calls of the tool fail until then";
    let unset = "tools.t.handler.env_from.API_KEY: this variable is not set in the service's \
                 environment";
    let enabled = fault_messages(&tool_config(lines));
    assert_eq!(enabled, [format!("c:11:11: {missing}{hint}"), format!("c:12:24: error: {unset}")]);
    let disabled = tool_config(lines).replace("layer =", "enabled = false\nlayer =");
    let disabled = fault_messages(&disabled);
    assert_eq!(disabled, [format!("c:12:11: {missing}"), format!("c:13:24: warning: {unset}")]);
}

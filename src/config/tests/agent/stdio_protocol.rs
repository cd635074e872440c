//! Tests of session resumption, and of protocols with programs.

use algonius_actors::model::program::stdio_protocol::{MessageTemplate, StdioProtocol, TurnEnd};
use algonius_actors::model::program::{ProgramSpec, ServiceLossAction};
use serde_json::json;

use super::*;

/// Returns the program of an agent with these lines.
fn program(lines: &str) -> ProgramSpec {
    let program =
        load_settings(&format!("{CAT}{lines}\n")).agents.remove(0).program().unwrap().clone();
    std::sync::Arc::unwrap_or_clone(program)
}

const RPC: &str = "input = \"json-rpc\"\noutput = \"json-rpc\"\n";

#[test]
fn session_arguments_are_added_or_replace_all() {
    let session_lines = "args = [\"-p\"]\n[agents.a.session]\nregex = \"x\"\n";
    let program_with_added_args =
        program(&format!("{session_lines}resume_args = [\"-r\", \"{{{{ session_id }}}}\"]"));
    let session = program_with_added_args.session_resume.unwrap();
    assert_eq!(session.start_args, ["-p"]);
    assert_eq!(session.resume_args, ["-p", "-r", "{{ session_id }}"]);
    // The input stays at the very end, after the argument that ends the options of the program.
    let input = "input = \"args\"\ninput_args = [\"--\", \"{{ input }}\"]\n";
    let lines_with_input =
        session_lines.replace("[agents.a.session]", &format!("{input}[agents.a.session]"));
    let program_with_input_last =
        program(&format!("{lines_with_input}resume_args = [\"-r\", \"{{{{ session_id }}}}\"]"));
    let resume_args = &program_with_input_last.session_resume.as_ref().unwrap().resume_args;
    assert_eq!(*resume_args, ["-p", "-r", "{{ session_id }}", "--", "{{ input }}"]);
    let program_with_replaced_args = program(&format!(
        "{session_lines}args = [\"resume\", \"{{{{ session_id }}}}\"]\nnew_args = [\"-n\", \"{{{{ uuid }}}}\"]\nttl = \"1h\""
    ));
    let session = program_with_replaced_args.session_resume.unwrap();
    assert_eq!(session.start_args, ["-p", "-n", "{{ uuid }}"]);
    assert_eq!(session.resume_args, ["resume", "{{ session_id }}"]);
    assert_eq!(
        (session.service_generates_id, session.ttl),
        (true, Some(Duration::from_secs(3600)))
    );
}

#[test]
fn claude_control_resumes_a_session_by_arguments() {
    let session = program("args = [\"-v\"]\nprotocol = \"claude-control\"").session_resume.unwrap();
    assert_eq!(session.start_args, ["-v"]);
    assert_eq!(session.resume_args, ["-v", "--resume", "{{ session_id }}"]);
    assert!(session.lost_session_rules.regex.is_some());
    for protocol in ["acp", "codex-app-server"] {
        let lines = format!("args = [\"-v\"]\nprotocol = \"{protocol}\"");
        assert_eq!(program(&lines).session_resume.unwrap().resume_args, ["-v"], "{protocol}");
    }
}

#[test]
fn the_model_of_an_interactive_agent_needs_no_argument() {
    for protocol in ["acp", "claude-control", "codex-app-server"] {
        let program = program(&format!("model = \"m\"\nprotocol = \"{protocol}\""));
        assert_eq!(program.runtime_settings.model.as_deref(), Some("m"), "{protocol}");
    }
}

#[test]
fn an_unusable_session_is_refused() {
    assert_agent_faults(&[
        (
            "session = { regex = \"x\" }",
            &[
                "c:3:11: error: agents.a.session.resume_args: is needed; write `[\"--resume\", \"{{ session_id }}\"]`",
            ],
        ),
        (
            "session = { resume_args = [\"{{ session_id }}\"] }",
            &[
                "c:3:11: error: agents.a.session: nothing tells the id of a session: give `new_args` with `{{ uuid }}`, `regex` or `json_pointer`, or let the program tell it by events",
            ],
        ),
        (
            "session = { resume_args = [\"-c\"], regex = \"x\" }",
            &[
                "c:3:11: error: agents.a.session.resume_args: needs an argument with `{{ session_id }}`",
            ],
        ),
        (
            "args = [\"{{ session_id }}\"]",
            &[
                "c:3:9: error: agents.a.args[0]: `{{ session_id }}` has a value in `[agents.<id>.session]` only",
            ],
        ),
        (
            "dedup = \"content\"\nsession = { resume_args = [\"{{ session_id }}\"], regex = \"x\" }",
            &[
                "c:3:9: error: agents.a.dedup = \"content\": has no effect on an agent with sessions: a repeated message is a new message",
            ],
        ),
    ]);
}

#[test]
fn json_rpc_calls_are_read_with_their_templates() {
    let lines = format!(
        "{RPC}[agents.a.json_rpc]\nmethod = \"ask\"\nparams = {{ a = [1, \"{{{{ input }}}}\"], b = {{ c = true }} }}"
    );
    let program = program(&lines);
    assert_eq!(program.on_service_loss, ServiceLossAction::Kill);
    let Some(StdioProtocol::Rpc(rpc)) = program.stdio_protocol else { panic!("no call") };
    assert_eq!(rpc.submit.method, "ask");
    assert_eq!(rpc.submit.params, json!({"a": [1, "{{ input }}"], "b": {"c": true}}));
}

#[test]
fn json_rpc_conflicts_are_refused() {
    assert_agent_faults(&[
        (
            "input = \"json-rpc\"\njson_rpc = { method = \"x\" }",
            &[
                "c:1:1: error: agents.a.output: `input` and `output` are \"json-rpc\" together or not at all",
            ],
        ),
        (
            "input = \"json-rpc\"\noutput = \"json-rpc\"",
            &[
                "c:1:1: error: agents.a.json_rpc: is needed with `input = \"json-rpc\"`; write `json_rpc = { method = \"...\" }`",
            ],
        ),
        (
            "json_rpc = { method = \"x\" }",
            &["c:1:1: error: agents.a.json_rpc: has a meaning with `input = \"json-rpc\"` only"],
        ),
        (
            "input = \"json-rpc\"\noutput = \"json-rpc\"\non_supervisor_loss = \"reattach\"\njson_rpc = { method = \"x\", params = { a = \"{{ inptu }}\" } }",
            &[
                "c:5:22: error: agents.a.on_supervisor_loss = \"reattach\": must be \"kill\": no service continues the protocol of the program",
                "c:6:37: error: agents.a.json_rpc.params: `inptu` is not known to templates; did you mean `input`?",
            ],
        ),
    ]);
}

#[test]
fn a_pooled_program_needs_a_turn_end() {
    let lines = "mode = \"interactive\"\nsession_timeout = \"2m\"\nmax_concurrent = 2\nmax_sessions = 3\n[agents.a.turn]\n";
    let pooled = program(&format!(
        "{lines}end_json = {{ type = \"result\" }}\nmessage = {{ say = \"{{{{ input }}}}\" }}"
    ));
    let pool = pooled.pool.unwrap();
    assert_eq!((pool.idle_timeout, pool.max_programs), (Duration::from_secs(120), 3));
    let Some(StdioProtocol::Turns(turns)) = pooled.stdio_protocol else { panic!("no turns") };
    assert_eq!(turns.message, MessageTemplate::Json(json!({"say": "{{ input }}"})));
    assert_eq!(turns.end, TurnEnd::Json(json!({"type": "result"}).as_object().unwrap().clone()));
    let line_ended_program = program(&format!("{lines}end_line = \"END\""));
    let Some(StdioProtocol::Turns(turns)) = line_ended_program.stdio_protocol else {
        panic!("no turns")
    };
    assert!(turns.message.is_default_template());
}

#[test]
fn invalid_interactive_modes_are_refused() {
    assert_agent_faults(&[
        (
            "mode = \"interactive\"",
            &[
                "c:1:1: error: agents.a.mode: needs `turn`, which defines the end of an answer, or \"json-rpc\"; write `turn = { prompt = \"> \" }` or `turn = { end_line = \"...\" }`",
            ],
        ),
        (
            "mode = \"interactive\"\nturn = { end_line = \"END\", prompt_at_start = false }",
            &[
                "c:4:46: error: agents.a.turn.prompt_at_start = false: has a meaning with `prompt` only",
            ],
        ),
        (
            "mode = \"interactive\"\nturn = { prompt = \"a\\nb\" }",
            &[
                "c:4:19: error: agents.a.turn.prompt = \"a\\nb\": must stand on one line; use `end_line` for an end with a line break",
            ],
        ),
        (
            "turn = { end_line = \"END\" }",
            &[
                "c:1:1: error: agents.a.turn: needs `mode = \"interactive\"`: a turn is of a program that is kept",
            ],
        ),
        (
            "mode = \"interactive\"\nturn = { end_line = \"END\", end_regex = \"x\" }",
            &[
                "c:4:8: error: agents.a.turn: needs one of `prompt`, `end_line`, `end_regex` and `end_json`",
            ],
        ),
        (
            "mode = \"interactive\"\nkeep_alive = false",
            &[
                "c:1:1: error: agents.a.keep_alive: needs `session`: a program that ends must be able to resume; write `session = { resume_args = [\"--resume\", \"{{ session_id }}\"], ... }`",
            ],
        ),
        (
            "mode = \"interactive\"\nturn = { end_line = \"END\" }\nmax_concurrent = 3\nmax_sessions = 2",
            &[
                "c:1:1: error: agents.a.max_sessions: must not be less than `max_concurrent`, which must have an end",
            ],
        ),
        (
            "keep_alive = true",
            &[
                "c:3:14: error: agents.a.keep_alive = true: has a meaning with `mode = \"interactive\"` only",
            ],
        ),
        (
            "session_timeout = 60",
            &[
                "c:3:19: error: agents.a.session_timeout = 60: has a meaning with `mode = \"interactive\"` only",
            ],
        ),
    ]);
}

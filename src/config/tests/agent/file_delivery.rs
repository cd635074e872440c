//! Tests of `files`: defaults, presets, and combinations that have no meaning.

use algonius_actors::model::agent::file_delivery::FileDelivery;

use super::*;

fn delivery(lines: &str) -> FileDelivery {
    load_settings(&format!("{CAT}{lines}\n")).agents[0].spec.file_delivery()
}

#[test]
fn files_are_refused_unless_an_argument_or_a_key_takes_them() {
    for (lines, expected) in [
        ("", FileDelivery::None),
        ("files = \"none\"", FileDelivery::None),
        ("files = \"list\"", FileDelivery::ListInVariable),
        ("files = \"prompt\"", FileDelivery::ListInPrompt),
        ("args = [\"{% if files %}{{ files }}{% endif %}\"]", FileDelivery::ListInVariable),
        ("args = [\"{{ files }}\"]\nfiles = \"prompt\"", FileDelivery::ListInPrompt),
        ("cli_args = { \"--read\" = \"{{ files }}\" }", FileDelivery::ListInVariable),
        (
            "output = \"events\"\nsession = { resume_args = [\"{{ session_id }}\", \"{{ files }}\"] }",
            FileDelivery::ListInVariable,
        ),
        ("success.check = [\"true\", \"{{ files }}\"]", FileDelivery::ListInVariable),
        ("success.artifact = \"{{ own_folder }}/x\"", FileDelivery::None),
        ("protocol = \"acp\"", FileDelivery::AgentProtocol),
        ("mode = \"interactive\"\nturn = { prompt = \"> \" }", FileDelivery::None),
    ] {
        assert_eq!(delivery(lines), expected, "{lines}");
    }
}

#[test]
fn combinations_without_a_meaning_are_reported() {
    assert_agent_faults(&[
        (
            "files = \"lists\"",
            &[
                "c:3:9: error: agents.a.files = \"lists\": must be \"none\" or \"list\" or \"prompt\"; did you mean `list`?",
            ],
        ),
        (
            "files = \"none\"\nargs = [\"{{ files }}\"]",
            &[
                "c:3:9: error: agents.a.files = \"none\": must be \"list\" or \"prompt\": a template contains `{{ files }}`",
            ],
        ),
        (
            "protocol = \"acp\"\nfiles = \"prompt\"",
            &[
                "c:4:9: error: agents.a.files = \"prompt\": has no meaning with `protocol`, which transfers files",
            ],
        ),
        (
            "mode = \"interactive\"\nturn = { prompt = \"> \" }\nfiles = \"list\"",
            &[
                "c:5:9: error: agents.a.files = \"list\": must be \"none\" with `json_rpc` or `turn`; set `files = \"none\"` if a preset sets another value",
            ],
        ),
        (
            "mode = \"interactive\"\nturn = { prompt = \"> \" }\nargs = [\"{{ files }}\"]",
            &[
                "c:1:1: error: agents.a.args: `{{ files }}` has no value with `protocol`, `json_rpc` or `turn`",
            ],
        ),
        (
            "a2a.input_modes = [\"text/plain\", \"image/png\"]",
            &[
                "c:1:1: warning: agents.a.a2a.input_modes: the agent rejects files of the type `image/png`; set `files` to \"list\" or \"prompt\", so that its program receives them",
            ],
        ),
        (
            "mode = \"interactive\"\nturn = { prompt = \"> \" }\na2a.input_modes = [\"image/png\"]",
            &[
                "c:1:1: warning: agents.a.a2a.input_modes: the agent rejects files of the type `image/png`; leave it out: a program with `json_rpc` or `turn` receives no files",
            ],
        ),
    ]);
    for lines in [
        "a2a.input_modes = [\"*/*\"]",
        "a2a.input_modes = [\"text/html\", \"application/json\"]",
        "files = \"list\"\na2a.input_modes = [\"image/*\"]",
    ] {
        assert_agent_faults(&[(lines, &[])]);
    }
}

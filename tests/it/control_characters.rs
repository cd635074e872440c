//! Text of agents and callers does not control the terminal of the operator in any command that shows it.

use serde_json::{Value, json};

use crate::harness::client::task_id;
use crate::harness::{Setup, fake_agent_config, message_params};

/// Sets the clipboard and the title, clears the screen, links, moves, reverses and overwrites; in red.
const HOSTILE_TEXT: &str = "\u{1b}]52;c;cm0gLXJm\u{7}\u{1b}]0;title\u{1b}\\\u{1b}[2J\u{1b}[H\
    \u{1b}]8;;http://a.example\u{1b}\\link\u{1b}]8;;\u{1b}\\ \u{1b}[31mred\u{1b}[8mhidden\u{1b}[0m \
    \u{9b}2J \u{202e}exe.doc\u{202c}\u{2066}\u{2069}\u{200f} good\rbad\u{8}\u{8}\u{8} \u{1b}c\u{7f}";

/// Agents whose answers, failures, descriptions and questions are hostile.
fn hostile_setup() -> Setup {
    let hostile_description =
        json!(format!("Works. {HOSTILE_TEXT}")).to_string().replace('\u{7f}', "\\u007f");
    let agents = [
        "[agents.says]\ncommand = 'cat'\n".to_owned(),
        "[agents.fails]\ncommand = 'sh'\nargs = ['-c', 'cat >&2; exit 3']\n".to_owned(),
        fake_agent_config("card", "echo", &format!("description = {hostile_description}")),
        "[agents.reports]\ncommand = 'cat'\noutput = 'events'\n".to_owned(),
    ];
    Setup::with_server_settings("", &agents.concat())
}

fn is_unsafe_for_terminal(char: char) -> bool {
    let is_bidi_control = matches!(
        char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_bidi_control || char.is_control() && !matches!(char, '\n' | '\t')
}

#[tokio::test]
async fn no_command_passes_control_characters_of_an_agent() {
    let service = hostile_setup().start().await;
    let completed_id = task_id(&service.send("says", HOSTILE_TEXT).await);
    let failed_id = task_id(&service.send("fails", HOSTILE_TEXT).await);
    let question_event = json!({"type": "input_required", "text": HOSTILE_TEXT}).to_string();
    let failure_event =
        json!({"type": "failed", "message": HOSTILE_TEXT, "category": "permanent"}).to_string();
    for args in [
        &["send", "says", HOSTILE_TEXT][..],
        &["send", "says", "--no-stream", HOSTILE_TEXT],
        &["send", "fails", HOSTILE_TEXT],
        &["send", "reports", &question_event],
        &["send", "reports", &failure_event],
        &["send", HOSTILE_TEXT, "x"],
        &["tasks", "list"],
        &["tasks", "list", "--agent", HOSTILE_TEXT],
        &["tasks", "show", &completed_id],
        &["tasks", "show", &failed_id],
        &["tasks", "show", HOSTILE_TEXT],
        &["tasks", "watch", &completed_id],
        &["tasks", "watch", &failed_id],
        &["tasks", "export", "--text"],
        &["logs"],
        &["agents", "list"],
        &["agents", "show", "card"],
        &["agents", "test", "says", "--input", HOSTILE_TEXT],
        &["agents", "test", "fails", "--input", HOSTILE_TEXT],
        &["status"],
    ] {
        for options in [&[][..], &["--json"]] {
            let output = service.run_command(&[args, options].concat(), "").await;
            let text = format!("{}{}", output.stdout, output.stderr);
            let control_char = text.chars().find(|char| is_unsafe_for_terminal(*char));
            assert_eq!(control_char, None, "{args:?} {options:?}: {text:?}");
        }
    }
    let output = service.run_command(&["send", "says", HOSTILE_TEXT], "").await.stdout;
    assert!(
        output.contains(r"\x1b]52;c;cm0gLXJm\x07") && output.contains(r"good\rbad\x08"),
        "{output}"
    );
}

#[tokio::test]
async fn json_output_is_equivalent_and_raw_output_is_complete() {
    let service = hostile_setup().start().await;
    let task =
        service.run_command(&["send", "says", "--json", "--no-stream", HOSTILE_TEXT], "").await;
    let task: Value = serde_json::from_str(&task.stdout).unwrap();
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], HOSTILE_TEXT);
    let raw_output = service.run_command(&["send", "says", "--raw", HOSTILE_TEXT], "").await;
    assert_eq!((raw_output.exit_code, raw_output.stdout.as_str()), (Some(0), HOSTILE_TEXT));
    let lines = "one\r\ntwo\n";
    assert_eq!(service.run_command(&["send", "says", lines], "").await.stdout, lines);
    let export = service.run_command(&["tasks", "export", "--text", "--agent", "says"], "").await;
    let last_record: Value = serde_json::from_str(export.stdout.lines().last().unwrap()).unwrap();
    assert!(last_record.to_string().contains("hidden"), "{last_record}");
}

#[tokio::test]
async fn a_message_of_a_caller_is_escaped_too() {
    let service = hostile_setup().start().await;
    let task = task_id(
        &service.expect_result("fails", "message/send", &message_params(HOSTILE_TEXT)).await,
    );
    for args in [&["tasks", "show", &task][..], &["tasks", "list"]] {
        let output = service.run_command(args, "").await.stdout;
        assert!(!output.chars().any(is_unsafe_for_terminal), "{args:?}: {output:?}");
        assert!(output.contains(r"\x1b]52;c;"), "{args:?}: {output:?}");
    }
}

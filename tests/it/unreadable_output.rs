//! Output that cannot be read is never an empty answer: what can be read is read, and what is lost fails the task.

use serde_json::{Value, json};

use crate::harness::client::{
    completed_outcome, failed_outcome, message_params, task_id, task_outcome,
};
use crate::harness::{ServiceProcess, Setup, fake_agent_config};

/// Agent whose program writes these bytes: id, `output`, bytes.
pub(crate) type OutputCase = (String, &'static str, Vec<u8>);

/// Starts a service with these agents.
pub(crate) async fn start_with_outputs(cases: &[OutputCase]) -> ServiceProcess {
    let agents = cases.iter().map(|(id, output, _)| {
        format!(
            "[agents.{id}]\ncommand = 'cat'\nargs = ['HERE/{id}.out']\noutput = '{output}'\n\
             retry.max = 0\n"
        )
    });
    let setup = Setup::new(&agents.collect::<String>());
    for (id, _, bytes) in cases {
        std::fs::write(setup.test_folder().join(format!("{id}.out")), bytes).unwrap();
    }
    setup.start().await
}

fn message_text(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// Native lines of programs, whose answer is `answer`: the start, the answer and the end.
const NATIVE_LINES: [(&str, [&str; 3]); 5] = [
    (
        "claude-stream-json",
        [
            r#"{"type":"system","subtype":"init","session_id":"s"}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"answer"}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#,
        ],
    ),
    (
        "codex-jsonl",
        [
            r#"{"type":"thread.started","thread_id":"t"}"#,
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"answer"}}"#,
            r#"{"type":"turn.completed"}"#,
        ],
    ),
    (
        "gemini-stream-json",
        [
            r#"{"type":"init","session_id":"s"}"#,
            r#"{"type":"message","role":"assistant","content":"answer"}"#,
            r#"{"type":"result","status":"success"}"#,
        ],
    ),
    (
        "copilot-jsonl",
        [
            r#"{"type":"session.start"}"#,
            r#"{"type":"assistant.message","data":{"content":"answer"}}"#,
            r#"{"type":"result","exitCode":0}"#,
        ],
    ),
    (
        "opencode-jsonl",
        [
            r#"{"type":"step_start","sessionID":"s"}"#,
            r#"{"type":"text","sessionID":"s","part":{"messageID":"m","text":"answer"}}"#,
            r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#,
        ],
    ),
];

/// Returns lines of this project's events, whose answer is `answer`.
fn project_event_lines() -> [Vec<u8>; 10] {
    let text = &br#"{"type":"text","text":"answer"}"#[..];
    let pieces = [&br#"{"type":"text","text":"ans"}"#[..], br#"{"type":"text","text":"wer"}"#];
    [
        [b"\x1b[?25l\x1b[1G", text, b"\x1b[?25h\n"].concat(),
        [b"\x1b]8;;file:///tmp\x1b\\", text].concat(),
        [b"\x1bP+q544e\x1b\\", text, b"\r\n"].concat(),
        [b"Resolving\rFetching 3/7\r\x1b[K", text, b"\n"].concat(),
        [b"\xef\xbb\xbf\r\n\xef\xbb\xbf", text, b"\n"].concat(),
        [b"\0\0\x07", text, b"\n"].concat(),
        [b"{\"type\":\"status\",\"text\":\"Gr\xf6\xdfe\"}", text].concat(),
        [
            br#"{"type":"status","text":"\udfff\ud83d"}"#,
            text,
            br#"{"type":"usage","cost":NaN,"n":1}"#,
        ]
        .concat(),
        pieces.concat(),
        [pieces[0], b"\r", pieces[1], b"\r\n"].concat(),
    ]
}

#[tokio::test]
async fn events_are_read_in_spite_of_their_surroundings() {
    let project_event_cases = project_event_lines().into_iter().enumerate();
    let mut cases: Vec<OutputCase> = project_event_cases
        .map(|(number, bytes)| (format!("own-{number}"), "events", bytes))
        .collect();
    for (output, lines) in NATIVE_LINES {
        let surroundings = [("\u{1b}[?2026h", "\r\n"), ("\u{feff}", "\u{1b}[0m\n"), ("busy\r", "")];
        for (number, (lead, tail)) in surroundings.iter().enumerate() {
            let bytes: String = lines.iter().map(|line| format!("{lead}{line}{tail}")).collect();
            cases.push((format!("{output}-{number}"), output, bytes.into_bytes()));
        }
    }
    let service = start_with_outputs(&cases).await;
    for (id, ..) in &cases {
        let task = service.send(id, "hello").await;
        assert_eq!(task_outcome(&task), completed_outcome("answer"), "{id}: {task}");
        assert_eq!(task["metadata"].get("warnings"), None, "{id}: {task}");
    }
}

#[tokio::test]
async fn native_lines_that_are_lost_fail_the_task() {
    let mut cases: Vec<OutputCase> = Vec::new();
    for (output, [start, answer, end]) in NATIVE_LINES {
        let cut_line = |line: &str| line.strip_suffix('}').unwrap().to_owned();
        let whole_line = str::to_owned;
        for (number, lines) in [
            vec![whole_line(start), cut_line(answer), whole_line(end)],
            // Words without a line feed stand before the answer.
            vec![whole_line(start), format!("warning: {answer}"), whole_line(end)],
            vec![whole_line(start), whole_line(answer), cut_line(answer), whole_line(end)],
            // The program writes another format.
            vec![whole_line("answer")],
            vec![whole_line("[]"), whole_line("answer")],
            vec![whole_line(start), whole_line(answer), cut_line(end)],
            // The program gives up in words, without its last event.
            vec![whole_line(start), whole_line(answer), whole_line("fatal: connection lost")],
        ]
        .into_iter()
        .enumerate()
        {
            cases.push((format!("{output}-{number}"), output, lines.join("\n").into_bytes()));
        }
    }
    let service = start_with_outputs(&cases).await;
    for (id, ..) in &cases {
        let task = service.send(id, "hello").await;
        assert_eq!(task_outcome(&task), failed_outcome("output-unreadable"), "{id}: {task}");
        let text = message_text(&task);
        assert!(text.contains("could not be read, because it is not"), "{id}: {text}");
    }
}

#[tokio::test]
async fn words_beside_a_complete_answer_are_warnings() {
    let cases = NATIVE_LINES.map(|(output, [start, answer, end])| {
        let error = r#"retrying: {"type":"error","error":{"type":"overloaded_error"}}"#;
        let lines = [
            "new version",
            start,
            "INFO {\"level\":3}",
            error,
            answer,
            "{",
            end,
            "bye",
            // What follows the end of the answer is no part of it.
            r#"{"type":"later","text":"cut"#,
        ];
        (output.to_owned(), output, lines.join("\n").into_bytes())
    });
    let service = start_with_outputs(&cases).await;
    for (id, ..) in &cases {
        let task = service.send(id, "hello").await;
        assert_eq!(task_outcome(&task), completed_outcome("answer"), "{id}: {task}");
        let warning = &task["metadata"]["warnings"][0];
        assert!(warning.as_str().unwrap().starts_with("6 lines "), "{id}: {warning}");
    }
}

/// Claude Code repeats its answer in its result, so that an earlier line that is lost is no loss.
#[tokio::test]
async fn a_repeated_answer_is_complete() {
    let lines = r#"{"type":"assistant","message":
{"type":"result","subtype":"success","is_error":false,"result":"answer"}
"#;
    let cases = [("claude".to_owned(), "claude-stream-json", lines.as_bytes().to_vec())];
    let service = start_with_outputs(&cases).await;
    let task = service.send("claude", "hello").await;
    assert_eq!(task_outcome(&task), completed_outcome("answer"), "{task}");
    assert_eq!(task["metadata"]["warnings"].as_array().unwrap().len(), 1, "{task}");
}

#[tokio::test]
async fn a_caller_receives_the_line_that_was_lost() {
    let case = |id: &str, bytes: &[u8]| (id.to_owned(), "events", bytes.to_vec());
    let cases = [
        case("cut", br#"{"type":"text","text":"Dear someone@mail.example, the result is"#),
        case("words", b"just words\n"),
        case("mixed", b"starting up\n{\"type\":\"text\",\"text\":\"answer\"}\n"),
    ];
    let service = start_with_outputs(&cases).await;
    let cut_output = service.run_command(&["send", "cut", "hello"], "").await;
    assert_eq!((cut_output.exit_code, &*cut_output.stdout), (Some(5), ""), "{cut_output:?}");
    let reason =
        "line 1 of its output could not be read, because it is not JSON: {\"type\":\"text\"";
    assert!(cut_output.stderr.contains(reason), "{cut_output:?}");
    assert!(cut_output.stderr.contains("output-unreadable"), "{cut_output:?}");
    assert!(!cut_output.stderr.contains("someone"), "{cut_output:?}");
    let words_output = service.run_command(&["send", "words", "hello"], "").await;
    assert_eq!(words_output.exit_code, Some(5), "{words_output:?}");
    assert!(words_output.stderr.contains("because it is not JSON: just words"), "{words_output:?}");
    let mixed_output = service.run_command(&["send", "mixed", "hello"], "").await;
    assert_eq!(
        (mixed_output.exit_code, &*mixed_output.stdout),
        (Some(0), "answer"),
        "{mixed_output:?}"
    );
    let warning = "warning: line 1 of the agent's output is not an event";
    assert!(mixed_output.stderr.contains(warning), "{mixed_output:?}");
    let list = service.get("/api/v1/executions?agent=cut").await.json();
    let detail = service.fetch_execution(&task_id(&list["executions"][0])).await;
    assert_eq!(detail["attempts"][0]["error"]["code"], "output-unreadable", "{detail}");
}

/// Returns an agent that answers calls with this script.
fn rpc_agent_config(id: &str, script: &str) -> String {
    format!(
        "[agents.{id}]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\n\
         input = 'json-rpc'\noutput = 'json-rpc'\nstop_grace = 0.1\nretry.max = 0\n\
         [agents.{id}.json_rpc]\nframing = 'lines'\nmethod = 'ask'\nresult = '/answer'\n\
         params = {{ text = '{{{{ input }}}}' }}\n"
    )
}

/// A call does not wait for a response that was lost.
#[tokio::test]
async fn a_lost_response_fails_its_call_at_once() {
    let response = r#"{"id":2,"result":{"answer":"a"}}"#;
    let latin_response = response.replace("\"a\"", r#""a \351""#);
    let cut_response = response.strip_suffix("}}").unwrap();
    let cases = [
        ("noisy", format!(r"\033[?2004h\357\273\277{response}\r\n"), completed_outcome("a")),
        ("latin", format!(r"{latin_response}\n"), completed_outcome("a \u{fffd}")),
        ("wordy", format!(r"ready\n{response}\n"), completed_outcome("a")),
        ("two", format!(r#"{{"method":"hello"}}{response}\n"#), completed_outcome("a")),
        ("cut", format!(r"{cut_response}\n"), failed_outcome("output-unreadable")),
        ("late", format!(r"ready {response}\n"), failed_outcome("output-unreadable")),
    ];
    let script = |response| format!("read -r call; printf '{response}'; exec sleep 600");
    let agents = cases.iter().map(|(id, response, _)| rpc_agent_config(id, &script(response)));
    let service = ServiceProcess::start(&agents.collect::<String>()).await;
    for (id, _, outcome) in cases {
        let task = service.send(id, "hello").await;
        assert_eq!(task_outcome(&task), outcome, "{id}: {task}");
    }
}

/// The last response of a program needs no line feed.
#[tokio::test]
async fn a_response_at_the_end_of_the_output_is_read() {
    let response = r#"{"id":2,"result":{"answer":"a"}}"#;
    let cases = [
        ("whole", response.to_owned(), completed_outcome("a")),
        ("noisy", format!(r"\033[0m{response}\r"), completed_outcome("a")),
        ("cut", response.replace("}}", ""), failed_outcome("output-unreadable")),
        ("words", "bye".to_owned(), failed_outcome("answer-missing")),
    ];
    let script = |response| format!("read -r call; printf '{response}'");
    let agents = cases.iter().map(|(id, response, _)| rpc_agent_config(id, &script(response)));
    let service = ServiceProcess::start(&agents.collect::<String>()).await;
    for (id, _, outcome) in cases {
        let task = service.send(id, "hello").await;
        assert_eq!(task_outcome(&task), outcome, "{id}: {task}");
    }
}

/// The program works on after a message that was lost, so the next message needs another process.
#[tokio::test]
async fn a_process_that_lost_a_message_gets_no_other_call() {
    let script = r#"
if [ -e lost ]; then
    read -r call; printf '{"id":2,"result":{"answer":"new"}}\n'
else
    touch lost
    read -r call; printf '{"id":2,"result":{"answer":"cut\n'
    read -r call; printf '{"method":"said","params":{"text":"old"}}\n{"id":3,"result":{}}\n'
fi
exec sleep 600"#;
    let agent = rpc_agent_config("kept", script).replace(
        "retry.max = 0\n",
        "retry.max = 0\nmode = 'interactive'\naccess = 'read-write'\nworking_dir = 'HERE/home'\n",
    ) + "notifications = { said = { kind = 'text', pointer = '/text' } }\n";
    let service = ServiceProcess::start(&agent).await;
    let send = async || {
        let mut params = message_params("hello");
        params["message"]["contextId"] = json!("talk");
        service.expect_result("kept", "message/send", &params).await
    };
    let task = send().await;
    assert_eq!(task_outcome(&task), failed_outcome("output-unreadable"), "{task}");
    let task = send().await;
    assert_eq!(task_outcome(&task), completed_outcome("new"), "{task}");
}

/// Answers of agents over ACP that are no text.
#[tokio::test]
async fn an_image_of_an_interactive_agent_is_in_the_task() {
    let settings = "protocol = 'acp'\nretry.max = 0";
    let service = ServiceProcess::start(&fake_agent_config("painter", "acp", settings)).await;
    let task = service.send("painter", "[[image aGkh]]").await;
    let file = json!({"bytes": "aGkh", "mimeType": "image/png"});
    let part = json!({"kind": "file", "file": file});
    let parts: Vec<_> = task["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|artifact| &artifact["parts"][0])
        .collect();
    assert_eq!(
        (task["status"]["state"].as_str(), parts),
        (Some("completed"), vec![&part]),
        "{task}"
    );
    let task = service.send("painter", "[[say look]] [[image not-base64]]").await;
    assert_eq!(task_outcome(&task), failed_outcome("output-unreadable"), "{task}");
    assert!(message_text(&task).contains("not base64: not-base64"), "{task}");
}

/// A status in a final state is more than progress.
#[tokio::test]
async fn a_final_status_has_the_effect_of_its_state() {
    let status_line = |state: &str| {
        format!("{{\"type\":\"status\",\"state\":\"{state}\",\"text\":\"so it is\"}}\n")
            .into_bytes()
    };
    let cases: Vec<OutputCase> = ["failed", "rejected", "input-required", "working"]
        .map(|state| (state.to_owned(), "events", status_line(state)))
        .into();
    let service = start_with_outputs(&cases).await;
    for (id, state) in [
        ("failed", "failed"),
        ("rejected", "rejected"),
        ("input-required", "input-required"),
        ("working", "completed"),
    ] {
        let task = service.send(id, "hello").await;
        assert_eq!(task["status"]["state"], state, "{id}: {task}");
        assert_eq!(message_text(&task).contains("so it is"), id != "working", "{id}: {task}");
    }
}

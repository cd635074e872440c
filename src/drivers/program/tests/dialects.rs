//! Replays of recorded real programs, with their expected outcomes.

mod incomplete_answers;

use std::path::PathBuf;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{AgentStep, EventKind, MessageRole, TextChannel};
use algonius_actors::model::program::{EventDialect, OutputMethod};

use super::fixture::{AttemptRecord, shell_fixture};

/// Recorded run: agent, case and exit code; then the expected outcome.
type Case = (&'static str, &'static str, i32, Result<&'static str, Code>);

const CASES: &[Case] = &[
    ("claude", "hello", 0, Ok("ECHO: say hello")),
    ("claude", "session-resume", 0, Ok("ECHO: second turn")),
    ("claude", "401", 1, Err(Code::NotAuthenticated)),
    ("claude", "403", 1, Err(Code::NotAuthenticated)),
    ("claude", "429-retry-after", 1, Err(Code::AgentRateLimited)),
    ("claude", "500", 1, Err(Code::TransientFailure)),
    ("claude", "529", 1, Err(Code::AgentOverloaded)),
    ("claude", "empty", 0, Err(Code::EmptyAnswer)),
    ("claude", "unknown-session", 1, Err(Code::Reported)),
    ("claude", "garbage", 1, Err(Code::Reported)),
    ("qwen", "hello", 0, Ok("ECHO: say hello")),
    ("qwen", "session-resume", 0, Ok("ECHO: second turn")),
    ("qwen", "401", 1, Err(Code::NotAuthenticated)),
    ("qwen", "403", 1, Err(Code::NotAuthenticated)),
    ("qwen", "unknown-session", 1, Err(Code::Exit)),
    ("codex", "hello", 0, Ok("ECHO: say hello")),
    ("codex", "session-resume", 0, Ok("ECHO: second turn")),
    ("codex", "401", 1, Err(Code::NotAuthenticated)),
    ("codex", "403", 1, Err(Code::NotAuthenticated)),
    ("codex", "429-retry-after", 1, Err(Code::AgentRateLimited)),
    ("codex", "500", 1, Err(Code::TransientFailure)),
    ("codex", "empty", 0, Err(Code::EmptyAnswer)),
    ("codex", "unknown-session", 1, Err(Code::Exit)),
    ("codex", "dropped", 1, Err(Code::TransientFailure)),
    ("gemini", "hello", 0, Ok("ECHO: say hello")),
    ("gemini", "session-resume", 0, Ok("ECHO: second turn")),
    ("gemini", "401", 145, Err(Code::NotAuthenticated)),
    ("gemini", "403", 147, Err(Code::NotAuthenticated)),
    ("gemini", "429-retry-after", 173, Err(Code::AgentRateLimited)),
    ("gemini", "500", 244, Err(Code::TransientFailure)),
    ("gemini", "529", 17, Err(Code::AgentOverloaded)),
    ("gemini", "empty", 0, Err(Code::Reported)),
    ("copilot", "hello", 0, Ok("ECHO: say hello")),
    ("copilot", "session-resume", 0, Ok("ECHO: second turn")),
    ("copilot", "401", 1, Err(Code::NotAuthenticated)),
    ("copilot", "403", 1, Err(Code::NotAuthenticated)),
    ("copilot", "429-retry-after", 1, Err(Code::AgentRateLimited)),
    ("copilot", "500", 1, Err(Code::TransientFailure)),
    ("copilot", "empty", 1, Err(Code::Reported)),
    ("copilot", "unknown-session", 1, Err(Code::Exit)),
    ("opencode", "hello", 0, Ok("ECHO: say hello")),
    ("opencode", "session-resume", 0, Ok("ECHO: second turn")),
    ("opencode", "permission-denied", 0, Err(Code::Denied)),
    ("opencode", "401", 1, Err(Code::NotAuthenticated)),
    ("opencode", "403", 1, Err(Code::NotAuthenticated)),
    ("opencode", "429-retry-after", 1, Err(Code::AgentRateLimited)),
    ("opencode", "empty", 0, Err(Code::EmptyAnswer)),
];

fn dialect(agent: &str) -> EventDialect {
    match agent {
        "claude" | "qwen" => EventDialect::Claude,
        "codex" => EventDialect::Codex,
        "gemini" => EventDialect::Gemini,
        "copilot" => EventDialect::Copilot,
        _ => EventDialect::Opencode,
    }
}

/// Replays a recorded run, or its lines before the first one that contains `stop_at`.
async fn replay(agent: &str, case: &str, exit: i32, stop_at: &str) -> AttemptRecord {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(agent);
    let lines = std::fs::read_to_string(folder.join(format!("{case}.jsonl"))).unwrap();
    let stderr = std::fs::read_to_string(folder.join(format!("{case}.stderr"))).unwrap_or_default();
    let replayed_lines =
        lines.lines().take_while(|line| stop_at.is_empty() || !line.contains(stop_at));
    let replayed_lines: Vec<&str> = replayed_lines.collect();
    let script = format!("cat; printf %s \"$1\" >&2; exit {exit}");
    let mut fixture =
        shell_fixture(&script, &["sh", &stderr]).with_input(replayed_lines.join("\n"));
    fixture.program.output_method = OutputMethod::Native(dialect(agent));
    fixture.run_to_end().await
}

/// Returns the text of a piece of the answer's channel.
fn text_of(record: &AttemptRecord, part: &StoredPart) -> String {
    let (text, index) = (record.text(TextChannel::Answer), |byte| usize::try_from(byte).unwrap());
    text.get(index(part.text.from)..index(part.text.to)).unwrap().to_owned()
}

/// Returns the artifact of the answer, or an empty text for a failed run.
fn answer(record: &AttemptRecord) -> String {
    let answers = record.events().into_iter().filter_map(|event| match event {
        EventKind::Artifact { pieces, append: false, last: true, .. } => Some(pieces),
        _ => None,
    });
    let answers: Vec<String> = answers.flatten().map(|piece| text_of(record, piece)).collect();
    assert!(answers.len() < 2, "{answers:?}");
    answers.concat()
}

/// Returns the progress messages of the agent.
fn progress_messages(record: &AttemptRecord) -> Vec<String> {
    let messages = record.events().into_iter().filter_map(|event| match event {
        EventKind::Message { speaker: MessageRole::AgentProgress, pieces, .. } => Some(pieces),
        _ => None,
    });
    messages.flatten().map(|piece| text_of(record, piece)).collect()
}

fn steps(record: &AttemptRecord) -> Vec<&AgentStep> {
    let steps = record.events().into_iter().filter_map(|event| match event {
        EventKind::Step { step } => Some(step),
        _ => None,
    });
    steps.collect()
}

fn usage_sum(record: &AttemptRecord, name: &str) -> f64 {
    let counts = record.events().into_iter().filter_map(|event| match event {
        EventKind::UsageReported { counters: numbers, .. } => numbers.get(name)?.as_f64(),
        _ => None,
    });
    counts.sum()
}

fn warnings(record: &AttemptRecord) -> Vec<&str> {
    let messages = record.events().into_iter().filter_map(|event| match event {
        EventKind::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    messages.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_sessions_of_real_programs_are_classified() {
    for (agent, case, exit, expected) in CASES {
        let record = replay(agent, case, *exit, "").await;
        let label = format!("{agent} {case}: {:?}", record.result);
        match expected {
            Ok(answer) => {
                assert_eq!(record.result, Ok(()), "{label}");
                assert_eq!(self::answer(&record), *answer, "{label}");
            }
            Err(code) => assert_eq!(record.failure_code(), Some(*code), "{label}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_usage_are_recorded_once() {
    for agent in ["claude", "qwen", "codex", "gemini", "copilot", "opencode"] {
        let record = replay(agent, "usage", 0, "").await;
        assert_eq!(record.result, Ok(()), "{agent}");
        let sessions = record.events().into_iter();
        let sessions = sessions.filter(|event| matches!(event, EventKind::Session { .. })).count();
        assert_eq!(sessions, 1, "{agent}");
        if agent != "copilot" {
            assert!(usage_sum(&record, "input_tokens") >= 1000.0, "{agent}");
            assert!(usage_sum(&record, "output_tokens") >= 50.0, "{agent}");
        }
        assert_eq!(warnings(&record), [""; 0], "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_steps_and_no_part_of_the_answer() {
    for agent in ["claude", "qwen", "codex", "gemini", "copilot", "opencode"] {
        let record = replay(agent, "tool-call", 0, "").await;
        assert_eq!(record.result, Ok(()), "{agent}");
        assert!(matches!(steps(&record).last(), Some(AgentStep::ToolCall { .. })), "{agent}");
        let answer = answer(&record);
        assert!(answer.starts_with("TOOL RESULT:"), "{agent}: {answer}");
        assert_eq!(answer.matches("TOOL RESULT").count(), 1, "{agent}: {answer}");
        let record = replay(agent, "file-change", 0, "").await;
        let is_change = |step: &&&AgentStep| matches!(step, AgentStep::FileChange { path, .. } if path == "made.txt");
        assert_eq!(steps(&record).iter().filter(is_change).count(), 1, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_despite_denials_has_a_warning() {
    for (agent, tool) in [
        ("claude", "Bash"),
        ("qwen", "run_shell_command"),
        ("gemini", "run_shell_command"),
        ("copilot", "bash"),
    ] {
        let record = replay(agent, "permission-denied", 0, "").await;
        assert_eq!(record.result, Ok(()), "{agent}");
        let warning = format!("it answered, but was not permitted to use {tool}");
        assert_eq!(warnings(&record), [warning.as_str()], "{agent}");
        let denied_step = AgentStep::Denied { tool: tool.to_owned() };
        assert_eq!(
            steps(&record).iter().filter(|step| ***step == denied_step).count(),
            1,
            "{agent}"
        );
    }
    let silent_failure = replay("opencode", "permission-denied", 0, "").await.result.unwrap_err();
    assert_eq!(silent_failure.message, "it was not let use bash, and answered nothing");
}

/// Test of the output of a program that was stopped on request.
#[tokio::test(flavor = "multi_thread")]
async fn a_successful_exit_without_a_final_event_is_ended_early() {
    for (agent, last) in [
        ("claude", r#""type":"result""#),
        ("codex", r#""turn.completed""#),
        ("gemini", r#""type":"result""#),
        ("copilot", r#""type":"result""#),
        ("opencode", r#""step_finish""#),
    ] {
        assert_eq!(
            replay(agent, "hello", 0, last).await.failure_code(),
            Some(Code::EndedEarly),
            "{agent}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_error_is_the_failure() {
    let record = replay("copilot", "401", 0, r#""type":"result""#).await;
    assert_eq!(record.failure_code(), Some(Code::NotAuthenticated));
    let record = replay("codex", "429-retry-after", 0, "turn.failed").await;
    assert_eq!(record.failure_code(), Some(Code::AgentRateLimited));
}

#[tokio::test(flavor = "multi_thread")]
async fn text_before_a_tool_call_is_an_intermediate_message() {
    let lines = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},
        {"type":"text","text":"let me look"},{"type":"tool_use","id":"1","name":"Read"}]}}
        {"type":"assistant","message":{"content":[{"type":"text","text":"seen"}]}}
        {"type":"result","is_error":false,"result":"seen","total_cost_usd":0.5}
        {"type":"result","is_error":false,"result":"","total_cost_usd":0.75}"#;
    let lines = lines.replace("},\n        {", "},{");
    let mut fixture = shell_fixture("cat", &[]).with_input(lines);
    fixture.program.output_method = OutputMethod::Native(EventDialect::Claude);
    let record = fixture.run_to_end().await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "seen"));
    assert_eq!(progress_messages(&record), ["let me look"]);
    assert_eq!(steps(&record).first(), Some(&&AgentStep::Thinking));
    assert!((usage_sum(&record, "cost_usd") - 0.75).abs() < 1e-9, "what it counts goes on");
}

/// Plays lines of a native dialect.
async fn replay_lines(dialect: EventDialect, lines: &str) -> AttemptRecord {
    let mut fixture = shell_fixture("cat", &[]).with_input(lines.to_owned());
    fixture.program.output_method = OutputMethod::Native(dialect);
    fixture.run_to_end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn message_deltas_form_the_answer_once() {
    let delta = |text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","delta":{{"text":"{text}"}}}}}}"#
        )
    };
    let start = r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}"#;
    let complete_message = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"one two"}]}}"#;
    let result = r#"{"type":"result","is_error":false,"result":"one two"}"#;
    let lines = [start, &delta("one"), &delta(" two"), complete_message, result].join("\n");
    let record = replay_lines(EventDialect::Claude, &lines).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "one two"));
    assert_eq!(progress_messages(&record), [""; 0]);
    let raw = record.text(TextChannel::Stdout);
    assert_eq!(raw, [complete_message, result].join("\n"), "pieces are left out of the raw output");
    // A stream that broke starts again, and the program's own last text counts.
    let lines = [start, &delta("one tw"), start, &delta("one two th"), result].join("\n");
    let record = replay_lines(EventDialect::Claude, &lines).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "one two"));
    assert_eq!(progress_messages(&record), ["one tw", "one two th"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_message_is_no_answer() {
    let lines = r#"{"type":"message","role":"assistant","content":"half of","delta":true}
        {"type":"error","severity":"error","message":"Model stream ended without a finish reason."}
        {"type":"result","status":"error"}"#;
    let record = replay_lines(EventDialect::Gemini, lines).await;
    assert_eq!(
        (record.failure_code(), answer(&record).as_str()),
        (Some(Code::TransientFailure), "")
    );
    let lines = r#"{"type":"text_delta","sessionID":"s","part":{"messageID":"m","delta":"half of "}}
        {"type":"text","sessionID":"s","part":{"messageID":"m","text":"half of"}}
        {"type":"step_finish","sessionID":"s","part":{"reason":"unknown"}}"#;
    let record = replay_lines(EventDialect::Opencode, lines).await;
    assert_eq!(
        (record.failure_code(), answer(&record).as_str()),
        (Some(Code::TransientFailure), "")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stripped_blanks_are_not_streamed() {
    let lines = r#"{"type":"text_delta","sessionID":"s","part":{"messageID":"m","delta":"let me look"}}
        {"type":"text","sessionID":"s","part":{"messageID":"m","text":"let me look"}}
        {"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls"}}
        {"type":"text_delta","sessionID":"s","part":{"messageID":"n","delta":"it \n"}}
        {"type":"text_delta","sessionID":"other","part":{"messageID":"o","delta":"no"}}
        {"type":"text_delta","sessionID":"s","part":{"messageID":"n","delta":"is there\n"}}
        {"type":"text","sessionID":"s","part":{"messageID":"n","text":"it \nis there"}}
        {"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#;
    let record = replay_lines(EventDialect::Opencode, lines).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "it \nis there"));
    assert_eq!(progress_messages(&record), ["let me look"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_intermediate_messages_are_reported() {
    let message = |text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let long = "x".repeat(3000);
    let result = r#"{"type":"result","is_error":false,"result":"the end"}"#;
    for (count, warning_count) in [(1, 0), (2, 0), (3, 1), (5, 1)] {
        let messages = (0..count).map(|number| message(&format!("{number} {long}")));
        let lines: Vec<_> = messages.chain([message("the end"), result.to_owned()]).collect();
        let mut fixture = shell_fixture("cat", &[]).with_input(lines.join("\n"));
        fixture.program.output_method = OutputMethod::Native(EventDialect::Claude);
        fixture.spec.limits.sizes.max_output_bytes = 4096;
        let record = fixture.run_to_end().await;
        assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "the end"));
        let is_warning = |event: &&&EventKind| matches!(event, EventKind::Warning { message } if message.contains("later ones of them"));
        let events = record.events();
        assert_eq!(events.iter().filter(is_warning).count(), warning_count, "{count}");
    }
}

/// Accepted answers before the last one take no more space than other messages before the answer.
#[tokio::test(flavor = "multi_thread")]
async fn answers_of_earlier_turns_are_stored_up_to_the_limit() {
    let long = "x".repeat(3000);
    let result = |number: u32| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"result":"{number} {long}"}}"#
        )
    };
    let lines: Vec<_> = (0..9).map(result).collect();
    let mut fixture = shell_fixture("cat", &[]).with_input(lines.join("\n"));
    fixture.program.output_method = OutputMethod::Native(EventDialect::Claude);
    fixture.spec.limits.sizes.max_output_bytes = 4096;
    let record = fixture.run_to_end().await;
    assert_eq!((&record.result, answer(&record)), (&Ok(()), format!("8 {long}")));
    assert_eq!(progress_messages(&record).len(), 2);
}

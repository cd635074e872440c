//! Real programs, as they were recorded: each is played again, and what becomes of it is compared.

use std::path::PathBuf;

use algonius_actors::model::code::Code;
use algonius_actors::model::event::{Channel, Fact, Speaker, Step};
use algonius_actors::model::program::{Dialect, OutputPattern};

use super::world::{Story, shell};

/// A recorded run: who, what, its exit code; then what becomes of it.
type Case = (&'static str, &'static str, i32, Result<&'static str, Code>);

const CASES: &[Case] = &[
    ("claude", "hello", 0, Ok("ECHO: say hello")),
    ("claude", "session-resume", 0, Ok("ECHO: second turn")),
    ("claude", "401", 1, Err(Code::NotAuthenticated)),
    ("claude", "403", 1, Err(Code::NotAuthenticated)),
    ("claude", "429-retry-after", 1, Err(Code::TransientFailure)),
    ("claude", "500", 1, Err(Code::TransientFailure)),
    ("claude", "529", 1, Err(Code::TransientFailure)),
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
    ("codex", "429-retry-after", 1, Err(Code::TransientFailure)),
    ("codex", "500", 1, Err(Code::TransientFailure)),
    ("codex", "empty", 0, Err(Code::EmptyAnswer)),
    ("codex", "unknown-session", 1, Err(Code::Exit)),
    ("codex", "dropped", 1, Err(Code::TransientFailure)),
    ("gemini", "hello", 0, Ok("ECHO: say hello")),
    ("gemini", "session-resume", 0, Ok("ECHO: second turn")),
    ("gemini", "401", 145, Err(Code::NotAuthenticated)),
    ("gemini", "403", 147, Err(Code::NotAuthenticated)),
    ("gemini", "429-retry-after", 173, Err(Code::TransientFailure)),
    ("gemini", "500", 244, Err(Code::TransientFailure)),
    ("gemini", "529", 17, Err(Code::TransientFailure)),
    ("gemini", "empty", 0, Err(Code::Reported)),
    ("copilot", "hello", 0, Ok("ECHO: say hello")),
    ("copilot", "session-resume", 0, Ok("ECHO: second turn")),
    ("copilot", "401", 1, Err(Code::NotAuthenticated)),
    ("copilot", "403", 1, Err(Code::NotAuthenticated)),
    ("copilot", "429-retry-after", 1, Err(Code::TransientFailure)),
    ("copilot", "500", 1, Err(Code::TransientFailure)),
    ("copilot", "empty", 1, Err(Code::Reported)),
    ("copilot", "unknown-session", 1, Err(Code::Exit)),
    ("opencode", "hello", 0, Ok("ECHO: say hello")),
    ("opencode", "session-resume", 0, Ok("ECHO: second turn")),
    ("opencode", "permission-denied", 0, Err(Code::Denied)),
    ("opencode", "401", 1, Err(Code::NotAuthenticated)),
    ("opencode", "403", 1, Err(Code::NotAuthenticated)),
    ("opencode", "429-retry-after", 1, Err(Code::QuotaExceeded)),
    ("opencode", "empty", 0, Err(Code::EmptyAnswer)),
];

fn dialect(agent: &str) -> Dialect {
    match agent {
        "claude" | "qwen" => Dialect::Claude,
        "codex" => Dialect::Codex,
        "gemini" => Dialect::Gemini,
        "copilot" => Dialect::Copilot,
        _ => Dialect::Opencode,
    }
}

/// Plays a recorded run, or the lines of it before and without `but`.
async fn play(agent: &str, case: &str, exit: i32, but: &str) -> Story {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(agent);
    let lines = std::fs::read_to_string(folder.join(format!("{case}.jsonl"))).unwrap();
    let errors = std::fs::read_to_string(folder.join(format!("{case}.stderr"))).unwrap_or_default();
    let kept = lines.lines().take_while(|line| but.is_empty() || !line.contains(but));
    let kept: Vec<&str> = kept.collect();
    let script = format!("cat; printf %s \"$1\" >&2; exit {exit}");
    let mut stage = shell(&script, &["sh", &errors]).says(kept.join("\n"));
    stage.program.output = OutputPattern::Native(dialect(agent));
    stage.play().await
}

fn steps(story: &Story) -> Vec<&Step> {
    let steps = story.facts().into_iter().filter_map(|fact| match fact {
        Fact::Stepped { step } => Some(step),
        _ => None,
    });
    steps.collect()
}

fn number(story: &Story, name: &str) -> f64 {
    let used = story.facts().into_iter().filter_map(|fact| match fact {
        Fact::Used { numbers, .. } => numbers.get(name)?.as_f64(),
        _ => None,
    });
    used.sum()
}

fn warnings(story: &Story) -> Vec<&str> {
    let warned = story.facts().into_iter().filter_map(|fact| match fact {
        Fact::Warned { message } => Some(message.as_str()),
        _ => None,
    });
    warned.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_real_programs_did_is_judged_for_what_it_was() {
    for (agent, case, exit, expected) in CASES {
        let story = play(agent, case, *exit, "").await;
        let told = format!("{agent} {case}: {:?}", story.verdict);
        match expected {
            Ok(answer) => {
                assert_eq!(story.verdict, Ok(()), "{told}");
                assert_eq!(story.text(Channel::Answer), *answer, "{told}");
            }
            Err(code) => assert_eq!(story.code(), Some(*code), "{told}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_and_what_was_used_are_noted_once() {
    for agent in ["claude", "qwen", "codex", "gemini", "copilot", "opencode"] {
        let story = play(agent, "usage", 0, "").await;
        assert_eq!(story.verdict, Ok(()), "{agent}");
        let sessions = story.facts().into_iter();
        let sessions = sessions.filter(|fact| matches!(fact, Fact::Session { .. })).count();
        assert_eq!(sessions, 1, "{agent}");
        if agent != "copilot" {
            assert!(number(&story, "input_tokens") >= 1000.0, "{agent}");
            assert!(number(&story, "output_tokens") >= 50.0, "{agent}");
        }
        assert_eq!(warnings(&story), [""; 0], "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_steps_and_no_part_of_the_answer() {
    for agent in ["claude", "qwen", "codex", "gemini", "copilot", "opencode"] {
        let story = play(agent, "tool-call", 0, "").await;
        assert_eq!(story.verdict, Ok(()), "{agent}");
        assert!(matches!(steps(&story).last(), Some(Step::ToolCall { .. })), "{agent}");
        let answer = story.text(Channel::Answer);
        assert!(answer.starts_with("TOOL RESULT:"), "{agent}: {answer}");
        assert_eq!(answer.matches("TOOL RESULT").count(), 1, "{agent}: {answer}");
        let story = play(agent, "file-change", 0, "").await;
        let is_change =
            |step: &&&Step| matches!(step, Step::FileChange { path, .. } if path == "made.txt");
        assert_eq!(steps(&story).iter().filter(is_change).count(), 1, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_spite_of_denials_is_one_with_a_warning() {
    for (agent, tool) in [
        ("claude", "Bash"),
        ("qwen", "run_shell_command"),
        ("gemini", "run_shell_command"),
        ("copilot", "bash"),
    ] {
        let story = play(agent, "permission-denied", 0, "").await;
        assert_eq!(story.verdict, Ok(()), "{agent}");
        let warning = format!("it answered, but was not let use {tool}");
        assert_eq!(warnings(&story), [warning.as_str()], "{agent}");
        let denied = Step::Denied { tool: tool.to_owned() };
        assert_eq!(steps(&story).iter().filter(|step| ***step == denied).count(), 1, "{agent}");
    }
    let silent = play("opencode", "permission-denied", 0, "").await.verdict.unwrap_err();
    assert_eq!(silent.message, "it was not let use bash, and answered nothing");
}

/// As one that was asked to end does.
#[tokio::test(flavor = "multi_thread")]
async fn who_ends_well_without_its_last_word_has_ended_early() {
    for (agent, last) in [
        ("claude", r#""type":"result""#),
        ("codex", r#""turn.completed""#),
        ("gemini", r#""type":"result""#),
        ("copilot", r#""type":"result""#),
        ("opencode", r#""step_finish""#),
    ] {
        assert_eq!(play(agent, "hello", 0, last).await.code(), Some(Code::EndedEarly), "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_which_nothing_comes_is_the_failure() {
    let story = play("copilot", "401", 0, r#""type":"result""#).await;
    assert_eq!(story.code(), Some(Code::NotAuthenticated));
    let story = play("codex", "429-retry-after", 0, "turn.failed").await;
    assert_eq!(story.code(), Some(Code::TransientFailure));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_before_a_tool_is_used_is_said_on_the_way() {
    let lines = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},
        {"type":"text","text":"let me look"},{"type":"tool_use","id":"1","name":"Read"}]}}
        {"type":"assistant","message":{"content":[{"type":"text","text":"seen"}]}}
        {"type":"result","is_error":false,"result":"seen","total_cost_usd":0.5}
        {"type":"result","is_error":false,"result":"","total_cost_usd":0.75}"#;
    let lines = lines.replace("},\n        {", "},{");
    let mut stage = shell("cat", &[]).says(lines);
    stage.program.output = OutputPattern::Native(Dialect::Claude);
    let story = stage.play().await;
    assert_eq!((&story.verdict, story.text(Channel::Answer).as_str()), (&Ok(()), "seen"));
    let said = story.facts().into_iter();
    let said = said.filter(|fact| matches!(fact, Fact::Said { speaker: Speaker::Agent, .. }));
    assert_eq!(said.count(), 1);
    assert_eq!(steps(&story).first(), Some(&&Step::Thinking));
    assert!((number(&story, "cost_usd") - 0.75).abs() < 1e-9, "what it counts goes on");
}

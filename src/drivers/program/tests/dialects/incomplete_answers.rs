//! Answers of native dialects that are not whole, or that have another form than usual.

use algonius_actors::model::code::Code;
use algonius_actors::model::program::EventDialect;

use super::{answer, replay_lines};

/// A member that should be a text is another value, so a part of the answer may be lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_another_form_is_no_empty_text() {
    let blocks = r#"[{"type":"text","text":"lost"}]"#;
    let claude = |text: &str, result: &str| {
        let message = format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
        );
        let result = format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"result":{result}}}"#
        );
        [message, result].join("\n")
    };
    let gemini = [
        r#"{"type":"message","role":"assistant","content":"a","delta":true}"#.to_owned(),
        format!(r#"{{"type":"message","role":"assistant","content":{blocks},"delta":true}}"#),
        r#"{"type":"result","status":"success"}"#.to_owned(),
    ];
    let copilot = [
        r#"{"type":"assistant.message","data":{"content":"Let me look"}}"#.to_owned(),
        format!(r#"{{"type":"assistant.message","data":{{"content":{blocks}}}}}"#),
        r#"{"type":"result","exitCode":0}"#.to_owned(),
    ];
    let codex = [
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"first"}}"#.to_owned(),
        format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":{blocks}}}}}"#),
        r#"{"type":"turn.completed"}"#.to_owned(),
    ];
    let opencode = [
        r#"{"type":"text","sessionID":"s","part":{"messageID":"m","text":"first"}}"#.to_owned(),
        format!(r#"{{"type":"text","sessionID":"s","part":{{"messageID":"m","text":{blocks}}}}}"#),
        r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#.to_owned(),
    ];
    for (dialect, lines) in [
        (EventDialect::Claude, claude("7", "null")),
        (EventDialect::Claude, claude("\"first\"", blocks)),
        (EventDialect::Gemini, gemini.join("\n")),
        (EventDialect::Copilot, copilot.join("\n")),
        (EventDialect::Codex, codex.join("\n")),
        (EventDialect::Opencode, opencode.join("\n")),
    ] {
        let record = replay_lines(dialect, &lines).await;
        assert_eq!(record.code(), Some(Code::OutputUnreadable), "{dialect:?}: {lines}");
    }
    // The result repeats the whole answer.
    let record = replay_lines(EventDialect::Claude, &claude("7", "\"whole\"")).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "whole"));
}

#[tokio::test(flavor = "multi_thread")]
async fn content_of_one_text_is_the_answer() {
    let lines = r#"{"type":"assistant","message":{"content":"the answer"}}
        {"type":"result","subtype":"success","is_error":false}"#;
    let record = replay_lines(EventDialect::Claude, lines).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "the answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_the_program_has_checked_is_the_answer() {
    for (text, result) in [("Here it is.", "Here it is."), ("", "")] {
        let lines = format!(
            "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n\
             {{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"{result}\",\
             \"structured_output\":{{\"findings\":3}}}}"
        );
        let record = replay_lines(EventDialect::Claude, &lines).await;
        assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "{\"findings\":3}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_reports_an_unfinished_answer_fails() {
    let claude = |result: &str| {
        let message = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I will read the files"}]}}"#;
        (EventDialect::Claude, format!("{message}\n{{\"type\":\"result\",{result}}}"))
    };
    let opencode = |reason: &str| {
        let text = r#"{"type":"text","sessionID":"s","part":{"messageID":"m","text":"half"}}"#;
        let end =
            format!(r#"{{"type":"step_finish","sessionID":"s","part":{{"reason":"{reason}"}}}}"#);
        (EventDialect::Opencode, format!("{text}\n{end}"))
    };
    let success = r#""subtype":"success","is_error":false,"result":"half","stop_reason""#;
    for ((dialect, lines), code) in [
        (claude(r#""subtype":"error_max_turns","is_error":false,"num_turns":3"#), Code::Reported),
        (claude(r#""subtype":"error_during_execution","is_error":false"#), Code::Reported),
        (claude(&format!("{success}:\"max_tokens\"")), Code::Reported),
        (claude(&format!("{success}:\"refusal\"")), Code::Rejected),
        (opencode("length"), Code::Reported),
        (opencode("content-filter"), Code::Reported),
        (opencode("error"), Code::Reported),
    ] {
        let record = replay_lines(dialect, &lines).await;
        assert_eq!(record.code(), Some(code), "{lines}");
    }
    // The program may continue after such a step.
    let (dialect, lines) = opencode("length");
    let lines = format!(
        "{lines}\n{}",
        opencode("stop").1.replace("\"m\"", "\"n\"").replace("half", "whole")
    );
    let record = replay_lines(dialect, &lines).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "whole"));
    let (dialect, lines) = claude(&format!("{success}:\"end_turn\""));
    let record = replay_lines(dialect, &lines).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "half"));
}

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
        assert_eq!(record.failure_code(), Some(Code::OutputUnreadable), "{dialect:?}: {lines}");
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
        assert_eq!(record.failure_code(), Some(code), "{lines}");
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

/// A message whose text is absent or `null` may be the answer, so an earlier one is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_its_text_is_no_empty_message() {
    let copilot = |data: &str| {
        let message = r#"{"type":"assistant.message","data":{"content":"one"}}"#;
        let lines = format!("{message}\n{{\"type\":\"assistant.message\"{data}}}\n");
        (EventDialect::Copilot, lines + r#"{"type":"result","exitCode":0}"#)
    };
    let gemini = |member: &str| {
        let message = r#"{"type":"message","role":"assistant","content":"one "}"#;
        let lines = format!("{message}\n{{\"type\":\"message\",\"role\":\"assistant\"{member}}}\n");
        (EventDialect::Gemini, lines + r#"{"type":"result","status":"success"}"#)
    };
    let opencode = |member: &str| {
        let text = r#"{"type":"text","sessionID":"s","part":{"messageID":"m","text":"one "}}"#;
        let lines = format!("{text}\n{{\"type\":\"text\",\"sessionID\":\"s\"{member}}}\n");
        let end = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#;
        (EventDialect::Opencode, lines + end)
    };
    let codex = |item: &str| {
        let lines = format!(
            "{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\"{item}}}}}\n"
        );
        (EventDialect::Codex, lines + r#"{"type":"turn.completed"}"#)
    };
    let claude = |message: &str| {
        let lines = format!("{{\"type\":\"assistant\"{message}}}\n");
        let end = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#;
        (EventDialect::Claude, lines + end)
    };
    for (dialect, lines) in [
        copilot(""),
        copilot(r#","data":null"#),
        copilot(r#","data":{"content":null}"#),
        copilot(r#","data":{"text":"two"}"#),
        gemini(""),
        gemini(r#","text":"two""#),
        gemini(r#","content":null"#),
        opencode(r#","text":"two""#),
        opencode(r#","part":null"#),
        opencode(r#","part":{"messageID":"m","text":null}"#),
        codex(""),
        codex(r#","text":null"#),
        claude(""),
        claude(r#","message":{"content":null}"#),
        claude(r#","message":{"content":[{"type":"text"}]}"#),
    ] {
        let record = replay_lines(dialect, &lines).await;
        assert_eq!(record.failure_code(), Some(Code::OutputUnreadable), "{dialect:?}: {lines}");
    }
    // A message that only calls a tool needs no text.
    let call = r#","data":{"content":null,"toolRequests":[{"toolCallId":"t"}]}"#;
    let (dialect, lines) = copilot(call);
    let lines = lines.replace(
        r#"{"type":"result""#,
        "{\"type\":\"assistant.message\",\"data\":{\"content\":\"two\"}}\n{\"type\":\"result\"",
    );
    let record = replay_lines(dialect, &lines).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "two"), "{lines}");
}

/// Pieces whose message has no end are no answer, although the program reports success.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_its_end_is_no_answer() {
    let copilot = r#"{"type":"assistant.message","data":{"content":"one"}}
        {"type":"assistant.message_delta","data":{"messageId":"m2","deltaContent":"half of"}}
        {"type":"result","exitCode":0}"#;
    let claude_end = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#;
    let claude = |end: &str| {
        let piece = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"half"}}"#;
        let start = r#"{"type":"message_start","message":{"id":"m"}}"#;
        format!(
            "{{\"type\":\"stream_event\",\"event\":{start}}}\n\
             {{\"type\":\"stream_event\",\"event\":{piece}}}\n{end}{claude_end}"
        )
    };
    let not_an_exit_code = r#"{"type":"assistant.message","data":{"content":"one"}}
        {"type":"result","exitCode":"1"}"#;
    for (dialect, lines, code) in [
        (EventDialect::Copilot, copilot.to_owned(), Code::TransientFailure),
        (EventDialect::Claude, claude(""), Code::TransientFailure),
        (EventDialect::Copilot, not_an_exit_code.to_owned(), Code::Reported),
    ] {
        let record = replay_lines(dialect, &lines).await;
        assert_eq!(record.failure_code(), Some(code), "{lines}");
        assert!(answer(&record).is_empty(), "{lines}");
    }
    for end in [
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_stop\"}}\n",
        "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"half\"}]}}\n",
    ] {
        let record = replay_lines(EventDialect::Claude, &claude(end)).await;
        assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "half"), "{end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_that_of_the_last_turn() {
    let claude = ["one", "two"].map(|text| {
        format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}"}}"#)
    });
    let codex = ["one", "two"].map(|text| {
        let item = format!(r#"{{"type":"agent_message","text":"{text}"}}"#);
        format!("{{\"type\":\"item.completed\",\"item\":{item}}}\n{{\"type\":\"turn.completed\"}}")
    });
    let opencode = ["one", "two"].map(|text| {
        let part = format!(r#"{{"messageID":"{text}","text":"{text}"}}"#);
        format!(
            "{{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{part}}}\n\
             {{\"type\":\"step_finish\",\"sessionID\":\"s\",\"part\":{{\"reason\":\"stop\"}}}}"
        )
    });
    for (dialect, lines) in [
        (EventDialect::Claude, claude),
        (EventDialect::Codex, codex),
        (EventDialect::Opencode, opencode),
    ] {
        let record = replay_lines(dialect, &lines.join("\n")).await;
        assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "two"), "{dialect:?}");
    }
}

/// A program may write more after its end, which is no turn of its own.
#[tokio::test(flavor = "multi_thread")]
async fn text_after_the_end_changes_no_answer() {
    let claude = r#"{"type":"result","subtype":"success","is_error":false,"result":"one"}
        {"type":"assistant","message":{"content":[{"type":"text","text":"later"}]}}"#;
    let opencode = r#"{"type":"text","sessionID":"s","part":{"messageID":"m","text":"one"}}
        {"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}
        {"type":"text","sessionID":"s","part":{"messageID":"m","text":"later"}}"#;
    let codex = r#"{"type":"item.completed","item":{"type":"agent_message","text":"one"}}
        {"type":"turn.completed"}
        {"type":"item.completed","item":{"type":"agent_message","text":"later"}}"#;
    for (dialect, lines) in [
        (EventDialect::Claude, claude),
        (EventDialect::Opencode, opencode),
        (EventDialect::Codex, codex),
    ] {
        let record = replay_lines(dialect, lines).await;
        assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "one"), "{dialect:?}");
    }
}

/// The message of the last turn cannot be read, so the answer of the turn before is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_message_of_the_last_turn_has_no_earlier_answer() {
    for (dialect, [first, lost, last]) in [
        (
            EventDialect::Claude,
            [
                r#"{"type":"result","subtype":"success","is_error":false,"result":"one"}"#,
                r#"{"type":"assistant","message":{"content":null}}"#,
                r#"{"type":"result","subtype":"success","is_error":false}"#,
            ],
        ),
        (
            EventDialect::Gemini,
            [
                "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"one\"}\n\
                 {\"type\":\"result\",\"status\":\"success\"}",
                r#"{"type":"message","role":"assistant","content":null}"#,
                r#"{"type":"result","status":"success"}"#,
            ],
        ),
        (
            EventDialect::Copilot,
            [
                "{\"type\":\"assistant.message\",\"data\":{\"content\":\"one\"}}\n\
                 {\"type\":\"result\",\"exitCode\":0}",
                r#"{"type":"assistant.message","data":null}"#,
                r#"{"type":"result","exitCode":0}"#,
            ],
        ),
        (
            EventDialect::Codex,
            [
                "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"one\"}}\n\
                 {\"type\":\"turn.completed\"}",
                r#"{"type":"item.completed","item":{"type":"agent_message"}}"#,
                r#"{"type":"turn.completed"}"#,
            ],
        ),
        (
            EventDialect::Opencode,
            [
                "{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{\"messageID\":\"m\",\"text\":\"one\"}}\n\
                 {\"type\":\"step_finish\",\"sessionID\":\"s\",\"part\":{\"reason\":\"stop\"}}",
                r#"{"type":"text","sessionID":"s","part":null}"#,
                r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#,
            ],
        ),
    ] {
        let record = replay_lines(dialect, &[first, lost, last].join("\n")).await;
        assert_eq!(record.failure_code(), Some(Code::OutputUnreadable), "{dialect:?}");
        assert!(answer(&record).is_empty(), "{dialect:?}");
    }
}

/// Pieces of a tool call follow the finished text of the same message.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_after_a_text_removes_no_answer() {
    let event = |event: &str| format!("{{\"type\":\"stream_event\",\"event\":{event}}}");
    let block = |block: &str| {
        format!("{{\"type\":\"assistant\",\"message\":{{\"id\":\"m\",\"content\":[{block}]}}}}")
    };
    let lines = [
        event(r#"{"type":"message_start","message":{"id":"m"}}"#),
        event(r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Done."}}"#),
        block(r#"{"type":"text","text":"Done."}"#),
        event(r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t"}}"#),
        event(
            r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        ),
        block(r#"{"type":"tool_use","id":"t","name":"Stop"}"#),
        event(r#"{"type":"message_stop"}"#),
        r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#.to_owned(),
    ];
    let record = replay_lines(EventDialect::Claude, &lines.join("\n")).await;
    assert_eq!((&record.result, answer(&record).as_str()), (&Ok(()), "Done."));
}

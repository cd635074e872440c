//! Tests of ACP with agents that break the protocol, refuse or end, and of single rules.

use algonius_protocols::{Command, FormAction, ProtocolKind, ProtocolStep, RequestAnswer};
use serde_json::{Value, json};

use crate::scripted_connection::{SESSION_KEY, ScriptedConnection, new_session_command};
use crate::timeline::new_connection;

/// Options of a permission request: ids and kinds.
type PermissionOptions = &'static [(&'static str, &'static str)];

const DEFAULT_OPTIONS: PermissionOptions =
    &[("always", "allow_always"), ("once", "allow_once"), ("no", "reject_once")];

fn selected_result(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn cancelled_result() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

#[test]
fn an_answer_selects_only_options_that_apply_once() {
    let cases: &[(PermissionOptions, RequestAnswer, Value)] = &[
        (DEFAULT_OPTIONS, RequestAnswer::Allow, selected_result("once")),
        (DEFAULT_OPTIONS, RequestAnswer::Deny { message: None }, selected_result("no")),
        (DEFAULT_OPTIONS, RequestAnswer::Cancel, cancelled_result()),
        (
            &[("always", "allow_always"), ("no", "reject_once")],
            RequestAnswer::Allow,
            selected_result("no"),
        ),
        (&[("always", "allow_always")], RequestAnswer::Allow, cancelled_result()),
        (&[("never", "reject_always")], RequestAnswer::Deny { message: None }, cancelled_result()),
        (&[("x", "allow_once"), ("x", "allow_always")], RequestAnswer::Allow, cancelled_result()),
        (
            &[("x", "allow_once"), ("no", "reject_once"), ("x", "new")],
            RequestAnswer::Allow,
            selected_result("no"),
        ),
        (
            &[("no", "allow_always"), ("no", "reject_once")],
            RequestAnswer::Allow,
            cancelled_result(),
        ),
    ];
    for (options, answer, expected) in cases {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_permission_request(0, "s", options);
        script.answer(0, answer.clone());
        assert_eq!(script.last_sent_message(), json!({"id": 0, "result": expected}), "{options:?}");
    }
}

#[test]
fn a_second_answer_sends_no_line() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    script.answer(0, RequestAnswer::Allow);
    script.clear_messages_and_steps();
    script.answer(0, RequestAnswer::Deny { message: None });
    script.answer(7, RequestAnswer::Allow);
    assert_eq!((script.sent_messages, script.step_texts), (vec![], vec![]));
}

#[test]
fn a_form_answer_to_a_permission_request_leaves_it_open() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    script.answer(0, RequestAnswer::Form { action: FormAction::Cancel });
    assert_eq!(script.sent_messages, Vec::<Value>::new());
    script.answer(0, RequestAnswer::Allow);
    assert_eq!(script.last_sent_message()["result"], selected_result("once"));
}

#[test]
fn a_request_for_another_session_is_cancelled() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_permission_request(0, "other", DEFAULT_OPTIONS);
    assert_eq!(script.last_sent_message(), json!({"id": 0, "result": cancelled_result()}));
    assert!(script.last_step_text().contains("unknown session"), "{:?}", script.step_texts);
}

#[test]
fn a_request_outside_of_a_turn_is_cancelled() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_response(&json!({"stopReason": "end_turn"}));
    script.clear_messages_and_steps();
    script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    assert_eq!(script.last_sent_message(), json!({"id": 0, "result": cancelled_result()}));
    assert!(script.last_step_text().contains("outside of a turn"), "{:?}", script.step_texts);
    script.prompt("again");
    script.receive_permission_request(1, "s", DEFAULT_OPTIONS);
    assert!(script.last_step_text().starts_with("ask 1"), "{:?}", script.step_texts);
}

/// An answer to the first request could be taken as an answer to the second one.
#[test]
fn a_reused_request_id_withdraws_the_open_request() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    script.clear_messages_and_steps();
    script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    assert_eq!(script.last_sent_message()["error"]["code"], -32600);
    assert!(
        script.step_texts.first().unwrap().starts_with("RequestWithdrawn"),
        "{:?}",
        script.step_texts
    );
    script.clear_messages_and_steps();
    script.answer(0, RequestAnswer::Allow);
    assert_eq!(script.sent_messages, Vec::<Value>::new());
}

#[test]
fn a_cancelled_turn_answers_present_and_later_requests() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    script.clear_messages_and_steps();
    script.run_command(Command::Cancel { session: SESSION_KEY });
    let [cancel, answer] = script.sent_messages.as_slice() else {
        panic!("{:?}", script.sent_messages)
    };
    assert_eq!(cancel["method"], "session/cancel");
    assert_eq!((&answer["id"], &answer["result"]), (&json!(0), &cancelled_result()));
    assert_eq!(script.step_texts, Vec::<String>::new());
    script.receive_permission_request(1, "s", DEFAULT_OPTIONS);
    assert_eq!(script.last_sent_message(), json!({"id": 1, "result": cancelled_result()}));
    assert!(script.last_step_text().starts_with("RequestAnswered"), "{:?}", script.step_texts);
}

#[test]
fn a_cancellation_without_a_turn_sends_no_line() {
    let mut script = ScriptedConnection::with_open_session(None);
    script.clear_messages_and_steps();
    script.run_command(Command::Cancel { session: SESSION_KEY });
    assert_eq!(script.sent_messages, Vec::<Value>::new());
}

#[test]
fn a_withdrawn_request_is_answered_and_reported() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_permission_request(4, "s", DEFAULT_OPTIONS);
    script.clear_messages_and_steps();
    let params = json!({"requestId": 4});
    script.receive_message(&json!({"method": "$/cancel_request", "params": params}));
    assert_eq!(script.last_sent_message(), json!({"id": 4, "result": cancelled_result()}));
    assert_eq!(
        script.step_texts,
        ["RequestWithdrawn { session: SessionKey(0), request_id: Number(4) }"]
    );
}

#[test]
fn a_turn_that_ends_withdraws_its_open_requests() {
    let mut script = ScriptedConnection::with_running_turn();
    let prompt_id = json!(3);
    script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    script.clear_messages_and_steps();
    script.receive_message(&json!({"id": prompt_id, "result": {"stopReason": "refusal"}}));
    assert_eq!(script.last_sent_message(), json!({"id": 0, "result": cancelled_result()}));
    let expected =
        ["RequestWithdrawn { session: SessionKey(0), request_id: Number(0) }", "end Refusal"];
    assert_eq!(script.step_texts, expected);
}

#[test]
fn form_answers_become_actions() {
    let accept = RequestAnswer::Form { action: FormAction::Accept(json!({"a": 1})) };
    let cases = [
        (accept, json!({"action": "accept", "content": {"a": 1}})),
        (RequestAnswer::Form { action: FormAction::Decline }, json!({"action": "decline"})),
        (RequestAnswer::Deny { message: None }, json!({"action": "decline"})),
        (RequestAnswer::Form { action: FormAction::Cancel }, json!({"action": "cancel"})),
        (RequestAnswer::Cancel, json!({"action": "cancel"})),
    ];
    for (answer, expected) in cases {
        let mut script = ScriptedConnection::with_running_turn();
        let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
        let params =
            json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": schema});
        script
            .receive_message(&json!({"id": "f", "method": "elicitation/create", "params": params}));
        assert_eq!(script.last_step_text(), "ask \"f\" form \"m\" Some([\"a\"]) None");
        let request_id = algonius_protocols::RequestId::Text("f".to_owned());
        script.run_command(Command::Answer { session: SESSION_KEY, request_id, answer });
        assert_eq!(script.last_sent_message(), json!({"id": "f", "result": expected}));
    }
}

#[test]
fn other_methods_are_not_found() {
    let mut script = ScriptedConnection::with_running_turn();
    script.receive_message(
        &json!({"id": 0, "method": "fs/read_text_file", "params": {"sessionId": "s"}}),
    );
    assert_eq!(script.last_sent_message()["error"]["code"], -32601);
    assert_eq!(script.step_texts, Vec::<String>::new());
}

#[test]
fn a_long_line_is_skipped_and_reported() {
    let mut script = ScriptedConnection::with_running_turn();
    script.connection =
        std::mem::replace(&mut script.connection, new_connection(ProtocolKind::Acp))
            .with_max_line_bytes(300);
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    script.receive_update(&chunk(&"x".repeat(400)));
    script.receive_update(&chunk("next"));
    assert_eq!(script.step_texts.len(), 2, "{:?}", script.step_texts);
    let message_lost_text = r#"MessageLost { reason: "is longer than 300 bytes", text: "" }"#;
    assert_eq!(script.step_texts.first().unwrap(), message_lost_text);
    assert_eq!(script.last_step_text(), "Answer None \"next\"");
}

#[test]
fn a_message_that_cannot_be_read_is_lost() {
    for line in [
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"#,
        r#"words {"jsonrpc":"2.0","method":"session/update"}"#,
        r#"[{"jsonrpc":"2.0","id":3,"result":{}}]"#,
        r#"words {"id":3,"error":{"code":1}}"#,
    ] {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_bytes(format!("{line}\n").as_bytes());
        let step_text = script.last_step_text();
        assert!(step_text.starts_with("MessageLost"), "{step_text}");
        let ProtocolStep::MessageLost { text, .. } =
            &new_connection(ProtocolKind::Acp).handle_output(format!("{line}\n").as_bytes())[0]
        else {
            panic!("{line}")
        };
        assert_eq!(text, line);
    }
    let mut cut_line_script = ScriptedConnection::with_running_turn();
    cut_line_script.receive_bytes(br#"{"jsonrpc":"2.0","method":"session/upd"#);
    let steps = cut_line_script.connection.handle_end_of_output();
    assert!(matches!(&steps[0], ProtocolStep::MessageLost { .. }), "{steps:?}");
}

#[test]
fn messages_are_read_in_spite_of_their_surroundings() {
    let chunk = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}}});
    for line in [
        format!("\u{1b}[?2004h{chunk}"),
        format!("\u{feff}{chunk}\r"),
        format!("starting\r{chunk}\u{1b}[0m"),
        chunk.to_string().replace("\"a\"", "\"a\\udc80\""),
    ] {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_bytes(format!("{line}\n{line}{line}\n").as_bytes());
        assert_eq!(script.step_texts.len(), 3, "{:?}", script.step_texts);
        let is_text = |step_text: &String| step_text.starts_with("Answer None \"a");
        assert!(script.step_texts.iter().all(is_text), "{:?}", script.step_texts);
    }
}

#[test]
fn malformed_lines_are_reported_and_change_nothing() {
    let mut script = ScriptedConnection::with_running_turn();
    let lines: [&[u8]; 8] = [
        b"no json",
        b"[]",
        b"{}",
        b"{\"id\":1.5,\"method\":\"x\"}",
        b"{\"method\":1}",
        b"\xff\xfe",
        b"{\"id\":99,\"result\":{}}",
        b"{\"id\":\"3\",\"result\":{\"stopReason\":\"end_turn\"}}",
    ];
    for line in lines {
        script.receive_bytes(&[line, b"\n"].concat());
        assert!(script.last_step_text().starts_with("ProtocolError"), "{:?}", script.step_texts);
    }
    script.receive_bytes(b" \r\n");
    assert_eq!(script.step_texts.len(), lines.len());
    script.receive_response(&json!({"stopReason": "end_turn"}));
    assert_eq!(script.last_step_text(), "end EndTurn");
}

#[test]
fn the_end_of_the_output_ends_turns_and_openings() {
    let mut turn_script = ScriptedConnection::with_running_turn();
    turn_script.receive_permission_request(0, "s", DEFAULT_OPTIONS);
    turn_script.clear_messages_and_steps();
    turn_script.receive_bytes(b"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"notice\",\"text\":\"bye\"}}}");
    let steps = turn_script.connection.handle_end_of_output();
    turn_script.record_steps(&steps);
    let withdrawn = "RequestWithdrawn { session: SessionKey(0), request_id: Number(0) }";
    let warning = "Warning { session: SessionKey(0), text: \"bye\" }";
    assert_eq!(turn_script.step_texts, [warning, withdrawn, "end Lost"]);
    turn_script.prompt("more");
    assert_eq!(turn_script.last_step_text(), "end Lost");

    let mut opening_script = ScriptedConnection::start(&json!({}));
    opening_script.run_command(new_session_command(None));
    let steps = opening_script.connection.handle_end_of_output();
    opening_script.record_steps(&steps);
    assert_eq!(opening_script.step_texts, ["open failed Other: the process has ended"]);
}

#[test]
fn a_session_has_one_turn_at_a_time() {
    let mut script = ScriptedConnection::with_running_turn();
    script.prompt("second");
    assert_eq!(script.sent_messages, Vec::<Value>::new());
    assert!(script.last_step_text().contains("a turn is in progress"));
    script.run_command(Command::Close { session: SESSION_KEY });
    script.receive_response(&json!({}));
    script.prompt("third");
    assert!(
        script.last_step_text().starts_with("end Failed { code: -32002"),
        "{:?}",
        script.step_texts
    );
}

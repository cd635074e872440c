//! Tests of a call from its first byte to its end, against a program that lines simulate.

use algonius_actors::model::program::stdio_protocol::Framing;

use super::*;

fn call(method: &str, params: Value) -> RpcCall {
    RpcCall { method: method.to_owned(), params }
}

fn notification_rule(kind: NotificationKind, pointer: &str) -> NotificationRule {
    NotificationRule { kind, pointer: pointer.to_owned() }
}

fn spec() -> RpcSpec {
    RpcSpec {
        framing: Framing::Lines,
        initialize: None,
        initialized: None,
        submit: call("ask", json!({"text": "{{ input }}"})),
        cancel: None,
        result_pointer: "/answer".to_owned(),
        session_pointer: Some("/session".to_owned()),
        usage_pointer: Some("/usage".to_owned()),
        notifications: [
            ("said".to_owned(), notification_rule(NotificationKind::Text, "/text")),
            ("doing".to_owned(), notification_rule(NotificationKind::Status, "")),
            ("named".to_owned(), notification_rule(NotificationKind::Session, "/id")),
        ]
        .into(),
        transient_codes: vec![-32_000],
    }
}

fn rpc_turn(spec: &RpcSpec, number: u64) -> RpcTurn {
    let values = ExecutionValues { input: "a \"b\"".to_owned(), ..ExecutionValues::default() };
    RpcTurn::new(spec, &values, number, 1 << 20).unwrap()
}

/// Returns each action as one word.
fn receive_as_action_texts(rpc: &mut RpcTurn, lines: &[Value]) -> Vec<String> {
    let bytes: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    let action_text = |action| match action {
        StdioAction::Write(bytes) => format!("write {}", String::from_utf8(bytes).unwrap().trim()),
        StdioAction::Event(ProgramEvent::Text { text }) => format!("text {text}"),
        StdioAction::Event(ProgramEvent::Session { id }) => format!("session {id}"),
        StdioAction::Event(ProgramEvent::Usage { fields, .. }) => {
            format!("usage {}", Value::Object(fields))
        }
        StdioAction::Event(ProgramEvent::Failed(event)) => {
            format!("failed {} {}", event.category, event.message)
        }
        StdioAction::Event(ProgramEvent::Status { .. }) => "status".to_owned(),
        StdioAction::Event(_) | StdioAction::Output(_) => "something".to_owned(),
        StdioAction::Warn(message) => format!("warn {message}"),
        StdioAction::UnreadableMessage(message) => {
            format!("unreadable {} {}", message.reason, message.text)
        }
        StdioAction::Desynchronized(failure) => format!("desynchronized {}", failure.code),
        StdioAction::End(None) => "end".to_owned(),
        StdioAction::End(Some(failure)) => format!("end {}", failure.code),
    };
    rpc.receive(&bytes).into_iter().map(action_text).collect()
}

#[test]
fn the_result_of_a_call_is_the_answer() {
    let mut rpc = rpc_turn(&spec(), 0);
    let request: Value = serde_json::from_slice(&rpc.take_first_bytes()).unwrap();
    let params = json!({"text": "a \"b\""});
    assert_eq!(request, json!({"jsonrpc": "2.0", "id": 2, "method": "ask", "params": params}));
    let result = json!({"answer": {"n": 1}, "session": "s1", "usage": {"input_tokens": 3}});
    let actions = receive_as_action_texts(&mut rpc, &[json!({"id": 2, "result": result})]);
    assert_eq!(actions, ["session s1", "usage {\"input_tokens\":3}", "text {\"n\":1}", "end"]);
    assert!(
        receive_as_action_texts(&mut rpc, &[json!({"id": 2, "result": {"answer": "more"}})])
            .is_empty()
    );
}

#[test]
fn notifications_give_the_answer_without_repeating_the_result() {
    let mut rpc = rpc_turn(&spec(), 0);
    let notification = |text: &str| json!({"method": "said", "params": {"text": text}});
    let actions = receive_as_action_texts(
        &mut rpc,
        &[
            notification("one "),
            json!({"method": "doing", "params": "things"}),
            json!({"method": "unknown", "params": 1}),
            json!({"method": "named", "params": {"id": "s2"}}),
            notification("two"),
            json!({"id": "2", "result": {"answer": "one two"}}),
        ],
    );
    assert_eq!(actions, ["text one ", "status", "session s2", "text two", "end"]);
}

#[test]
fn a_notification_without_text_is_a_loss_if_the_result_has_more() {
    let missing_text_warning = "warn a notification `said` has no text at its `pointer`; the answer is the text of the others";
    for (params, answer, expected) in [
        (json!({"t": "two"}), json!("one\ntwo"), &["end output-unreadable"][..]),
        (json!({"text": null}), json!("one two"), &["end output-unreadable"]),
        (json!(["two"]), json!("FULL"), &[missing_text_warning, "end"]),
        (json!({"tool": "read"}), json!("one"), &["end"]),
        (json!({"tool": "read"}), Value::Null, &["end"]),
    ] {
        let lines = [
            json!({"method": "said", "params": {"text": "one "}}),
            json!({"method": "said", "params": params}),
            json!({"id": 2, "result": {"answer": answer}}),
        ];
        let actions = receive_as_action_texts(&mut rpc_turn(&spec(), 0), &lines);
        assert_eq!(actions, [&["text one "], expected].concat(), "{params} {answer}");
        // By default all of the result is its text: an object, which is no answer beside notifications.
        let default_spec = RpcSpec { result_pointer: String::new(), ..spec() };
        assert_eq!(
            receive_as_action_texts(&mut rpc_turn(&default_spec, 0), &lines),
            ["text one ", "end"]
        );
    }
    let text_notification = |text: &str| json!({"method": "said", "params": {"text": text}});
    let lines = [
        text_notification("Hello "),
        json!({"method": "said"}),
        json!({"method": "said", "params": {"tool": "read"}}),
        text_notification("world"),
        json!({"id": 2, "result": {"answer": "Hello brave world"}}),
    ];
    let actions = receive_as_action_texts(&mut rpc_turn(&spec(), 0), &lines);
    assert_eq!(actions, ["text Hello ", "text world", "end output-unreadable"]);
    let object = json!({"id": 2, "result": {"answer": {"content": "Hello brave world"}}});
    let lines = [text_notification("Hello "), json!({"method": "said"}), object];
    assert_eq!(receive_as_action_texts(&mut rpc_turn(&spec(), 0), &lines), ["text Hello ", "end"]);
    let lines = [
        text_notification(" "),
        json!({"method": "said"}),
        json!({"id": 2, "result": {"answer": "all"}}),
    ];
    assert_eq!(
        receive_as_action_texts(&mut rpc_turn(&spec(), 0), &lines),
        ["text  ", "text all", "end"]
    );
    // Without any text of a notification, the result is the answer.
    let lines = [json!({"method": "said"}), json!({"id": 2, "result": {"answer": "all"}})];
    assert_eq!(receive_as_action_texts(&mut rpc_turn(&spec(), 0), &lines), ["text all", "end"]);
}

#[test]
fn a_program_is_initialized_once_before_its_calls() {
    let initialize = Some(call("initialize", json!({"v": 1})));
    let spec_with_initialize =
        RpcSpec { initialize, initialized: Some(call("ready", Value::Null)), ..spec() };
    let mut rpc = rpc_turn(&spec_with_initialize, 0);
    let first: Value = serde_json::from_slice(&rpc.take_first_bytes()).unwrap();
    assert_eq!((&first["id"], &first["method"]), (&json!(1), &json!("initialize")));
    // A response to a call that was not made yet is no answer.
    let early_actions = receive_as_action_texts(&mut rpc, &[json!({"id": 2, "result": 1})]);
    assert_eq!(early_actions, ["warn the agent answered another call than the present one"]);
    let actions = receive_as_action_texts(&mut rpc, &[json!({"id": 1, "result": {}})]);
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert!(actions[0].contains("\"ready\"") && !actions[0].contains("id"), "{actions:?}");
    assert!(actions[1].contains("\"ask\"") && actions[1].contains("\"id\":2"), "{actions:?}");
    let later_request: Value =
        serde_json::from_slice(&rpc_turn(&spec_with_initialize, 5).take_first_bytes()).unwrap();
    assert_eq!((&later_request["id"], &later_request["method"]), (&json!(7), &json!("ask")));
}

#[test]
fn error_responses_are_failures_with_transient_codes() {
    let error = |code: i64| json!({"id": 2, "error": {"code": code, "message": "no"}});
    for (code, category) in [(-32_000, "transient"), (7, "")] {
        let actions = receive_as_action_texts(&mut rpc_turn(&spec(), 0), &[error(code)]);
        assert_eq!(actions, [format!("failed {category} no (error {code})"), "end".to_owned()]);
    }
    let actions = receive_as_action_texts(
        &mut rpc_turn(&spec(), 0),
        &[json!({"id": null, "error": {"code": -32_700}})],
    );
    assert_eq!(actions, ["failed   (error -32700)", "end"]);
    let missing = receive_as_action_texts(
        &mut rpc_turn(&spec(), 0),
        &[json!({"id": 2, "result": {"other": 1}})],
    );
    assert_eq!(missing, ["end answer-missing"]);
}

#[test]
fn requests_of_the_program_are_refused_and_junk_is_noted() {
    let mut rpc = rpc_turn(&spec(), 0);
    let actions = receive_as_action_texts(
        &mut rpc,
        &[json!({"id": "x", "method": "fs/read", "params": {}}), json!("junk"), json!(7)],
    );
    assert!(actions[0].contains("-32601") && actions[0].contains("\"id\":\"x\""), "{actions:?}");
    assert!(actions[1].contains("`fs/read`") && actions[2].contains("not JSON-RPC"), "{actions:?}");
    assert_eq!(actions.len(), 3);
}

#[test]
fn a_call_is_cancelled_by_its_id_or_as_configured() {
    assert_eq!(rpc_turn(&spec(), 0).interrupt_bytes(), None);
    for (params, expected) in
        [(Value::Null, json!({"id": 5})), (json!({"s": "{{ input }}"}), json!({"s": "a \"b\""}))]
    {
        let spec = RpcSpec { cancel: Some(call("$/cancel", params)), ..spec() };
        let bytes = rpc_turn(&spec, 3).interrupt_bytes().unwrap();
        let written: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(written["params"], expected);
    }
}

#[test]
fn a_response_to_another_call_is_a_warning() {
    for message in [
        json!({"id": 7, "result": {"answer": "another"}}),
        json!({"id": 2.5, "result": {"answer": "another"}}),
    ] {
        let mut rpc = rpc_turn(&spec(), 0);
        let actions = receive_as_action_texts(&mut rpc, &[message.clone(), message.clone()]);
        assert!(
            matches!(&*actions, [warning] if warning.starts_with("warn ")),
            "{message}: {actions:?}"
        );
    }
    for id in [json!(2), json!(2.0), json!("2")] {
        let mut rpc = rpc_turn(&spec(), 0);
        let actions =
            receive_as_action_texts(&mut rpc, &[json!({"id": id, "result": {"answer": "a"}})]);
        assert_eq!(actions, ["text a", "end"], "{id}");
    }
}

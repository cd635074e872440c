//! Tests of claude-control and of the codex app server beyond their transcripts.

use algonius_protocols::{
    Command, FormAction, PromptPart, ProtocolKind, ProtocolStep, RequestAnswer, RequestId,
    SessionStart,
};
use serde_json::{Value, json};

use crate::scripted_connection::{SESSION_KEY, open_command};
use crate::step_text::step_text;
use crate::timeline::{TimelineEvent, check_every_crash, run_timeline, sent_bytes};

const CLAUDE: ProtocolKind = ProtocolKind::ClaudeControl;
const CODEX: ProtocolKind = ProtocolKind::CodexAppServer;

fn agent_event(message: &Value) -> TimelineEvent {
    TimelineEvent::Agent(format!("{message}\n").into_bytes())
}

fn client_event(command: Command) -> TimelineEvent {
    TimelineEvent::Client(command)
}

fn prompt_event() -> TimelineEvent {
    client_event(Command::Prompt {
        session: SESSION_KEY,
        parts: vec![PromptPart::Text("go".to_owned())],
    })
}

fn answer_event(request: RequestId, answer: RequestAnswer) -> TimelineEvent {
    client_event(Command::Answer { session: SESSION_KEY, request_id: request, answer })
}

fn cancel_event() -> TimelineEvent {
    client_event(Command::Cancel { session: SESSION_KEY })
}

/// Returns the sent messages and the other steps in short form.
fn run_and_split_steps(kind: ProtocolKind, events: &[TimelineEvent]) -> (Vec<Value>, Vec<String>) {
    let steps = run_timeline(kind, events).concat();
    let lines = sent_bytes(&steps);
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    (lines, steps.iter().filter_map(step_text).collect())
}

fn control_response_event(id: &str, response: &Value) -> TimelineEvent {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    agent_event(&json!({"type": "control_response", "response": response}))
}

/// Opens a session of claude-control in the mode `default`.
fn claude_opening_events() -> Vec<TimelineEvent> {
    vec![
        client_event(Command::Initialize),
        client_event(open_command(
            SessionStart::Resume { native_id: "c".to_owned() },
            Some("default"),
        )),
        control_response_event("client-1", &json!({"current_permission_mode": "auto"})),
        control_response_event("client-2", &json!({"mode": "default"})),
    ]
}

fn tool_request_event(id: &str, call_id: &str) -> TimelineEvent {
    let input = json!({"command": format!("ls {call_id}")});
    let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": input, "tool_use_id": call_id});
    agent_event(&json!({"type": "control_request", "request_id": id, "request": request}))
}

fn result_event(subtype: &str) -> TimelineEvent {
    agent_event(
        &json!({"type": "result", "subtype": subtype, "session_id": "c", "is_error": false}),
    )
}

fn text_request_id(id: &str) -> RequestId {
    RequestId::Text(id.to_owned())
}

/// Returns the response to a request of the agent.
fn response_to_request<'l>(lines: &'l [Value], id: &str) -> &'l Value {
    &lines.iter().find(|line| line["response"]["request_id"] == id).unwrap()["response"]
}

#[test]
fn a_claude_turn_is_answered_cancelled_and_replayed() {
    let mut events = claude_opening_events();
    let deny = RequestAnswer::Deny { message: Some("too risky".to_owned()) };
    events.extend([
        prompt_event(),
        tool_request_event("a", "t1"),
        answer_event(text_request_id("a"), deny),
        agent_event(&json!({"type": "control_request", "request_id": "h", "request": {"subtype": "hook_callback"}})),
        result_event("success"),
        tool_request_event("late", "t0"),
        prompt_event(),
        tool_request_event("b", "t2"),
        answer_event(text_request_id("b"), RequestAnswer::Allow),
        tool_request_event("c", "t3"),
        tool_request_event("c", "t3"),
        tool_request_event("w", "t4"),
        agent_event(&json!({"type": "control_cancel_request", "request_id": "w"})),
        tool_request_event("d", "t5"),
        cancel_event(),
        tool_request_event("e", "t6"),
        result_event("error_during_execution"),
        prompt_event(),
        result_event("error_max_turns"),
    ]);
    check_every_crash(CLAUDE, &events);
    let (lines, step_texts) = run_and_split_steps(CLAUDE, &events);
    let behavior = |id| response_to_request(&lines, id)["response"]["behavior"].as_str();
    assert_eq!(
        response_to_request(&lines, "a")["response"],
        json!({"behavior": "deny", "message": "too risky"})
    );
    assert_eq!(
        response_to_request(&lines, "b")["response"],
        json!({"behavior": "allow", "updatedInput": {"command": "ls t2"}})
    );
    for id in ["late", "w", "d", "e"] {
        assert_eq!(behavior(id), Some("deny"), "{id}");
    }
    for id in ["h", "c"] {
        assert_eq!(response_to_request(&lines, id)["subtype"], "error", "{id}");
    }
    let end_texts: Vec<_> = step_texts.iter().filter(|line| line.starts_with("end")).collect();
    assert_eq!(end_texts, ["end EndTurn", "end Cancelled", "end MaxTurnRequests"]);
    assert_eq!(step_texts.get(1).unwrap(), "opened c mode=Some(\"default\") of [] model=None");
}

#[test]
fn a_refused_claude_mode_fails_the_opening() {
    let mut events = claude_opening_events();
    events.pop();
    let response = json!({"subtype": "error", "request_id": "client-2", "error": "not permitted"});
    events.push(agent_event(&json!({"type": "control_response", "response": response})));
    let (_, step_texts) = run_and_split_steps(CLAUDE, &events);
    let expected = "open failed ModeNotConfirmed { requested: \"default\" }: not permitted";
    assert_eq!(step_texts.last().unwrap(), expected);
}

#[test]
fn a_claude_failure_names_its_cause() {
    let mut events = claude_opening_events();
    events.push(prompt_event());
    let result = json!({
        "type": "result", "subtype": "success", "is_error": true, "api_error_status": 401, "result": "no key",
        "total_cost_usd": 0.5,
    });
    events.push(agent_event(&result));
    let (_, step_texts) = run_and_split_steps(CLAUDE, &events);
    assert!(
        step_texts
            .last()
            .unwrap()
            .contains("code: 401, message: \"no key\", is_authentication_error: true")
    );
}

/// Returns the texts of a turn with this message and this result.
fn answer_texts_of_claude_turn(message: Option<&Value>, result: &Value) -> Vec<String> {
    let mut events = claude_opening_events();
    events.push(prompt_event());
    events.extend(message.map(agent_event));
    let mut result_message = json!({"type": "result", "subtype": "success", "is_error": false});
    result_message.as_object_mut().unwrap().append(&mut result.as_object().unwrap().clone());
    events.push(agent_event(&result_message));
    check_every_crash(CLAUDE, &events);
    let (_, step_texts) = run_and_split_steps(CLAUDE, &events);
    assert_eq!(step_texts.last().unwrap(), "end EndTurn");
    step_texts.into_iter().filter(|text| text.starts_with("Answer")).collect()
}

#[test]
fn a_claude_answer_that_only_the_result_contains_is_a_text() {
    let message = |text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"type": "assistant", "message": {"id": "m", "content": content}})
    };
    let result = json!({"result": "42"});
    let result_answer_text = "Answer Some(\"result\") \"42\"";
    assert_eq!(answer_texts_of_claude_turn(None, &result), [result_answer_text]);
    assert_eq!(
        answer_texts_of_claude_turn(Some(&message("let me look")), &result),
        ["Answer Some(\"m\") \"let me look\"", result_answer_text]
    );
    for message_text in ["42", "it is 42", "42\n"] {
        assert_eq!(
            answer_texts_of_claude_turn(Some(&message(message_text)), &result).len(),
            1,
            "{message_text}"
        );
    }
    let structured_result = json!({"result": "42", "structured_output": {"a": 1}});
    assert_eq!(
        answer_texts_of_claude_turn(Some(&message("42")), &structured_result).pop().unwrap(),
        "Answer Some(\"result\") \"{\\\"a\\\":1}\""
    );
}

#[test]
fn a_claude_message_without_an_id_is_shown_unless_it_is_nested() {
    let content = json!([{"type": "text", "text": "42"}]);
    let message = json!({"type": "assistant", "message": {"content": content}});
    assert_eq!(
        answer_texts_of_claude_turn(Some(&message), &json!({"result": "42"})),
        ["Answer None \"42\""]
    );
    let mut nested = message;
    nested["parent_tool_use_id"] = json!("t");
    assert_eq!(answer_texts_of_claude_turn(Some(&nested), &json!({})), [""; 0]);
}

/// Opens a thread of the app server in the sandbox `read-only`.
fn codex_opening_events(reported_sandbox: &str) -> Vec<TimelineEvent> {
    vec![
        client_event(Command::Initialize),
        client_event(open_command(SessionStart::New, Some("read-only"))),
        agent_event(&json!({"id": 1, "result": {"userAgent": "client/1.2 (x)"}})),
        agent_event(
            &json!({"id": 2, "result": {"thread": {"id": "th"}, "sandbox": {"type": reported_sandbox}}}),
        ),
    ]
}

fn approval_request_event(id: i64, thread_id: &str, decisions: &Value) -> TimelineEvent {
    let params = json!({"threadId": thread_id, "itemId": "i", "command": "ls", "availableDecisions": decisions});
    agent_event(
        &json!({"id": id, "method": "item/commandExecution/requestApproval", "params": params}),
    )
}

fn turn_completed_event(turn_id: &str, status: &str) -> TimelineEvent {
    let turn = json!({"id": turn_id, "status": status});
    agent_event(&json!({"method": "turn/completed", "params": {"threadId": "th", "turn": turn}}))
}

fn turn_start_response_event(request_id: i64, turn: &str) -> TimelineEvent {
    agent_event(&json!({"id": request_id, "result": {"turn": {"id": turn}}}))
}

#[test]
fn a_codex_decision_never_applies_to_later_calls() {
    let all_decisions = json!(["accept", "acceptForSession", "decline", "cancel"]);
    let cases = [
        (all_decisions.clone(), RequestAnswer::Allow, "accept"),
        (all_decisions.clone(), RequestAnswer::Deny { message: None }, "decline"),
        (all_decisions, RequestAnswer::Cancel, "cancel"),
        (json!(["acceptForSession", "cancel"]), RequestAnswer::Allow, "cancel"),
        (json!([{"accept": {"for": "ever"}}, "decline"]), RequestAnswer::Allow, "decline"),
        (Value::Null, RequestAnswer::Allow, "accept"),
    ];
    for (decisions, answer_value, expected) in cases {
        let mut events = codex_opening_events("readOnly");
        events.extend([
            prompt_event(),
            approval_request_event(0, "th", &decisions),
            answer_event(RequestId::Number(0), answer_value),
        ]);
        let (lines, _) = run_and_split_steps(CODEX, &events);
        assert_eq!(lines.last().unwrap()["result"]["decision"], expected, "{decisions}");
    }
}

#[test]
fn a_codex_turn_is_answered_cancelled_and_replayed() {
    let mut events = codex_opening_events("readOnly");
    let questions = json!([{"id": "q", "question": "Which?", "options": [{"label": "A"}]}]);
    let params = json!({"threadId": "th", "itemId": "i", "questions": questions});
    let request_event = |id: i64, method: &str, params: &Value| {
        agent_event(&json!({"id": id, "method": method, "params": params}))
    };
    let form = json!({"threadId": "th", "message": "m", "requestedSchema": {}});
    events.extend([
        prompt_event(),
        turn_start_response_event(3, "u1"),
        request_event(0, "item/tool/requestUserInput", &params),
        answer_event(RequestId::Number(0), RequestAnswer::Form { action: FormAction::Accept(json!({"q": "A"})) }),
        request_event(1, "mcpServer/elicitation/request", &form),
        answer_event(RequestId::Number(1), RequestAnswer::Deny { message: None }),
        approval_request_event(2, "foreign", &Value::Null),
        approval_request_event(3, "th", &Value::Null),
        approval_request_event(3, "th", &Value::Null),
        approval_request_event(4, "th", &Value::Null),
        agent_event(&json!({"method": "serverRequest/resolved", "params": {"threadId": "th", "requestId": 4}})),
        request_event(5, "account/chatgptAuthTokens/refresh", &json!({})),
        approval_request_event(6, "th", &Value::Null),
        cancel_event(),
        approval_request_event(7, "th", &Value::Null),
        agent_event(&json!({"id": 4, "result": {}})),
        turn_completed_event("u1", "interrupted"),
        approval_request_event(8, "th", &Value::Null),
        prompt_event(),
        turn_start_response_event(5, "u2"),
        turn_completed_event("u2", "failed"),
    ]);
    check_every_crash(CODEX, &events);
    let (lines, step_texts) = run_and_split_steps(CODEX, &events);
    let response_to =
        |id: i64| lines.iter().find(|it| it["id"] == id && it.get("method").is_none()).unwrap();
    assert_eq!(response_to(0)["result"], json!({"answers": {"q": {"answers": ["A"]}}}));
    assert_eq!(response_to(1)["result"], json!({"action": "decline"}));
    for id in [2, 4, 6, 7, 8] {
        assert_eq!(response_to(id)["result"]["decision"], "cancel", "{id}");
    }
    assert_eq!(response_to(5)["error"]["code"], -32601);
    let end_texts: Vec<_> = step_texts.iter().filter(|line| line.starts_with("end")).collect();
    assert_eq!(end_texts.first().unwrap().as_str(), "end Cancelled");
    assert!(end_texts.last().unwrap().starts_with("end Failed"), "{step_texts:?}");
}

#[test]
fn another_codex_sandbox_fails_the_opening() {
    let (_, step_texts) = run_and_split_steps(CODEX, &codex_opening_events("dangerFullAccess"));
    let expected = "open failed ModeNotConfirmed { requested: \"read-only\" }";
    assert!(step_texts.last().unwrap().starts_with(expected), "{step_texts:?}");
}

#[test]
fn an_early_codex_cancellation_waits_for_the_turn_id() {
    let mut events = codex_opening_events("readOnly");
    events.extend([prompt_event(), cancel_event()]);
    let (before, _) = run_and_split_steps(CODEX, &events);
    events.push(turn_start_response_event(3, "u1"));
    let (after, _) = run_and_split_steps(CODEX, &events);
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(after.last().unwrap()["params"], json!({"threadId": "th", "turnId": "u1"}));
}

#[test]
fn the_end_of_the_output_ends_turns_of_every_protocol() {
    for (kind, mut events) in
        [(CLAUDE, claude_opening_events()), (CODEX, codex_opening_events("readOnly"))]
    {
        events.push(prompt_event());
        let mut connection = crate::timeline::new_connection(kind);
        for event in &events {
            _ = crate::timeline::run_event(&mut connection, event);
        }
        let steps = connection.handle_end_of_output();
        let [ProtocolStep::TurnEnded { .. }] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(connection.handle_end_of_output(), []);
    }
}

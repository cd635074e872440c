//! Tests of claude-control and of the codex app server beyond their transcripts.

use algonius_protocols::{
    Command, FormAction, PromptPart, ProtocolKind, RequestAnswer, RequestId, SessionStart, Step,
};
use serde_json::{Value, json};

use crate::scripted_connection::{SESSION_KEY, open};
use crate::step_text::step_text;
use crate::timeline::{Event, check_every_crash, run_timeline, sent};

const CLAUDE: ProtocolKind = ProtocolKind::ClaudeControl;
const CODEX: ProtocolKind = ProtocolKind::CodexAppServer;

fn agent(message: &Value) -> Event {
    Event::Agent(format!("{message}\n").into_bytes())
}

fn client(command: Command) -> Event {
    Event::Client(command)
}

fn prompt() -> Event {
    client(Command::Prompt { session: SESSION_KEY, parts: vec![PromptPart::Text("go".to_owned())] })
}

fn answer(request: RequestId, answer: RequestAnswer) -> Event {
    client(Command::Answer { session: SESSION_KEY, request, answer })
}

fn cancel() -> Event {
    client(Command::Cancel { session: SESSION_KEY })
}

/// Returns the sent messages and the other steps in short form.
fn run(kind: ProtocolKind, events: &[Event]) -> (Vec<Value>, Vec<String>) {
    let steps = run_timeline(kind, events).concat();
    let lines = sent(&steps);
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    (lines, steps.iter().filter_map(step_text).collect())
}

fn control(id: &str, response: &Value) -> Event {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    agent(&json!({"type": "control_response", "response": response}))
}

/// Opens a session of claude-control in the mode `default`.
fn claude_open() -> Vec<Event> {
    vec![
        client(Command::Initialize),
        client(open(SessionStart::Resume { id: "c".to_owned() }, Some("default"))),
        control("client-1", &json!({"current_permission_mode": "auto"})),
        control("client-2", &json!({"mode": "default"})),
    ]
}

fn tool(id: &str, call: &str) -> Event {
    let input = json!({"command": format!("ls {call}")});
    let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": input, "tool_use_id": call});
    agent(&json!({"type": "control_request", "request_id": id, "request": request}))
}

fn result(subtype: &str) -> Event {
    agent(&json!({"type": "result", "subtype": subtype, "session_id": "c", "is_error": false}))
}

fn text(id: &str) -> RequestId {
    RequestId::Text(id.to_owned())
}

/// Returns the response to a request of the agent.
fn response<'l>(lines: &'l [Value], id: &str) -> &'l Value {
    &lines.iter().find(|line| line["response"]["request_id"] == id).unwrap()["response"]
}

#[test]
fn a_claude_turn_is_answered_cancelled_and_replayed() {
    let mut events = claude_open();
    let deny = RequestAnswer::Deny { message: Some("too risky".to_owned()) };
    events.extend([
        prompt(),
        tool("a", "t1"),
        answer(text("a"), deny),
        agent(&json!({"type": "control_request", "request_id": "h", "request": {"subtype": "hook_callback"}})),
        result("success"),
        tool("late", "t0"),
        prompt(),
        tool("b", "t2"),
        answer(text("b"), RequestAnswer::Allow),
        tool("c", "t3"),
        tool("c", "t3"),
        tool("w", "t4"),
        agent(&json!({"type": "control_cancel_request", "request_id": "w"})),
        tool("d", "t5"),
        cancel(),
        tool("e", "t6"),
        result("error_during_execution"),
        prompt(),
        result("error_max_turns"),
    ]);
    check_every_crash(CLAUDE, &events);
    let (lines, step_texts) = run(CLAUDE, &events);
    let behavior = |id| response(&lines, id)["response"]["behavior"].as_str();
    assert_eq!(
        response(&lines, "a")["response"],
        json!({"behavior": "deny", "message": "too risky"})
    );
    assert_eq!(
        response(&lines, "b")["response"],
        json!({"behavior": "allow", "updatedInput": {"command": "ls t2"}})
    );
    for id in ["late", "w", "d", "e"] {
        assert_eq!(behavior(id), Some("deny"), "{id}");
    }
    for id in ["h", "c"] {
        assert_eq!(response(&lines, id)["subtype"], "error", "{id}");
    }
    let end_texts: Vec<_> = step_texts.iter().filter(|line| line.starts_with("end")).collect();
    assert_eq!(end_texts, ["end EndTurn", "end Cancelled", "end MaxTurnRequests"]);
    assert_eq!(step_texts.get(1).unwrap(), "opened c mode=Some(\"default\") of [] model=None");
}

#[test]
fn a_refused_claude_mode_fails_the_opening() {
    let mut events = claude_open();
    events.pop();
    let response = json!({"subtype": "error", "request_id": "client-2", "error": "not permitted"});
    events.push(agent(&json!({"type": "control_response", "response": response})));
    let (_, step_texts) = run(CLAUDE, &events);
    let expected = "open failed ModeNotConfirmed { requested: \"default\" }: not permitted";
    assert_eq!(step_texts.last().unwrap(), expected);
}

#[test]
fn a_claude_failure_names_its_cause() {
    let mut events = claude_open();
    events.push(prompt());
    let result = json!({
        "type": "result", "subtype": "success", "is_error": true, "api_error_status": 401, "result": "no key",
        "total_cost_usd": 0.5,
    });
    events.push(agent(&result));
    let (_, step_texts) = run(CLAUDE, &events);
    assert!(
        step_texts
            .last()
            .unwrap()
            .contains("code: 401, message: \"no key\", is_authentication: true")
    );
}

/// Opens a thread of the app server in the sandbox `read-only`.
fn codex_open(sandbox: &str) -> Vec<Event> {
    vec![
        client(Command::Initialize),
        client(open(SessionStart::New, Some("read-only"))),
        agent(&json!({"id": 1, "result": {"userAgent": "client/1.2 (x)"}})),
        agent(&json!({"id": 2, "result": {"thread": {"id": "th"}, "sandbox": {"type": sandbox}}})),
    ]
}

fn approval(id: i64, thread: &str, decisions: &Value) -> Event {
    let params = json!({"threadId": thread, "itemId": "i", "command": "ls", "availableDecisions": decisions});
    agent(&json!({"id": id, "method": "item/commandExecution/requestApproval", "params": params}))
}

fn completed(turn: &str, status: &str) -> Event {
    let turn = json!({"id": turn, "status": status});
    agent(&json!({"method": "turn/completed", "params": {"threadId": "th", "turn": turn}}))
}

fn started(request: i64, turn: &str) -> Event {
    agent(&json!({"id": request, "result": {"turn": {"id": turn}}}))
}

#[test]
fn a_codex_decision_never_applies_to_later_calls() {
    let all_decisions = json!(["accept", "acceptForSession", "decline", "cancel"]);
    let cases = [
        (all_decisions.clone(), RequestAnswer::Allow, "accept"),
        (all_decisions.clone(), RequestAnswer::Deny { message: None }, "decline"),
        (all_decisions, RequestAnswer::Cancelled, "cancel"),
        (json!(["acceptForSession", "cancel"]), RequestAnswer::Allow, "cancel"),
        (json!([{"accept": {"for": "ever"}}, "decline"]), RequestAnswer::Allow, "decline"),
        (Value::Null, RequestAnswer::Allow, "accept"),
    ];
    for (decisions, answer_value, expected) in cases {
        let mut events = codex_open("readOnly");
        events.extend([
            prompt(),
            approval(0, "th", &decisions),
            answer(RequestId::Number(0), answer_value),
        ]);
        let (lines, _) = run(CODEX, &events);
        assert_eq!(lines.last().unwrap()["result"]["decision"], expected, "{decisions}");
    }
}

#[test]
fn a_codex_turn_is_answered_cancelled_and_replayed() {
    let mut events = codex_open("readOnly");
    let questions = json!([{"id": "q", "question": "Which?", "options": [{"label": "A"}]}]);
    let params = json!({"threadId": "th", "itemId": "i", "questions": questions});
    let ask = |id: i64, method: &str, params: &Value| {
        agent(&json!({"id": id, "method": method, "params": params}))
    };
    let form = json!({"threadId": "th", "message": "m", "requestedSchema": {}});
    events.extend([
        prompt(),
        started(3, "u1"),
        ask(0, "item/tool/requestUserInput", &params),
        answer(RequestId::Number(0), RequestAnswer::Form { action: FormAction::Accept(json!({"q": "A"})) }),
        ask(1, "mcpServer/elicitation/request", &form),
        answer(RequestId::Number(1), RequestAnswer::Deny { message: None }),
        approval(2, "foreign", &Value::Null),
        approval(3, "th", &Value::Null),
        approval(3, "th", &Value::Null),
        approval(4, "th", &Value::Null),
        agent(&json!({"method": "serverRequest/resolved", "params": {"threadId": "th", "requestId": 4}})),
        ask(5, "account/chatgptAuthTokens/refresh", &json!({})),
        approval(6, "th", &Value::Null),
        cancel(),
        approval(7, "th", &Value::Null),
        agent(&json!({"id": 4, "result": {}})),
        completed("u1", "interrupted"),
        approval(8, "th", &Value::Null),
        prompt(),
        started(5, "u2"),
        completed("u2", "failed"),
    ]);
    check_every_crash(CODEX, &events);
    let (lines, step_texts) = run(CODEX, &events);
    let sent =
        |id: i64| lines.iter().find(|it| it["id"] == id && it.get("method").is_none()).unwrap();
    assert_eq!(sent(0)["result"], json!({"answers": {"q": {"answers": ["A"]}}}));
    assert_eq!(sent(1)["result"], json!({"action": "decline"}));
    for id in [2, 4, 6, 7, 8] {
        assert_eq!(sent(id)["result"]["decision"], "cancel", "{id}");
    }
    assert_eq!(sent(5)["error"]["code"], -32601);
    let end_texts: Vec<_> = step_texts.iter().filter(|line| line.starts_with("end")).collect();
    assert_eq!(end_texts.first().unwrap().as_str(), "end Cancelled");
    assert!(end_texts.last().unwrap().starts_with("end Failed"), "{step_texts:?}");
}

#[test]
fn another_codex_sandbox_fails_the_opening() {
    let (_, step_texts) = run(CODEX, &codex_open("dangerFullAccess"));
    let expected = "open failed ModeNotConfirmed { requested: \"read-only\" }";
    assert!(step_texts.last().unwrap().starts_with(expected), "{step_texts:?}");
}

#[test]
fn an_early_codex_cancellation_waits_for_the_turn_id() {
    let mut events = codex_open("readOnly");
    events.extend([prompt(), cancel()]);
    let (before, _) = run(CODEX, &events);
    events.push(started(3, "u1"));
    let (after, _) = run(CODEX, &events);
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(after.last().unwrap()["params"], json!({"threadId": "th", "turnId": "u1"}));
}

#[test]
fn the_end_of_the_output_ends_turns_of_every_protocol() {
    for (kind, mut events) in [(CLAUDE, claude_open()), (CODEX, codex_open("readOnly"))] {
        events.push(prompt());
        let mut connection = crate::timeline::connection(kind);
        for event in &events {
            _ = crate::timeline::run(&mut connection, event);
        }
        let steps = connection.end_of_output();
        let [Step::TurnEnded { .. }] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(connection.end_of_output(), []);
    }
}

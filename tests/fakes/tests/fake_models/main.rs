//! Tests of the fake model: it follows the APIs of the real services, and obeys its directives.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper that cannot help fails the test"
)]

mod client;
mod dialects;

use std::io::Read as _;
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use serde_json::{Value, json};

use client::ModelProcess;
use dialects::{ANTHROPIC, CHAT, DIALECTS, DialectCase, GEMINI, RESPONSES};

/// Returns the arguments of a call as an object, also if they are text.
fn arguments_object(value: Value) -> Value {
    value.as_str().map_or(value.clone(), |text| serde_json::from_str(text).unwrap())
}

#[test]
fn a_prompt_is_echoed_as_a_whole_and_as_a_stream() {
    let model = ModelProcess::start(&[]);
    for dialect in &DIALECTS {
        let full_response = model
            .send_prompt(dialect, "<env_context>x</env_context> häl-lo [[mock usage=1000,50]]");
        assert_eq!(full_response.value_at(dialect.text_pointer), "ECHO: häl-lo");
        assert_eq!(
            dialect.usage_pointers.map(|pointer| full_response.value_at(pointer)),
            [json!(1000), json!(50)]
        );
        let stream_response = model.stream_prompt(dialect, "häl-lo [[mock piece=2]]");
        assert!(
            stream_response.head.contains("text/event-stream") && stream_response.is_complete,
            "{stream_response:?}"
        );
        assert_eq!(stream_response.streamed_text(dialect), "ECHO: häl-lo");
    }
}

#[test]
fn a_stream_has_the_events_of_its_dialect() {
    let model = ModelProcess::start(&[]);
    let event_names = |dialect: &DialectCase, text: &str| -> Vec<String> {
        let body = model.stream_prompt(dialect, text).body;
        body.lines().filter_map(|line| line.strip_prefix("event: ").map(str::to_owned)).collect()
    };
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let anthropic_event_names =
        [&["message_start"], &block[..], &["message_delta", "message_stop"]].concat();
    assert_eq!(event_names(&ANTHROPIC, "x"), anthropic_event_names);
    let item = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done"];
    let end = ["content_part.done", "output_item.done", "completed"];
    let responses_event_names = [&["created"], &item[..], &end[..]].concat();
    let responses_event_names: Vec<_> =
        responses_event_names.iter().map(|name| format!("response.{name}")).collect();
    assert_eq!(event_names(&RESPONSES, "x"), responses_event_names);
    assert!(model.stream_prompt(&CHAT, "x").body.trim_end().ends_with("data: [DONE]"));
    let last = model.stream_prompt(&GEMINI, "x").events().pop().unwrap();
    assert_eq!(last.pointer("/candidates/0/finishReason"), Some(&json!("STOP")));
}

#[test]
fn a_tool_is_called_until_it_returns_a_result() {
    let model = ModelProcess::start(&[]);
    for dialect in &DIALECTS {
        let text = r#"do [[mock tool=Bash args={"command":"ls"}]]"#;
        let response = model.send_prompt(dialect, text);
        let [name, arguments] = dialect.call_pointers.map(|pointer| response.value_at(pointer));
        assert_eq!((name, arguments_object(arguments)), (json!("Bash"), json!({"command": "ls"})));
        let events = model.stream_prompt(dialect, text).body;
        assert!(events.contains("Bash") && events.contains("command"), "{events}");
        let mut body = (dialect.request_body)(text);
        (dialect.add_tool_result)(&mut body);
        let line = format!("POST {}", dialect.path);
        let final_response = model.request(&line, "", &body.to_string());
        assert_eq!(final_response.value_at(dialect.text_pointer), "TOOL: a result");
    }
}

#[test]
fn the_model_refuses_as_often_as_the_directive_requires() {
    let model = ModelProcess::start(&[]);
    for dialect in &DIALECTS {
        let text = format!("x [[mock status=529 times=2 id={}]]", dialect.path);
        let statuses: Vec<_> = (0..3).map(|_| model.send_prompt(dialect, &text).status).collect();
        assert_eq!(statuses, [529, 529, 200], "{}", dialect.path);
        let refusal = model.send_prompt(dialect, "x [[mock status=429 retry_after=7 reset=30]]");
        assert_eq!(refusal.value_at(dialect.error_message_pointer), "mock: rate limit exceeded");
        assert!(refusal.head.contains("retry-after: 7\r\n"), "{refusal:?}");
    }
    let send_limited_prompt =
        |dialect| model.send_prompt(dialect, "x [[mock status=429 reset=30]]");
    assert!(send_limited_prompt(&CHAT).head.contains("x-ratelimit-reset-requests: 30s"));
    assert!(send_limited_prompt(&ANTHROPIC).head.contains("anthropic-ratelimit-requests-reset: 2"));
    assert_eq!(send_limited_prompt(&GEMINI).value_at("/error/details/0/retryDelay"), "30s");
    assert_eq!(send_limited_prompt(&ANTHROPIC).value_at("/error/type"), "rate_limit_error");
}

#[test]
fn scripted_turns_obey_the_other_settings() {
    let model = ModelProcess::start(&[]);
    let turns = r#"turns=[{"text": "one", "delay": 0.01}, {"calls": [{"name": "now"}]}]"#;
    let mut body = (CHAT.request_body)(&format!("x [[mock status=503 times=1 {turns}]]"));
    let line = format!("POST {}", CHAT.path);
    let send = |body: &Value| model.request(&line, "", &body.to_string());
    assert_eq!(send(&body).status, 503);
    assert_eq!(send(&body).value_at(CHAT.text_pointer), "one");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "one"}));
    messages.push(json!({"role": "user", "content": "call a tool"}));
    assert_eq!(send(&body).value_at(CHAT.call_pointers[0]), "now");
    let dropped = model.send_until_close(&CHAT, &format!("x [[mock drop {turns}]]"));
    assert!(!dropped.is_complete && dropped.body.starts_with('{'), "{dropped:?}");
    let mut hanging = model.send_request(
        &line,
        "",
        &(CHAT.request_body)(&format!("x [[mock hang {turns}]]")).to_string(),
    );
    assert!(is_silent(&mut hanging));
}

#[test]
fn the_model_breaks_as_the_directive_requires() {
    let model = ModelProcess::start(&[]);
    for dialect in &DIALECTS {
        let dropped = model.stream_until_close(dialect, "some words to break [[mock drop]]");
        assert!(
            !dropped.is_complete && dropped.streamed_text(dialect).starts_with("ECHO"),
            "{dropped:?}"
        );
        let half = model.send_until_close(dialect, "some words [[mock drop]]");
        assert!(!half.is_complete && half.body.starts_with('{'), "{half:?}");
        let garbage = model.stream_prompt(dialect, "x [[mock garbage]]");
        assert!(garbage.status == 200 && garbage.body.starts_with("<html>"), "{garbage:?}");
        assert_eq!(
            model.send_prompt(dialect, "x [[mock empty]]").value_at(dialect.text_pointer),
            ""
        );
        let large = model.stream_prompt(dialect, "x [[mock size=200000]]").streamed_text(dialect);
        assert_eq!(large.len(), 200_000);
    }
}

/// Returns true if a connection stays open and silent for a while.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let read_result = stream.read(&mut [0; 1]);
    read_result.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn requests_answered_together_wait_for_each_other() {
    let model = ModelProcess::start(&[]);
    let line = format!("POST {}", CHAT.path);
    let send = |text: &str| model.send_request(&line, "", &(CHAT.request_body)(text).to_string());
    let mut first = send("one [[mock together=2]]");
    let mut second = send("one [[mock together=2]]");
    assert!(is_silent(&mut first) && is_silent(&mut second), "the same prompt twice is one");
    assert_eq!(
        model.send_prompt(&CHAT, "two [[mock together=2]]").value_at(CHAT.text_pointer),
        "ECHO: two"
    );
    assert!(!is_silent(&mut first) && !is_silent(&mut second));
}

#[test]
fn a_hanging_answer_never_begins_and_a_stalled_one_never_ends() {
    let model = ModelProcess::start(&[]);
    let line = format!("POST {}", CHAT.path);
    let send = |text: &str| {
        let mut body = (CHAT.request_body)(text);
        body["stream"] = json!(true);
        model.send_request(&line, "", &body.to_string())
    };
    assert!(is_silent(&mut send("x [[mock hang]]")));
    let mut stalling = send("some words [[mock stall]]");
    let (mut received_text, mut bytes) = (String::new(), [0; 1024]);
    while !received_text.contains("ECHO") {
        let length = stalling.read(&mut bytes).unwrap();
        assert!(length > 0, "{received_text}");
        received_text.push_str(&String::from_utf8_lossy(bytes.get(..length).unwrap()));
    }
    assert!(is_silent(&mut stalling) && !received_text.contains("words"), "{received_text}");
}

#[test]
fn the_log_shows_the_requests_of_the_agents() {
    let model = ModelProcess::start(&[]);
    model.request("POST /_mock/script", "", "text=\"as told\"");
    let mut body = (CHAT.request_body)("a question");
    let tools = json!([{"type": "function", "function": {"name": "Read"}}]);
    body["tools"] = tools.clone();
    let line = format!("POST {}", CHAT.path);
    let answer = model.request(&line, "User-Agent: an agent\r\n", &body.to_string());
    assert_eq!(answer.value_at(CHAT.text_pointer), "as told");
    model.request("GET http://elsewhere.test/metrics", "", "");
    let log = model.request_log();
    let expected = json!({
        "method": "POST", "path": CHAT.path, "host": "model.test", "agent": "an agent",
        "dialect": "openai-chat", "model": "m", "stream": false, "tools": ["Read"],
        "toolDefinitions": tools,
        "text": "a question", "turns": 1, "results": [], "schema": false, "status": 200,
    });
    assert_eq!(log.first(), Some(&expected));
    let other_host = log.get(1).unwrap();
    assert_eq!(
        (&other_host["host"], &other_host["status"]),
        (&json!("elsewhere.test"), &json!(404))
    );
    model.request("POST /_mock/reset", "", "");
    assert_eq!(model.request_log(), Vec::<Value>::new());
    assert_eq!(
        model.send_prompt(&CHAT, "a question").value_at(CHAT.text_pointer),
        "ECHO: a question"
    );
}

#[test]
fn a_wait_for_a_prompt_ends_with_its_arrival() {
    let model = ModelProcess::start(&[]);
    let mut waiting_stream = model.send_request("POST /_mock/wait", "", "a word");
    assert!(is_silent(&mut waiting_stream));
    model.send_prompt(&CHAT, "another");
    assert!(is_silent(&mut waiting_stream));
    model.send_prompt(&CHAT, "has a word in it");
    waiting_stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut response = String::new();
    waiting_stream.read_to_string(&mut response).unwrap();
    assert!(response.contains("has a word in it"), "{response}");
    let late = model.request("POST /_mock/wait", "", "a word");
    assert_eq!(late.value_at("/text"), "has a word in it");
}

#[test]
fn a_wrong_key_is_refused() {
    let model = ModelProcess::start(&["--key", "right"]);
    let body = (ANTHROPIC.request_body)("x").to_string();
    let status = |headers| model.request("POST /v1/messages", headers, &body).status;
    assert_eq!((status(""), status("x-api-key: wrong\r\n")), (401, 401));
    assert_eq!(
        (status("x-api-key: right\r\n"), status("Authorization: Bearer right\r\n")),
        (200, 200)
    );
    assert_eq!(status("x-goog-api-key: right\r\n"), 200);
}

#[test]
fn name_queries_are_counted() {
    let model = ModelProcess::start(&[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03api\x04test\0\0\x01\0\x01";
    let mut buffer = [0; 512];
    for _ in 0..2 {
        socket.send_to(query, &model.name_server_address).unwrap();
        let length = socket.recv(&mut buffer).unwrap();
        assert!(buffer.get(..length).unwrap().ends_with(&[192, 0, 2, 1]));
    }
    assert_eq!(model.request("GET /_mock/names", "", "").json(), json!({"api.test": 2}));
}

#[test]
fn an_answer_with_a_schema_matches_it() {
    let model = ModelProcess::start(&[]);
    let schema = json!({"type": "object", "properties": {
        "why": {"type": "string"}, "n": {"type": "integer"}, "which": {"enum": ["a", "b"]}}});
    let mut body = (GEMINI.request_body)("x");
    body["generationConfig"] = json!({"responseJsonSchema": schema});
    let answer = model.request(&format!("POST {}", GEMINI.path), "", &body.to_string());
    let instance = arguments_object(answer.value_at(GEMINI.text_pointer));
    assert_eq!(instance, json!({"why": "mock", "n": 1, "which": "a"}));
}

//! Requests that are wrong: each has its code, none makes a server error, the id comes back.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, json_rpc_request_body, message_params,
};

const ECHO_PATH: &str = "/agents/echo/v1";
const JSON_MEDIA_TYPE: &str = "application/json";

/// A body for the interface of `echo`, and the id and number of the error it is answered with.
type InvalidBodyCase = (String, Value, i64);

/// A good call with another member.
fn call_with_member(member: &str, value: Value) -> String {
    let params = message_params("x");
    let mut call = json!({"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": params});
    call[member] = value;
    call.to_string()
}

/// A good call whose parameters are changed.
fn call_with_changed_params(change: impl Fn(&mut Value)) -> String {
    let mut params = message_params("x");
    change(&mut params);
    json_rpc_request_body("message/send", &params)
}

/// A good call whose message has another value there.
fn call_with_message_value(path: &str, value: &Value) -> String {
    call_with_changed_params(|params| {
        let (parent, member) = path.rsplit_once('/').unwrap();
        params["message"].pointer_mut(parent).unwrap()[member] = value.clone();
    })
}

/// A good call whose message lacks this.
fn call_without_message_member(path: &str) -> String {
    call_with_changed_params(|params| {
        let (parent, member) = path.rsplit_once('/').unwrap();
        let parent = params["message"].pointer_mut(parent).and_then(Value::as_object_mut);
        parent.unwrap().remove(member);
    })
}

/// What is not one call.
fn bodies_without_valid_id() -> Vec<InvalidBodyCase> {
    let bom = "\u{feff}{}";
    let unparsable = ["", " ", "{", "}", "nonsense", "{'a': 1}", "{\"a\": 1,}", bom, "{}{}", "NaN"];
    let unparsable = unparsable.iter().map(|body| (*body).to_owned());
    let deeply_nested_bodies =
        ["[".repeat(2_000_000), "{\"a\":".repeat(10_000) + &"}".repeat(10_000)];
    let batch = format!("[{}]", json_rpc_request_body("message/send", &message_params("x")));
    let invalid_requests = ["[]", &batch, "null", "7", "\"text\"", "{}"].map(str::to_owned);
    let bodies_with_invalid_id =
        [json!({}), json!([1]), json!(true)].map(|id| call_with_member("id", id));
    let unparsable = unparsable.chain(deeply_nested_bodies).map(|body| (body, Value::Null, -32700));
    let invalid_requests = invalid_requests
        .into_iter()
        .chain(bodies_with_invalid_id)
        .map(|body| (body, Value::Null, -32600));
    unparsable.chain(invalid_requests).collect()
}

/// Calls that no method can take.
fn wrong_calls() -> Vec<InvalidBodyCase> {
    let push = json!({"taskId": "x", "pushNotificationConfig": {"url": "https://x.example"}});
    let rows = [
        (call_with_member("jsonrpc", json!("1.0")), -32600),
        (call_with_member("jsonrpc", json!(2.0)), -32600),
        (call_with_member("jsonrpc", Value::Null), -32600),
        (call_with_member("method", json!(5)), -32600),
        (call_with_member("method", Value::Null), -32600),
        (call_with_member("params", json!("text")), -32600),
        (call_with_member("params", json!(5)), -32600),
        (call_with_member("method", json!("")), -32601),
        (call_with_member("method", json!("message/sent")), -32601),
        (call_with_member("method", json!("MESSAGE/SEND")), -32601),
        (call_with_member("method", json!("tasks/resubscribe")), -32602),
        (call_with_member("method", json!("tasks/pushNotificationConfig/set")), -32602),
        (json_rpc_request_body("tasks/pushNotificationConfig/set", &push), -32001),
        (call_with_member("params", Value::Null), -32602),
        (call_with_member("params", json!([])), -32602),
        (call_with_member("params", json!({})), -32602),
    ];
    rows.into_iter().map(|(body, code)| (body, json!(7), code)).collect()
}

/// Calls with wrong parameters.
fn calls_with_wrong_parameters() -> Vec<InvalidBodyCase> {
    let call_with_configuration =
        |value: Value| call_with_changed_params(|params| params["configuration"] = value.clone());
    let call_with_parameters = |value: Value| {
        call_with_message_value(
            "/metadata",
            &json!({"https://algonius.dev/a2a/ext/parameters/v1": value}),
        )
    };
    let rows = [
        (call_with_changed_params(|params| params["message"] = json!("text")), -32602),
        (call_with_message_value("/kind", &json!("task")), -32602),
        (call_with_message_value("/role", &json!("system")), -32602),
        (call_with_message_value("/role", &json!("agent")), -32602),
        (call_with_message_value("/messageId", &json!("")), -32602),
        (call_with_message_value("/messageId", &json!(5)), -32602),
        (call_with_message_value("/messageId", &json!("m".repeat(257))), -32602),
        (call_with_message_value("/messageId", &json!("m\u{0}")), -32602),
        (call_with_message_value("/parts", &json!([])), -32602),
        (call_with_message_value("/parts", &json!({})), -32602),
        (call_with_message_value("/parts", &json!(["text"])), -32602),
        (
            call_with_message_value(
                "/parts",
                &json!(vec![json!({"kind": "text", "text": ""}); 1001]),
            ),
            -32602,
        ),
        (call_with_message_value("/metadata", &json!({"x": "y".repeat(70_000)})), -32602),
        (call_with_message_value("/extensions", &json!(vec!["urn:x"; 101])), -32602),
        (call_with_message_value("/parts/0/kind", &json!("image")), -32602),
        (call_with_message_value("/parts/0/text", &json!(5)), -32602),
        (call_with_message_value("/contextId", &json!("c\n")), -32602),
        (call_with_message_value("/contextId", &json!(5)), -32602),
        (call_with_message_value("/taskId", &json!("no such task")), -32001),
        (call_without_message_member("/role"), -32602),
        (call_without_message_member("/messageId"), -32602),
        (call_without_message_member("/parts"), -32602),
        (call_without_message_member("/parts/0/text"), -32602),
        (call_with_configuration(json!({"historyLength": -1})), -32602),
        (call_with_configuration(json!({"blocking": "yes"})), -32602),
        (call_with_configuration(json!({"pushNotificationConfig": {"url": "http://x"}})), -32602),
        (call_with_parameters(json!("text")), -32602),
        (call_with_parameters(json!({"a": [1]})), -32602),
        (json_rpc_request_body("tasks/get", &json!({})), -32602),
        (json_rpc_request_body("tasks/get", &json!({"id": 5})), -32602),
        (json_rpc_request_body("tasks/get", &json!({"id": "../../etc/passwd"})), -32001),
        (json_rpc_request_body("tasks/cancel", &json!({"id": "' OR 1=1 --"})), -32001),
    ];
    rows.into_iter().map(|(body, code)| (body, json!(7), code)).collect()
}

#[tokio::test]
async fn every_invalid_body_has_its_code_and_its_id() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    for (body, id, code) in
        [bodies_without_valid_id(), wrong_calls(), calls_with_wrong_parameters()].concat()
    {
        let answer = service.post(ECHO_PATH, &body).await;
        let excerpt = body.chars().take(300).collect::<String>();
        assert_eq!(answer.status, 200, "{excerpt} {answer:?}");
        assert_eq!(answer.header("content-type"), Some(JSON_MEDIA_TYPE));
        let document = answer.json();
        assert_eq!(document["jsonrpc"], "2.0");
        assert_eq!((&document["id"], &document["error"]["code"]), (&id, &json!(code)), "{excerpt}");
        assert!(document.get("result").is_none());
        let error_message = document["error"]["message"].as_str().unwrap();
        assert!(
            !error_message.is_empty()
                && !document["error"]["data"][0]["metadata"]["hint"].is_null(),
            "{document}"
        );
    }
    assert_eq!(service.get("/api/v1/executions").await.json()["executions"], json!([]));
    assert_eq!(service.send("echo", "still here").await["status"]["state"], "completed");
}

#[tokio::test]
async fn an_unknown_member_of_an_execution_request_is_refused() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let part = json!({"text": "a", "filename": "f", "mediaType": "text/plain", "metadata": {}});
    let body = json!({"agent": "echo", "parts": [part], "wait": 10});
    let response = service.post("/api/v1/executions", &body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.json());
    for (body, expected_text) in [
        (json!({"agent": "echo", "parts": [part, {"text": "b", "name": "f"}]}), "`parts[1]`"),
        (json!({"agent": "echo", "parts": [{"text": "b", "kind": "text"}]}), "`parts[0]`"),
        (json!({"agent": "echo", "parts": [{"raw": "YQ==", "mimeType": "a/b"}]}), "`parts[0]`"),
        (json!({"agent": "echo", "parts": [7]}), "parts"),
        (json!({"agent": "echo", "text": "a", "prompt": "b"}), "an object with `agent`"),
    ] {
        let response = service.post("/api/v1/executions", &body.to_string()).await;
        let document = response.json();
        assert_eq!((response.status, &document["code"]), (400, &json!("invalid-params")), "{body}");
        assert!(document.to_string().contains(expected_text), "{body}: {document}");
    }
    let executions = &service.get("/api/v1/executions").await.json()["executions"];
    assert_eq!(executions.as_array().unwrap().len(), 1, "{executions}");
}

#[tokio::test]
async fn an_id_is_returned_unchanged() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    for id in
        [json!(0), json!(-1), json!(1.5), json!(u64::MAX), json!(""), json!("ü\""), Value::Null]
    {
        for method in ["tasks/get", "none"] {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"id": "x"}});
            assert_eq!(service.post(ECHO_PATH, &call.to_string()).await.json()["id"], id);
        }
    }
}

#[tokio::test]
async fn invalid_utf_8_is_malformed() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let valid_body = json_rpc_request_body("message/send", &message_params("MARK"));
    let (before, after) = valid_body.split_once("MARK").unwrap();
    for bytes in [&b"\xff\xfe"[..], b"\xc3\x28", b"\xed\xa0\x80", b"\x00"] {
        let body = [before.as_bytes(), bytes, after.as_bytes()].concat();
        let token = format!("Authorization: Bearer {}", service.token);
        let headers = [token, format!("Content-Type: {JSON_MEDIA_TYPE}")];
        let answer = service.request(&format!("POST {ECHO_PATH}"), &headers, &body).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (200, &json!(-32700)));
    }
}

#[tokio::test]
async fn wrong_paths_methods_and_media_types_have_their_status() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let valid_body = json_rpc_request_body("message/send", &message_params("x"));
    for (request_line, media_type, status, code) in [
        ("GET /", JSON_MEDIA_TYPE, 404, "path-unknown"),
        ("GET /nowhere", JSON_MEDIA_TYPE, 404, "path-unknown"),
        ("GET /status/", JSON_MEDIA_TYPE, 404, "path-unknown"),
        ("GET /../../etc/passwd", JSON_MEDIA_TYPE, 404, "path-unknown"),
        ("POST /agents/echo/v2", JSON_MEDIA_TYPE, 404, "path-unknown"),
        ("GET /status/agents/nobody", JSON_MEDIA_TYPE, 404, "agent-unknown"),
        ("GET /agents/nobody/.well-known/agent-card.json", JSON_MEDIA_TYPE, 404, "agent-unknown"),
        ("GET /api/v1/executions/x", JSON_MEDIA_TYPE, 404, "execution-unknown"),
        ("GET /api/v1/executions?limit=0", JSON_MEDIA_TYPE, 400, "invalid-params"),
        ("GET /api/v1/executions?limit=1001", JSON_MEDIA_TYPE, 400, "invalid-params"),
        ("GET /api/v1/executions?limit=many", JSON_MEDIA_TYPE, 400, "invalid-params"),
        ("GET /api/v1/executions?cursor=x", JSON_MEDIA_TYPE, 400, "invalid-params"),
        ("GET /api/v1/executions?agent=No%20Id", JSON_MEDIA_TYPE, 400, "invalid-params"),
        ("GET /api/v1/executions?else=1", JSON_MEDIA_TYPE, 400, "invalid-params"),
        ("GET /agents/echo/v1", JSON_MEDIA_TYPE, 405, "method-not-allowed"),
        ("DELETE /agents/echo/v1", JSON_MEDIA_TYPE, 405, "method-not-allowed"),
        ("PUT /status", JSON_MEDIA_TYPE, 405, "method-not-allowed"),
        ("POST /health", JSON_MEDIA_TYPE, 405, "method-not-allowed"),
        ("PUT /api/v1/executions", JSON_MEDIA_TYPE, 405, "method-not-allowed"),
        ("BREW /status", JSON_MEDIA_TYPE, 405, "method-not-allowed"),
        ("GET /status/agents/%ff", JSON_MEDIA_TYPE, 404, "path-unknown"),
        ("POST /agents/%ff/v1", JSON_MEDIA_TYPE, 404, "path-unknown"),
        ("POST /agents/echo/v1", "text/plain", 415, "content-type-unsupported"),
        (
            "POST /agents/echo/v1",
            "application/x-www-form-urlencoded",
            415,
            "content-type-unsupported",
        ),
        ("POST /agents/echo/v1", "application/jsonx", 415, "content-type-unsupported"),
        ("POST /agents/echo/v1", "", 415, "content-type-unsupported"),
    ] {
        let token = format!("Authorization: Bearer {}", service.token);
        let headers = [token, format!("Content-Type: {media_type}")];
        let answer = service.request(request_line, &headers, valid_body.as_bytes()).await;
        let document = answer.json();
        let error_code = document.get("code").or(document.pointer("/error/data/0/metadata/code"));
        assert_eq!(
            (answer.status, error_code),
            (status, Some(&json!(code))),
            "{request_line} {media_type}"
        );
    }
    for media_type in
        ["application/json; charset=utf-8", "APPLICATION/JSON", "application/a2a+json"]
    {
        let token = format!("Authorization: Bearer {}", service.token);
        let headers = [token, format!("Content-Type: {media_type}")];
        let answer =
            service.request(&format!("POST {ECHO_PATH}"), &headers, valid_body.as_bytes()).await;
        assert_eq!(answer.json()["result"]["kind"], "task", "{media_type}");
    }
    let unknown_agent_refusal =
        service.expect_refusal("nobody", "message/send", message_params("x")).await;
    assert_eq!(unknown_agent_refusal, (-32053, "agent-unknown".to_owned()));
}

#[tokio::test]
async fn a_too_large_body_is_refused_with_and_without_a_length() {
    let setup = Setup::with_server_settings(
        "max_body_bytes = 2048",
        &fake_agent_config("echo", "echo", ""),
    );
    let service = setup.start().await;
    let answer = service
        .post(ECHO_PATH, &json_rpc_request_body("message/send", &message_params(&"x".repeat(2048))))
        .await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["data"][0]["metadata"]["code"], "body-too-large");
    let chunk = format!("800\r\n{}\r\n", "x".repeat(2048));
    let head = format!(
        "POST {ECHO_PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: {JSON_MEDIA_TYPE}\r\n\
         Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n",
        service.token
    );
    let answer = service.send_raw(head.as_bytes()).await;
    assert!(answer.starts_with(b"HTTP/1.1 413 "), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(service.send("echo", "small").await["status"]["state"], "completed");
}

/// JavaScript writes an unpaired surrogate for a text that was cut within a character.
#[tokio::test]
async fn a_cut_character_of_a_caller_is_replaced() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let body = json_rpc_request_body("message/send", &message_params("cut: HERE"))
        .replace("HERE", r"\ud83d");
    let task = service.post(ECHO_PATH, &body).await.json()["result"].take();
    assert_eq!(task_outcome(&task), completed_outcome("cut: \u{fffd}"), "{task}");
    let truncated_body_response =
        service.post(ECHO_PATH, body.strip_suffix('}').unwrap()).await.json();
    let message = truncated_body_response["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("EOF while parsing an object at line 1 column"),
        "{truncated_body_response}"
    );
}

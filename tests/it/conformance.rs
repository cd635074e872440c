//! Conformance to A2A 1.0: the requirements of the official kit, which is in no registry, on the agent that
//! it tests, over both JSON bindings.

use serde_json::{Value, json};

use crate::harness::client::{TestResponse, task_id};
use crate::harness::{ServiceProcess, fake_agent_config, json_rpc_request_body};

/// The settings that the kit needs, as in `docs/conformance.md`.
const KIT_SETTINGS: &str = "output = 'events'\nfiles = 'list'\na2a.input_modes = ['*/*']\n\
    a2a.message_ids = 'reused'\na2a.versions = ['1.0']\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientBinding {
    JsonRpc,
    Rest,
}

/// The number in JSON-RPC, the status in HTTP+JSON, and the reason, where the specification names one.
type ExpectedRefusal = (i64, u16, Option<&'static str>);

const BINDINGS: [ClientBinding; 2] = [ClientBinding::JsonRpc, ClientBinding::Rest];

/// Methods of 1.0, and the request of each over HTTP+JSON; `{}` stand for the parameters after it, in order.
const REST_METHODS: &[(&str, &str, &[&str])] = &[
    ("SendMessage", "POST message:send", &[]),
    ("SendStreamingMessage", "POST message:stream", &[]),
    ("GetTask", "GET tasks/{}?historyLength={}", &["id", "historyLength"]),
    ("ListTasks", "GET tasks?contextId={}&pageSize={}", &["contextId", "pageSize"]),
    ("CancelTask", "POST tasks/{}:cancel", &["id"]),
    ("SubscribeToTask", "POST tasks/{}:subscribe", &["id"]),
    ("CreateTaskPushNotificationConfig", "POST tasks/{}/pushNotificationConfigs", &["taskId"]),
    ("GetTaskPushNotificationConfig", "GET tasks/{}/pushNotificationConfigs/{}", &["taskId", "id"]),
    ("ListTaskPushNotificationConfigs", "GET tasks/{}/pushNotificationConfigs", &["taskId"]),
    (
        "DeleteTaskPushNotificationConfig",
        "DELETE tasks/{}/pushNotificationConfigs/{}",
        &["taskId", "id"],
    ),
];

async fn start_service() -> ServiceProcess {
    let agent = fake_agent_config("kit", "tck 1.0", KIT_SETTINGS);
    ServiceProcess::start(&format!("{agent}[push]\nallow = ['127.0.0.1']\n")).await
}

/// Sends a request in a version over a binding.
async fn send_request(
    service: &ServiceProcess,
    binding: ClientBinding,
    version: &str,
    (method, params): (&str, &Value),
) -> TestResponse {
    let version_header = format!("A2A-Version: {version}");
    if binding == ClientBinding::JsonRpc {
        return service
            .call_with_headers("kit", &[version_header.as_str()], (method, params))
            .await;
    }
    let (_, pattern, param_names) = REST_METHODS.iter().find(|(name, ..)| *name == method).unwrap();
    let mut pieces = pattern.split("{}");
    let mut path = pieces.next().unwrap().to_owned();
    let mut body = params.clone();
    for (piece, name) in pieces.zip(*param_names) {
        let value = body.as_object_mut().unwrap().remove(*name).unwrap_or_default();
        path += &value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        path += piece;
    }
    let path = path.replace("=null", "=").replace("historyLength=&", "");
    let line = path.trim_end_matches("?historyLength=").trim_end_matches("&pageSize=");
    let (verb, path) = line.split_once(' ').unwrap();
    let has_body = verb == "POST" && !(path.ends_with(":cancel") || path.ends_with(":subscribe"));
    let body = if has_body { body.to_string() } else { String::new() };
    let headers = [
        format!("Authorization: Bearer {}", service.token),
        version_header,
        "Content-Type: application/a2a+json".to_owned(),
    ];
    service.request(&format!("{verb} /agents/kit/v1/{path}"), &headers, body.as_bytes()).await
}

/// The result of a request that works.
async fn expect_request_result(
    service: &ServiceProcess,
    binding: ClientBinding,
    method: &str,
    params: &Value,
) -> Value {
    let answer = send_request(service, binding, "1.0", (method, params)).await;
    assert_eq!(answer.status, 200, "{binding:?} {method} {answer:?}");
    let mut document = answer.json();
    if binding == ClientBinding::Rest { document } else { document["result"].take() }
}

/// The events of a stream.
async fn fetch_stream_events(
    service: &ServiceProcess,
    binding: ClientBinding,
    method: &str,
    params: &Value,
) -> Vec<Value> {
    let answer = send_request(service, binding, "1.0", (method, params)).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{answer:?}");
    let lines = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let documents = lines.map(|text| serde_json::from_str::<Value>(text).unwrap());
    let unwrap_result = |mut document: Value| match binding {
        ClientBinding::Rest => document,
        ClientBinding::JsonRpc => document["result"].take(),
    };
    documents.map(unwrap_result).collect()
}

/// A message whose id starts with the instruction for the program.
fn message_with_id_prefix(prefix: &str) -> Value {
    let id = format!("{prefix}-{}", uuid::Uuid::new_v4());
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": "hello"}]}})
}

async fn send_message(service: &ServiceProcess, binding: ClientBinding, prefix: &str) -> Value {
    expect_request_result(service, binding, "SendMessage", &message_with_id_prefix(prefix)).await
}

fn task_state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn artifacts_of_a_program_are_in_the_task() {
    let service = start_service().await;
    let file = json!({"filename": "output.txt", "mediaType": "text/plain", "raw": "dGNr"});
    let url = "https://example.com/output.txt";
    let url_part = json!({"filename": "output.txt", "mediaType": "text/plain", "url": url});
    let expected_artifacts = [
        ("tck-artifact-text", json!({"text": "Generated text content"})),
        ("tck-artifact-file", file),
        ("tck-artifact-file-url", url_part),
        ("tck-artifact-data", json!({"data": {"key": "value", "count": 42}})),
    ];
    for binding in BINDINGS {
        for (prefix, part) in &expected_artifacts {
            let response = send_message(&service, binding, prefix).await;
            let task = &response["task"];
            assert_eq!(task_state(task), "TASK_STATE_COMPLETED", "{binding:?} {prefix} {response}");
            assert_eq!(task["artifacts"][0]["parts"], json!([part]), "{binding:?} {prefix}");
            assert!(task["artifacts"][0]["artifactId"].is_string(), "{response}");
            let stored_task = get_task(&service, binding, task).await;
            assert_eq!(&stored_task, task, "{binding:?} {prefix}");
        }
        let response = send_message(&service, binding, "tck-message-response").await;
        assert_eq!(response["message"]["parts"], json!([{"text": "Direct message response"}]));
        assert_eq!(response["message"]["role"], "ROLE_AGENT", "{response}");
        assert_eq!(response["task"], Value::Null, "{response}");
    }
}

async fn get_task(service: &ServiceProcess, binding: ClientBinding, task: &Value) -> Value {
    expect_request_result(service, binding, "GetTask", &json!({"id": task_id(task)})).await
}

#[tokio::test]
async fn tasks_end_in_the_state_that_the_program_reports() {
    let service = start_service().await;
    let states = [
        ("tck-complete-task", "TASK_STATE_COMPLETED", "Hello from TCK"),
        ("tck-reject-task", "TASK_STATE_REJECTED", "Task rejected"),
        ("tck-task-failure", "TASK_STATE_FAILED", "Task failed"),
        ("tck-input-required", "TASK_STATE_INPUT_REQUIRED", "Input is required"),
        ("tck-auth-required", "TASK_STATE_AUTH_REQUIRED", "Authentication is required"),
    ];
    for binding in BINDINGS {
        for (prefix, expected, expected_text) in states {
            let response = send_message(&service, binding, prefix).await;
            let status = &response["task"]["status"];
            assert_eq!(status["state"], expected, "{binding:?} {prefix} {response}");
            let text = status["message"]["parts"][0]["text"].as_str().unwrap_or_default();
            assert!(text.ends_with(expected_text), "{binding:?} {prefix} {response}");
            assert!(status["timestamp"].as_str().unwrap().ends_with('Z'), "{response}");
        }
        let first = send_message(&service, binding, "tck-multi-turn").await["task"].take();
        let mut answer_params = message_with_id_prefix("tck-multi-turn");
        answer_params["message"]["taskId"] = json!(task_id(&first));
        let second = expect_request_result(&service, binding, "SendMessage", &answer_params).await
            ["task"]
            .take();
        assert_eq!(task_state(&second), "TASK_STATE_COMPLETED", "{binding:?} {second}");
        assert_eq!((&second["id"], &second["contextId"]), (&first["id"], &first["contextId"]));
        answer_params["message"]["contextId"] = json!("another");
        let refused = send_request(&service, binding, "1.0", ("SendMessage", &answer_params)).await;
        assert!(refused.json()["error"].is_object(), "{binding:?} {refused:?}");
    }
}

#[tokio::test]
async fn streams_begin_with_the_task_and_end_with_its_end() {
    let service = start_service().await;
    for binding in BINDINGS {
        for prefix in ["tck-stream-001", "tck-stream-002", "tck-stream-artifact-file"] {
            let events = fetch_stream_events(
                &service,
                binding,
                "SendStreamingMessage",
                &message_with_id_prefix(prefix),
            )
            .await;
            let task = task_id(&events[0]["task"]);
            let context = &events[0]["task"]["contextId"];
            for event in &events {
                assert_eq!(event.as_object().map(serde_json::Map::len), Some(1), "{events:?}");
            }
            for event in &events[1..] {
                let update = event.as_object().unwrap().values().next().unwrap();
                assert_eq!((&update["taskId"], &update["contextId"]), (&json!(task), context));
                assert_eq!(update["final"], Value::Null, "a field of 0.3: {update}");
            }
            let last_update = &events[events.len() - 1]["statusUpdate"];
            assert_eq!(
                task_state(last_update),
                "TASK_STATE_COMPLETED",
                "{binding:?} {prefix} {events:?}"
            );
        }
        let params = message_with_id_prefix("tck-stream-artifact-chunked");
        let events = fetch_stream_events(&service, binding, "SendStreamingMessage", &params).await;
        let chunks: Vec<_> = events.iter().map(|event| &event["artifactUpdate"]).collect();
        let chunks: Vec<_> = chunks.into_iter().filter(|chunk| !chunk.is_null()).collect();
        let summarize = |chunk: &Value| {
            let flag = |name: &str| chunk[name].as_bool().unwrap_or(false);
            let text = chunk["artifact"]["parts"][0]["text"].as_str().map(str::to_owned);
            (text.unwrap_or_default(), flag("append"), flag("lastChunk"))
        };
        let expected = [("chunk-1\n".to_owned(), false, false), ("chunk-2".to_owned(), true, true)];
        assert_eq!(chunks.into_iter().map(summarize).collect::<Vec<_>>(), expected, "{events:?}");
    }
}

#[tokio::test]
async fn tasks_are_listed_by_pages_and_canceled() {
    let service = start_service().await;
    for binding in BINDINGS {
        let first = send_message(&service, binding, "tck-input-required").await["task"].take();
        let mut second_params = message_with_id_prefix("tck-complete-task");
        second_params["message"]["contextId"] = first["contextId"].clone();
        expect_request_result(&service, binding, "SendMessage", &second_params).await;
        let query = json!({"contextId": first["contextId"], "pageSize": 1});
        let list = expect_request_result(&service, binding, "ListTasks", &query).await;
        assert_eq!((&list["totalSize"], &list["pageSize"]), (&json!(2), &json!(1)), "{list}");
        assert!(!list["nextPageToken"].as_str().unwrap().is_empty(), "{list}");
        assert_eq!(
            task_state(&list["tasks"][0]),
            "TASK_STATE_COMPLETED",
            "the newest is first: {list}"
        );
        assert_eq!(list["tasks"][0]["artifacts"], Value::Null, "{list}");

        let canceled =
            expect_request_result(&service, binding, "CancelTask", &json!({"id": task_id(&first)}))
                .await;
        assert_eq!(task_state(&canceled), "TASK_STATE_CANCELED", "{binding:?} {canceled}");
        let query_without_history = json!({"id": task_id(&first), "historyLength": 0});
        let task_without_history =
            expect_request_result(&service, binding, "GetTask", &query_without_history).await;
        assert_eq!(task_without_history["history"], Value::Null, "{task_without_history}");
    }
}

#[tokio::test]
async fn push_configurations_are_stored_and_deleted() {
    let service = start_service().await;
    for binding in BINDINGS {
        let task = task_id(&send_message(&service, binding, "tck-input-required").await["task"]);
        let url = "http://127.0.0.1:9/hook";
        let config = json!({"taskId": task, "url": url, "token": "t"});
        let created_config =
            expect_request_result(&service, binding, "CreateTaskPushNotificationConfig", &config)
                .await;
        let config_params = json!({"taskId": task, "id": created_config["id"]});
        let stored_config = expect_request_result(
            &service,
            binding,
            "GetTaskPushNotificationConfig",
            &config_params,
        )
        .await;
        assert_eq!(stored_config, created_config, "{binding:?}");
        assert_eq!(
            (&stored_config["url"], &stored_config["taskId"]),
            (&json!(url), &json!(task)),
            "{stored_config}"
        );
        let task_filter = json!({"taskId": task});
        let list = expect_request_result(
            &service,
            binding,
            "ListTaskPushNotificationConfigs",
            &task_filter,
        )
        .await;
        assert_eq!(list["configs"], json!([created_config]), "{binding:?}");
        for _ in 0..2 {
            expect_request_result(
                &service,
                binding,
                "DeleteTaskPushNotificationConfig",
                &config_params,
            )
            .await;
        }
        let list = expect_request_result(
            &service,
            binding,
            "ListTaskPushNotificationConfigs",
            &task_filter,
        )
        .await;
        assert!(list["configs"].as_array().is_none_or(Vec::is_empty), "{binding:?} {list}");
    }
}

#[tokio::test]
async fn errors_match_the_specification() {
    let service = start_service().await;
    let ended_task =
        task_id(&send_message(&service, ClientBinding::JsonRpc, "tck-complete-task").await["task"]);
    let without_id = json!({"message": {"role": "ROLE_USER", "parts": [{"text": "hello"}]}});
    let without_parts = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}});
    let (unknown_task, task) = (json!({"id": "no-such-task"}), json!({"id": ended_task}));
    let mut to_ended_task = message_with_id_prefix("tck-complete-task");
    to_ended_task["message"]["taskId"] = json!(ended_task);
    let mut to_unknown_task = message_with_id_prefix("tck-complete-task");
    to_unknown_task["message"]["taskId"] = json!("no-such-task");
    let page_params = |size: u32| json!({"contextId": "c", "pageSize": size});
    let (empty_page, oversized_page) = (page_params(0), page_params(101));
    let not_found = (-32001, 404, Some("TASK_NOT_FOUND"));
    let unsupported = (-32004, 400, Some("UNSUPPORTED_OPERATION"));
    let unknown_config = json!({"taskId": ended_task, "id": "no-such-task"});
    let cases: [(&str, &str, &Value, ExpectedRefusal); 11] = [
        ("1.0", "SendMessage", &without_id, (-32602, 400, None)),
        ("1.0", "SendMessage", &without_parts, (-32602, 400, None)),
        ("1.0", "SendMessage", &to_unknown_task, not_found),
        ("1.0", "SendMessage", &to_ended_task, unsupported),
        ("1.0", "GetTask", &unknown_task, not_found),
        ("1.0", "CancelTask", &task, (-32002, 400, Some("TASK_NOT_CANCELABLE"))),
        ("1.0", "SubscribeToTask", &task, unsupported),
        ("1.0", "GetTaskPushNotificationConfig", &unknown_config, not_found),
        ("1.0", "ListTasks", &empty_page, (-32602, 400, None)),
        ("1.0", "ListTasks", &oversized_page, (-32602, 400, None)),
        ("99.0", "GetTask", &task, (-32009, 400, Some("VERSION_NOT_SUPPORTED"))),
    ];
    for (version, method, params, (number, status, reason)) in cases {
        for binding in BINDINGS {
            let answer = send_request(&service, binding, version, (method, params)).await;
            let case = format!("{binding:?} {version} {method} {params} {answer:?}");
            let error = answer.json()["error"].take();
            let error_info = if binding == ClientBinding::JsonRpc {
                assert_eq!((answer.status, &error["code"]), (200, &json!(number)), "{case}");
                &error["data"][0]
            } else {
                assert_eq!((answer.status, &error["code"]), (status, &json!(status)), "{case}");
                &error["details"][0]
            };
            assert_eq!(error_info["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{case}");
            if let Some(reason) = reason {
                assert_eq!(error_info["reason"], reason, "{case}");
                assert_eq!(error_info["domain"], "a2a-protocol.org", "{case}");
            }
        }
    }
    let unknown_method =
        service.post("/agents/kit/v1", &json_rpc_request_body("NoSuchMethod", &json!({}))).await;
    assert_eq!(unknown_method.json()["error"]["code"], -32601, "{unknown_method:?}");
}

//! Integration tests of agents that need their caller to authenticate: the task is `auth-required` on both
//! versions and all JSON bindings, and continues when the caller answers.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::client::{TestResponse, completed_outcome, task_id, task_outcome, task_state};
use crate::harness::{
    ServiceProcess, Setup, json_rpc_request_body, message_params, within_deadline,
};
use crate::streams::{open_stream, read_until_text_or_end};

const SIGN_IN_URL: &str = "https://login.example.org/device";

/// An agent that needs a sign-in before it does anything, and one that does not say for what.
const AGENTS: &str = r#"
[agents.guarded]
command = "sh"
args = ["-c", '''
read -r word || true
case "$word" in
start) echo '{"type":"auth_required","text":"Sign in to the tracker.","url":"https://login.example.org/device"}' ;;
silent) echo '{"type":"auth_required"}' ;;
both) echo '{"type":"input_required","text":"which one?"}'; echo '{"type":"auth_required","url":"https://login.example.org/device"}' ;;
ask) echo '{"type":"input_required","text":"which one?"}' ;;
*) printf '{"type":"text","text":"turn %s: %s"}\n' "$ALGONIUS_TURN" "$word" ;;
esac
''']
output = "events"
max_concurrent = 4
"#;

/// Parameters of a message in the dialect of 1.0.
fn message_params_1_0(text: &str, task: Option<&str>) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    json!({"message": message})
}

/// Parameters of a message of 0.3 that answers a task.
fn answer_params(task: &str, text: &str) -> Value {
    let mut params = message_params(text);
    params["message"]["taskId"] = json!(task);
    params
}

/// Sends a request over HTTP+JSON in a version.
async fn send_rest(
    service: &ServiceProcess,
    version: &str,
    line: &str,
    body: &Value,
) -> TestResponse {
    let headers = [
        format!("Authorization: Bearer {}", service.token),
        format!("A2A-Version: {version}"),
        "Content-Type: application/json".to_owned(),
    ];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    service.request(line, &headers, body.as_bytes()).await
}

/// Sends a JSON-RPC call of 1.0 that works.
async fn call_1_0(service: &ServiceProcess, method: &str, params: &Value) -> Value {
    let answer =
        service.call_with_headers("guarded", &["A2A-Version: 1.0"], (method, params)).await;
    answer.json()["result"].take()
}

#[tokio::test]
async fn a_task_of_0_3_requires_authentication_and_continues() {
    let service = ServiceProcess::start(AGENTS).await;
    let task = service.send("guarded", "start").await;
    assert_eq!(task_state(&task), "auth-required");
    let message = &task["status"]["message"];
    let file = json!({"uri": SIGN_IN_URL, "mimeType": "text/html"});
    assert_eq!(
        message["parts"],
        json!([
            {"kind": "text", "text": "Sign in to the tracker."},
            {"kind": "file", "file": file},
        ])
    );
    assert_eq!(message["role"], "agent");
    let history = task["history"].as_array().unwrap();
    assert_eq!(history.len(), 1, "an open request is the status and not history: {task}");
    let continued = service
        .expect_result("guarded", "message/send", &answer_params(&task_id(&task), "done"))
        .await;
    assert_eq!(task_outcome(&continued), completed_outcome("turn 2: done"));
    assert_eq!(continued["history"].as_array().unwrap().len(), 3, "{continued}");

    let body = json!({"message": {"messageId": "m-1", "role": "ROLE_USER",
        "content": [{"text": "start"}]}});
    let response =
        send_rest(&service, "0.3", "POST /agents/guarded/v1/message:send", &body).await.json();
    let task = &response["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{response}");
    let path = format!("GET /agents/guarded/v1/tasks/{}", task_id(task));
    let fetched = send_rest(&service, "0.3", &path, &Value::Null).await.json();
    assert_eq!(fetched["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{fetched}");
}

#[tokio::test]
async fn a_task_of_1_0_requires_authentication_and_continues() {
    let service = ServiceProcess::start(AGENTS).await;
    let response = call_1_0(&service, "SendMessage", &message_params_1_0("start", None)).await;
    let task = &response["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{response}");
    assert_eq!(
        task["status"]["message"]["parts"],
        json!([{"text": "Sign in to the tracker."}, {"url": SIGN_IN_URL, "mediaType": "text/html"}])
    );
    // An agent may need it again, and for something else.
    let second_response =
        call_1_0(&service, "SendMessage", &message_params_1_0("silent", Some(&task_id(task))))
            .await;
    assert_eq!(
        second_response["task"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED",
        "{second_response}"
    );
    let text = second_response.pointer("/task/status/message/parts/0/text").and_then(Value::as_str);
    assert_eq!(text, Some("the agent needs you to authenticate before it can continue"));

    let body = message_params_1_0("done", Some(&task_id(task)));
    let response =
        send_rest(&service, "1.0", "POST /agents/guarded/v1/message:send", &body).await.json();
    assert_eq!(response["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{response}");
    assert_eq!(response["task"]["artifacts"][0]["parts"][0]["text"], "turn 3: done", "{response}");
}

#[tokio::test]
async fn tasks_that_require_authentication_can_be_listed() {
    let service = ServiceProcess::start(AGENTS).await;
    let auth_required = task_id(&service.send("guarded", "start").await);
    let input_required = task_id(&service.send("guarded", "ask").await);
    let listed_ids = async |state: &str| {
        let list = call_1_0(&service, "ListTasks", &json!({"status": state})).await;
        let path = format!("GET /agents/guarded/v1/tasks?status={state}");
        let rest_list = send_rest(&service, "1.0", &path, &Value::Null).await.json();
        assert_eq!(list["tasks"], rest_list["tasks"]);
        let tasks = list["tasks"].as_array().unwrap();
        assert_eq!(list["totalSize"], tasks.len());
        tasks.iter().map(task_id).collect::<Vec<_>>()
    };
    assert_eq!(listed_ids("TASK_STATE_AUTH_REQUIRED").await, [auth_required.as_str()]);
    assert_eq!(listed_ids("TASK_STATE_INPUT_REQUIRED").await, [input_required.as_str()]);

    let detail = service.fetch_execution(&auth_required).await;
    assert_eq!((&detail["state"], &detail["phase"]), (&json!("waiting"), &json!("waiting")));
    assert_eq!(detail["interruption"], "auth-required");
    assert_eq!(detail["request"], format!("Sign in to the tracker.\n{SIGN_IN_URL}"));
    let detail = service.fetch_execution(&input_required).await;
    assert_eq!(detail["interruption"], "input-required");
    let executions = service.get("/api/v1/executions").await.json();
    let interruptions = executions["executions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|execution| &execution["interruption"]);
    assert_eq!(interruptions.collect::<Vec<_>>(), ["input-required", "auth-required"]);

    service.expect_result("guarded", "message/send", &answer_params(&auth_required, "done")).await;
    let detail = service.fetch_execution(&auth_required).await;
    assert_eq!((&detail["interruption"], &detail["request"]), (&Value::Null, &Value::Null));
    assert!(listed_ids("TASK_STATE_AUTH_REQUIRED").await.is_empty());
}

#[tokio::test]
async fn the_last_required_authentication_is_shown() {
    let service = ServiceProcess::start(AGENTS).await;
    let task = service.send("guarded", "both").await;
    assert_eq!(task_state(&task), "auth-required", "{task}");
    assert_eq!(task["status"]["message"]["parts"][0]["file"]["uri"], SIGN_IN_URL, "{task}");
}

#[tokio::test]
async fn streams_show_auth_required_and_the_work_after_the_answer() {
    let service = ServiceProcess::start(AGENTS).await;
    let body = json_rpc_request_body("message/stream", &message_params("start"));
    let mut stream = open_stream(&service, "guarded", "0.3", &body).await;
    let stream_text = read_until_text_or_end(&mut stream, "never").await;
    let last_event =
        stream_text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let last_event: Value = serde_json::from_str(last_event).unwrap();
    assert_eq!(last_event["result"]["status"]["state"], "auth-required", "{stream_text}");
    assert_eq!(last_event["result"]["final"], true, "{stream_text}");

    let task = last_event["result"]["taskId"].as_str().unwrap().to_owned();
    let body = json_rpc_request_body("SubscribeToTask", &json!({"id": task}));
    let mut stream = open_stream(&service, "guarded", "1.0", &body).await;
    read_until_text_or_end(&mut stream, "TASK_STATE_AUTH_REQUIRED").await;
    service.expect_result("guarded", "message/send", &answer_params(&task, "done")).await;
    let events = read_until_text_or_end(&mut stream, "never").await;
    let working_index = events.find("TASK_STATE_WORKING").unwrap_or_else(|| panic!("{events}"));
    assert!(events.find("TASK_STATE_COMPLETED").is_some_and(|at| at > working_index), "{events}");
}

#[tokio::test]
async fn a_task_in_auth_required_survives_every_restart() {
    let mut service = ServiceProcess::start(AGENTS).await;
    let task = service.send("guarded", "start").await;
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    service.start_again().await;
    assert_eq!(service.fetch_task("guarded", &task_id(&task)).await["status"], task["status"]);
    service.kill9().await;
    service.start_again().await;
    assert_eq!(service.fetch_task("guarded", &task_id(&task)).await["status"], task["status"]);
    let continued = service
        .expect_result("guarded", "message/send", &answer_params(&task_id(&task), "done"))
        .await;
    assert_eq!(task_outcome(&continued), completed_outcome("turn 2: done"));
    let other_task = task_id(&service.send("guarded", "start").await);
    assert_eq!(task_state(&service.cancel("guarded", &other_task).await), "canceled");
}

/// Receives notices until one holds this word; returns that one.
pub(crate) async fn receive_push_notification(listener: &TcpListener, word: &str) -> String {
    loop {
        let (mut stream, _) = within_deadline("a notice", listener.accept()).await.unwrap();
        let body = read_push_notification(&mut stream).await;
        let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        within_deadline("the reply", stream.write_all(reply)).await.unwrap();
        if body.contains(word) {
            return body;
        }
    }
}

async fn read_push_notification(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let count = within_deadline("a request", stream.read_buf(&mut bytes)).await.unwrap();
        if let Some(request) = TestResponse::parse(&[b"HTTP/1.1 200 x\r\n", &bytes[..]].concat()) {
            let length = request.header("content-length").and_then(|value| value.parse().ok());
            if request.body.len() >= length.unwrap_or(0) {
                return request.body;
            }
        }
        assert!(count > 0, "the request ended early");
    }
}

#[tokio::test]
async fn push_notifications_carry_auth_required_in_both_versions() {
    let agents = format!("{AGENTS}\n[push]\nallow = ['127.0.0.1']\n");
    let service = Setup::new(&agents).start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());

    let mut params = message_params("start");
    params["configuration"] = json!({"pushNotificationConfig": {"url": url}});
    let task = service.expect_result("guarded", "message/send", &params).await;
    let notice = receive_push_notification(&listener, "auth-required").await;
    let notice: Value = serde_json::from_str(&notice).unwrap();
    assert_eq!((&notice["id"], &notice["status"]), (&task["id"], &task["status"]));

    let mut params = message_params_1_0("start", None);
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": url}});
    let response = call_1_0(&service, "SendMessage", &params).await;
    let notice = receive_push_notification(&listener, "TASK_STATE_AUTH_REQUIRED").await;
    let notice: Value = serde_json::from_str(&notice).unwrap();
    assert_eq!(notice["statusUpdate"]["taskId"], response["task"]["id"]);
    assert_eq!(notice["statusUpdate"]["status"], response["task"]["status"]);
}

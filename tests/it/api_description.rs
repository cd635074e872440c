//! The API for programs answers as its own description says, and every operation that is described is
//! there.

mod response_validator;
mod rights;

use serde_json::{Value, json};

use crate::harness::{
    ServiceClient, ServiceProcess, Setup, TestResponse, fake_agent_config, gated_agent_config,
    poll_until,
};
use crate::reload::config_without_watch;
use response_validator::ResponseValidator;

/// Tokens with one right only.
const READER_TOKEN: &str = "reader-0123456789-0123456789-0123456789-01";
const RUNNER_TOKEN: &str = "runner-0123456789-0123456789-0123456789-01";

/// A parameter that callers may set.
const PARAMETER_SETTINGS: &str = "params.a = '0'\noverrides.params = ['a']";

const SCHEDULES_PATH: &str = "/api/v1/schedules";

/// A line of a request, whose answer comes without chunks.
async fn send_request(
    client: &ServiceClient,
    line: &str,
    headers: &[&str],
    body: Option<&Value>,
) -> TestResponse {
    let (bearer, body) = (&client.token, body.map(Value::to_string).unwrap_or_default());
    let mut head = format!("{line} HTTP/1.0\r\nHost: localhost\r\n");
    if !bearer.is_empty() {
        head.push_str(&format!("Authorization: Bearer {bearer}\r\n"));
    }
    if !body.is_empty() {
        let length = body.len();
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
    }
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    TestResponse::parse(&client.send_raw(format!("{head}\r\n{body}").as_bytes()).await).unwrap()
}

/// Asks, and holds the answer to what is described of the operation.
struct ValidatingClient<'s> {
    client: &'s ServiceClient,
    validator: ResponseValidator,
}

impl ValidatingClient<'_> {
    async fn request(&mut self, operation: &str, path: &str, body: Option<Value>) -> TestResponse {
        self.request_with_headers(operation, path, &[], body).await
    }

    async fn request_with_headers(
        &mut self,
        operation: &str,
        path: &str,
        headers: &[&str],
        body: Option<Value>,
    ) -> TestResponse {
        let method = operation.split(' ').next().unwrap();
        let line = format!("{method} {path}");
        let answer = send_request(self.client, &line, headers, body.as_ref()).await;
        self.validator.assert_documented_and_record(operation, &answer);
        answer
    }

    /// The same where the path names nothing.
    async fn request_without_path_params(
        &mut self,
        operation: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let path = operation.split(' ').nth(1).unwrap().to_owned();
        self.request(operation, &path, body).await
    }
}

fn schedule_body(cron: &str) -> Value {
    json!({"id": "beat", "agent": "echo", "cron": cron, "input": "x", "timezone": "UTC"})
}

async fn check_executions(api: &mut ValidatingClient<'_>, service: &ServiceProcess) {
    let body = json!({"agent": "echo", "text": "hello", "wait": 30, "parameters": {"a": 1}});
    let done_response =
        api.request_without_path_params("POST /api/v1/executions", Some(body)).await;
    let done_id = done_response.json()["id"].as_str().unwrap().to_owned();
    let gate_body = json!({"agent": "gate", "parts": [{"text": "ann"}]});
    let failing_body = json!({"agent": "exit", "text": "x", "wait": 30.0});
    api.request_without_path_params("POST /api/v1/executions", Some(failing_body)).await;
    let running =
        api.request_without_path_params("POST /api/v1/executions", Some(gate_body.clone())).await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let queued = api.request_without_path_params("POST /api/v1/executions", Some(gate_body)).await;
    assert_eq!((running.status, queued.status), (202, 202));
    let [running_id, queued_id] =
        [running, queued].map(|it| it.json()["id"].as_str().unwrap().to_owned());
    poll_until("a place in the line", async || {
        let execution = service.fetch_execution(&queued_id).await;
        (execution["queue"]["position"] == 1).then_some(())
    })
    .await;
    for id in [&done_id, &running_id, &queued_id] {
        request_details(api, id).await;
    }
    api.request_without_path_params("GET /status", None).await; // While something runs and something waits.
    api.request("GET /api/v1/agents/{id}", "/api/v1/agents/gate", None).await;
    api.request("GET /status/agents/{agent}", "/status/agents/gate", None).await;
    let request_event_stream = async |client: &ServiceClient, id: &str| {
        let line = format!("GET /api/v1/executions/{id}/events");
        send_request(client, &line, &["Accept: text/event-stream"], None).await
    };
    let cancel = async {
        // Who follows is told its place first.
        let path = format!("/api/v1/executions/{queued_id}/cancel");
        send_request(api.client, &format!("POST {path}"), &[], None).await
    };
    let (followed, cancelled) = tokio::join!(request_event_stream(api.client, &queued_id), cancel);
    api.validator.assert_documented_and_record("GET /api/v1/executions/{id}/events", &followed);
    api.validator.assert_documented_and_record("POST /api/v1/executions/{id}/cancel", &cancelled);
    service.setup.open_gate("go");
    let followed = request_event_stream(api.client, &running_id).await;
    assert!(followed.body.contains("event: rest"), "{followed:?}");
    api.validator.assert_documented_and_record("GET /api/v1/executions/{id}/events", &followed);
    let path = format!("/api/v1/executions/{done_id}");
    api.request("POST /api/v1/executions/{id}/retry", &format!("{path}/retry"), None).await;
    api.request("GET /api/v1/executions", "/api/v1/executions?limit=2", None).await;
    for query in ["", "?text=true&limit=3"] {
        let path = format!("/api/v1/executions/export{query}");
        let lines = api.request("GET /api/v1/executions/export", &path, None).await;
        assert!(lines.body.lines().count() >= 3, "{lines:?}");
    }
    api.request("DELETE /api/v1/executions/{id}", &path, None).await;
    let deleted = api.request("GET /api/v1/executions/{id}", &path, None).await;
    assert_eq!(deleted.status, 404);
}

/// Requests the views of one execution.
async fn request_details(api: &mut ValidatingClient<'_>, id: &str) {
    let path = format!("/api/v1/executions/{id}");
    api.request("GET /api/v1/executions/{id}", &path, None).await;
    let tree = format!("{path}/tree");
    api.request("GET /api/v1/executions/{id}/tree", &tree, None).await;
    let steps = format!("{path}/steps");
    api.request("GET /api/v1/executions/{id}/steps", &steps, None).await;
    let events = format!("{path}/events?limit=2");
    api.request("GET /api/v1/executions/{id}/events", &events, None).await;
    let text = format!("{path}/text?channel=input");
    api.request("GET /api/v1/executions/{id}/text", &text, None).await;
}

async fn check_interactions(api: &mut ValidatingClient<'_>) {
    let text = "[[tool Bash kind=execute command=\"make test\"]] [[say done]]";
    let request_body = json!({"agent": "coder", "text": text});
    let task =
        api.request_without_path_params("POST /api/v1/executions", Some(request_body)).await.json();
    let open_id = poll_until("a question", async || {
        let list = send_request(api.client, "GET /api/v1/interactions?state=open", &[], None).await;
        list.json()["interactions"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    let list_operation = "GET /api/v1/interactions";
    let read_operation = "GET /api/v1/interactions/{id}";
    let answer_operation = "POST /api/v1/interactions/{id}/answer";
    let interaction_path = format!("/api/v1/interactions/{open_id}");
    let answer_path = format!("{interaction_path}/answer");
    api.request_without_path_params(list_operation, None).await;
    api.request(read_operation, &interaction_path, None).await;
    api.request(
        "GET /api/v1/executions/{id}",
        &format!("/api/v1/executions/{}", task["id"].as_str().unwrap()),
        None,
    )
    .await;
    for (body, status) in [
        (json!({"verdict": "ask"}), 400),
        (json!({"verdict": "allow", "digest": "other"}), 409),
        (json!({"verdict": "allow"}), 200),
        (json!({"verdict": "deny"}), 409),
    ] {
        let response = api.request(answer_operation, &answer_path, Some(body.clone())).await;
        assert_eq!(response.status, status, "{body}: {response:?}");
    }
    api.request(read_operation, &interaction_path, None).await;
    for operation in [list_operation, "GET /api/v1/permission-decisions"] {
        let path = operation.split(' ').nth(1).unwrap();
        api.request_without_path_params(operation, None).await;
        api.request(operation, &format!("{path}?limit=1"), None).await;
        api.request(operation, &format!("{path}?limit=0"), None).await;
    }
    let unknown_path = "/api/v1/interactions/00000000-0000-7000-8000-000000000000";
    api.request(read_operation, unknown_path, None).await;
    let body = Some(json!({"verdict": "allow"}));
    api.request(answer_operation, &format!("{unknown_path}/answer"), body).await;
}

async fn check_schedules(api: &mut ValidatingClient<'_>) {
    let schedule_path = format!("{SCHEDULES_PATH}/beat");
    let create_operation = "POST /api/v1/schedules";
    api.request_without_path_params(create_operation, Some(schedule_body("@daily"))).await;
    let duplicate =
        api.request_without_path_params(create_operation, Some(schedule_body("@daily"))).await;
    let invalid =
        api.request_without_path_params(create_operation, Some(schedule_body("never"))).await;
    assert_eq!((duplicate.status, invalid.status), (409, 400));
    api.request("PUT /api/v1/schedules/{id}", &schedule_path, Some(schedule_body("*/5 * * * *")))
        .await;
    for action in ["run", "pause", "resume"] {
        let operation = format!("POST /api/v1/schedules/{{id}}/{action}");
        api.request(&operation, &format!("{schedule_path}/{action}"), None).await;
    }
    poll_until("the end of what it asked for", async || {
        let occurrences =
            send_request(api.client, &format!("GET {schedule_path}/occurrences"), &[], None)
                .await
                .json();
        occurrences["occurrences"][0]["outcome"].is_string().then_some(())
    })
    .await;
    api.request_without_path_params("GET /api/v1/schedules", None).await;
    api.request("GET /api/v1/schedules/{id}", &schedule_path, None).await;
    api.request("GET /api/v1/schedules/{id}/next", &format!("{schedule_path}/next?count=3"), None)
        .await;
    let occurrences_path = format!("{schedule_path}/occurrences?limit=1");
    api.request("GET /api/v1/schedules/{id}/occurrences", &occurrences_path, None).await;
    let preview = json!({"cron": "@weekly", "count": 2.0});
    api.request_without_path_params("POST /api/v1/schedules/preview", Some(preview)).await;
    api.request("DELETE /api/v1/schedules/{id}", &schedule_path, None).await;
    let deleted = api.request("GET /api/v1/schedules/{id}", &schedule_path, None).await;
    assert_eq!(deleted.status, 404);
}

async fn check_administration(api: &mut ValidatingClient<'_>, service: &mut ServiceProcess) {
    let token_request =
        json!({"name": "bob", "scopes": ["read"], "expires": "2999-01-01T00:00:00Z"});
    api.request_without_path_params("POST /api/v1/tokens", Some(token_request.clone())).await;
    api.request_without_path_params("POST /api/v1/tokens", Some(token_request)).await;
    api.request_without_path_params("GET /api/v1/tokens", None).await;
    api.request("DELETE /api/v1/tokens/{name}", "/api/v1/tokens/bob", None).await;
    api.request("DELETE /api/v1/tokens/{name}", "/api/v1/tokens/bob", None).await;
    api.request_without_path_params("GET /api/v1/quota", None).await;
    for account in ["agent:echo", "nobody"] {
        let path = format!("/api/v1/quota/{account}/reopen");
        api.request("POST /api/v1/quota/{account}/reopen", &path, None).await;
    }
    api.request_without_path_params("POST /api/v1/reload", None).await;
    service.setup.set_config_text("[agents.echo]\ncommnd = 'x'\n");
    service.setup.write_config();
    let rejected = api.request_without_path_params("POST /api/v1/reload", None).await;
    assert_eq!(rejected.status, 422);
    api.request_without_path_params("GET /status", None).await; // The status reports what was rejected.
}

async fn check_reads_and_agents(api: &mut ValidatingClient<'_>) {
    for operation in [
        "GET /health",
        "GET /ready",
        "GET /errors",
        "GET /metrics",
        "GET /agents",
        "GET /agents/list.json",
        "GET /a2a/status",
        "GET /api/v1/agents",
        "GET /api/v1/openapi.json",
    ] {
        api.request_without_path_params(operation, None).await;
    }
    for path in ["", "?agent=echo&days=30", "?days=0"] {
        api.request("GET /api/v1/usage", &format!("/api/v1/usage{path}"), None).await;
    }
    for path in ["?names=PATH,NOT_SET", "?names=PATH&file=%2Fno%2Fsuch.toml", "?names="] {
        api.request("GET /api/v1/environment", &format!("/api/v1/environment{path}"), None).await;
    }
    for code in ["queue-full", "nonsense"] {
        api.request("GET /errors/{code}", &format!("/errors/{code}"), None).await;
    }
    let wait_operation = "POST /api/v1/agents/{id}/wait";
    api.request(wait_operation, "/api/v1/agents/echo/wait?seconds=20", None).await;
    api.request(wait_operation, "/api/v1/agents/nobody/wait", None).await;
    api.request(wait_operation, "/api/v1/agents/echo/wait?seconds=3601", None).await;
    for action in ["disable", "enable"] {
        let operation = format!("POST /api/v1/agents/{{id}}/{action}");
        for (agent, status) in [("exit", 200), ("nobody", 404)] {
            let path = format!("/api/v1/agents/{agent}/{action}");
            assert_eq!(api.request(&operation, &path, None).await.status, status, "{path}");
        }
    }
}

fn configuration() -> String {
    let tokens = "[tokens.reader]\ntoken_env = 'READER'\nscopes = ['read']\n\
         [tokens.runner]\ntoken_env = 'RUNNER'\nscopes = ['run']\n";
    config_without_watch(
        &[
            fake_agent_config("echo", "echo", PARAMETER_SETTINGS),
            fake_agent_config("exit", "exit 7", ""),
            fake_agent_config("coder", "acp", "protocol = 'acp'"),
            gated_agent_config("gate", "max_concurrent = 1"),
            tokens.to_owned(),
        ]
        .concat(),
    )
}

async fn start_service() -> ServiceProcess {
    let setup = Setup::from_config_text(&configuration());
    setup.env("READER", READER_TOKEN).env("RUNNER", RUNNER_TOKEN).start().await
}

#[tokio::test]
async fn every_operation_responds_as_documented() {
    let mut service = start_service().await;
    let client = service.client.clone();
    let mut api =
        ValidatingClient { validator: ResponseValidator::fetch(&client).await, client: &client };
    check_reads_and_agents(&mut api).await;
    check_executions(&mut api, &service).await;
    check_interactions(&mut api).await;
    check_schedules(&mut api).await;
    check_administration(&mut api, &mut service).await;
    api.request_without_path_params("POST /api/v1/operator/rotate", None).await;
    assert_eq!(api.validator.operations_without_success(), Vec::<String>::new());
}

#[tokio::test]
async fn undescribed_and_missing_members_are_detected() {
    let service = start_service().await;
    let document = ResponseValidator::fetch(&service).await.openapi_document().clone();
    let answer = send_request(&service, "GET /status", &[], None).await;
    let faults_without = |schema_path: &str, name: &str| {
        let mut reduced = document.clone();
        let pointer = format!("/components/schemas/{schema_path}");
        let members = reduced.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
        assert!(members.remove(name).is_some(), "{schema_path}/{name}");
        ResponseValidator::from_document(reduced).response_faults("GET /status", &answer)
    };
    assert_eq!(faults_without("ServiceStatus", "description"), Vec::<String>::new());
    assert_ne!(faults_without("ServiceStatus/properties", "machine"), Vec::<String>::new());
    assert_ne!(faults_without("AgentStatus/properties", "restarts"), Vec::<String>::new());
    let body = answer.body.replacen("\"restarts\":0,", "", 1);
    let incomplete = TestResponse { body, ..answer };
    let validator = ResponseValidator::from_document(document.clone());
    assert_ne!(validator.response_faults("GET /status", &incomplete), Vec::<String>::new());
}

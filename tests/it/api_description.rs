//! The API for programs answers as its own description says, and every operation that is described is
//! there.

mod response_validator;

use serde_json::{Value, json};

use crate::harness::{Service, ServiceClient, Setup, TestResponse, fake, gated, until};
use crate::reload::text;
use response_validator::ResponseValidator;

/// Tokens with one right only.
const READER: &str = "reader-0123456789-0123456789-0123456789-01";
const RUNNER: &str = "runner-0123456789-0123456789-0123456789-01";

/// A parameter that callers may set.
const PARAMETER: &str = "params.a = '0'\noverrides.params = ['a']";

const SCHEDULES: &str = "/api/v1/schedules";

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
    TestResponse::read(&client.raw(format!("{head}\r\n{body}").as_bytes()).await).unwrap()
}

/// Asks, and holds the answer to what is described of the operation.
struct ValidatingClient<'s> {
    client: &'s ServiceClient,
    judge: ResponseValidator,
}

impl ValidatingClient<'_> {
    async fn ask(&mut self, operation: &str, path: &str, body: Option<Value>) -> TestResponse {
        self.ask_with(operation, path, &[], body).await
    }

    async fn ask_with(
        &mut self,
        operation: &str,
        path: &str,
        headers: &[&str],
        body: Option<Value>,
    ) -> TestResponse {
        let method = operation.split(' ').next().unwrap();
        let line = format!("{method} {path}");
        let answer = send_request(self.client, &line, headers, body.as_ref()).await;
        self.judge.hold(operation, &answer);
        answer
    }

    /// The same where the path names nothing.
    async fn plain(&mut self, operation: &str, body: Option<Value>) -> TestResponse {
        let path = operation.split(' ').nth(1).unwrap().to_owned();
        self.ask(operation, &path, body).await
    }
}

fn schedule_body(cron: &str) -> Value {
    json!({"id": "beat", "agent": "echo", "cron": cron, "input": "x", "timezone": "UTC"})
}

async fn executions(asker: &mut ValidatingClient<'_>, service: &Service) {
    let order = json!({"agent": "echo", "text": "hello", "wait": 30, "parameters": {"a": 1}});
    let done = asker.plain("POST /api/v1/executions", Some(order)).await;
    let done = done.json()["id"].as_str().unwrap().to_owned();
    let order = |agent: &str| json!({"agent": agent, "parts": [{"text": "ann"}]});
    asker
        .plain("POST /api/v1/executions", Some(json!({"agent": "exit", "text": "x", "wait": 30.0})))
        .await;
    let runs = asker.plain("POST /api/v1/executions", Some(order("gate"))).await;
    service.setup.written("log", "start ann\n").await;
    let waits = asker.plain("POST /api/v1/executions", Some(order("gate"))).await;
    assert_eq!((runs.status, waits.status), (202, 202));
    let [runs, waits] = [runs, waits].map(|it| it.json()["id"].as_str().unwrap().to_owned());
    until("a place in the line", async || {
        let shown = service.execution(&waits).await;
        (shown["queue"]["position"] == 1).then_some(())
    })
    .await;
    for id in [&done, &runs, &waits] {
        let at = format!("/api/v1/executions/{id}");
        asker.ask("GET /api/v1/executions/{id}", &at, None).await;
        asker
            .ask("GET /api/v1/executions/{id}/events", &format!("{at}/events?limit=2"), None)
            .await;
        asker
            .ask("GET /api/v1/executions/{id}/text", &format!("{at}/text?channel=input"), None)
            .await;
    }
    asker.plain("GET /status", None).await; // While something runs and something waits.
    asker.ask("GET /api/v1/agents/{id}", "/api/v1/agents/gate", None).await;
    asker.ask("GET /status/agents/{agent}", "/status/agents/gate", None).await;
    let stream = async |client: &ServiceClient, id: &str| {
        let line = format!("GET /api/v1/executions/{id}/events");
        send_request(client, &line, &["Accept: text/event-stream"], None).await
    };
    let cancel = async {
        // Who follows is told its place first.
        let at = format!("/api/v1/executions/{waits}/cancel");
        send_request(asker.client, &format!("POST {at}"), &[], None).await
    };
    let (followed, cancelled) = tokio::join!(stream(asker.client, &waits), cancel);
    asker.judge.hold("GET /api/v1/executions/{id}/events", &followed);
    asker.judge.hold("POST /api/v1/executions/{id}/cancel", &cancelled);
    service.setup.open("go");
    let followed = stream(asker.client, &runs).await;
    assert!(followed.body.contains("event: rest"), "{followed:?}");
    asker.judge.hold("GET /api/v1/executions/{id}/events", &followed);
    let (retry, at) = ("POST /api/v1/executions/{id}/retry", format!("/api/v1/executions/{done}"));
    asker.ask(retry, &format!("{at}/retry"), None).await;
    asker.ask("GET /api/v1/executions", "/api/v1/executions?limit=2", None).await;
    for query in ["", "?text=true&limit=3"] {
        let path = format!("/api/v1/executions/export{query}");
        let lines = asker.ask("GET /api/v1/executions/export", &path, None).await;
        assert!(lines.body.lines().count() >= 3, "{lines:?}");
    }
    asker.ask("DELETE /api/v1/executions/{id}", &at, None).await;
    let gone = asker.ask("GET /api/v1/executions/{id}", &at, None).await;
    assert_eq!(gone.status, 404);
}

async fn interactions(asker: &mut ValidatingClient<'_>) {
    let text = "[[tool Bash kind=execute command=\"make test\"]] [[say done]]";
    let order = json!({"agent": "coder", "text": text});
    let task = asker.plain("POST /api/v1/executions", Some(order)).await.json();
    let open = until("a question", async || {
        let list =
            send_request(asker.client, "GET /api/v1/interactions?state=open", &[], None).await;
        list.json()["interactions"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    let (list, one) = ("GET /api/v1/interactions", "GET /api/v1/interactions/{id}");
    let (answer, at) =
        ("POST /api/v1/interactions/{id}/answer", format!("/api/v1/interactions/{open}"));
    asker.plain(list, None).await;
    asker.ask(one, &at, None).await;
    asker
        .ask(
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
        let told = asker.ask(answer, &format!("{at}/answer"), Some(body.clone())).await;
        assert_eq!(told.status, status, "{body}: {told:?}");
    }
    asker.ask(one, &at, None).await;
    for operation in [list, "GET /api/v1/permission-decisions"] {
        let path = operation.split(' ').nth(1).unwrap();
        asker.plain(operation, None).await;
        asker.ask(operation, &format!("{path}?limit=1"), None).await;
        asker.ask(operation, &format!("{path}?limit=0"), None).await;
    }
    let unknown = "/api/v1/interactions/00000000-0000-7000-8000-000000000000";
    asker.ask(one, unknown, None).await;
    let body = Some(json!({"verdict": "allow"}));
    asker.ask(answer, &format!("{unknown}/answer"), body).await;
}

async fn schedules(asker: &mut ValidatingClient<'_>) {
    let at = format!("{SCHEDULES}/beat");
    asker.plain("POST /api/v1/schedules", Some(schedule_body("@daily"))).await;
    let twice = asker.plain("POST /api/v1/schedules", Some(schedule_body("@daily"))).await;
    let wrong = asker.plain("POST /api/v1/schedules", Some(schedule_body("never"))).await;
    assert_eq!((twice.status, wrong.status), (409, 400));
    asker.ask("PUT /api/v1/schedules/{id}", &at, Some(schedule_body("*/5 * * * *"))).await;
    for way in ["run", "pause", "resume"] {
        let operation = format!("POST /api/v1/schedules/{{id}}/{way}");
        asker.ask(&operation, &format!("{at}/{way}"), None).await;
    }
    until("the end of what it asked for", async || {
        let told =
            send_request(asker.client, &format!("GET {at}/occurrences"), &[], None).await.json();
        told["occurrences"][0]["outcome"].is_string().then_some(())
    })
    .await;
    asker.plain("GET /api/v1/schedules", None).await;
    asker.ask("GET /api/v1/schedules/{id}", &at, None).await;
    asker.ask("GET /api/v1/schedules/{id}/next", &format!("{at}/next?count=3"), None).await;
    let listed = format!("{at}/occurrences?limit=1");
    asker.ask("GET /api/v1/schedules/{id}/occurrences", &listed, None).await;
    let preview = json!({"cron": "@weekly", "count": 2.0});
    asker.plain("POST /api/v1/schedules/preview", Some(preview)).await;
    asker.ask("DELETE /api/v1/schedules/{id}", &at, None).await;
    let gone = asker.ask("GET /api/v1/schedules/{id}", &at, None).await;
    assert_eq!(gone.status, 404);
}

async fn administration(asker: &mut ValidatingClient<'_>, service: &mut Service) {
    let order = json!({"name": "bob", "scopes": ["read"], "expires": "2999-01-01T00:00:00Z"});
    asker.plain("POST /api/v1/tokens", Some(order.clone())).await;
    asker.plain("POST /api/v1/tokens", Some(order)).await;
    asker.plain("GET /api/v1/tokens", None).await;
    asker.ask("DELETE /api/v1/tokens/{name}", "/api/v1/tokens/bob", None).await;
    asker.ask("DELETE /api/v1/tokens/{name}", "/api/v1/tokens/bob", None).await;
    asker.plain("GET /api/v1/quota", None).await;
    for account in ["agent:echo", "nobody"] {
        let at = format!("/api/v1/quota/{account}/reopen");
        asker.ask("POST /api/v1/quota/{account}/reopen", &at, None).await;
    }
    asker.plain("POST /api/v1/reload", None).await;
    service.setup.rewrite("[agents.echo]\ncommnd = 'x'\n");
    service.setup.write();
    let rejected = asker.plain("POST /api/v1/reload", None).await;
    assert_eq!(rejected.status, 422);
    asker.plain("GET /status", None).await; // It tells what was rejected.
}

async fn agents(asker: &mut ValidatingClient<'_>) {
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
        asker.plain(operation, None).await;
    }
    for path in ["", "?agent=echo&days=30", "?days=0"] {
        asker.ask("GET /api/v1/usage", &format!("/api/v1/usage{path}"), None).await;
    }
    for path in ["?names=PATH,NOT_SET", "?names=PATH&file=%2Fno%2Fsuch.toml", "?names="] {
        asker.ask("GET /api/v1/environment", &format!("/api/v1/environment{path}"), None).await;
    }
    for code in ["queue-full", "nonsense"] {
        asker.ask("GET /errors/{code}", &format!("/errors/{code}"), None).await;
    }
    let wait = "POST /api/v1/agents/{id}/wait";
    asker.ask(wait, "/api/v1/agents/echo/wait?seconds=20", None).await;
    asker.ask(wait, "/api/v1/agents/nobody/wait", None).await;
    asker.ask(wait, "/api/v1/agents/echo/wait?seconds=3601", None).await;
    for way in ["disable", "enable"] {
        let operation = format!("POST /api/v1/agents/{{id}}/{way}");
        for (agent, status) in [("exit", 200), ("nobody", 404)] {
            let path = format!("/api/v1/agents/{agent}/{way}");
            assert_eq!(asker.ask(&operation, &path, None).await.status, status, "{path}");
        }
    }
}

fn configuration() -> String {
    let tokens = "[tokens.reader]\ntoken_env = 'READER'\nscopes = ['read']\n\
         [tokens.runner]\ntoken_env = 'RUNNER'\nscopes = ['run']\n";
    let gate = gated("gate", "max_concurrent = 1");
    text(
        &[
            fake("echo", "echo", PARAMETER),
            fake("exit", "exit 7", ""),
            fake("coder", "acp", "protocol = 'acp'"),
            gate,
            tokens.to_owned(),
        ]
        .concat(),
    )
}

async fn start_service() -> Service {
    Setup::bare(&configuration()).env("READER", READER).env("RUNNER", RUNNER).start().await
}

#[tokio::test]
async fn every_operation_responds_as_documented() {
    let mut service = start_service().await;
    let client = service.client.clone();
    let mut asker =
        ValidatingClient { judge: ResponseValidator::of(&client).await, client: &client };
    agents(&mut asker).await;
    executions(&mut asker, &service).await;
    interactions(&mut asker).await;
    schedules(&mut asker).await;
    administration(&mut asker, &mut service).await;
    asker.plain("POST /api/v1/operator/rotate", None).await;
    assert_eq!(asker.judge.unseen(), Vec::<String>::new());
}

/// A body that is read as far as the question who may do this.
fn body(path: &str) -> Option<Value> {
    match path {
        "/api/v1/executions" => Some(json!({"agent": "echo", "text": "x"})),
        "/api/v1/tokens" => Some(json!({"name": "x", "scopes": ["admin"]})),
        "/api/v1/schedules/preview" => Some(json!({"cron": "@daily"})),
        _ if path.starts_with(SCHEDULES) => Some(schedule_body("@daily")),
        _ => None,
    }
}

#[tokio::test]
async fn every_operation_requires_its_documented_right() {
    let service = start_service().await;
    let judge = ResponseValidator::of(&service).await;
    let mut open = Vec::new();
    for (method, path, operation) in judge.operations() {
        let line = format!("{method} {path}");
        let at = path.replace("{id}", "echo").replace("{agent}", "echo").replace("{name}", "x");
        let body = body(&path).filter(|_| operation.get("requestBody").is_some());
        let told = async |token: &str| {
            let client = service.with(token);
            let answer = send_request(&client, &format!("{method} {at}"), &[], body.as_ref()).await;
            assert_eq!(judge.faults(&line, &answer), Vec::<String>::new(), "{line}: {answer:?}");
            answer.status
        };
        if operation["security"].as_array().unwrap().is_empty() {
            open.push(line.clone());
            continue;
        }
        let needed = operation.pointer("/security/0/token/0").unwrap();
        let powerless = if needed == "run" { READER } else { RUNNER };
        // A path that is not there would be told to anybody.
        assert_eq!((told("").await, told(powerless).await), (401, 403), "{line}");
    }
    assert_eq!(open, ["GET /errors", "GET /errors/{code}", "GET /health", "GET /ready"]);
}

/// A token with one right alone is let in where that one is named, and nowhere else.
#[tokio::test]
async fn the_documented_right_is_sufficient() {
    let service = start_service().await;
    let judge = ResponseValidator::of(&service).await;
    for right in ["read", "run", "approve", "admin"] {
        let order = json!({"name": right, "scopes": [right]}).to_string();
        let made = service.post("/api/v1/tokens", &order).await.json();
        let client = service.with(made["token"].as_str().unwrap());
        for (method, path, operation) in judge.operations() {
            let Some(needed) = operation.pointer("/security/0/token/0") else { continue };
            let at = path.replace("{id}", "echo").replace("{agent}", "echo");
            let at = at.replace("{name}", "nobody");
            let body = body(&path).filter(|_| operation.get("requestBody").is_some());
            let answer = send_request(&client, &format!("{method} {at}"), &[], body.as_ref()).await;
            let line = format!("{method} {path} with {right}");
            assert_eq!(answer.status != 403, needed == right, "{line}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn undescribed_and_missing_members_are_detected() {
    let service = start_service().await;
    let document = ResponseValidator::of(&service).await.document().clone();
    let answer = send_request(&service, "GET /status", &[], None).await;
    let found = |place: &str, name: &str| {
        let mut other = document.clone();
        let members = other.pointer_mut(&format!("/components/schemas/{place}")).unwrap();
        assert!(members.as_object_mut().unwrap().remove(name).is_some(), "{place}/{name}");
        ResponseValidator::with_position(other).faults("GET /status", &answer)
    };
    assert_eq!(found("ServiceStatus", "description"), Vec::<String>::new());
    assert_ne!(found("ServiceStatus/properties", "machine"), Vec::<String>::new());
    assert_ne!(found("AgentStatus/properties", "restarts"), Vec::<String>::new());
    let less = answer.body.replacen("\"restarts\":0,", "", 1);
    let less = TestResponse { body: less, ..answer.clone() };
    assert_ne!(
        ResponseValidator::with_position(document.clone()).faults("GET /status", &less),
        Vec::<String>::new()
    );
}

//! The API for programs answers as its own description says, and every operation that is described is
//! there.

mod judge;

use serde_json::{Value, json};

use crate::harness::{Answer, Door, Service, Setup, fake, gated, until};
use crate::reload::text;
use judge::Judge;

/// A token that may see nothing and do nothing here.
const POWERLESS: &str = "powerless-0123456789-0123456789-0123456789";

const SCHEDULES: &str = "/api/v1/schedules";

/// A line of a request, whose answer comes without chunks.
async fn asked(door: &Door, line: &str, headers: &[&str], body: Option<&Value>) -> Answer {
    let (bearer, body) = (&door.token, body.map(Value::to_string).unwrap_or_default());
    let mut head = format!("{line} HTTP/1.0\r\nHost: localhost\r\n");
    if !bearer.is_empty() {
        head.push_str(&format!("Authorization: Bearer {bearer}\r\n"));
    }
    if !body.is_empty() {
        let length = body.len();
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
    }
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    Answer::read(&door.raw(format!("{head}\r\n{body}").as_bytes()).await).unwrap()
}

/// Asks, and holds the answer to what is described of the operation.
struct Asker<'s> {
    door: &'s Door,
    judge: Judge,
}

impl Asker<'_> {
    async fn ask(&mut self, operation: &str, path: &str, body: Option<Value>) -> Answer {
        self.ask_with(operation, path, &[], body).await
    }

    async fn ask_with(
        &mut self,
        operation: &str,
        path: &str,
        headers: &[&str],
        body: Option<Value>,
    ) -> Answer {
        let method = operation.split(' ').next().unwrap();
        let line = format!("{method} {path}");
        let answer = asked(self.door, &line, headers, body.as_ref()).await;
        self.judge.hold(operation, &answer);
        answer
    }

    /// The same where the path names nothing.
    async fn plain(&mut self, operation: &str, body: Option<Value>) -> Answer {
        let path = operation.split(' ').nth(1).unwrap().to_owned();
        self.ask(operation, &path, body).await
    }
}

fn beat(cron: &str) -> Value {
    json!({"id": "beat", "agent": "echo", "cron": cron, "input": "x", "timezone": "UTC"})
}

async fn executions(asker: &mut Asker<'_>, service: &Service) {
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
    let stream = async |door: &Door, id: &str| {
        let line = format!("GET /api/v1/executions/{id}/events");
        asked(door, &line, &["Accept: text/event-stream"], None).await
    };
    let cancel = async {
        // Who follows is told its place first.
        let at = format!("/api/v1/executions/{waits}/cancel");
        asked(asker.door, &format!("POST {at}"), &[], None).await
    };
    let (followed, cancelled) = tokio::join!(stream(asker.door, &waits), cancel);
    asker.judge.hold("GET /api/v1/executions/{id}/events", &followed);
    asker.judge.hold("POST /api/v1/executions/{id}/cancel", &cancelled);
    service.setup.open("go");
    let followed = stream(asker.door, &runs).await;
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

async fn schedules(asker: &mut Asker<'_>) {
    let at = format!("{SCHEDULES}/beat");
    asker.plain("POST /api/v1/schedules", Some(beat("@daily"))).await;
    let twice = asker.plain("POST /api/v1/schedules", Some(beat("@daily"))).await;
    let wrong = asker.plain("POST /api/v1/schedules", Some(beat("never"))).await;
    assert_eq!((twice.status, wrong.status), (409, 400));
    asker.ask("PUT /api/v1/schedules/{id}", &at, Some(beat("*/5 * * * *"))).await;
    for way in ["run", "pause", "resume"] {
        let operation = format!("POST /api/v1/schedules/{{id}}/{way}");
        asker.ask(&operation, &format!("{at}/{way}"), None).await;
    }
    until("the end of what it asked for", async || {
        let told = asked(asker.door, &format!("GET {at}/occurrences"), &[], None).await.json();
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

async fn administration(asker: &mut Asker<'_>, service: &mut Service) {
    let order = json!({"name": "bob", "scopes": ["read"], "expires": "2999-01-01T00:00:00Z"});
    asker.plain("POST /api/v1/tokens", Some(order.clone())).await;
    asker.plain("POST /api/v1/tokens", Some(order)).await;
    asker.plain("GET /api/v1/tokens", None).await;
    asker.ask("DELETE /api/v1/tokens/{name}", "/api/v1/tokens/bob", None).await;
    asker.ask("DELETE /api/v1/tokens/{name}", "/api/v1/tokens/bob", None).await;
    asker.plain("POST /api/v1/reload", None).await;
    service.setup.rewrite("[agents.echo]\ncommnd = 'x'\n");
    service.setup.write();
    let rejected = asker.plain("POST /api/v1/reload", None).await;
    assert_eq!(rejected.status, 422);
    asker.plain("GET /status", None).await; // It tells what was rejected.
}

async fn agents(asker: &mut Asker<'_>) {
    for operation in [
        "GET /health",
        "GET /ready",
        "GET /metrics",
        "GET /agents",
        "GET /a2a/status",
        "GET /api/v1/agents",
        "GET /api/v1/openapi.json",
    ] {
        asker.plain(operation, None).await;
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
    let tokens = "[tokens.powerless]\ntoken_env = 'POWERLESS'\nscopes = ['approve']\n";
    let gate = gated("gate", "max_concurrent = 1");
    text(&[fake("echo", "echo", ""), fake("exit", "exit 7", ""), gate, tokens.to_owned()].concat())
}

async fn begun() -> Service {
    Setup::bare(&configuration()).env("POWERLESS", POWERLESS).start().await
}

#[tokio::test]
async fn every_operation_answers_as_it_is_described() {
    let mut service = begun().await;
    let door = service.door.clone();
    let mut asker = Asker { judge: Judge::of(&door).await, door: &door };
    agents(&mut asker).await;
    executions(&mut asker, &service).await;
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
        _ if path.starts_with(SCHEDULES) => Some(beat("@daily")),
        _ => None,
    }
}

#[tokio::test]
async fn every_operation_needs_the_right_that_it_is_described_with() {
    let service = begun().await;
    let judge = Judge::of(&service).await;
    let mut open = Vec::new();
    for (method, path, operation) in judge.operations() {
        let line = format!("{method} {path}");
        let at = path.replace("{id}", "echo").replace("{agent}", "echo").replace("{name}", "x");
        let body = body(&path).filter(|_| operation.get("requestBody").is_some());
        let told = async |token: &str| {
            let door = service.with(token);
            let answer = asked(&door, &format!("{method} {at}"), &[], body.as_ref()).await;
            assert_eq!(judge.faults(&line, &answer), Vec::<String>::new(), "{line}: {answer:?}");
            answer.status
        };
        if operation["security"].as_array().unwrap().is_empty() {
            open.push(line.clone());
            continue;
        }
        // A path that is not there would be told to anybody.
        assert_eq!((told("").await, told(POWERLESS).await), (401, 403), "{line}");
    }
    assert_eq!(open, ["GET /health", "GET /ready"]);
}

/// A token with one right alone is let in where that one is named, and nowhere else.
#[tokio::test]
async fn a_right_that_is_described_is_enough() {
    let service = begun().await;
    let judge = Judge::of(&service).await;
    for right in ["read", "run", "admin"] {
        let order = json!({"name": right, "scopes": [right]}).to_string();
        let made = service.post("/api/v1/tokens", &order).await.json();
        let door = service.with(made["token"].as_str().unwrap());
        for (method, path, operation) in judge.operations() {
            let Some(needed) = operation.pointer("/security/0/token/0") else { continue };
            let at = path.replace("{id}", "echo").replace("{agent}", "echo");
            let at = at.replace("{name}", "nobody");
            let body = body(&path).filter(|_| operation.get("requestBody").is_some());
            let answer = asked(&door, &format!("{method} {at}"), &[], body.as_ref()).await;
            let line = format!("{method} {path} with {right}");
            assert_eq!(answer.status != 403, needed == right, "{line}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_member_that_is_not_described_is_found_and_so_is_one_that_is_missing() {
    let service = begun().await;
    let document = Judge::of(&service).await.document().clone();
    let answer = asked(&service, "GET /status", &[], None).await;
    let found = |place: &str, name: &str| {
        let mut other = document.clone();
        let members = other.pointer_mut(&format!("/components/schemas/{place}")).unwrap();
        assert!(members.as_object_mut().unwrap().remove(name).is_some(), "{place}/{name}");
        Judge::knowing(other).faults("GET /status", &answer)
    };
    assert_eq!(found("ServiceStatus", "description"), Vec::<String>::new());
    assert_ne!(found("ServiceStatus/properties", "machine"), Vec::<String>::new());
    assert_ne!(found("AgentStatus/properties", "restarts"), Vec::<String>::new());
    let less = answer.body.replacen("\"restarts\":0,", "", 1);
    let less = Answer { body: less, ..answer.clone() };
    assert_ne!(Judge::knowing(document.clone()).faults("GET /status", &less), Vec::<String>::new());
}

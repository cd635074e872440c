//! Client of one service with one token: HTTP over a new connection for each request.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::wait::{poll_until, within_deadline};

/// Answer as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl TestResponse {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
        let body = String::from_utf8_lossy(bytes.get(end + 4..)?).into_owned();
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Some(Self { status, headers: headers.collect(), body })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Returns the code of a refusal, in any of the formats.
    pub(crate) fn error_code(&self) -> String {
        let document = self.json();
        let pointers = ["/code", "/error/data/0/metadata/code", "/error/details/0/metadata/code"];
        let code = pointers.iter().find_map(|pointer| document.pointer(pointer)?.as_str());
        code.unwrap_or_default().to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// Returns the parameters of `message/send` with this text.
pub(crate) fn message_params(text: &str) -> Value {
    message_params_with_id(&uuid::Uuid::new_v4().to_string(), text)
}

/// Returns the parameters of `message/send` with this text and this message id.
pub(crate) fn message_params_with_id(id: &str, text: &str) -> Value {
    let parts = json!([{"kind": "text", "text": text}]);
    json!({"message": {"kind": "message", "role": "user", "messageId": id, "parts": parts}})
}

/// Returns one JSON-RPC call as text, with the id 7.
pub(crate) fn json_rpc_request_body(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

/// Address of a service, and a token for it.
#[derive(Debug, Clone)]
pub(crate) struct ServiceClient {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl ServiceClient {
    pub(crate) async fn connect(&self) -> TcpStream {
        within_deadline("a connection", TcpStream::connect(self.address)).await.unwrap()
    }

    /// Sends bytes and returns all bytes until the service closes the connection.
    pub(crate) async fn send_raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        _ = within_deadline("writing", stream.write_all(bytes)).await; // The service may answer before it has read all bytes.
        let mut answer = Vec::new();
        _ = within_deadline("the answer", stream.read_to_end(&mut answer)).await; // A reset ends the answer too.
        answer
    }

    /// Sends one request with these header lines.
    pub(crate) async fn request(
        &self,
        method_and_path: &str,
        headers: &[String],
        body: &[u8],
    ) -> TestResponse {
        let answer = self.send_raw(&request_bytes(method_and_path, headers, body)).await;
        let fail =
            || panic!("no answer to {method_and_path}: {:?}", String::from_utf8_lossy(&answer));
        TestResponse::parse(&answer).unwrap_or_else(fail)
    }

    /// Makes one JSON-RPC call to a service that may be killed meanwhile; returns its answer, if there is one.
    pub(crate) async fn try_call(
        &self,
        agent: &str,
        method: &str,
        params: &Value,
    ) -> Option<Value> {
        let headers = [self.authorization_header(), "Content-Type: application/json".to_owned()];
        let method_and_path = format!("POST /agents/{agent}/v1");
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        stream
            .write_all(&request_bytes(
                &method_and_path,
                &headers,
                json_rpc_request_body(method, params).as_bytes(),
            ))
            .await
            .ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok()?;
        serde_json::from_str(&TestResponse::parse(&answer)?.body).ok()
    }

    fn authorization_header(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.request(&format!("GET {path}"), &[self.authorization_header()], b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> TestResponse {
        let headers = [self.authorization_header(), "Content-Type: application/json".to_owned()];
        self.request(&format!("POST {path}"), &headers, body.as_bytes()).await
    }

    /// Makes one JSON-RPC call with further header lines; returns the whole answer.
    pub(crate) async fn call_with_headers(
        &self,
        agent: &str,
        headers: &[&str],
        (method, params): (&str, &Value),
    ) -> TestResponse {
        let default_headers =
            [self.authorization_header(), "Content-Type: application/json".to_owned()];
        let headers: Vec<_> = default_headers
            .into_iter()
            .chain(headers.iter().map(|header| (*header).to_owned()))
            .collect();
        let method_and_path = format!("POST /agents/{agent}/v1");
        self.request(&method_and_path, &headers, json_rpc_request_body(method, params).as_bytes())
            .await
    }

    /// Makes one JSON-RPC call; returns the whole answer.
    pub(crate) async fn call(&self, agent: &str, method: &str, params: &Value) -> TestResponse {
        self.post(&format!("/agents/{agent}/v1"), &json_rpc_request_body(method, params)).await
    }

    /// Makes one JSON-RPC call that must succeed; returns its result.
    pub(crate) async fn expect_result(&self, agent: &str, method: &str, params: &Value) -> Value {
        let answer = self.call(agent, method, params).await;
        let mut document = answer.json();
        assert_eq!(
            (answer.status, &document["error"]),
            (200, &Value::Null),
            "{method}: {document}"
        );
        document["result"].take()
    }

    /// Makes one JSON-RPC call that must be refused; returns the number of its error and the code.
    pub(crate) async fn expect_refusal(
        &self,
        agent: &str,
        method: &str,
        params: Value,
    ) -> (i64, String) {
        let document = self.call(agent, method, &params).await.json();
        let error = &document["error"];
        let code = error["data"][0]["metadata"]["code"].as_str().unwrap_or_default().to_owned();
        (error["code"].as_i64().unwrap_or_else(|| panic!("{method}: {document}")), code)
    }

    /// Sends a text and waits for the end; returns the task.
    pub(crate) async fn send(&self, agent: &str, text: &str) -> Value {
        self.expect_result(agent, "message/send", &message_params(text)).await
    }

    /// Sends parameters without waiting; returns the task.
    pub(crate) async fn submit(&self, agent: &str, mut params: Value) -> Value {
        params["configuration"] = json!({"blocking": false});
        self.expect_result(agent, "message/send", &params).await
    }

    /// Sends a text without waiting; returns the id of the task.
    pub(crate) async fn start_task(&self, agent: &str, text: &str) -> String {
        task_id(&self.submit(agent, message_params(text)).await)
    }

    pub(crate) async fn fetch_task(&self, agent: &str, id: &str) -> Value {
        self.expect_result(agent, "tasks/get", &json!({"id": id})).await
    }

    /// Waits for the end of a task, and returns it.
    pub(crate) async fn wait_for_task_end(&self, agent: &str, id: &str) -> Value {
        poll_until(&format!("the end of {id}"), async || {
            let task = self.fetch_task(agent, id).await;
            let end_states = ["completed", "failed", "canceled", "rejected"];
            end_states.contains(&task_state(&task).as_str()).then_some(task)
        })
        .await
    }

    /// Cancels a task, and returns it.
    pub(crate) async fn cancel(&self, agent: &str, id: &str) -> Value {
        self.expect_result(agent, "tasks/cancel", &json!({"id": id})).await
    }

    pub(crate) async fn fetch_execution(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/executions/{id}")).await.json()
    }

    /// Returns the entry of one agent in `/status`.
    pub(crate) async fn fetch_agent_status(&self, id: &str) -> Value {
        let status = self.get("/status").await.json();
        let agents = status["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["id"] == id).unwrap().clone()
    }

    /// Waits until the execution of an agent has a place in the queue of its workspace. The places of messages to
    /// several agents follow the order in which the agents look at their workspaces.
    pub(crate) async fn wait_until_in_workspace_queue(&self, agent: &str) {
        poll_until(&format!("the place of {agent}"), async || {
            let running = &self.fetch_agent_status(agent).await["running"];
            (running[0]["queued"]["reason"] == "workspace-busy").then_some(())
        })
        .await;
    }
}

/// Returns a request in its wire form.
fn request_bytes(method_and_path: &str, headers: &[String], body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("{method_and_path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for header in headers {
        bytes.push_str(&format!("{header}\r\n"));
    }
    bytes.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    [bytes.as_bytes(), body].concat()
}

/// Returns the id of a task.
pub(crate) fn task_id(task: &Value) -> String {
    task["id"].as_str().unwrap().to_owned()
}

/// Returns the state of a task.
pub(crate) fn task_state(task: &Value) -> String {
    task["status"]["state"].as_str().unwrap_or_default().to_owned()
}

/// Returns the state of a task, and its text or the code of its failure.
pub(crate) fn task_outcome(task: &Value) -> (String, String) {
    let artifact_text = task.pointer("/artifacts/0/parts/0/text");
    let failure_code = task.pointer("/status/message/metadata/code");
    let text = failure_code.or(artifact_text).and_then(Value::as_str).unwrap_or_default();
    (task_state(task), text.to_owned())
}

/// Returns the outcome of a task that completed with this answer.
pub(crate) fn completed_outcome(text: &str) -> (String, String) {
    ("completed".to_owned(), text.to_owned())
}

/// Returns the outcome of a task that failed with this code.
pub(crate) fn failed_outcome(code: &str) -> (String, String) {
    ("failed".to_owned(), code.to_owned())
}

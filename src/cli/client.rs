//! HTTP to the service.

use std::io::{Error, Write};
use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::args::Args;
use super::fault::CliError;
use super::line::{self, Line};
use crate::config;
use crate::wire::api::Trouble;

/// A service and the right to talk to it.
pub(super) struct Client {
    url: String,
    token: String,
    line: Line,
}

impl Client {
    /// Reads the token and sees that the address is one.
    pub(super) fn new(args: &Args) -> Result<Self, CliError> {
        let url = args.url.trim_end_matches('/').to_owned();
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(CliError::Address { url });
        }
        let env = |name: &str| std::env::var(name).ok();
        let file = args.token_file.clone().unwrap_or_else(|| config::usual_token_file(&env));
        let token = token(&file)?;
        if HeaderValue::from_str(&token).is_err() {
            return Err(CliError::NoToken { file, source: Error::other("it holds no token") });
        }
        Ok(Self { url, token, line: line::line(args.ca.as_deref())? })
    }

    /// Gets a shape.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CliError> {
        self.call(Method::GET, path, None).await
    }

    /// Posts a document and gets a shape.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Value,
    ) -> Result<T, CliError> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// Puts a document and gets a shape.
    pub(super) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Value,
    ) -> Result<T, CliError> {
        self.call(Method::PUT, path, Some(body)).await
    }

    /// Deletes what a path names and gets a shape.
    pub(super) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, CliError> {
        self.call(Method::DELETE, path, None).await
    }

    /// Makes one JSON-RPC call to an agent.
    pub(super) async fn ask(
        &self,
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, CliError> {
        let (path, call) = call(agent, method, &params);
        result_of(self.call(Method::POST, &path, Some(call)).await?)
    }

    /// Makes one JSON-RPC call to an agent that is answered by a stream of events.
    pub(super) async fn open(
        &self,
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Incoming, CliError> {
        let (path, call) = call(agent, method, &params);
        let (is_good, is_stream, body) = self.begin(Method::POST, &path, Some(call)).await?;
        if is_good && is_stream {
            return Ok(body);
        }
        let bytes = collect(body).await?;
        Err(refused(&bytes))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, CliError> {
        let (is_good, _, body) = self.begin(method, path, body).await?;
        let bytes = collect(body).await?;
        if is_good {
            let strange = |_| CliError::Strange { about: "its shape is another one" };
            serde_json::from_slice(&bytes).map_err(strange)
        } else {
            Err(refused(&bytes))
        }
    }

    /// Has something removed, of which nothing is told.
    pub(super) async fn remove(&self, path: &str) -> Result<(), CliError> {
        let (is_good, _, body) = self.begin(Method::DELETE, path, None).await?;
        let bytes = collect(body).await?;
        if is_good { Ok(()) } else { Err(refused(&bytes)) }
    }

    /// Copies an answer as it comes, however long it is.
    pub(super) async fn copy(&self, path: &str, into: &mut impl Write) -> Result<(), CliError> {
        let (is_good, _, mut body) = self.begin(Method::GET, path, None).await?;
        if !is_good {
            let bytes = collect(body).await?;
            return Err(refused(&bytes));
        }
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| CliError::Broken { source })?;
            let data = frame.data_ref().map(|data| into.write_all(data));
            data.unwrap_or(Ok(())).map_err(|source| CliError::Output { source })?;
        }
        into.flush().map_err(|source| CliError::Output { source })
    }

    /// Asks; whether the answer is a good one, whether it is a stream of events, and its body.
    async fn begin(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(bool, bool, Incoming), CliError> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .map_err(|_malformed| CliError::Address { url: self.url.clone() })?;
        let broken = |error| line::broken(&self.url, error);
        let response = self.line.request(request).await.map_err(broken)?;
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        Ok((response.status().is_success(), is_stream, response.into_body()))
    }
}

/// One JSON-RPC call: its path and its document.
fn call(agent: &str, method: &str, params: &Value) -> (String, Value) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    (format!("/agents/{agent}/v1"), call)
}

/// What a JSON-RPC answer holds.
pub(super) fn result_of(mut answer: Value) -> Result<Value, CliError> {
    match (answer.get_mut("result").map(Value::take), answer.get("error")) {
        (Some(result), None) => Ok(result),
        (_, Some(error)) => Err(CliError::Refused(rpc_trouble(error))),
        (None, None) => Err(CliError::Strange { about: "it has neither result nor error" }),
    }
}

async fn collect(body: Incoming) -> Result<Bytes, CliError> {
    let collected = body.collect().await;
    Ok(collected.map_err(|source| CliError::Broken { source })?.to_bytes())
}

/// What a refusal says, in whichever of the two forms it came.
fn refused(bytes: &[u8]) -> CliError {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else {
        return CliError::Strange { about: "it is not JSON" };
    };
    match document.get("error") {
        Some(error) => CliError::Refused(rpc_trouble(error)),
        None => rejected(&document)
            .unwrap_or_else(|| CliError::Refused(trouble(&document, document.get("detail")))),
    }
}

/// A configuration that the service does not take, with every fault of it.
fn rejected(document: &Value) -> Option<CliError> {
    let faults = document.get("rejected")?.as_array().filter(|faults| !faults.is_empty())?;
    let faults = faults.iter().filter_map(|fault| serde_json::from_value(fault.clone()).ok());
    let trouble = trouble(document, document.get("detail"));
    Some(CliError::Rejected { trouble, faults: faults.collect() })
}

fn rpc_trouble(error: &Value) -> Trouble {
    trouble(error.get("data").unwrap_or(error), error.get("message"))
}

fn trouble(details: &Value, message: Option<&Value>) -> Trouble {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    Trouble {
        code: text(details.get("code")),
        category: text(details.get("category")),
        message: text(message),
        hint: text(details.get("hint")),
    }
}

/// The token of the environment, or of the file.
fn token(file: &Path) -> Result<String, CliError> {
    if let Some(token) = std::env::var("ALGONIUS_TOKEN").ok().filter(|token| !token.is_empty()) {
        return Ok(token);
    }
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(CliError::NoToken { file: file.to_owned(), source }),
    }
}

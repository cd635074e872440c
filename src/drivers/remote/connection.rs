//! HTTP connections to remote agents.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_a2a::client::{ClientCall, ClientDialect, ClientRequest, find_error};
use algonius_actors::model::agent::remote::RemoteSpec;
use algonius_actors::ports::session_store::SessionStore;
use algonius_warden::{MemoryAccount, OutputMemory};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response};
use serde_json::Value;
use tokio::time::timeout;

use super::event_stream::RemoteEventStream;
use super::remote_fault::RemoteFault;
use crate::platform::http_client::{self, OutgoingClient, USER_AGENT_VALUE, bearer_header_value};

/// Time limit for the answer to a call that waits for no work.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Greatest length of an answer in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Connections and memory that the drivers of all remote agents share. Cheap to clone.
#[derive(Clone)]
pub struct RemoteConnections {
    client: OutgoingClient,
    memory: OutputMemory,
    pub(super) sessions: Arc<dyn SessionStore>,
}

/// Start of the answer to a streaming call.
pub(super) enum StreamingResponse {
    /// The events follow.
    Events(RemoteEventStream),
    /// The agent answered with a single document.
    Document(Value),
}

impl RemoteConnections {
    /// Returns connections that trust the built-in root certificates. The texts of answers use at most `memory` bytes.
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn new(memory_limit: u64, sessions: Arc<dyn SessionStore>) -> io::Result<Self> {
        let client = http_client::new_outgoing_client()?;
        Ok(Self { client, memory: OutputMemory::with_limit(memory_limit), sessions })
    }

    /// Returns an account for the texts of one attempt.
    pub(super) fn new_memory_account(&self) -> MemoryAccount {
        self.memory.new_account()
    }

    /// Calls an agent, and returns the result of its answer.
    ///
    /// # Errors
    /// The reason why there is no result.
    pub(super) async fn call(
        &self,
        remote: &RemoteSpec,
        call: ClientCall,
    ) -> Result<Value, RemoteFault> {
        let response_future = async {
            let response = self.send(remote, call, "application/json").await?;
            read_document(remote, response).await
        };
        timeout(RESPONSE_TIMEOUT, response_future).await.unwrap_or(Err(RemoteFault::Timeout))
    }

    /// Calls an agent whose answer is a stream.
    ///
    /// # Errors
    /// The reason why there is no stream.
    pub(super) async fn open_stream(
        &self,
        remote: &RemoteSpec,
        call: ClientCall,
    ) -> Result<StreamingResponse, RemoteFault> {
        let response = self.send(remote, call, "text/event-stream").await?;
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if content_type.is_some_and(|content_type| content_type.starts_with(b"text/event-stream")) {
            return Ok(StreamingResponse::Events(RemoteEventStream::new(response.into_body())));
        }
        read_document(remote, response).await.map(StreamingResponse::Document)
    }

    /// Sends a request, and returns an answer that is no refusal. No redirect is followed, so that the token reaches
    /// the configured address alone.
    async fn send(
        &self,
        remote: &RemoteSpec,
        call: ClientCall,
        accept_header: &'static str,
    ) -> Result<Response<Incoming>, RemoteFault> {
        let request =
            build_request(remote, call, accept_header).ok_or(RemoteFault::InvalidRequest)?;
        let answer = self.client.request(request).await;
        let response = answer.map_err(|error| RemoteFault::from_connection_error(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|after| after.to_str().ok()).map(str::to_owned);
        // A streaming call has no time limit, because the work may take long. Its refusal has one.
        let body = timeout(RESPONSE_TIMEOUT, read_body(response))
            .await
            .unwrap_or(Err(RemoteFault::Timeout));
        let answer: Option<Value> = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
        let error = answer.as_ref().and_then(find_error).unwrap_or_default();
        Err(RemoteFault::ErrorResponse { status, retry_after, error })
    }
}

pub(super) const fn dialect(remote: &RemoteSpec) -> ClientDialect {
    ClientDialect { version: remote.version, binding: remote.binding }
}

fn build_request(
    remote: &RemoteSpec,
    call: ClientCall,
    accept_header: &'static str,
) -> Option<Request<Full<Bytes>>> {
    let ClientRequest { path, body, extensions_header: extensions } =
        dialect(remote).build_request(call);
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{}{path}", remote.url))
        .header(USER_AGENT, USER_AGENT_VALUE)
        .header(ACCEPT, accept_header)
        .header("A2A-Version", remote.version.as_str());
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some((name, uris)) = extensions {
        request = request.header(name, uris);
    }
    if let Some(token) = &remote.token {
        request = request.header(AUTHORIZATION, bearer_header_value(&token.0)?);
    }
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    request.body(Full::from(body)).ok()
}

/// Returns the result of an answer that is one document.
async fn read_document(
    remote: &RemoteSpec,
    response: Response<Incoming>,
) -> Result<Value, RemoteFault> {
    let status = response.status();
    let media_type = describe_media_type(&response);
    let body = read_body(response).await?;
    let answer = serde_json::from_slice(&body).map_err(|_syntax| {
        let form = if body.is_empty() { "is empty" } else { "is not JSON" };
        let reason = format!(
            "the answer of the remote agent (HTTP {}, {media_type}) {form}",
            status.as_u16()
        );
        RemoteFault::InvalidResponse { reason }
    })?;
    let refused = |error| RemoteFault::ErrorResponse { status, retry_after: None, error };
    dialect(remote).parse_result(answer).map_err(refused)
}

/// Returns the media type that the remote service states.
fn describe_media_type(response: &Response<Incoming>) -> String {
    let header = response.headers().get(CONTENT_TYPE).and_then(|header| header.to_str().ok());
    let media_type = header.and_then(|header| header.split(';').next()).unwrap_or_default().trim();
    if media_type.is_empty() { "without a media type".to_owned() } else { media_type.to_owned() }
}

async fn read_body(response: Response<Incoming>) -> Result<Bytes, RemoteFault> {
    // The other service decides on the length of its answer.
    let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
    let body_fault = |error: Box<dyn std::error::Error + Send + Sync>| {
        if error.is::<http_body_util::LengthLimitError>() {
            RemoteFault::ResponseTooLong { limit: MAX_RESPONSE_BYTES }
        } else {
            RemoteFault::Unreachable { cause: error.to_string() }
        }
    };
    Ok(body.map_err(body_fault)?.to_bytes())
}

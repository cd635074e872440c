//! Instrumentation: each request has an id and a trace context, and is counted.

use std::sync::Arc;
use std::task::{Context, Poll};

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::execution::trace::{SpanId, TraceContext, TraceId};
use algonius_actors::model::id::AgentId;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::Service;
use tracing::Span;
use uuid::Uuid;

use crate::observe::RequestRecord;
use crate::serve::AppState;
use crate::serve::a2a::transport_metadata::{TRACE_HEADERS, trace_context};

/// Header with the id of a request.
const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id that a caller chooses, in bytes.
const MAX_REQUEST_ID_BYTES: usize = 128;

/// Paths that monitoring polls; the api does not count requests to these paths.
const UNCOUNTED_PATHS: [&str; 3] = ["/health", "/ready", "/metrics"];

/// Prefix of the path of every call to an agent.
const AGENT_CALL_PATH: &str = "/agents/{agent}/v1";

/// Endpoint of a request.
pub(super) struct MatchedEndpoint {
    template: MatchedPath,
    /// Agent that the path names, if that agent exists.
    agent: Option<Arc<AgentSpec>>,
}

impl MatchedEndpoint {
    fn new(app: &AppState, template: MatchedPath, path: &str) -> Self {
        let mut segments = template.as_str().split('/').zip(path.split('/'));
        let agent_segment = segments.find(|(segment, _)| *segment == "{agent}");
        let id = agent_segment.and_then(|(_, value)| AgentId::new(value).ok());
        let agent = id.and_then(|id| app.agents.get(&id).cloned());
        Self { template, agent }
    }

    /// Returns the agent that the request called over A2A; requests for cards do not count.
    pub(super) fn called_agent(self) -> Option<Arc<AgentSpec>> {
        let subpath = self.template.as_str().strip_prefix(AGENT_CALL_PATH)?;
        self.agent.filter(|_| !subpath.starts_with("/.well-known"))
    }

    fn is_uncounted(&self) -> bool {
        UNCOUNTED_PATHS.contains(&self.template.as_str())
    }

    /// Returns the path template with the id of the agent.
    fn path_with_agent(&self) -> String {
        let template = self.template.as_str();
        let with_agent_id =
            |spec: &Arc<AgentSpec>| template.replacen("{agent}", spec.id.as_str(), 1);
        self.agent.as_ref().map_or_else(|| template.to_owned(), with_agent_id)
    }
}

/// Layer that records the matched path in the response, because only the router knows it.
#[derive(Clone)]
pub(super) struct RouteRecorder<S>(pub(super) S);

impl<S> Service<Request> for RouteRecorder<S>
where
    S: Service<Request, Response = Response, Future: Send + 'static>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let template = request.extensions().get::<MatchedPath>().cloned();
        let response_future = self.0.call(request);
        Box::pin(async move {
            let mut response = response_future.await?;
            if let Some(template) = template {
                response.extensions_mut().insert(template);
            }
            Ok(response)
        })
    }
}

/// Request in progress: it has an id and a trace context, for the log and for the work that it starts.
pub(super) struct RequestObservation {
    started_at: DateTime<Utc>,
    started_instant: Instant,
    /// Id of the request, for the response.
    id: Option<HeaderValue>,
    trace: Option<TraceContext>,
    /// Parent span of the request.
    parent_span: Option<SpanId>,
}

impl RequestObservation {
    /// Starts the observation. Readers of the headers from here on find the span of this request.
    pub(super) fn start_and_set_trace_headers(app: &AppState, headers: &mut HeaderMap) -> Self {
        // Wall time may jump, so the duration comes from the monotonic clock.
        let (started_at, started_instant, random_id) =
            (app.api.reader.now(), Instant::now(), Uuid::new_v4());
        let id = caller_request_id(headers)
            .or_else(|| HeaderValue::from_str(&random_id.to_string()).ok());
        let caller_trace = trace_context(headers);
        let parent = caller_trace.as_ref().map(|caller_trace| caller_trace.span);
        let trace =
            request_trace(caller_trace, random_id, app.monitoring.instruments.exports_traces());
        set_trace_headers(headers, trace.as_ref());
        Self { started_at, started_instant, id, trace, parent_span: parent }
    }

    /// Returns the log span of the request. The span has the highest level, so that no filter omits its id.
    pub(super) fn span(&self) -> Span {
        let id = self.id.as_ref().and_then(|id| id.to_str().ok());
        let trace_id = self.trace.as_ref().map(|trace| tracing::field::display(trace.id));
        tracing::error_span!("request", request_id = id, trace_id)
    }

    /// Counts the request when its response starts, and adds the id to the response. `path` is the path of an
    /// admitted request. Returns the endpoint of the request.
    pub(super) fn finish_with_response(
        self,
        app: &AppState,
        method: &Method,
        path: Option<&str>,
        response: &mut Response,
    ) -> Option<MatchedEndpoint> {
        let duration = self.started_instant.elapsed();
        if let Some(id) = self.id {
            response.headers_mut().insert(REQUEST_ID_HEADER, id);
        }
        let template = response.extensions_mut().remove::<MatchedPath>();
        let matched_endpoint =
            template.zip(path).map(|(template, path)| MatchedEndpoint::new(app, template, path));
        if let Some(endpoint) = matched_endpoint.as_ref().filter(|it| !it.is_uncounted()) {
            app.api.tree.count_request(&endpoint.path_with_agent());
        }
        if let Some(trace) = self.trace {
            let (started_at, parent, status) =
                (self.started_at, self.parent_span, response.status().as_u16());
            let method = method_label(method);
            let endpoint = matched_endpoint.as_ref().map(|endpoint| endpoint.template.as_str());
            let request_record =
                RequestRecord { method, endpoint, status, started_at, duration, trace, parent };
            app.monitoring.instruments.record_request(&request_record);
        }
        matched_endpoint
    }
}

/// Returns the caller's own id of its request, if it is well formed.
fn caller_request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut values = headers.get_all(REQUEST_ID_HEADER).iter();
    // With two ids nobody can tell which one the caller will search for.
    let (id, None) = (values.next()?, values.next()) else { return None };
    let text = id.to_str().ok()?;
    let is_allowed_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    // The id goes to the log and to the response: anything else could forge a line or a header.
    let is_id =
        (1..=MAX_REQUEST_ID_BYTES).contains(&text.len()) && text.bytes().all(is_allowed_byte);
    HeaderValue::from_str(text).ok().filter(|_| is_id) // A copy, which does not keep the request.
}

/// Returns the trace context of this request: within the caller's trace, or of a new trace. The random bytes are the
/// trace id, and their end is the span id.
fn request_trace(
    caller_trace: Option<TraceContext>,
    random_id: Uuid,
    is_sampled: bool,
) -> Option<TraceContext> {
    let bytes = random_id.into_bytes();
    let span = SpanId::new(*bytes.last_chunk()?)?;
    match caller_trace {
        Some(caller_trace) => Some(caller_trace.child(span)),
        None => Some(TraceContext::root(TraceId::new(bytes)?, span, is_sampled)),
    }
}

/// Replaces the trace context in the headers, so that readers find this request instead of its caller.
fn set_trace_headers(headers: &mut HeaderMap, trace: Option<&TraceContext>) {
    let parent = trace.and_then(|trace| HeaderValue::try_from(trace.traceparent()).ok());
    let state = trace.map(|trace| &trace.tracestate).filter(|state| !state.is_empty());
    let state = state.and_then(|state| HeaderValue::from_str(state).ok());
    for (name, value) in TRACE_HEADERS.into_iter().zip([parent, state]) {
        match value {
            Some(value) => _ = headers.insert(name, value),
            None => _ = headers.remove(name),
        }
    }
}

/// Returns the name of a known method, so that clients cannot create metric labels.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        _ => "_OTHER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_formed_request_id_is_used() {
        let id_of = |texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(REQUEST_ID_HEADER, HeaderValue::from_str(text).expect("a header"));
            }
            caller_request_id(&headers).map(|id| id.to_str().expect("text").to_owned())
        };
        assert_eq!(id_of(&["a-b_c.d:7"]).as_deref(), Some("a-b_c.d:7"));
        let long = "x".repeat(MAX_REQUEST_ID_BYTES + 1);
        for wrong in [&[][..], &[""], &["a b"], &["a", "b"], &["a\"b"], &[&long]] {
            assert_eq!(id_of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_request_continues_the_trace_of_its_caller() {
        let mut headers = HeaderMap::new();
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        headers.insert("traceparent", HeaderValue::from_static(parent));
        headers.insert("tracestate", HeaderValue::from_static("a=b"));
        let trace = request_trace(trace_context(&headers), Uuid::new_v4(), true).expect("a trace");
        set_trace_headers(&mut headers, Some(&trace));
        assert_eq!(trace_context(&headers), Some(trace.clone()));
        assert!(trace.traceparent() != parent && trace.tracestate == "a=b" && !trace.sampled);
        assert_eq!(trace.traceparent().get(..36), parent.get(..36));
        headers.insert("traceparent", HeaderValue::from_static("nonsense"));
        let alone = request_trace(trace_context(&headers), Uuid::new_v4(), true).expect("a trace");
        assert!(alone.id != trace.id && alone.tracestate.is_empty());
    }
}

//! Around everything: each request has an id, a place in a trace, and is counted.

use std::sync::Arc;
use std::task::{Context, Poll};

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::trace::{SpanId, Trace, TraceId};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::Service;
use tracing::Span;
use uuid::Uuid;

use super::App;
use super::beside::{TRACE, traced};
use crate::observe::Requested;

/// The header with the id of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that a caller may choose, in bytes.
const LONGEST_ID: usize = 128;

/// Paths that are looked at again and again by those who watch; nobody is told how often.
const WATCHED: [&str; 3] = ["/health", "/ready", "/metrics"];

/// The path of every call to an agent begins so.
const CALLS: &str = "/agents/{agent}/v1";

/// Where a request has led.
pub(super) struct Endpoint {
    template: MatchedPath,
    /// The agent that the path names, where there is such an agent.
    pub(super) agent: Option<Arc<AgentSpec>>,
}

impl Endpoint {
    fn of(app: &App, template: MatchedPath, path: &str) -> Self {
        let mut places = template.as_str().split('/').zip(path.split('/'));
        let named = places.find(|(place, _)| *place == "{agent}");
        let id = named.and_then(|(_, word)| AgentId::new(word).ok());
        let agent = id.and_then(|id| app.agents.get(&id).cloned());
        Self { template, agent }
    }

    /// Whether A2A is spoken there; cards are only read.
    pub(super) fn speaks_a2a(&self) -> bool {
        let rest = self.template.as_str().strip_prefix(CALLS);
        rest.is_some_and(|rest| !rest.starts_with("/.well-known"))
    }

    fn is_watched(&self) -> bool {
        WATCHED.contains(&self.template.as_str())
    }

    /// The template with the id of the agent in it.
    fn named(&self) -> String {
        let template = self.template.as_str();
        let with = |spec: &Arc<AgentSpec>| template.replacen("{agent}", spec.id.as_str(), 1);
        self.agent.as_ref().map_or_else(|| template.to_owned(), with)
    }
}

/// Notes on an answer by which path its request was led, which is known on the way there alone.
#[derive(Clone)]
pub(super) struct Led<S>(pub(super) S);

impl<S> Service<Request> for Led<S>
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
        let answering = self.0.call(request);
        Box::pin(async move {
            let mut response = answering.await?;
            if let Some(template) = template {
                response.extensions_mut().insert(template);
            }
            Ok(response)
        })
    }
}

/// A request that is under way: it has an id and a place in a trace, in the log and for all that it
/// begins.
pub(super) struct Observed {
    begun: DateTime<Utc>,
    clock: Instant,
    /// The id, as it is told back.
    id: Option<HeaderValue>,
    trace: Option<Trace>,
    /// What it was begun from.
    parent: Option<SpanId>,
}

impl Observed {
    /// Begins to observe. Whoever reads the headers from here on finds the request in its own place.
    pub(super) fn begin(app: &App, headers: &mut HeaderMap) -> Self {
        let (begun, clock, drawn) = (app.gateway.now(), Instant::now(), Uuid::new_v4());
        let id = given(headers).or_else(|| HeaderValue::from_str(&drawn.to_string()).ok());
        let asked = traced(headers);
        let parent = asked.as_ref().map(|asked| asked.span);
        let trace = own(asked, drawn, app.observatory.is_tracing());
        tell(headers, trace.as_ref());
        Self { begun, clock, id, trace, parent }
    }

    /// Around all that is said about it in the log. Of the highest level, so that no filter leaves its
    /// id out.
    pub(super) fn span(&self) -> Span {
        let id = self.id.as_ref().and_then(|id| id.to_str().ok());
        let trace_id = self.trace.as_ref().map(|trace| tracing::field::display(trace.id));
        tracing::error_span!("request", request_id = id, trace_id)
    }

    /// Counts it, now that its answer has begun, and tells its id. `path` is where it was let in. Answers
    /// where it has led.
    pub(super) fn end(
        self,
        app: &App,
        method: &Method,
        path: Option<&str>,
        response: &mut Response,
    ) -> Option<Endpoint> {
        let took = self.clock.elapsed();
        if let Some(id) = self.id {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        let template = response.extensions_mut().remove::<MatchedPath>();
        let led = template.zip(path).map(|(template, path)| Endpoint::of(app, template, path));
        if let Some(endpoint) = led.as_ref().filter(|it| !it.is_watched()) {
            app.gateway.count(&endpoint.named());
        }
        if let Some(trace) = self.trace {
            let (begun, parent, status) = (self.begun, self.parent, response.status().as_u16());
            let method = word(method);
            let endpoint = led.as_ref().map(|endpoint| endpoint.template.as_str());
            let requested = Requested { method, endpoint, status, begun, took, trace, parent };
            app.observatory.requested(&requested);
        }
        led
    }
}

/// The caller's own id of its request, where it is well formed.
fn given(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut all = headers.get_all(REQUEST_ID).iter();
    let (id, None) = (all.next()?, all.next()) else { return None };
    let text = id.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let is_id = (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(plain);
    HeaderValue::from_str(text).ok().filter(|_| is_id) // A copy, which does not keep the request.
}

/// The place of this request: within the caller's trace, or at the beginning of one. What was drawn at
/// random is its id, and the end of that the id of the work.
fn own(asked: Option<Trace>, drawn: Uuid, is_recorded: bool) -> Option<Trace> {
    let bytes = drawn.into_bytes();
    let span = SpanId::new(*bytes.last_chunk()?)?;
    match asked {
        Some(asked) => Some(asked.child(span)),
        None => Some(Trace::begun(TraceId::new(bytes)?, span, is_recorded)),
    }
}

/// Whoever reads the headers from here on finds this request where its caller was.
fn tell(headers: &mut HeaderMap, trace: Option<&Trace>) {
    let parent = trace.and_then(|trace| HeaderValue::try_from(trace.traceparent()).ok());
    let state = trace.map(|trace| &trace.state).filter(|state| !state.is_empty());
    let state = state.and_then(|state| HeaderValue::from_str(state).ok());
    for (name, value) in TRACE.into_iter().zip([parent, state]) {
        match value {
            Some(value) => _ = headers.insert(name, value),
            None => _ = headers.remove(name),
        }
    }
}

/// The known methods, so that nobody invents labels.
fn word(method: &Method) -> &'static str {
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
    fn an_id_is_taken_where_it_is_well_formed() {
        let of = |texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(REQUEST_ID, HeaderValue::from_str(text).expect("a header"));
            }
            given(&headers).map(|id| id.to_str().expect("text").to_owned())
        };
        assert_eq!(of(&["a-b_c.d:7"]).as_deref(), Some("a-b_c.d:7"));
        let long = "x".repeat(LONGEST_ID + 1);
        for wrong in [&[][..], &[""], &["a b"], &["a", "b"], &["a\"b"], &[&long]] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_was_asked_for_goes_on_in_the_trace_of_the_caller() {
        let mut headers = HeaderMap::new();
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        headers.insert("traceparent", HeaderValue::from_static(parent));
        headers.insert("tracestate", HeaderValue::from_static("a=b"));
        let trace = own(traced(&headers), Uuid::new_v4(), true).expect("a trace");
        tell(&mut headers, Some(&trace));
        assert_eq!(traced(&headers), Some(trace.clone()));
        assert!(trace.traceparent() != parent && trace.state == "a=b" && !trace.sampled);
        assert_eq!(trace.traceparent().get(..36), parent.get(..36));
        headers.insert("traceparent", HeaderValue::from_static("nonsense"));
        let alone = own(traced(&headers), Uuid::new_v4(), true).expect("a trace");
        assert!(alone.id != trace.id && alone.state.is_empty());
    }
}

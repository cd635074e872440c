//! Around everything: each request has an id, a place in a trace, and is counted.

use algonius_actors::model::trace::{SpanId, Trace, TraceId};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

use super::App;
use super::beside::traced;
use crate::observe::Requested;

/// The header with the id of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that a caller may choose, in bytes.
const LONGEST_ID: usize = 128;

/// Paths that are looked at again and again by those who watch; nobody is told how often.
const WATCHED: [&str; 3] = ["/health", "/ready", "/metrics"];

/// Where a request has led.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Endpoint {
    /// The template of the path.
    template: String,
    /// The same with the agent's id in it, where there is such an agent.
    named: String,
}

/// Notes on the answer where the request has led.
pub async fn led(State(app): State<App>, request: Request, next: Next) -> Response {
    let template = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let endpoint = template.map(|template| {
        let named = named(&app, &template, request.uri());
        Endpoint { template, named }
    });
    let mut response = next.run(request).await;
    if let Some(endpoint) = endpoint {
        response.extensions_mut().insert(endpoint);
    }
    response
}

/// Gives a request its id and its place in a trace, in the log and for all that it begins, and counts
/// it once its answer has begun.
pub async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (begun, clock) = (app.gateway.now(), Instant::now());
    let id = given(request.headers()).unwrap_or_else(|| Uuid::new_v4().to_string());
    let asked = traced(request.headers());
    let parent = asked.as_ref().map(|asked| asked.span);
    let trace = own(asked, app.observatory.is_tracing());
    tell(request.headers_mut(), trace.as_ref());
    let method = word(request.method());
    // Of the highest level, so that no filter of the log leaves its id out.
    let trace_id = trace.as_ref().map(|trace| tracing::field::display(trace.id));
    let span = tracing::error_span!("request", request_id = %id, trace_id);
    let mut response = next.run(request).instrument(span).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let endpoint = response.extensions_mut().remove::<Endpoint>();
    if let Some(endpoint) = endpoint.as_ref().filter(|it| !WATCHED.contains(&&*it.template)) {
        app.gateway.count(&endpoint.named);
    }
    let (endpoint, status) = (endpoint.map(|it| it.template), response.status().as_u16());
    let took = clock.elapsed();
    if let Some(trace) = trace {
        let requested = Requested { method, endpoint, status, begun, took, trace, parent };
        app.observatory.requested(&requested);
    }
    response
}

/// The caller's own id of its request, where it is well formed.
fn given(headers: &HeaderMap) -> Option<String> {
    let mut all = headers.get_all(REQUEST_ID).iter();
    let (text, None) = (all.next()?.to_str().ok()?, all.next()) else { return None };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let is_id = (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(plain);
    is_id.then(|| text.to_owned())
}

/// The place of this request: within the caller's trace, or at the beginning of one.
fn own(asked: Option<Trace>, is_recorded: bool) -> Option<Trace> {
    let [bytes, others] = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()];
    let span = SpanId::new(*others.first_chunk()?)?;
    match asked {
        Some(asked) => Some(asked.child(span)),
        None => Some(Trace::begun(TraceId::new(bytes)?, span, is_recorded)),
    }
}

/// Whoever reads the headers from here on finds this request where its caller was.
fn tell(headers: &mut HeaderMap, trace: Option<&Trace>) {
    let state = trace.map(|trace| trace.state.clone()).unwrap_or_default();
    let parent = trace.map(Trace::traceparent).unwrap_or_default();
    for (name, text) in [("traceparent", parent), ("tracestate", state)] {
        headers.remove(name);
        if let Ok(value) = HeaderValue::from_str(&text)
            && !text.is_empty()
        {
            headers.insert(name, value);
        }
    }
}

/// The path with the id of the agent in it.
fn named(app: &App, template: &str, uri: &Uri) -> String {
    let places = template.split('/').zip(uri.path().split('/'));
    let found = places.into_iter().find(|(place, _)| *place == "{agent}").map(|(_, word)| word);
    let agent = found.filter(|word| app.agents.keys().any(|id| id.as_str() == *word));
    agent.map_or_else(|| template.to_owned(), |agent| template.replacen("{agent}", agent, 1))
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
            given(&headers)
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
        let trace = own(traced(&headers), true).expect("a trace");
        tell(&mut headers, Some(&trace));
        assert_eq!(traced(&headers), Some(trace.clone()));
        assert!(trace.traceparent() != parent && trace.state == "a=b" && !trace.sampled);
        assert_eq!(trace.traceparent().get(..36), parent.get(..36));
        headers.insert("traceparent", HeaderValue::from_static("nonsense"));
        let alone = own(traced(&headers), true).expect("a trace");
        assert!(alone.id != trace.id && alone.state.is_empty());
    }
}

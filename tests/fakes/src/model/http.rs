//! HTTP interface of the model, and of the queries about it.
//!
//! | Path | What |
//! |---|---|
//! | `GET /_mock/log` | every request: its client, the offered tools and the text, and its answer |
//! | `GET /_mock/names` | names that were looked up, with how often |
//! | `POST /_mock/wait` | answers once a prompt had this text, now or later: that line of the log |
//! | `POST /_mock/script` | the inside of a directive for prompts without one; nothing: none |
//! | `POST /_mock/reset` | forgets the log, the names, what was counted and the script |

use std::collections::{BTreeMap, BTreeSet};
use std::future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify};

use crate::dialect::ApiDialect;
use crate::directive::Directive;
use crate::model_request::ModelRequest;
use crate::refusal::refusal;
use crate::{scripted_answer, transmission};

/// Greatest size of a body: a whole conversation with its tool results.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Number of characters of a text in the log.
const MAX_LOGGED_CHARS: usize = 400;

/// State of the model.
#[derive(Default)]
pub(crate) struct ModelServer {
    key: Option<String>,
    state: Mutex<ModelState>,
    /// Notifies of a new line in the log.
    log_change_notify: Notify,
}

#[derive(Default)]
struct ModelState {
    log: Vec<Value>,
    name_lookup_counts: BTreeMap<String, u64>,
    /// Number of refusals of each directive.
    refusal_counts: BTreeMap<String, u64>,
    /// Requests with each directive that waits for others.
    prompts_by_directive: BTreeMap<String, BTreeSet<String>>,
    default_directive: Directive,
    answer_count: u64,
}

type ModelServerExtractor = State<Arc<ModelServer>>;

impl ModelServer {
    /// Returns a state; with a key, requests with another key are refused.
    pub(crate) fn new(key: Option<String>) -> Self {
        Self { key, ..Self::default() }
    }

    /// Records the lookup of a name.
    pub(crate) async fn record_name_lookup(&self, name: String) {
        *self.state.lock().await.name_lookup_counts.entry(name).or_default() += 1;
    }

    /// Returns the first line of the log whose prompt has this text, as soon as there is one.
    async fn wait_for_log_line(&self, text: &str) -> Value {
        let contains_text = |line: &&Value| {
            line["text"].as_str().is_some_and(|logged_text| logged_text.contains(text))
        };
        self.wait_until_found(|state| state.log.iter().find(contains_text).cloned()).await
    }

    /// Returns when this many different prompts with this directive have arrived.
    async fn wait_for_prompts(&self, directive: &Directive, count: u64) {
        let directive = directive.canonical_text();
        let arrived_count = |state: &ModelState| {
            state.prompts_by_directive.get(&directive).map_or(0, BTreeSet::len) as u64
        };
        self.wait_until_found(|state| (arrived_count(state) >= count).then_some(())).await;
    }

    /// Waits until a value is found in the state, and returns it.
    async fn wait_until_found<T>(&self, find: impl Fn(&ModelState) -> Option<T>) -> T {
        loop {
            let log_changed = self.log_change_notify.notified();
            let mut log_changed = std::pin::pin!(log_changed);
            log_changed.as_mut().enable(); // Registered before the check, so that no line is missed in between.
            if let Some(found) = find(&*self.state.lock().await) {
                return found;
            }
            log_changed.await;
        }
    }
}

impl ModelState {
    /// Returns the status with which a directive refuses now, if it does.
    fn next_refusal_status(&mut self, directive: &Directive) -> Option<u16> {
        let status = u16::try_from(directive.number("status")?).ok()?;
        let times = directive.number("times").unwrap_or(u64::MAX);
        let refusal_count = self.refusal_counts.entry(directive.canonical_text()).or_default();
        *refusal_count += 1;
        (*refusal_count <= times).then_some(status)
    }
}

pub(crate) fn routes(server: Arc<ModelServer>) -> Router {
    Router::new()
        .route(
            "/_mock/log",
            get(async |State(server): ModelServerExtractor| {
                Json(server.state.lock().await.log.clone())
            }),
        )
        .route(
            "/_mock/names",
            get(async |State(server): ModelServerExtractor| {
                Json(server.state.lock().await.name_lookup_counts.clone())
            }),
        )
        .route("/_mock/wait", post(wait_for_prompt))
        .route("/_mock/script", post(set_default_directive))
        .route("/_mock/reset", post(reset))
        .fallback(handle_model_request)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(server)
}

async fn wait_for_prompt(State(server): ModelServerExtractor, text: String) -> Json<Value> {
    Json(server.wait_for_log_line(&text).await)
}

async fn set_default_directive(State(server): ModelServerExtractor, words: String) {
    server.state.lock().await.default_directive = Directive::parse(&words);
}

async fn reset(State(server): ModelServerExtractor) {
    *server.state.lock().await = ModelState::default();
}

/// Handles every request that is not about the mock itself.
async fn handle_model_request(
    State(server): ModelServerExtractor,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path();
    let mut log_line = json!({
        "method": method.as_str(), "path": path, "host": host(&uri, &headers),
        "agent": header(&headers, "user-agent"),
    });
    let (dialect, body) = (ApiDialect::from_path(path), serde_json::from_slice::<Value>(&body));
    let (Some(dialect), Ok(body), Method::POST) = (dialect, body, method) else {
        let response = answer_without_prompt(path);
        log_line["status"] = json!(response.status().as_u16());
        server.state.lock().await.log.push(log_line);
        return response;
    };
    let request = ModelRequest::parse(dialect, path, &body);
    add_request_to_log_line(&mut log_line, dialect, &request);
    let directive = Directive::extract_from(&request.user_text).1;
    let (answer_number, directive, refusal_status) = {
        let mut state = server.state.lock().await;
        let directive = directive.unwrap_or_else(|| state.default_directive.clone());
        let is_authorized =
            server.key.as_deref().is_none_or(|key| request_key(&headers) == Some(key));
        let refusal_status =
            if is_authorized { state.next_refusal_status(&directive) } else { Some(401) };
        log_line["status"] = json!(refusal_status.unwrap_or(200));
        state.answer_count += 1;
        if directive.number("together").is_some() {
            state
                .prompts_by_directive
                .entry(directive.canonical_text())
                .or_default()
                .insert(request.user_text.clone());
        }
        state.log.push(log_line);
        (state.answer_count, directive, refusal_status)
    };
    server.log_change_notify.notify_waiters();
    if let Some(status) = refusal_status {
        let (headers, body) = refusal(dialect, status, &directive);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return (status, headers, Json(body)).into_response();
    }
    if let Some(count) = directive.number("together") {
        server.wait_for_prompts(&directive, count).await;
    }
    send_answer(dialect, &request, &directive, answer_number).await
}

async fn send_answer(
    dialect: ApiDialect,
    request: &ModelRequest,
    directive: &Directive,
    answer_number: u64,
) -> Response {
    if directive.is_set("hang") {
        future::pending::<()>().await; // It ends when the client goes.
    }
    let turn_delay =
        scripted_answer::scripted_turn(request, directive).and_then(|turn| turn.delay_seconds);
    let delays = [directive.seconds("delay"), turn_delay].into_iter().flatten();
    for delay in delays.filter_map(|delay| Duration::try_from_secs_f64(delay).ok()) {
        tokio::time::sleep(delay).await;
    }
    if directive.is_set("garbage") {
        return transmission::garbage_response();
    }
    transmission::answer_response(
        dialect,
        request,
        &scripted_answer::answer(request, directive, answer_number),
        directive,
    )
}

/// Answers requests without a prompt: lists of models, token counts, availability checks.
fn answer_without_prompt(path: &str) -> Response {
    let model = |id: &str| {
        json!({"id": id, "object": "model", "type": "model", "created": 0,
        "owned_by": "mock", "display_name": id, "name": format!("models/{id}"), "created_at": "2025-01-01T00:00:00Z"})
    };
    if path.ends_with("/count_tokens") || path.ends_with(":countTokens") {
        return Json(json!({"input_tokens": 10, "totalTokens": 10})).into_response();
    }
    if path.ends_with("/models") {
        let models = [model("mock-1")];
        return Json(
            json!({"object": "list", "data": models, "models": models, "has_more": false}),
        )
        .into_response();
    }
    match path.rsplit_once("/models/") {
        Some((_, id)) => Json(model(id)).into_response(),
        None if path == "/" => StatusCode::OK.into_response(),
        None => {
            let error = json!({"message": "mock: no such path", "type": "not_found_error"});
            (StatusCode::NOT_FOUND, Json(json!({"error": error}))).into_response()
        }
    }
}

fn add_request_to_log_line(log_line: &mut Value, dialect: ApiDialect, request: &ModelRequest) {
    let shorten = |text: &str| text.chars().take(MAX_LOGGED_CHARS).collect::<String>();
    let results: Vec<_> = request.tool_results.iter().map(|result| shorten(result)).collect();
    log_line["dialect"] = json!(dialect.name());
    log_line["model"] = json!(request.model);
    log_line["stream"] = json!(request.is_streamed);
    log_line["tools"] = json!(request.tool_names);
    log_line["toolDefinitions"] = request.tool_definitions.clone();
    log_line["text"] = json!(shorten(&request.user_text));
    log_line["turns"] = json!(request.user_message_count);
    log_line["results"] = json!(results);
    log_line["schema"] = json!(request.schema.is_some());
}

/// Returns the host of the request, which is in the request line for a proxy.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    uri.host().or_else(|| header(headers, "host"))
}

fn request_key(headers: &HeaderMap) -> Option<&str> {
    let bearer = header(headers, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    header(headers, "x-api-key").or_else(|| header(headers, "x-goog-api-key")).or(bearer)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

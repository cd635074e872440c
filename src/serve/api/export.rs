//! History as a stream of lines, one JSON document for each execution, in bounded memory.

use std::collections::VecDeque;

use algonius_actors::door::Gateway;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::principal::{Caller, Right};
use algonius_actors::model::record::{Filter, Record};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::line::Line;
use super::query::{self, Asked};
use crate::serve::App;
use crate::serve::answer::Problem;
use crate::serve::auth::Who;

/// Executions that are read at once.
const PAGE: u32 = 100;

/// Streams the executions that the caller may see, newest first, each as it is when it is read.
///
/// # Errors
/// `invalid-params`, `forbidden`, or when the ledger could not be read. When that happens on the way
/// the stream is cut off, which a client can tell from its end.
pub async fn stream(State(app): State<App>, who: Who, asked: Asked) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let (query, with_text) = query::read_export(asked)?;
    let filter = query.filter(&caller, app.gateway.now())?;
    let left = query.limit.map_or(u64::MAX, u64::from);
    let (gateway, page) = (app.gateway.clone(), VecDeque::new());
    let mut export = Export { gateway, caller, filter, with_text, left, page, open: None };
    export.turn_page().await?; // What cannot be read at all is refused as a whole.
    let lines = futures_util::stream::unfold(Some(export), async |export| {
        let mut export = export?;
        match export.next().await {
            Ok(None) => None,
            Ok(Some(bytes)) => Some((Ok(bytes), Some(export))),
            Err(failure) => Some((Err(failure), None)),
        }
    });
    let mut response = Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// What is left to be told.
struct Export {
    gateway: Gateway,
    caller: Caller,
    filter: Filter,
    with_text: bool,
    left: u64,
    page: VecDeque<Record>,
    open: Option<Line>,
}

impl Export {
    /// The next bytes.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(line) = self.open.take() {
                let (told, line) = line.go_on(&self.gateway).await?;
                self.open = line;
                return Ok(Some(told.into()));
            }
            if self.page.is_empty() {
                self.turn_page().await?;
            }
            let Some(record) = self.page.pop_front() else { return Ok(None) };
            // What was removed meanwhile is left out.
            if let Some((head, line)) = Line::begin(&self.gateway, &record, self.with_text).await? {
                self.open = Some(line);
                return Ok(Some(head.into()));
            }
        }
    }

    async fn turn_page(&mut self) -> Result<(), Failure> {
        let limit = u32::try_from(self.left.min(PAGE.into())).unwrap_or(PAGE);
        if limit == 0 {
            return Ok(());
        }
        let filter = Filter { limit, ..self.filter.clone() };
        let records = self.gateway.executions(&self.caller, filter).await?;
        self.left = self.left.saturating_sub(records.len() as u64);
        self.filter.before = records.last().map(|record| record.id).or(self.filter.before);
        self.page = records.into();
        Ok(())
    }
}

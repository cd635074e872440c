//! Export of executions as a stream of lines, one JSON document for each execution, in bounded memory.

use std::collections::VecDeque;

use algonius_actors::api::Api;
use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::execution::record::{ExecutionFilter, ExecutionRecord};
use algonius_actors::model::failure::Failure;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::ndjson::NdjsonLineWriter;
use super::query::{self, ExtractedListQuery};
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::response::ProblemBody;

/// Number of executions in one read.
const EXPORT_PAGE_SIZE: u32 = 100;

/// Streams the executions that the caller may see, newest first, each in its state at the time of reading.
///
/// # Errors
/// `invalid-params`, `forbidden`; fails also if the ledger cannot be read. If that happens during the stream, the
/// connection is aborted, so that the client can detect the incomplete export.
pub async fn stream(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    parameters: ExtractedListQuery,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let (query, includes_text) = query::parse_export_query(parameters)?;
    let filter = query.execution_filter(&caller, app.api.reader.now())?;
    let remaining_count = query.limit.map_or(u64::MAX, u64::from);
    let (api, page) = (app.api.clone(), VecDeque::new());
    let mut export = ExportStream {
        api,
        caller,
        filter,
        includes_text,
        remaining_count,
        page,
        current_line: None,
    };
    export.read_page().await?; // What cannot be read at all is refused as a whole.
    let chunks = futures_util::stream::unfold(Some(export), async |export| {
        let mut export = export?;
        match export.next().await {
            Ok(None) => None,
            Ok(Some(bytes)) => Some((Ok(bytes), Some(export))),
            // An error of the body aborts the connection. A clean end would make the export look complete.
            Err(failure) => Some((Err(failure), None)),
        }
    });
    let mut response = Body::from_stream(chunks).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// State of a running export.
struct ExportStream {
    api: Api,
    caller: Caller,
    filter: ExecutionFilter,
    includes_text: bool,
    remaining_count: u64,
    page: VecDeque<ExecutionRecord>,
    current_line: Option<NdjsonLineWriter>,
}

impl ExportStream {
    /// Returns the next bytes.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(line) = self.current_line.take() {
                let (bytes, line) = line.next_chunk(&self.api).await?;
                self.current_line = line;
                return Ok(Some(bytes.into()));
            }
            if self.page.is_empty() {
                self.read_page().await?;
            }
            let Some(record) = self.page.pop_front() else { return Ok(None) };
            // Executions that were removed since the page was read are left out.
            if let Some((head, line)) =
                NdjsonLineWriter::start(&self.api, &record, self.includes_text).await?
            {
                self.current_line = Some(line);
                return Ok(Some(head.into()));
            }
        }
    }

    async fn read_page(&mut self) -> Result<(), Failure> {
        let limit = u32::try_from(self.remaining_count.min(EXPORT_PAGE_SIZE.into()))
            .unwrap_or(EXPORT_PAGE_SIZE);
        if limit == 0 {
            return Ok(());
        }
        let filter = ExecutionFilter { limit, ..self.filter.clone() };
        let records = self.api.reader.executions(&self.caller, filter).await?;
        self.remaining_count = self.remaining_count.saturating_sub(records.len() as u64);
        // Pages continue after the last id and not after a number of rows: rows may be removed meanwhile.
        self.filter.before_id = records.last().map(|record| record.id).or(self.filter.before_id);
        self.page = records.into();
        Ok(())
    }
}

//! Logs to standard error, as lines for people or as JSON. They never contain texts of agents.
//!
//! A line contains the fields of its spans: the id of the request, of the execution and of the agent.

mod line;
mod stderr_writer;

use std::env;
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use algonius_actors::ports::clock::Clock;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::observe::Instruments;
use crate::platform::clock::WallClock;
use crate::platform::terminal_text::TerminalScanner;
use line::{LogFields, LogLine};
use stderr_writer::StderrWriter;

/// Variable of the environment that sets the filter.
const FILTER_VARIABLE: &str = "RUST_LOG";
/// Time for the last lines at the end of the service.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// Lines for people on a terminal, JSON otherwise.
    Auto,
    /// Lines for people.
    Human,
    /// One JSON object per line.
    Json,
}

/// Handle of the log: its exporter in addition to standard error, once there is one, and its level filter.
#[derive(Clone)]
pub(crate) struct LogHandle {
    writer: StderrWriter,
    instruments: Arc<OnceLock<Instruments>>,
    /// Handle of the filter; `None` if the environment sets the filter.
    filter_handle: Option<reload::Handle<EnvFilter, Registry>>,
}

impl LogHandle {
    /// Changes the level of the log, unless `RUST_LOG` sets it.
    pub(crate) fn set_level(&self, level: Level) {
        let result = self.filter_handle.as_ref().map(|filter| filter.reload(level_filter(level)));
        if let Some(Err(error)) = result {
            tracing::error!(%error, "failed to change the log level");
        }
    }

    /// Writes a text for people between the lines, and waits a short time for room. Control characters are shown.
    pub(crate) fn write_plain_text(&self, text: &str) {
        let mut scanner = TerminalScanner::new(false);
        let printable_text = scanner.push(text) + &scanner.finish();
        self.writer.write_with_timeout(printable_text + "\n", FLUSH_TIMEOUT);
    }

    /// Waits until the lines so far are written, for a short time at most.
    pub(crate) fn flush(&self) {
        _ = self.writer.flush(FLUSH_TIMEOUT); // Without a reader the last lines are lost.
    }

    /// Also exports lines from now on, if the exporter accepts them.
    pub(crate) fn export_to(&self, instruments: &Instruments) {
        if instruments.exports_logs() {
            _ = self.instruments.set(instruments.clone()); // Whoever came first has them.
        }
    }
}

/// Starts the log. `RUST_LOG` overrides `level`. A second call changes nothing.
pub(crate) fn init(format: LineFormat, level: Level) -> LogHandle {
    let (env_filter, problem) = match filter_from_env() {
        Ok(filter) => (filter, None),
        Err(problem) => (None, Some(problem)),
    };
    let is_from_env = env_filter.is_some();
    let (filter, filter_handle) =
        reload::Layer::new(env_filter.unwrap_or_else(|| level_filter(level)));
    let is_terminal = stderr().is_terminal();
    let is_json = format == LineFormat::Json || (format == LineFormat::Auto && !is_terminal);
    let style = LineStyle { is_json, is_coloured: is_terminal };
    let log_handle = LogHandle {
        writer: StderrWriter::start(move |lost| style.format(&loss_line(lost))),
        instruments: Arc::default(),
        filter_handle: (!is_from_env).then_some(filter_handle),
    };
    let log_layer = LogLayer { style, log_handle: log_handle.clone() };
    if tracing_subscriber::registry().with(log_layer.with_filter(filter)).try_init().is_err() {
        tracing::debug!("logging was already initialized");
    }
    if let Some(problem) = problem {
        tracing::warn!(problem, "{FILTER_VARIABLE} is not used");
    }
    log_handle
}

/// Returns the filter of the environment; an empty variable sets none.
fn filter_from_env() -> Result<Option<EnvFilter>, String> {
    let Some(directives) = env::var_os(FILTER_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let directives = directives.into_string().map_err(|_bytes| "it is not UTF-8".to_owned())?;
    EnvFilter::try_new(directives).map(Some).map_err(|error| error.to_string())
}

/// Returns the line about lines that were lost.
fn loss_line(lost: u64) -> LogLine {
    let mut fields = LogFields::default();
    fields.set_message("lines of the log were lost; standard error was full, or was not read");
    fields.set("lost", lost.into());
    LogLine { at: WallClock.now(), level: Level::ERROR, target: module_path!(), fields }
}

fn level_filter(level: Level) -> EnvFilter {
    EnvFilter::default().add_directive(level.into())
}

/// Style of the lines.
#[derive(Debug, Clone, Copy)]
struct LineStyle {
    is_json: bool,
    is_coloured: bool,
}

impl LineStyle {
    fn format(self, line: &LogLine) -> String {
        if self.is_json { line.json() } else { line.human_text(self.is_coloured) }
    }
}

/// Layer that writes lines to standard error.
struct LogLayer {
    style: LineStyle,
    log_handle: LogHandle,
}

/// Returns true for events of the MCP library. They contain texts of servers, which may hold secrets.
fn is_from_mcp_library(target: &str) -> bool {
    target.starts_with("rmcp")
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for LogLayer {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: Context<'_, S>,
    ) {
        // The spans that ractor creates for each actor contain nothing that a reader knows.
        let target = attributes.metadata().target();
        if target.starts_with("ractor") || is_from_mcp_library(target) {
            return;
        }
        if let Some(span) = context.span(id) {
            let mut fields = LogFields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if is_from_mcp_library(event.metadata().target()) {
            return;
        }
        let mut fields = LogFields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(span_fields) = span.extensions().get::<LogFields>() {
                fields.extend(span_fields);
            }
        }
        event.record(&mut fields);
        let metadata = event.metadata();
        let line = LogLine {
            at: WallClock.now(),
            level: *metadata.level(),
            target: metadata.target(),
            fields,
        };
        self.log_handle.writer.write(self.style.format(&line));
        if let Some(instruments) = self.log_handle.instruments.get() {
            instruments.export_line(&line.into_exported_line());
        }
    }
}

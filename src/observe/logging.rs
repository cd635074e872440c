//! Logs to standard error, as lines for people or as JSON. They never contain texts of agents.
//!
//! A line contains the fields of its spans: the id of the request, of the execution and of the agent.

mod line;

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Arc, OnceLock};

use algonius_actors::ports::clock::Clock;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::observe::Instruments;
use crate::platform::clock::WallClock;
use line::{LogFields, LogLine};

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
#[derive(Clone, Default)]
pub(crate) struct LogHandle {
    instruments: Arc<OnceLock<Instruments>>,
    /// Handle of the filter; `None` if the environment sets the filter.
    filter: Option<reload::Handle<EnvFilter, Registry>>,
}

impl LogHandle {
    /// Changes the level of the log, unless `RUST_LOG` sets it.
    pub(crate) fn set_level(&self, level: Level) {
        let result = self.filter.as_ref().map(|filter| filter.reload(level_filter(level)));
        if let Some(Err(error)) = result {
            tracing::error!(%error, "failed to change the log level");
        }
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
    let env_filter = EnvFilter::try_from_default_env().ok();
    let is_from_env = env_filter.is_some();
    let (filter, filter_handle) =
        reload::Layer::new(env_filter.unwrap_or_else(|| level_filter(level)));
    let log_handle =
        LogHandle { filter: (!is_from_env).then_some(filter_handle), ..LogHandle::default() };
    let is_terminal = stderr().is_terminal();
    let is_json = format == LineFormat::Json || (format == LineFormat::Auto && !is_terminal);
    let log_layer = LogLayer { is_json, is_coloured: is_terminal, log_handle: log_handle.clone() };
    if tracing_subscriber::registry().with(log_layer.with_filter(filter)).try_init().is_err() {
        tracing::debug!("logging was already initialized");
    }
    log_handle
}

fn level_filter(level: Level) -> EnvFilter {
    EnvFilter::default().add_directive(level.into())
}

/// Layer that writes lines to standard error.
struct LogLayer {
    is_json: bool,
    is_coloured: bool,
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
        let text = if self.is_json { line.json() } else { line.human(self.is_coloured) };
        // One write for each line. A failed write is not logged, because the log would fail in the same way.
        _ = stderr().lock().write_all(text.as_bytes());
        if let Some(instruments) = self.log_handle.instruments.get() {
            instruments.export_line(&line.into_exported());
        }
    }
}

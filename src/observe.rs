//! Observability: metrics, traces and exported log lines of the service.
//!
//! The data consists of ids, names and numbers. No function here waits, and no data structure grows without limit.

mod exporter;
mod gauges;
mod labels;
pub(crate) mod logging;
mod metrics;
mod otlp;
mod process;

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::trace::{SpanId, Trace};
use algonius_actors::model::observation::alert::{Alert, AlertPhase};
use algonius_actors::model::observation::telemetry_events::{TelemetryEvent, TelemetrySubject};
use algonius_actors::ports::observer::Observer;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::push::WebhookClient;

use exporter::{ExportItem, Exporter};
use metrics::Metrics;

pub use exporter::Collector;
pub use gauges::GaugeValues;

/// Request whose response has started.
#[derive(Debug, Clone)]
pub struct Requested<'r> {
    /// HTTP method.
    pub method: &'static str,
    /// Path template; `None` if no route matches the path.
    pub endpoint: Option<&'r str>,
    /// Status of the response.
    pub status: u16,
    /// Time of arrival.
    pub begun: DateTime<Utc>,
    /// Duration up to the head of the response.
    pub took: Duration,
    /// Trace context of the request.
    pub trace: Trace,
    /// Parent span of the request.
    pub parent: Option<SpanId>,
}

/// Log line.
#[derive(Debug, Clone)]
pub struct ExportedLogLine {
    /// Time of the line.
    pub at: DateTime<Utc>,
    /// Level of the line.
    pub level: tracing::Level,
    /// Fields by name; the text of the line is the field `message`.
    pub fields: Vec<(&'static str, Value)>,
}

/// Metrics, traces and alerts. Cheap to clone.
#[derive(Clone)]
pub struct Instruments(Arc<InstrumentState>);

struct InstrumentState {
    metrics: Arc<Metrics>,
    /// Exporter to a collector.
    exporter: Option<Exporter>,
    /// Channel for alerts.
    alerts: Option<mpsc::Sender<(AlertPhase, Alert)>>,
}

impl Instruments {
    /// Creates the metrics, starts the export to a collector, and forwards alerts to the channel.
    #[must_use]
    pub fn new(
        alerts: Option<mpsc::Sender<(AlertPhase, Alert)>>,
        collector: Option<(Collector, WebhookClient)>,
    ) -> Self {
        let metrics = Arc::new(Metrics::new());
        let begin =
            |(collector, courier)| Exporter::begin(collector, courier, Arc::clone(&metrics));
        let exporter = collector.map(begin);
        Self(Arc::new(InstrumentState { metrics, exporter, alerts }))
    }

    /// True if traces are exported.
    #[must_use]
    pub fn is_tracing(&self) -> bool {
        self.0.exporter.is_some()
    }

    /// True if log lines are exported.
    #[must_use]
    pub fn wants_lines(&self) -> bool {
        self.0.exporter.as_ref().is_some_and(|exporter| exporter.logs)
    }

    /// Exports a log line.
    pub fn said(&self, line: &ExportedLogLine) {
        self.export("lines", || ExportItem::Line(otlp::line(line)));
    }

    /// Sends the queued items within a time limit.
    pub async fn flush(&self) {
        if let Some(exporter) = &self.0.exporter {
            exporter.flush().await;
        }
    }

    fn export(&self, what: &str, item: impl FnOnce() -> ExportItem) {
        let is_taken = self.0.exporter.as_ref().is_none_or(|exporter| exporter.take(item()));
        if !is_taken {
            self.0.metrics.dropped(what, 1);
        }
    }

    /// Records a request.
    pub fn requested(&self, requested: &Requested<'_>) {
        self.0.metrics.requested(requested);
        if requested.trace.sampled {
            self.export("spans", || ExportItem::Span(otlp::requested(requested)));
        }
    }

    /// Returns all metrics in the text format of Prometheus.
    #[must_use]
    pub fn numbers(&self, values: &GaugeValues) -> String {
        self.0.metrics.text(values)
    }
}

impl Observer for Instruments {
    fn record(&self, news: TelemetryEvent) {
        match &news {
            TelemetryEvent::Attempted(attempted) => {
                self.0.metrics.attempted(attempted);
                if is_sampled(&attempted.of) {
                    self.export("spans", || ExportItem::Span(otlp::attempted(attempted)));
                }
            }
            TelemetryEvent::Ended(ended) => {
                self.0.metrics.ended(ended);
                if is_sampled(&ended.of) {
                    self.export("spans", || ExportItem::Span(otlp::ended(ended)));
                }
            }
            TelemetryEvent::Alerted(turn, alert) => {
                self.0.metrics.alerted(*turn, alert);
                // An actor reports the alert, so a full queue drops it instead of delaying the actor.
                let sent =
                    self.0.alerts.as_ref().map(|hooks| hooks.try_send((*turn, alert.clone())));
                if let Some(Err(_)) = sent {
                    self.0.metrics.dropped("alerts", 1);
                }
            }
        }
    }
}

/// True if the caller samples its trace; without a trace context the work is sampled.
fn is_sampled(of: &TelemetrySubject) -> bool {
    of.asked.as_ref().is_none_or(|asked| asked.sampled)
}

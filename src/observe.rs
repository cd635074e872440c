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

use algonius_actors::model::execution::trace::{SpanId, TraceContext};
use algonius_actors::model::observation::alert::{Alert, AlertPhase};
use algonius_actors::model::observation::telemetry_events::{TelemetryEvent, TelemetrySubject};
use algonius_actors::ports::observer::Observer;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::push::WebhookClient;

use exporter::{ExportItem, Exporter};
use metrics::Metrics;

pub use exporter::OtlpCollector;
pub use gauges::GaugeValues;

/// Request whose response has started.
#[derive(Debug, Clone)]
pub struct RequestRecord<'r> {
    /// HTTP method.
    pub method: &'static str,
    /// Path template; `None` if no route matches the path.
    pub endpoint: Option<&'r str>,
    /// Status of the response.
    pub status: u16,
    /// Time of arrival.
    pub started_at: DateTime<Utc>,
    /// Duration up to the head of the response.
    pub duration: Duration,
    /// Trace context of the request.
    pub trace: TraceContext,
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
    alert_sender: Option<mpsc::Sender<(AlertPhase, Alert)>>,
}

impl Instruments {
    /// Creates the metrics, starts the export to a collector, and forwards alerts to the channel.
    #[must_use]
    pub fn new(
        alert_sender: Option<mpsc::Sender<(AlertPhase, Alert)>>,
        collector: Option<(OtlpCollector, WebhookClient)>,
    ) -> Self {
        let metrics = Arc::new(Metrics::new());
        let start_exporter = |(collector, webhook_client)| {
            Exporter::start(collector, webhook_client, Arc::clone(&metrics))
        };
        let exporter = collector.map(start_exporter);
        Self(Arc::new(InstrumentState { metrics, exporter, alert_sender }))
    }

    /// True if traces are exported.
    #[must_use]
    pub fn exports_traces(&self) -> bool {
        self.0.exporter.is_some()
    }

    /// True if log lines are exported.
    #[must_use]
    pub fn exports_logs(&self) -> bool {
        self.0.exporter.as_ref().is_some_and(|exporter| exporter.exports_logs)
    }

    /// Exports a log line.
    pub fn export_line(&self, line: &ExportedLogLine) {
        self.export("lines", || ExportItem::Line(otlp::log_record(line)));
    }

    /// Sends the queued items within a time limit.
    pub async fn flush(&self) {
        if let Some(exporter) = &self.0.exporter {
            exporter.flush().await;
        }
    }

    fn export(&self, kind: &str, item: impl FnOnce() -> ExportItem) {
        let is_queued = self.0.exporter.as_ref().is_none_or(|exporter| exporter.try_queue(item()));
        if !is_queued {
            self.0.metrics.count_dropped(kind, 1);
        }
    }

    /// Records a request.
    pub fn record_request(&self, request: &RequestRecord<'_>) {
        self.0.metrics.count_request(request);
        if request.trace.sampled {
            self.export("spans", || ExportItem::Span(otlp::request_span(request)));
        }
    }

    /// Returns all metrics in the text format of Prometheus.
    #[must_use]
    pub fn metrics_text(&self, values: &GaugeValues) -> String {
        self.0.metrics.text(values)
    }
}

impl Observer for Instruments {
    fn record(&self, event: TelemetryEvent) {
        match &event {
            TelemetryEvent::AttemptEnded(attempt) => {
                self.0.metrics.count_attempt(attempt);
                if is_sampled(&attempt.subject) {
                    self.export("spans", || ExportItem::Span(otlp::attempt_span(attempt)));
                }
            }
            TelemetryEvent::ExecutionEnded(execution) => {
                self.0.metrics.count_execution(execution);
                if is_sampled(&execution.subject) {
                    self.export("spans", || ExportItem::Span(otlp::execution_span(execution)));
                }
            }
            TelemetryEvent::AlertChanged(phase, alert) => {
                self.0.metrics.count_alert(*phase, alert);
                // An actor reports the alert, so a full queue drops it instead of delaying the actor.
                let send_result = self
                    .0
                    .alert_sender
                    .as_ref()
                    .map(|sender| sender.try_send((*phase, alert.clone())));
                if let Some(Err(_)) = send_result {
                    self.0.metrics.count_dropped("alerts", 1);
                }
            }
        }
    }
}

/// True if the caller samples its trace; without a trace context the work is sampled.
fn is_sampled(subject: &TelemetrySubject) -> bool {
    subject.request_trace.as_ref().is_none_or(|caller_trace| caller_trace.sampled)
}

//! Counters and histograms.
//!
//! Labels are names of the configuration, path templates and public words, so that their number is bounded.

use algonius_actors::model::observation::alert::{Alert, AlertPhase};
use algonius_actors::model::observation::telemetry_events::{EndedAttempt, EndedExecution};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::RequestRecord;
use super::gauges::GaugeValues;
use super::labels::{LabelValue, Labels};

/// Buckets for requests, in seconds.
const REQUEST_BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Buckets for executions, in seconds.
const EXECUTION_BUCKETS: [f64; 12] =
    [0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0];

/// Histograms of one name.
type HistogramFamily = Family<Labels, Histogram, fn() -> Histogram>;

/// Counters and histograms with their registry.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    request_durations: HistogramFamily,
    executions: Family<Labels, Counter>,
    execution_durations: HistogramFamily,
    attempts: Family<Labels, Counter>,
    tokens: Family<Labels, Counter>,
    alerts: Family<Labels, Counter>,
    dropped_items: Family<Labels, Counter>,
}

impl Metrics {
    /// Creates the metrics with zero values.
    pub(super) fn new() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("algonius"),
            requests: Family::default(),
            request_durations: HistogramFamily::new_with_constructor(|| {
                Histogram::new(REQUEST_BUCKETS)
            }),
            executions: Family::default(),
            execution_durations: HistogramFamily::new_with_constructor(|| {
                Histogram::new(EXECUTION_BUCKETS)
            }),
            attempts: Family::default(),
            tokens: Family::default(),
            alerts: Family::default(),
            dropped_items: Family::default(),
        };
        metrics.register_all()
    }

    fn register_all(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("requests", "Answered requests.", self.requests.clone());
        let help = "Seconds from a request to the head of its response.";
        registry.register("request_duration_seconds", help, self.request_durations.clone());
        registry.register("executions", "Ended executions.", self.executions.clone());
        let help = "Seconds from the acceptance of an execution to its end.";
        registry.register("execution_duration_seconds", help, self.execution_durations.clone());
        registry.register("attempts", "Ended attempts.", self.attempts.clone());
        let help = "Tokens of language models, as agents report them.";
        registry.register("tokens", help, self.tokens.clone());
        registry.register("alerts", "Raised alerts.", self.alerts.clone());
        let help = "Telemetry records that were dropped because the exporter was too slow.";
        registry.register("dropped", help, self.dropped_items.clone());
        self
    }

    /// Counts dropped items.
    pub(super) fn count_dropped(&self, kind: &str, count: u64) {
        self.dropped_items.get_or_create(&vec![("what", kind.to_owned().into())]).inc_by(count);
    }

    pub(super) fn count_request(&self, request: &RequestRecord<'_>) {
        let endpoint = request.endpoint.unwrap_or("none").to_owned().into();
        let (method, status) = (request.method.into(), status_class(request.status));
        let mut labels = vec![("endpoint", endpoint), ("method", method), ("status", status)];
        self.requests.get_or_create(&labels).inc();
        labels.truncate(1);
        self.request_durations.get_or_create(&labels).observe(request.duration.as_secs_f64());
    }

    pub(super) fn count_attempt(&self, attempt: &EndedAttempt) {
        let EndedAttempt { subject, code, .. } = attempt;
        let code = code.map(|code| code.as_str()).unwrap_or_default();
        let labels = vec![("agent", subject.agent.to_string().into()), ("code", code.into())];
        self.attempts.get_or_create(&labels).inc();
    }

    pub(super) fn count_execution(&self, execution: &EndedExecution) {
        let EndedExecution { subject, outcome, code, tokens, .. } = execution;
        let (agent, outcome) =
            (LabelValue::from(subject.agent.to_string()), LabelValue::from(outcome.to_string()));
        let category = code.map(|code| code.category().as_str()).unwrap_or_default();
        let code = code.map(|code| code.as_str()).unwrap_or_default();
        let outcome_labels = vec![("agent", agent.clone()), ("outcome", outcome)];
        let duration = (execution.at - execution.accepted_at).to_std().unwrap_or_default();
        self.execution_durations.get_or_create(&outcome_labels).observe(duration.as_secs_f64());
        let labels =
            [outcome_labels, vec![("class", category.into()), ("code", code.into())]].concat();
        self.executions.get_or_create(&labels).inc();
        for (kind, count) in [("input", tokens.input), ("output", tokens.output)] {
            if count > 0 {
                let labels = vec![("agent", agent.clone()), ("kind", kind.into())];
                self.tokens.get_or_create(&labels).inc_by(count);
            }
        }
    }

    pub(super) fn count_alert(&self, phase: AlertPhase, alert: &Alert) {
        if phase == AlertPhase::Opened {
            let labels = vec![("cause", alert.cause.as_str().to_owned().into())];
            self.alerts.get_or_create(&labels).inc();
        }
    }

    /// Returns the recorded metrics and the current gauges as text.
    pub(super) fn text(&self, values: &GaugeValues) -> String {
        let mut text = String::new();
        // Writing to memory does not fail.
        _ = encode_registry(&mut text, &self.registry);
        _ = encode_registry(&mut text, &values.registry());
        _ = encode_eof(&mut text);
        text
    }
}

/// Returns the class of an HTTP status.
fn status_class(status: u16) -> LabelValue {
    match status {
        100..200 => "1xx".into(),
        200..300 => "2xx".into(),
        300..400 => "3xx".into(),
        400..500 => "4xx".into(),
        500..600 => "5xx".into(),
        other => format!("{}xx", other / 100).into(),
    }
}

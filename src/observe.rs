//! Counts and times what the service does, for those who look on from outside.
//!
//! Everything here has ids, words and numbers. None of it waits, and none of it grows.

mod exporter;
mod metrics;
mod otlp;
mod process;
mod scene;

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::alert::{Alert, Turn};
use algonius_actors::model::news::{News, Subject};
use algonius_actors::model::trace::{SpanId, Trace};
use algonius_actors::ports::observer::Observer;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::push::Courier;

use exporter::{Exporter, Item};
use metrics::Metrics;

pub use exporter::Collector;
pub use scene::Scene;

/// A request that was answered, or whose answer has begun.
#[derive(Debug, Clone)]
pub struct Requested<'r> {
    /// The method of HTTP.
    pub method: &'static str,
    /// The template of its path; `None` for one that leads nowhere.
    pub endpoint: Option<&'r str>,
    /// The status of its answer.
    pub status: u16,
    /// When it came.
    pub begun: DateTime<Utc>,
    /// Until the head of its answer.
    pub took: Duration,
    /// Its own place in a trace.
    pub trace: Trace,
    /// What it was begun from.
    pub parent: Option<SpanId>,
}

/// A line of the log.
#[derive(Debug, Clone)]
pub struct Line {
    /// When it was said.
    pub at: DateTime<Utc>,
    /// How grave it is.
    pub level: tracing::Level,
    /// What it says, by name; its sentence is `message`.
    pub fields: Vec<(&'static str, Value)>,
}

/// Who looks on. Cheap to clone.
#[derive(Clone)]
pub struct Observatory(Arc<Inner>);

struct Inner {
    metrics: Arc<Metrics>,
    /// The way to a collector.
    exporter: Option<Exporter>,
    /// Where alerts go.
    alerts: Option<mpsc::Sender<(Turn, Alert)>>,
}

impl Observatory {
    /// Counts from now on, sends to a collector, and hands alerts on where somebody wants to know.
    #[must_use]
    pub fn new(
        alerts: Option<mpsc::Sender<(Turn, Alert)>>,
        collector: Option<(Collector, Courier)>,
    ) -> Self {
        let metrics = Arc::new(Metrics::new());
        let begin =
            |(collector, courier)| Exporter::begin(collector, courier, Arc::clone(&metrics));
        let exporter = collector.map(begin);
        Self(Arc::new(Inner { metrics, exporter, alerts }))
    }

    /// Whether what is begun here is recorded somewhere.
    #[must_use]
    pub fn is_tracing(&self) -> bool {
        self.0.exporter.is_some()
    }

    /// Whether lines of the log are wanted.
    #[must_use]
    pub fn wants_lines(&self) -> bool {
        self.0.exporter.as_ref().is_some_and(|exporter| exporter.logs)
    }

    /// Hears of a line of the log.
    pub fn said(&self, line: &Line) {
        self.export("lines", || Item::Line(otlp::line(line)));
    }

    /// Sends what waits to be sent, as far as there is time.
    pub async fn flush(&self) {
        if let Some(exporter) = &self.0.exporter {
            exporter.flush().await;
        }
    }

    fn export(&self, what: &str, item: impl FnOnce() -> Item) {
        let is_taken = self.0.exporter.as_ref().is_none_or(|exporter| exporter.take(item()));
        if !is_taken {
            self.0.metrics.dropped(what, 1);
        }
    }

    /// Hears of a request.
    pub fn requested(&self, requested: &Requested<'_>) {
        self.0.metrics.requested(requested);
        if requested.trace.sampled {
            self.export("spans", || Item::Span(otlp::requested(requested)));
        }
    }

    /// All numbers, in the text that Prometheus reads.
    #[must_use]
    pub fn numbers(&self, scene: &Scene) -> String {
        self.0.metrics.text(scene)
    }
}

impl Observer for Observatory {
    fn tell(&self, news: News) {
        match &news {
            News::Attempted(attempted) => {
                self.0.metrics.attempted(attempted);
                if is_sampled(&attempted.of) {
                    self.export("spans", || Item::Span(otlp::attempted(attempted)));
                }
            }
            News::Ended(ended) => {
                self.0.metrics.ended(ended);
                if is_sampled(&ended.of) {
                    self.export("spans", || Item::Span(otlp::ended(ended)));
                }
            }
            News::Alerted(turn, alert) => {
                self.0.metrics.alerted(*turn, alert);
                let sent =
                    self.0.alerts.as_ref().map(|hooks| hooks.try_send((*turn, alert.clone())));
                if let Some(Err(_)) = sent {
                    self.0.metrics.dropped("alerts", 1);
                }
            }
        }
    }
}

/// Whether the caller wants it recorded; who says nothing does.
fn is_sampled(of: &Subject) -> bool {
    of.asked.as_ref().is_none_or(|asked| asked.sampled)
}

//! Counts and times what the service does, for those who look on from outside.
//!
//! Everything here has ids, words and numbers. None of it waits, and none of it grows.

mod metrics;
mod process;
mod scene;

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::alert::{Alert, Turn};
use algonius_actors::model::news::News;
use algonius_actors::model::trace::{SpanId, Trace};
use algonius_actors::ports::observer::Observer;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use metrics::Metrics;

pub use scene::Scene;

/// A request that was answered, or whose answer has begun.
#[derive(Debug, Clone)]
pub struct Requested {
    /// The method of HTTP.
    pub method: &'static str,
    /// The template of its path; `None` for one that leads nowhere.
    pub endpoint: Option<String>,
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

/// Who looks on. Cheap to clone.
#[derive(Clone)]
pub struct Observatory(Arc<Inner>);

struct Inner {
    metrics: Metrics,
    /// Where alerts go.
    alerts: Option<mpsc::Sender<(Turn, Alert)>>,
}

impl Observatory {
    /// Counts from now on, and hands alerts on where somebody wants to know.
    #[must_use]
    pub fn new(alerts: Option<mpsc::Sender<(Turn, Alert)>>) -> Self {
        Self(Arc::new(Inner { metrics: Metrics::new(), alerts }))
    }

    /// Hears of a request.
    pub fn requested(&self, requested: &Requested) {
        self.0.metrics.requested(requested);
    }

    /// All numbers, in the text of OpenMetrics.
    #[must_use]
    pub fn numbers(&self, scene: &Scene) -> String {
        self.0.metrics.text(scene)
    }
}

impl Observer for Observatory {
    fn tell(&self, news: News) {
        match &news {
            News::Attempted(attempted) => self.0.metrics.attempted(attempted),
            News::Ended(ended) => self.0.metrics.ended(ended),
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

//! Sends what happened to a collector: in batches, from a queue that is bounded, and nobody waits for
//! it. What does not fit, or does not arrive, is dropped and counted.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::push::Secret;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::metrics::Metrics;
use super::otlp;
use crate::push::{Courier, Letter};

/// What may wait to be sent.
const WAITING: usize = 2048;

/// The most of one batch.
const BATCH: usize = 512;

/// How long a batch is gathered.
const GATHERING: Duration = Duration::from_secs(1);

/// How often a batch is tried.
const TRIES: u32 = 3;

/// The pause before it is tried again, which grows with each try.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the rest may take at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where to send to.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The address before `/v1/traces`.
    pub endpoint: String,
    /// Further headers.
    pub headers: Vec<(String, Secret)>,
    /// Whether lines of the log are sent too.
    pub logs: bool,
}

/// Something to be sent.
pub(super) enum Item {
    /// A span.
    Span(Value),
    /// A line of the log.
    Line(Value),
    /// Nothing more will come: the answer comes when all before is sent.
    Last(oneshot::Sender<()>),
}

/// The way to the collector.
pub(super) struct Exporter {
    items: mpsc::Sender<Item>,
    /// Whether lines of the log are wanted.
    pub(super) logs: bool,
}

impl Exporter {
    /// Begins to send what comes.
    pub(super) fn begin(collector: Collector, courier: Courier, metrics: Arc<Metrics>) -> Self {
        let (items, coming) = mpsc::channel(WAITING);
        let logs = collector.logs;
        tokio::spawn(Sender { collector, courier, metrics }.work(coming));
        Self { items, logs }
    }

    /// Takes something to be sent; `false` when there is no room.
    pub(super) fn take(&self, item: Item) -> bool {
        self.items.try_send(item).is_ok()
    }

    /// Sends what waits, as far as there is time.
    pub(super) async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        if self.items.send_timeout(Item::Last(done), FAREWELL).await.is_ok() {
            _ = timeout(FAREWELL, sent).await; // Who watches waits for nothing else.
        }
    }
}

/// Works off the queue.
struct Sender {
    collector: Collector,
    courier: Courier,
    metrics: Arc<Metrics>,
}

/// What is sent together.
#[derive(Default)]
struct Batch {
    spans: Vec<Value>,
    lines: Vec<Value>,
    last: Option<oneshot::Sender<()>>,
}

impl Batch {
    fn take(&mut self, item: Item) {
        match item {
            Item::Span(span) => self.spans.push(span),
            Item::Line(line) => self.lines.push(line),
            Item::Last(done) => self.last = Some(done),
        }
    }

    /// Gathers what comes within a while; nothing when nothing will come.
    async fn gather(coming: &mut mpsc::Receiver<Item>) -> Option<Self> {
        let mut batch = Self::default();
        batch.take(coming.recv().await?);
        let until = Instant::now() + GATHERING;
        while batch.last.is_none() && batch.spans.len() + batch.lines.len() < BATCH {
            match timeout_at(until, coming.recv()).await {
                Ok(Some(item)) => batch.take(item),
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }
}

impl Sender {
    async fn work(self, mut coming: mpsc::Receiver<Item>) {
        let mut is_well = true;
        while let Some(Batch { spans, lines, last }) = Batch::gather(&mut coming).await {
            // At the end there is no time to try again.
            let tries = if last.is_some() { 1 } else { TRIES };
            let counts = [("spans", spans.len()), ("lines", lines.len())];
            let bodies = [("traces", otlp::traces(spans)), ("logs", otlp::logs(lines))];
            for ((what, count), (path, body)) in counts.into_iter().zip(bodies) {
                if count > 0 {
                    is_well = self.send((what, count), (path, body), (tries, is_well)).await;
                }
            }
            if let Some(done) = last {
                _ = done.send(()); // It may have waited for long enough.
            }
        }
    }

    /// Sends one batch; answers whether it arrived. That the collector cannot be reached is said once,
    /// and while that is so each batch is tried once.
    async fn send(
        &self,
        (what, count): (&str, usize),
        (path, body): (&str, Value),
        (tries, was_well): (u32, bool),
    ) -> bool {
        let letter = Letter {
            url: Secret(format!("{}/v1/{path}", self.collector.endpoint)),
            media: "application/json",
            headers: self.collector.headers.clone(),
            body: body.to_string().into(),
        };
        for attempt in 1..=if was_well { tries } else { 1 } {
            if attempt > 1 {
                tokio::time::sleep(PAUSE * attempt).await;
            }
            match self.courier.bring(&letter).await {
                Ok(()) => return true,
                Err(error) if attempt == 1 && was_well => {
                    tracing::warn!(%error, "telemetry did not reach the collector");
                }
                Err(_) => {}
            }
        }
        self.metrics.dropped(what, u64::try_from(count).unwrap_or(u64::MAX));
        false
    }
}

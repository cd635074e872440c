//! Exporter to an OTLP collector: it sends batches from a bounded queue, and no other task waits for it. Items that
//! do not fit or do not arrive are dropped and counted.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::push::Secret;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::metrics::Metrics;
use super::otlp;
use crate::push::{WebhookClient, WebhookRequest};

/// Maximum number of queued items.
const QUEUE_CAPACITY: usize = 2048;

/// Maximum number of items in a batch.
const MAX_BATCH_ITEMS: usize = 512;

/// Maximum time for which a batch is collected.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Maximum number of attempts to send a batch.
const MAX_ATTEMPTS: u32 = 3;

/// Step of the pause before a retry; it is multiplied by the number of the attempt.
const BACKOFF_STEP: Duration = Duration::from_secs(1);

/// Maximum time for the remaining items at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Collector that receives the items.
#[derive(Debug, Clone)]
pub struct OtlpCollector {
    /// Base URL before `/v1/traces`.
    pub endpoint: String,
    /// Additional headers.
    pub headers: Vec<(String, Secret)>,
    /// True if log lines are also sent.
    pub exports_logs: bool,
}

/// Item to export.
pub(super) enum ExportItem {
    /// Span of a trace.
    Span(Value),
    /// Log line.
    Line(Value),
    /// End of the items: the channel is answered after all earlier items were sent.
    Flush(oneshot::Sender<()>),
}

/// Handle of the exporter.
pub(super) struct Exporter {
    item_sender: mpsc::Sender<ExportItem>,
    /// True if log lines are exported.
    pub(super) exports_logs: bool,
}

impl Exporter {
    /// Starts the task that sends items.
    pub(super) fn start(
        collector: OtlpCollector,
        webhook_client: WebhookClient,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (item_sender, queue) = mpsc::channel(QUEUE_CAPACITY);
        let exports_logs = collector.exports_logs;
        tokio::spawn(ExportWorker { collector, client: webhook_client, metrics }.run(queue));
        Self { item_sender, exports_logs }
    }

    /// Queues an item; returns `false` if the queue is full.
    pub(super) fn try_queue(&self, item: ExportItem) -> bool {
        // The caller may be an actor, which must not wait for a collector.
        self.item_sender.try_send(item).is_ok()
    }

    /// Sends the queued items within a time limit.
    pub(super) async fn flush(&self) {
        let (flush_sender, flush_receiver) = oneshot::channel();
        if self
            .item_sender
            .send_timeout(ExportItem::Flush(flush_sender), SHUTDOWN_TIMEOUT)
            .await
            .is_ok()
        {
            _ = timeout(SHUTDOWN_TIMEOUT, flush_receiver).await; // Who watches waits for nothing else.
        }
    }
}

/// Task that sends the queued items.
struct ExportWorker {
    collector: OtlpCollector,
    client: WebhookClient,
    metrics: Arc<Metrics>,
}

/// Items that are sent together.
#[derive(Default)]
struct Batch {
    spans: Vec<Value>,
    lines: Vec<Value>,
    flush_sender: Option<oneshot::Sender<()>>,
}

impl Batch {
    fn push(&mut self, item: ExportItem) {
        match item {
            ExportItem::Span(span) => self.spans.push(span),
            ExportItem::Line(line) => self.lines.push(line),
            ExportItem::Flush(done) => self.flush_sender = Some(done),
        }
    }

    /// Collects the items of a batch; returns `None` after the end of the queue.
    async fn gather(queue: &mut mpsc::Receiver<ExportItem>) -> Option<Self> {
        let mut batch = Self::default();
        batch.push(queue.recv().await?);
        let deadline = Instant::now() + BATCH_DELAY;
        while batch.flush_sender.is_none()
            && batch.spans.len() + batch.lines.len() < MAX_BATCH_ITEMS
        {
            match timeout_at(deadline, queue.recv()).await {
                Ok(Some(item)) => batch.push(item),
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }
}

impl ExportWorker {
    async fn run(self, mut queue: mpsc::Receiver<ExportItem>) {
        let mut is_reachable = true;
        while let Some(Batch { spans, lines, flush_sender: flush_done }) =
            Batch::gather(&mut queue).await
        {
            // At the end there is no time for another attempt.
            let max_attempts = if flush_done.is_some() { 1 } else { MAX_ATTEMPTS };
            let counts = [("spans", spans.len()), ("lines", lines.len())];
            let bodies = [
                ("traces", otlp::trace_request_body(spans)),
                ("logs", otlp::log_request_body(lines)),
            ];
            for ((kind, count), (path, body)) in counts.into_iter().zip(bodies) {
                if count > 0 {
                    is_reachable =
                        self.send((kind, count), (path, body), (max_attempts, is_reachable)).await;
                }
            }
            if let Some(done) = flush_done {
                _ = done.send(()); // It may have waited for long enough.
            }
        }
    }

    /// Sends one batch; returns true if it arrived. An unreachable collector is logged once, and each batch is sent
    /// only once while it is unreachable.
    async fn send(
        &self,
        (kind, count): (&str, usize),
        (path, body): (&str, Value),
        (max_attempts, was_reachable): (u32, bool),
    ) -> bool {
        let webhook_request = WebhookRequest {
            url: Secret(format!("{}/v1/{path}", self.collector.endpoint)),
            media_type: "application/json",
            headers: self.collector.headers.clone(),
            body: body.to_string().into(),
        };
        for attempt in 1..=if was_reachable { max_attempts } else { 1 } {
            if attempt > 1 {
                tokio::time::sleep(BACKOFF_STEP * attempt).await;
            }
            match self.client.send(&webhook_request).await {
                Ok(()) => return true,
                Err(error) if attempt == 1 && was_reachable => {
                    tracing::warn!(%error, "failed to export telemetry");
                }
                Err(_) => {}
            }
        }
        self.metrics.count_dropped(kind, u64::try_from(count).unwrap_or(u64::MAX));
        false
    }
}

//! Observer for metrics, traces and alerts.

use crate::model::observation::telemetry_events::TelemetryEvent;

/// Receiver of telemetry events. It returns at once and stores nothing unbounded: it drops events beyond its capacity.
pub trait Observer: Send + Sync + 'static {
    /// Receives an event.
    fn record(&self, event: TelemetryEvent);
}

/// Observer that ignores every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopObserver;

impl Observer for NoopObserver {
    fn record(&self, _: TelemetryEvent) {}
}

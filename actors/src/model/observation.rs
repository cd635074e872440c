//! Observation of the service: status, alerts and telemetry events.

pub mod alert;
pub mod status;
pub mod telemetry_events;

//! Observation of the service: status, accounts, alerts and telemetry events.

pub mod account_status;
pub mod alert;
pub mod status;
pub mod telemetry_events;

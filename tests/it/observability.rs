//! What those see who watch the service from outside.

mod alerts;
mod metrics;
mod otlp;
mod prometheus_text;
mod readiness;
mod traces;

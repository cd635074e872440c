//! What those see who watch the service from outside.

mod alerts;
mod metrics;
mod numbers;
mod otlp;
mod ready;
mod traces;

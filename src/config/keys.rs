//! Keys of the configuration, one module for each subject.

pub(crate) mod agent;
pub(crate) mod alerts;
pub(crate) mod cognition;
pub(crate) mod inputs;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod pressure;
pub(crate) mod programs;
pub(crate) mod push;
pub(crate) mod redaction;
pub(crate) mod retention;
pub(crate) mod schedules;
pub(crate) mod server;
pub(crate) mod telemetry;
pub(crate) mod tokens;

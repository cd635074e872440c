//! Ports: traits through which the actors use the outside world. The edge implements them; tests use fakes.

pub mod clock;
pub mod completion;
pub mod history;
pub mod host_metrics;
pub mod interactions;
pub mod ledger;
pub mod notes;
pub mod observer;
pub mod outbox;
pub mod schedule_store;
pub mod schedule_template;
pub mod sealer;
pub mod sessions;
pub mod tools;

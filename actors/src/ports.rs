//! Ports: traits through which the actors use the outside world. The edge implements them; tests use fakes.

pub mod clock;
pub mod completion;
pub mod history;
pub mod host_check;
pub mod host_metrics;
pub mod interaction_store;
pub mod ledger;
pub mod note_store;
pub mod observer;
pub mod push_target_store;
pub mod schedule_store;
pub mod schedule_template;
pub mod sealer;
pub mod session_store;
pub mod tools;

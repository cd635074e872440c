//! Runs: the next action of an execution without a process, by the facts that it has recorded.

pub mod cognitive;
pub mod team;

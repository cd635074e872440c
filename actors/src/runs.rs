//! Runs: drivers without a process, whose facts are events of their executions. So a run can always be claimed and
//! resumed. [`team`] sends requests to other agents, [`cognitive`] lets a model decide on tool calls.

pub mod cognitive;
mod stop_order;
pub mod team;

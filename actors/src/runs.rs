//! Drivers of runs: executions without a process, whose facts are events in the ledger, so that a run can always be
//! claimed and resumed. [`team`] sends requests to other agents, [`cognitive`] lets a model decide on tool calls.

mod attempt;
pub mod cognitive;
pub mod team;

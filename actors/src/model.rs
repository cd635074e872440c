//! Domain model: the data types that all modules share. The types hold data only and take no decisions.

pub mod access;
pub mod agent;
pub mod code;
pub mod completion;
pub mod execution;
pub mod failure;
pub mod host;
pub mod id;
pub mod interaction;
pub mod observation;
pub mod permission;
pub mod program;
pub mod push;
pub mod schedule;
pub mod session;

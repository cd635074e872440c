//! Drivers: run the work of an agent, whatever its kind.

mod adapters;
pub(crate) mod files;
mod lease_commands;
pub mod mcp;
pub mod models;
mod output;
pub mod program;
pub mod remote;
mod start_faults;
mod stdio;
pub mod tools;

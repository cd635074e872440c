//! Drivers: run the work of an agent, whatever its kind.

mod adapters;
mod control;
mod files;
mod output;
pub mod program;
pub mod remote;
mod stdio;

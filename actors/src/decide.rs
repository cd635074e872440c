//! Pure logic: functions from a state and an event to a state and effects.
//!
//! The functions use no clock, no `await`, no random numbers and no I/O. The result depends on the arguments alone, so
//! every decision is tested with plain data.

pub mod access;
pub mod admission;
pub mod budget;
pub mod classify;
pub mod execution;
pub mod host;
pub mod notification;
pub mod output;
pub mod permission;
pub mod recovery;
pub mod retention;
pub mod retry;
pub mod runs;
pub mod schedule;
pub mod session;

//! Actors that work periodically: the monitor of the machine, and the retention of the history.

pub mod monitor;
pub mod retention;

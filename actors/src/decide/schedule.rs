//! Decisions about schedules: due times and statistics.

pub mod due;
pub mod statistics;

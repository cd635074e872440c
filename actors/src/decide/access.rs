//! Decisions about callers: lockout, connection limits, rate limits, files and overrides.

pub mod connections;
pub mod file_policy;
pub mod lockout;
pub mod override_policy;
pub mod rate_limit;

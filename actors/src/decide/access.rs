//! Decisions about callers: lockout, connection limits, rate limits and overrides.

pub mod connections;
pub mod lockout;
pub mod override_policy;
pub mod rate_limit;

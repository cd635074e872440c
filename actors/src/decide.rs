//! Verbs: pure functions from a state and an event to a state and effects.
//!
//! No clock, no `await`, no random, no I/O: what comes out depends on what goes in, so every
//! decision is tested by data alone.

pub mod admission;
pub mod alert;
pub mod allowance;
pub mod breaker;
pub mod budget;
pub mod contract;
pub mod counters;
pub mod due;
pub mod ends;
pub mod execution;
pub mod grow;
pub mod keep;
pub mod key;
pub mod lockout;
pub mod pressure;
pub mod prompt;
pub mod push;
pub mod quota;
pub mod rate;
pub mod recovery;
pub mod redact;
pub mod reset;
pub mod resources;
pub mod restart;
pub mod retention;
pub mod retry;
pub mod sandbox;
pub mod session;
pub mod statistics;
pub mod status;
pub mod trouble;
pub mod turn;

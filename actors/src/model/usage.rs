//! What work takes of the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a program and all that it started take, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Milliseconds of processor time so far, of what lives and of what was waited for.
    pub cpu_ms: u64,
    /// Bytes of memory now; what processes share counts for each.
    pub memory: u64,
    /// The most bytes of memory that were seen so far.
    pub memory_peak: u64,
    /// Bytes read so far, from wherever.
    pub read: u64,
    /// Bytes written so far, to wherever.
    pub written: u64,
    /// Processes that live.
    pub processes: u32,
}

/// What a program took until its end, as the system tells it then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Milliseconds of processor time, its own and of what it waited for.
    pub cpu_ms: u64,
    /// The most bytes of memory of one process.
    pub memory_peak: u64,
}

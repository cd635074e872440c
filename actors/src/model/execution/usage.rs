//! Resource usage of work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resource usage of a program and all its descendants, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReading {
    /// Processor time so far in milliseconds, of living processes and of those already waited for.
    pub cpu_ms: u64,
    /// Memory usage in bytes; memory that processes share counts for each.
    pub memory_bytes: u64,
    /// Highest memory usage observed so far, in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes read so far, from any source.
    pub read_bytes: u64,
    /// Bytes written so far, to any destination.
    pub written_bytes: u64,
    /// Number of living processes.
    pub processes: u32,
}

/// Resource usage of a program until its end, as reported by the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// Processor time in milliseconds, of the program and of the processes that it waited for.
    pub cpu_ms: u64,
    /// Peak memory of the largest process, in bytes.
    pub peak_memory_bytes: u64,
}

//! Resource pressure of the machine: readings, limits and the published state.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reading of the machine's resources. Values that the machine does not report are absent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MachineReading")]
#[serde(rename_all = "camelCase")]
pub struct HostReading {
    /// Number of processors.
    pub cores: u32,
    /// Busy time of all processors since the previous reading, in percent.
    pub cpu_percent: Option<f64>,
    /// Memory that is unavailable to programs, in percent of all memory.
    pub memory_percent: Option<f64>,
    /// Load average of the last minute: programs that ran or waited to run.
    pub load: Option<f64>,
    /// Free space on the disk of the data folder, in bytes.
    pub disk_free_bytes: Option<u64>,
    /// Pressure stall information; requires a kernel from version 4.20 on.
    pub stalls: Option<StallReading>,
}

/// Pressure stall shares of the last ten seconds, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StallReading {
    /// Share of time in which some program waited for a processor, in percent.
    pub cpu_percent: f64,
    /// Share of time in which all programs waited for memory, in percent.
    pub memory_percent: f64,
    /// Share of time in which all programs waited for a disk, in percent.
    pub io_percent: f64,
}

/// Metrics by which the pressure of the machine is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PressureBasis")]
#[serde(rename_all = "lowercase")]
pub enum PressureBasis {
    /// Pressure stall information, and the load per processor.
    Stalls,
    /// Resource usage, and the load of the whole machine.
    Usage,
    /// Memory usage and the load per processor, because the machine reports no stall information.
    Fallback,
}

/// Limits above which the service accepts no new work. The limit of the disk is a minimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PressureSpec {
    /// True if pressure is evaluated by stall information where the machine reports it; false for resource usage.
    pub uses_stall_information: bool,
    /// Busy time of all processors, in percent. Applies to evaluation by usage.
    pub max_cpu_percent: f64,
    /// Memory usage in percent. Applies to evaluation by usage, and if the machine reports no stall information.
    pub max_memory_percent: f64,
    /// Load of the whole machine. Applies to evaluation by usage.
    pub max_load: f64,
    /// Limits of the stall shares.
    pub max_stalls: StallReading,
    /// Load per processor. Applies together with the processor stall share.
    pub max_load_per_core: f64,
    /// Minimum of free disk space, in bytes.
    pub min_disk_free_bytes: u64,
}

/// Resource that is short.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Shortage {
    /// Processors.
    Cpu,
    /// Memory.
    Memory,
    /// Disk bandwidth.
    Io,
    /// Processors, measured by the length of their run queue.
    Load,
    /// Disk space.
    Disk,
}

impl Shortage {
    /// Returns the resource as words for a sentence.
    #[must_use]
    pub const fn as_words(self) -> &'static str {
        match self {
            Self::Cpu => "processors",
            Self::Memory => "memory",
            Self::Io => "disk speed",
            Self::Load => "processors for its load",
            Self::Disk => "disk space",
        }
    }
}

/// Latest evaluation of the pressure, for all components that accept or start work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// Resources that are short; the service accepts no new work while the list is not empty.
    pub short: Vec<Shortage>,
    /// Start time of the present state.
    pub since: DateTime<Utc>,
    /// Time of the latest reading.
    pub at: DateTime<Utc>,
    /// Metrics by which the pressure is evaluated.
    pub basis: PressureBasis,
    /// Latest reading.
    pub reading: HostReading,
}

impl Pressure {
    /// Returns true if the service must not accept new work.
    #[must_use]
    pub const fn is_high(&self) -> bool {
        !self.short.is_empty()
    }
}

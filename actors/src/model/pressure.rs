//! How hard-pressed the machine is: what is read, where the bounds are, and what is shown.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was read of the machine. What the machine does not tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MachineReading")]
pub struct Reading {
    /// Processors.
    pub cores: u32,
    /// Busy time of all processors since the reading before, in percent.
    pub cpu_percent: Option<f64>,
    /// Memory that programs could not get, in percent of all.
    pub memory_percent: Option<f64>,
    /// Programs that ran or waited to run, on the average of the last minute.
    pub load: Option<f64>,
    /// Room on the disk of the data folder in bytes.
    pub disk_free_bytes: Option<u64>,
    /// How long programs were held up; a kernel from 4.20 on tells it.
    pub stalls: Option<Stalls>,
}

/// Shares of the last ten seconds in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// In which some program waited for a processor.
    pub cpu_percent: f64,
    /// In which all programs waited for memory.
    pub memory_percent: f64,
    /// In which all programs waited for a disk.
    pub io_percent: f64,
}

/// What the machine is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PressureBasis")]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// How long programs are held up, and the load of each processor.
    Stalls,
    /// How much is in use, and the load of the whole machine.
    Usage,
    /// The memory in use and the load of each processor: the machine tells of no stalls.
    Fallback,
}

/// Bounds above which nothing new is let in. The disk has a bound below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PressureSpec {
    /// Whether stalls are looked at, where the machine tells of them; what is in use otherwise.
    pub by_stalls: bool,
    /// Busy time of all processors, in percent. Judged by usage.
    pub cpu_percent: f64,
    /// Memory in use, in percent. Judged by usage, and where the machine tells of no stalls.
    pub memory_percent: f64,
    /// Load of the whole machine. Judged by usage.
    pub load: f64,
    /// Bounds of stalls.
    pub stalls: Stalls,
    /// Load of each processor. Counts together with the stalls of processors.
    pub load_per_core: f64,
    /// Room that the disk must have, in bytes.
    pub min_disk_free_bytes: u64,
}

/// What is short.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Shortage {
    /// Processors.
    Cpu,
    /// Memory.
    Memory,
    /// The speed of disks.
    Io,
    /// Processors, by the length of their queue.
    Load,
    /// Room on the disk.
    Disk,
}

impl Shortage {
    /// What is short, in a sentence.
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

/// The latest judgement, for all who let work in or begin it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// What is short; nothing new is let in while there is anything.
    pub short: Vec<Shortage>,
    /// Since when that is so.
    pub since: DateTime<Utc>,
    /// When the machine was last looked at.
    pub at: DateTime<Utc>,
    /// What it is judged by.
    pub basis: Basis,
    /// What was read.
    pub reading: Reading,
}

impl Pressure {
    /// Whether new work must stay out.
    #[must_use]
    pub const fn is_high(&self) -> bool {
        !self.short.is_empty()
    }
}

//! How a schedule did, counted.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::occurrence::Verdict;

/// Why work did not succeed, in classes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[schemars(rename = "FailureClass")]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It took too long.
    Timeout,
    /// The agent failed.
    Agent,
    /// The supervisor failed.
    System,
    /// Somebody was not allowed to do something.
    Authentication,
    /// Something that passes by itself did not pass in time.
    Transient,
    /// It was called off.
    Cancelled,
}

/// How a schedule did over a time.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "ScheduleStatistics")]
pub struct Statistics {
    /// Its times by what became of them.
    pub times: BTreeMap<Verdict, u64>,
    /// Work that ended.
    pub ended: u64,
    /// Work that succeeded.
    pub succeeded: u64,
    /// Work that succeeded after an attempt that failed.
    pub recovered: u64,
    /// Work that did not succeed, by class.
    pub failed: BTreeMap<Class, u64>,
    /// Succeeded of those that ended or were refused, in thousandths; nothing where none was.
    pub success_permille: Option<u64>,
    /// Asked for within 30 seconds of when it was due, of all that was asked for, in thousandths.
    pub punctual_permille: Option<u64>,
    /// The deviation that 95 of 100 did not exceed, in milliseconds.
    pub deviation_p95_ms: Option<i64>,
    /// The longest deviation in milliseconds.
    pub deviation_max_ms: Option<i64>,
}

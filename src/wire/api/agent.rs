//! Shapes of one agent: as configured, as it is.

use algonius_actors::model::agent::{AgentSpec, Skill};
use algonius_actors::model::status::AgentStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentEntry;

/// One agent: what it is configured to be, without secrets, and how it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetail {
    /// What the directory has.
    #[serde(flatten)]
    pub entry: AgentEntry,
    /// What it can do.
    pub skills: Vec<Skill>,
    /// Its bounds.
    pub limits: AgentLimits,
    /// How its slots are used.
    pub pool: PoolEntry,
    /// Executions that wait.
    pub queue_length: usize,
    /// How it is.
    pub status: AgentStatus,
}

/// The bounds of an agent. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentLimits {
    /// Places in the queue.
    pub queue_depth: u32,
    /// How long one may wait there.
    pub queue_timeout: f64,
    /// How long an attempt may run.
    pub timeout: f64,
    /// How long it may be silent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idle_timeout: Option<f64>,
    /// Retries after the first attempt.
    pub retries: u32,
    /// The longest input in bytes.
    pub max_input_bytes: usize,
    /// The most that is kept of each stream, in bytes.
    pub max_output_bytes: usize,
    /// For how long after a request an equal one takes its result.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dedup_window: Option<f64>,
}

/// How the slots of an agent are used. `peak` and what follows count since its actor began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolEntry {
    /// Slots; absent when there is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u32>,
    /// Slots that are held.
    pub running: usize,
    /// Slots that are free; absent when there is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub free: Option<usize>,
    /// The most that were held at one time.
    pub peak: usize,
    /// Executions that were given one.
    pub begun: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// How long those that began had waited, on average, in milliseconds.
    pub mean_wait_ms: u64,
}

/// Whether an agent has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Idleness {
    /// Whether nothing runs and nothing waits.
    pub idle: bool,
    /// Executions that run.
    pub running: usize,
    /// Executions that wait.
    pub queued: usize,
}

impl From<&AgentStatus> for PoolEntry {
    fn from(status: &AgentStatus) -> Self {
        let (limit, running, pool) = (status.capacity, status.running.len(), status.pool);
        Self {
            limit,
            running,
            free: limit.map(|limit| (limit as usize).saturating_sub(running)),
            peak: pool.peak,
            begun: pool.begun,
            refused: pool.refused,
            mean_wait_ms: pool.mean_wait_ms,
        }
    }
}

impl From<&AgentStatus> for Idleness {
    fn from(status: &AgentStatus) -> Self {
        let (running, queued) = (status.running.len(), status.queued.len());
        Self { idle: running + queued == 0, running, queued }
    }
}

impl From<&AgentSpec> for AgentLimits {
    fn from(spec: &AgentSpec) -> Self {
        Self {
            queue_depth: spec.capacity.waiting,
            queue_timeout: spec.capacity.patience.as_secs_f64(),
            timeout: spec.deadlines.run.as_secs_f64(),
            idle_timeout: spec.deadlines.idle.map(|idle| idle.as_secs_f64()),
            retries: spec.retry.max,
            max_input_bytes: spec.sizes.input,
            max_output_bytes: spec.sizes.output,
            dedup_window: spec.dedup_window.map(|window| window.as_secs_f64()),
        }
    }
}

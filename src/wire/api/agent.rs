//! Shapes of one agent: its configuration and its state.

use algonius_actors::model::agent::{AgentSpec, Skill};
use algonius_actors::model::observation::status::AgentStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentEntry;

/// Agent with its configuration, without secrets, and its state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetail {
    /// Entry of the agent in the directory.
    #[serde(flatten)]
    pub entry: AgentEntry,
    /// Skills of the agent.
    pub skills: Vec<Skill>,
    /// Limits of the agent.
    pub limits: AgentLimits,
    /// Use of the agent's slots.
    pub pool: PoolEntry,
    /// Number of executions that wait in the queue.
    pub queue_length: usize,
    /// State of the agent.
    pub status: AgentStatus,
}

/// Limits of an agent. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentLimits {
    /// Maximum number of executions in the queue.
    pub queue_depth: u32,
    /// Maximum time in the queue, in seconds.
    pub queue_timeout: f64,
    /// Maximum duration of an attempt, in seconds.
    pub timeout: f64,
    /// Maximum time without output of an attempt, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idle_timeout: Option<f64>,
    /// Maximum number of retries after the first attempt.
    pub retries: u32,
    /// Maximum size of the input, in bytes.
    pub max_input_bytes: usize,
    /// Maximum number of stored bytes of each output stream.
    pub max_output_bytes: usize,
    /// Time after a request in which an equal request receives its result, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dedup_window: Option<f64>,
}

/// Use of the slots of an agent. `peak` and the fields after it count from the start of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolEntry {
    /// Number of slots; absent if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u32>,
    /// Number of slots in use.
    pub running: usize,
    /// Number of free slots; absent if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub free: Option<usize>,
    /// Maximum number of slots in use at one time.
    pub peak: usize,
    /// Number of executions that received a slot.
    pub started: u64,
    /// Number of refused requests.
    pub refused: u64,
    /// Average time that the started executions waited for a slot, in milliseconds.
    pub mean_wait_ms: u64,
}

/// Activity of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentActivity {
    /// True if no execution runs and none waits.
    pub idle: bool,
    /// Number of executions that run.
    pub running: usize,
    /// Number of executions that wait.
    pub queued: usize,
}

impl From<&AgentStatus> for PoolEntry {
    fn from(status: &AgentStatus) -> Self {
        let work = &status.work;
        let (limit, running, pool) = (work.capacity, work.running.len(), work.pool);
        Self {
            limit,
            running,
            // A reload may lower the limit below the number of executions that run.
            free: limit.map(|limit| (limit as usize).saturating_sub(running)),
            peak: pool.peak,
            started: pool.started,
            refused: pool.refused,
            mean_wait_ms: pool.mean_wait_ms,
        }
    }
}

impl From<&AgentStatus> for AgentActivity {
    fn from(status: &AgentStatus) -> Self {
        let (running, queued) = (status.work.running.len(), status.work.queued.len());
        Self { idle: running + queued == 0, running, queued }
    }
}

impl From<&AgentSpec> for AgentLimits {
    fn from(spec: &AgentSpec) -> Self {
        Self {
            queue_depth: spec.limits.capacity.max_waiting,
            queue_timeout: spec.limits.capacity.queue_timeout.as_secs_f64(),
            timeout: spec.limits.timeouts.run.as_secs_f64(),
            idle_timeout: spec.limits.timeouts.idle.map(|idle| idle.as_secs_f64()),
            retries: spec.retry.max_retries,
            max_input_bytes: spec.limits.sizes.max_input_bytes,
            max_output_bytes: spec.limits.sizes.max_output_bytes,
            dedup_window: spec.dedup_window.map(|window| window.as_secs_f64()),
        }
    }
}

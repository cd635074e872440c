//! Status of the supervision tree. Each actor reports its own values at the time of the request.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::account_status::CredentialStatus;
use super::alert::Alert;
use crate::model::agent::budget::BudgetStatus;
use crate::model::agent::queue::{QueueReason, Queued};
use crate::model::agent::{AgentKind, AgentSpec};
use crate::model::execution::usage::UsageReading;
use crate::model::execution::{AttemptId, ExecutionState, Outcome};
use crate::model::host::host_fault::HostFault;
use crate::model::host::pressure::Pressure;
use crate::model::host::resources::LimitEnforcement;
use crate::model::host::sandbox::{BackendConfinement, Confinement};
use crate::model::host::storage_stats::RetentionPass;
use crate::model::id::{AgentId, ExecutionId, ScheduleId};

/// Health of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// The actor answered.
    Alive,
    /// The actor did not answer within the deadline.
    Silent,
    /// The actor failed, and restarts when the ledger accepts the records of the restart.
    Restarting,
    /// The actor failed too often and is not restarted.
    Quarantined,
    /// The actor finishes its work and accepts nothing new.
    Draining,
    /// The agent's program is not installed. The agent accepts no work until it is.
    Unavailable,
}

/// Execution that an agent holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStatus {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Health of the execution's actor.
    pub health: Health,
    /// State of the execution.
    pub state: Option<ExecutionState>,
    /// Time of the latest state change.
    pub since: Option<DateTime<Utc>>,
    /// Position in the queue and its reason, while the attempt waits to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// Id of the attempt.
    pub attempt_id: Option<AttemptId>,
    /// Process id of the running process.
    pub pid: Option<u32>,
    /// Latest reading of the resource usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReading>,
    /// Deadline of the present phase.
    pub deadline: Option<DateTime<Utc>>,
    /// Number of clients that follow the output; for them the output is written to the ledger at once.
    #[serde(default, skip_serializing_if = "has_no_followers")]
    pub followers: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls takes a reference")]
const fn has_no_followers(count: &usize) -> bool {
    *count == 0
}

/// Program that is pooled for the rest of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PooledProcess {
    /// Process id; 0 while the process starts.
    pub pid: u32,
    /// True if a message is in progress.
    pub busy: bool,
    /// Start time of the process.
    pub since: DateTime<Utc>,
    /// End time of the latest answer.
    pub used: DateTime<Utc>,
    /// Latest reading of the resource usage while the process was idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReading>,
}

/// Execution in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedStatus {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Position from 1.
    pub position: usize,
    /// Reason for the wait.
    pub reason: QueueReason,
    /// Start time of the wait.
    pub since: DateTime<Utc>,
    /// Earliest time at which the execution may start, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Time at which the queue timeout expires; for a deferred execution, the end of the deferral.
    pub deadline: DateTime<Utc>,
}

/// Latest execution of an agent that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastOutcome {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Outcome of the execution.
    pub outcome: Outcome,
    /// End time.
    pub at: DateTime<Utc>,
}

/// Slot statistics of an agent since the start of its actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PoolSeen")]
#[serde(rename_all = "camelCase")]
pub struct SlotStatistics {
    /// Highest number of slots in use at one time.
    pub peak: usize,
    /// Number of executions that received a slot.
    #[serde(rename = "begun")]
    pub started: u64,
    /// Number of rejected requests, for any reason.
    pub refused: u64,
    /// Mean wait of the executions that received a slot, in milliseconds.
    pub mean_wait_ms: u64,
}

/// Information about the program of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramStatus {
    /// Preset of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// True if the preset was tested against the real program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Version that the program reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Range of tested versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<String>,
    /// Warning about the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// True if the standard output contains events or a dialogue with prompts, from which the answer is made.
    #[serde(default, rename = "printsEvents", skip_serializing_if = "std::ops::Not::not")]
    pub prints_events: bool,
}

/// Status of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Id of the agent.
    pub id: AgentId,
    /// Kind of the agent. Absent in answers of earlier releases, which knew programs alone.
    #[serde(default)]
    pub kind: AgentKind,
    /// Display name of the agent.
    pub name: String,
    /// Health of the agent's actor.
    pub health: Health,
    /// True if the agent is enabled.
    pub enabled: bool,
    /// Reason why the agent can start nothing, in one sentence that names the program to install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// Confinement of the processes of the agent and of its tools.
    #[serde(flatten)]
    pub isolation: AgentIsolation,
    /// Resource limits of the agent, and the enforcer of each limit.
    #[serde(default, skip_serializing_if = "LimitEnforcement::is_empty")]
    pub resources: LimitEnforcement,
    /// Information about the program, if the agent has a version check or a preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramStatus>,
    /// Starts of the actor.
    #[serde(flatten)]
    pub actor_starts: ActorStarts,
    /// Work of the agent.
    #[serde(flatten)]
    pub work: AgentWork,
    /// Amounts that the agent has used today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
}

/// Confinement of the processes of an agent and of its tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentIsolation {
    /// Confinement of the agent's processes; absent if the agent runs nothing on this machine.
    #[serde(flatten)]
    pub confinement: Option<Confinement>,
    /// Confinement of the backend programs of a cognitive agent: those of its tools, and its MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<BackendConfinement>,
}

/// Starts of an agent's actor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActorStarts {
    /// Start time of the actor.
    pub since: Option<DateTime<Utc>>,
    /// Number of restarts of the actor.
    pub restarts: u32,
    /// Cause of the latest restart or quarantine.
    pub last_fault: Option<String>,
}

/// Work of an agent: its slots, its queue, and what runs and waits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentWork {
    /// Number of executions that may run at the same time; null is unlimited.
    pub capacity: Option<u32>,
    /// Number of executions that may wait in the queue.
    pub queue_depth: u32,
    /// Slot statistics.
    #[serde(default)]
    pub pool: SlotStatistics,
    /// Executions that hold a slot.
    pub running: Vec<ExecutionStatus>,
    /// Pooled processes of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled_processes: Vec<PooledProcess>,
    /// Executions that wait.
    pub queued: Vec<QueuedStatus>,
    /// Latest execution that ended since the start of the actor.
    pub last_execution: Option<LastOutcome>,
}

impl AgentStatus {
    /// Returns the status of an agent as far as its definition states it; the agent has done no work.
    #[must_use]
    pub fn from_spec(spec: &AgentSpec, health: Health) -> Self {
        Self {
            id: spec.id.clone(),
            kind: spec.kind(),
            name: spec.profile.name.clone(),
            health,
            enabled: spec.enabled,
            unavailable: spec.unavailable_failure().map(|failure| failure.message),
            isolation: AgentIsolation {
                confinement: spec.confinement().cloned(),
                backends: spec.cognitive().map(|it| it.backends.clone()).unwrap_or_default(),
            },
            resources: spec.limit_enforcement(),
            program: None,
            actor_starts: ActorStarts::default(),
            work: AgentWork {
                capacity: spec.limits.capacity.max_running.map(Into::into),
                queue_depth: spec.limits.capacity.max_waiting,
                ..AgentWork::default()
            },
            budget: None,
        }
    }
}

/// Status of an actor that is not an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActorStatus {
    /// Name of the actor.
    pub name: String,
    /// Health of the actor.
    pub health: Health,
    /// Start time of the actor.
    pub since: Option<DateTime<Utc>>,
    /// Number of restarts of the actor.
    pub restarts: u32,
}

/// Next due time of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextDue {
    /// Id of the schedule.
    pub schedule: ScheduleId,
    /// Agent that will execute the work.
    pub agent: AgentId,
    /// Due time.
    pub at: DateTime<Utc>,
}

/// Status of the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchedulerStatus {
    /// Status of the actor.
    #[serde(flatten)]
    pub actor: ActorStatus,
    /// Numbers of schedules; absent for a caller that may not see every agent.
    #[serde(flatten)]
    pub counts: Option<ScheduleCounts>,
    /// Next due schedule of each agent.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub due: Vec<NextDue>,
}

/// Numbers of the schedules of all agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleCounts {
    /// Number of schedules.
    pub schedules: usize,
    /// Number of active schedules.
    pub active: usize,
    /// Number of schedules whose input is sealed and whose key no longer exists: their occurrences are rejected.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub locked: usize,
}

/// Status of the retention actor, which removes old executions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionStatus {
    /// Status of the actor.
    #[serde(flatten)]
    pub actor: ActorStatus,
    /// Latest pass.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_pass: Option<RetentionPass>,
}

/// Status of the whole supervision tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeStatus {
    /// Time of the request.
    pub at: DateTime<Utc>,
    /// Status of the root actor.
    pub root: ActorStatus,
    /// Status of the monitor.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub monitor: Option<ActorStatus>,
    /// Preconditions of all executions that are not fulfilled; the service accepts no new work while there are any.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub faults: Vec<HostFault>,
    /// Resource pressure of the machine, once it was read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pressure: Option<Pressure>,
    /// Status of the scheduler; absent without a scheduler.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scheduler: Option<SchedulerStatus>,
    /// Status of the retention actor; absent without retention limits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retention: Option<RetentionStatus>,
    /// Open alerts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alerts: Vec<Alert>,
    /// Credentials of agents that are temporarily unusable.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub credentials: Vec<CredentialStatus>,
    /// Status of the gateway.
    pub gateway: ActorStatus,
    /// Agents, in the order of their ids.
    pub agents: Vec<AgentStatus>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls takes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

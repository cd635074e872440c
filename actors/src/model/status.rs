//! What can be seen of the living tree. Every value was answered by its actor when asked.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::alert::Alert;
use super::budget::BudgetStatus;
use super::execution::{Outcome, Stamp, State};
use super::id::{AgentId, ExecutionId};
use super::pressure::Pressure;
use super::queue::{Queued, Reason};
use super::quota::{Cause, CredentialName};
use super::resources::Holding;
use super::sandbox::{Enforcement, Isolation};
use super::schedule::ScheduleId;
use super::stock::Pass;
use super::usage::Usage;

/// How an actor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It answered.
    Alive,
    /// It did not answer within the deadline.
    Silent,
    /// It failed too often and is not started again.
    Quarantined,
    /// It finishes what it has and takes nothing new.
    Draining,
}

/// One execution that an agent holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionStatus {
    /// Its id.
    pub id: ExecutionId,
    /// Whether its actor answered.
    pub health: Health,
    /// Where it is.
    pub state: Option<State>,
    /// Since when.
    pub since: Option<DateTime<Utc>>,
    /// What it waits for before its attempt begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// Which attempt.
    pub stamp: Option<Stamp>,
    /// The living process.
    pub pid: Option<u32>,
    /// What it takes of the machine, as it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// When the present phase must be over.
    pub deadline: Option<DateTime<Utc>>,
}

/// A program that is kept for the rest of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptStatus {
    /// Its process; 0 while it is started.
    pub pid: u32,
    /// Whether a message is worked on.
    pub busy: bool,
    /// Since when it lives.
    pub since: DateTime<Utc>,
    /// When its last answer was over.
    pub used: DateTime<Utc>,
    /// What it takes of the machine, as it was last looked at while it was idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One execution in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedStatus {
    /// Its id.
    pub id: ExecutionId,
    /// Its place, from 1.
    pub position: usize,
    /// Why it waits.
    pub reason: Reason,
    /// Since when it waits.
    pub since: DateTime<Utc>,
    /// Before then it does not begin, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// When it will have waited too long; for one that is parked, when it goes on.
    pub deadline: DateTime<Utc>,
}

/// The last execution of an agent that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastOutcome {
    /// Its id.
    pub id: ExecutionId,
    /// How it ended.
    pub outcome: Outcome,
    /// When.
    pub at: DateTime<Utc>,
}

/// What the slots of an agent have seen since its actor began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PoolSeen")]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    /// The most executions that held a slot at one time.
    pub peak: usize,
    /// Executions that were given a slot.
    pub begun: u64,
    /// Requests that were refused, for whatever reason.
    pub refused: u64,
    /// How long those that began had waited, on average, in milliseconds.
    pub mean_wait_ms: u64,
}

/// What is known of the program behind an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProgramStatus {
    /// The preset of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Whether the preset was run against the real program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// The version that the program told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The versions that were tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<String>,
    /// What the reader should know about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentStatus {
    /// Its id.
    pub id: AgentId,
    /// Its name for people.
    pub name: String,
    /// How its actor is.
    pub health: Health,
    /// Whether it takes work by configuration.
    pub enabled: bool,
    /// Whether the system refuses what it may not do.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// By what means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// What it may take of the machine, and what holds it to that.
    #[serde(default, skip_serializing_if = "Holding::is_empty")]
    pub resources: Holding,
    /// What is known of its program, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramStatus>,
    /// Since when this actor lives.
    pub since: Option<DateTime<Utc>>,
    /// How often the actor was started again.
    pub restarts: u32,
    /// Why it was last started again or quarantined.
    pub last_fault: Option<String>,
    /// Executions at once; `None` is unlimited.
    pub capacity: Option<u32>,
    /// Places in the queue.
    pub queue_depth: u32,
    /// What its slots have seen.
    #[serde(default)]
    pub pool: Pool,
    /// Executions that hold a slot.
    pub running: Vec<ExecutionStatus>,
    /// The programs that are kept between messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptStatus>,
    /// Executions that wait.
    pub queued: Vec<QueuedStatus>,
    /// The last one that ended in the life of this actor.
    pub last: Option<LastOutcome>,
    /// What it has used up today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
}

/// One actor that is not an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActorStatus {
    /// What it is.
    pub name: String,
    /// How it is.
    pub health: Health,
    /// Since when it lives.
    pub since: Option<DateTime<Utc>>,
    /// How often it was started again.
    pub restarts: u32,
}

/// What a schedule is due to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Due {
    /// Which schedule.
    pub schedule: ScheduleId,
    /// Whom it asks.
    pub agent: AgentId,
    /// When.
    pub at: DateTime<Utc>,
}

/// The scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchedulerStatus {
    /// How it is.
    #[serde(flatten)]
    pub actor: ActorStatus,
    /// The schedules that there are.
    pub schedules: usize,
    /// Those that are due at their times.
    pub active: usize,
    /// The first that is due next, of each agent that is to be asked.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub due: Vec<Due>,
}

/// Who keeps the history within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionStatus {
    /// The actor.
    #[serde(flatten)]
    pub actor: ActorStatus,
    /// Its latest pass.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_pass: Option<Pass>,
}

/// A credential that is of no use for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CredentialStatus {
    /// Its name, which tells nothing of it.
    pub name: CredentialName,
    /// Why it is of no use.
    pub cause: Cause,
    /// `open`: nothing begins; `half-open`: one may try it; `tried`: one does.
    pub state: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Until when nothing begins.
    pub until: DateTime<Utc>,
}

/// The whole tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeStatus {
    /// When it was asked.
    pub at: DateTime<Utc>,
    /// The root.
    pub root: ActorStatus,
    /// Who watches.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub monitor: Option<ActorStatus>,
    /// How hard-pressed the machine is, once it was looked at.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pressure: Option<Pressure>,
    /// Who asks at set times; nobody does where there is nothing to schedule with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scheduler: Option<SchedulerStatus>,
    /// Who keeps the history within bounds; nobody does where there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retention: Option<RetentionStatus>,
    /// What somebody should look at.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alerts: Vec<Alert>,
    /// Credentials of agents that are of no use for now.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub credentials: Vec<CredentialStatus>,
    /// The door.
    pub gateway: ActorStatus,
    /// The agents, in the order of their ids.
    pub agents: Vec<AgentStatus>,
}

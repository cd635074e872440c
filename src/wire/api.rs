//! Shapes of `/api/v1`, the API for programs; the command line speaks it too.

pub mod agent;
pub mod history;
pub mod order;
pub mod schedules;
pub mod service;

use algonius_actors::model::execution::{Outcome, Stamp, State};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::queue::Queued;
use algonius_actors::model::record::Record;
use algonius_actors::model::rungs::Rungs;
use algonius_actors::model::sandbox::{Enforcement, Isolation};
use algonius_actors::model::stock::Stock;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admin::ConfigurationStatus;

/// An agent in the directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEntry {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its own version.
    pub version: String,
    /// Whether it takes work.
    pub enabled: bool,
    /// Whether it does or does not because it was switched, and not by configuration.
    #[serde(default)]
    pub switched: bool,
    /// `read-only` or `read-write`.
    pub access: String,
    /// Whether the system refuses what the agent may not do.
    pub enforcement: Enforcement,
    /// By what means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Where its JSON-RPC door is.
    pub url: String,
    /// Where its card is.
    pub card: String,
}

/// The directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// The agents the caller may use.
    pub agents: Vec<AgentEntry>,
}

/// Why something did not work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Trouble {
    /// The stable code.
    pub code: String,
    /// Whose turn it is.
    pub category: String,
    /// One sentence.
    pub message: String,
    /// What the reader can do.
    pub hint: String,
}

/// Where an execution waits, and why.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct QueueEntry {
    /// The place and the reason.
    #[serde(flatten)]
    pub queued: Queued,
    /// The same in words.
    pub message: String,
}

/// An execution in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionEntry {
    /// Its id, which is also the A2A task's.
    pub id: String,
    /// Who was asked.
    pub agent: String,
    /// The conversation.
    pub context_id: String,
    /// What made it.
    #[serde(default)]
    pub trigger: String,
    /// How it ended, or where it is.
    pub state: State,
    /// Where it is, also after its end.
    pub phase: State,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What it waits for before it goes on, at this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueEntry>,
    /// The latest attempt.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
    /// When its first attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// From its first attempt to its end, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<i64>,
    /// Its living process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The exit code of its last process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it did not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
}

/// Executions, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionList {
    /// This page.
    pub executions: Vec<ExecutionEntry>,
    /// Pass it as `cursor` for the next page; absent on the last. It means nothing to callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What the service tells about itself, beside its tree.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServiceStatus {
    /// The release.
    pub version: String,
    /// The configuration in force.
    #[serde(default)]
    pub configuration: ConfigurationStatus,
    /// What the machine offers to hold programs with.
    pub machine: MachineStatus,
    /// How much is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Stock>,
    /// The tree.
    #[serde(flatten)]
    pub tree: algonius_actors::model::status::TreeStatus,
}

/// What the agents' programs are held by.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MachineStatus {
    /// As it was when the service started.
    #[serde(flatten)]
    pub rungs: Rungs,
    /// The living wardens, by their process ids.
    pub wardens: Vec<u32>,
}

/// What is spoken, and how each agent is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct A2aStatus {
    /// Versions of the protocol.
    pub versions: Vec<String>,
    /// Ways for calls to travel.
    pub bindings: Vec<String>,
    /// The agents the caller may use.
    pub agents: Vec<A2aAgent>,
}

/// How an agent can be reached, and how it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct A2aAgent {
    /// Its id.
    pub id: String,
    /// Whether it takes work by configuration.
    pub enabled: bool,
    /// How its actor is.
    pub health: algonius_actors::model::status::Health,
    /// Executions that hold a slot.
    pub running: usize,
    /// Executions that wait.
    pub queued: usize,
    /// The ways in.
    pub interfaces: Vec<A2aWay>,
}

/// One way in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct A2aWay {
    /// Where.
    pub url: String,
    /// How calls travel.
    pub binding: String,
    /// Which version is spoken.
    pub version: String,
    /// What a call must name where the address does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

impl ExecutionEntry {
    /// An execution that waits in this place, or in none.
    #[must_use]
    pub fn of(record: &Record, queued: Option<Queued>) -> Self {
        let queue = queued.map(|queued| QueueEntry { queued, message: queued.to_string() });
        Self { queue, ..Self::from(record) }
    }
}

impl From<&Record> for ExecutionEntry {
    fn from(record: &Record) -> Self {
        let duration = record.started_at.zip(record.ended_at).map(|(begin, end)| end - begin);
        Self {
            id: record.id.to_string(),
            agent: record.agent.to_string(),
            context_id: record.context.0.clone(),
            trigger: record.trigger.kind().to_owned(),
            state: record.shown(),
            phase: record.state,
            outcome: record.outcome,
            queue: None,
            stamp: record.stamp,
            accepted_at: record.accepted_at,
            started_at: record.started_at,
            ended_at: record.ended_at,
            duration_us: duration.and_then(|duration| duration.num_microseconds()),
            pid: record.pid,
            exit_code: record.exit_code,
            error: record.failure.as_ref().map(Trouble::from),
        }
    }
}

impl From<&Failure> for Trouble {
    fn from(failure: &Failure) -> Self {
        Self {
            code: failure.code.to_string(),
            category: failure.category().as_str().to_owned(),
            message: failure.message.clone(),
            hint: failure.hint().to_owned(),
        }
    }
}

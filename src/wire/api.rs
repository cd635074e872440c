//! Shapes of `/api/v1`, the API for programs; the command line uses it too.

pub mod agent;
pub mod create_execution;
pub mod history;
pub mod interactions;
pub mod quota;
pub mod schedules;
pub mod service;
pub mod steps;
pub mod tree;
pub mod usage;

use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::queue::Queued;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::{AttemptId, ExecutionState, Interruption, Outcome};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::host::sandbox::Confinement;
use algonius_actors::model::host::storage_stats::StorageStats;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admin::ConfigurationStatus;
use usage::UsageAmounts;

/// Agent in the directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEntry {
    /// Id of the agent.
    pub id: String,
    /// Kind of the agent. Absent in answers of earlier releases, which knew programs alone.
    #[serde(default)]
    pub kind: AgentKind,
    /// Name of the agent.
    pub name: String,
    /// Description of the agent.
    pub description: String,
    /// Version of the agent.
    pub version: String,
    /// True if the agent accepts work.
    pub enabled: bool,
    /// True if an administrator has set `enabled` at run time, contrary to the configuration.
    #[serde(default)]
    pub switched: bool,
    /// Reason why the agent refuses all work now, in one sentence that names the program to install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// Access of the agent to files: `read-only` or `read-write`.
    pub access: String,
    /// Confinement of the agent's processes; absent if the agent runs nothing on this machine.
    #[serde(flatten)]
    pub confinement: Option<Confinement>,
    /// Address of the agent's JSON-RPC endpoint.
    pub url: String,
    /// Address of the agent's card.
    pub card: String,
}

/// Directory of agents.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// Agents that the caller may use.
    pub agents: Vec<AgentEntry>,
}

/// Error of an execution.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Stable error code.
    pub code: String,
    /// Category of the error: who can act on it.
    pub category: String,
    /// Description of the error in one sentence.
    pub message: String,
    /// Hint for the reader of the error.
    pub hint: String,
}

/// Queue position of an execution and the reason why the execution waits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct QueuePosition {
    /// Position and reason.
    #[serde(flatten)]
    pub queued: Queued,
    /// Position and reason as a sentence.
    pub message: String,
}

/// Execution in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionEntry {
    /// Id of the execution, which is also the id of the A2A task.
    pub id: String,
    /// Id of the agent.
    pub agent: String,
    /// Id of the conversation.
    pub context_id: String,
    /// Source of the execution, such as a caller or a schedule.
    #[serde(default)]
    pub trigger: String,
    /// Outcome of an ended execution, otherwise its phase.
    pub state: ExecutionState,
    /// Phase of the execution; it remains visible after the end.
    pub phase: ExecutionState,
    /// Outcome of an ended execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Queue position and the reason for which the execution waits now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePosition>,
    /// Reason why the execution waits for its caller, while it does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interruption: Option<Interruption>,
    /// Latest attempt.
    #[serde(flatten)]
    pub attempt_id: AttemptId,
    /// Time at which the service accepted the execution.
    pub accepted_at: DateTime<Utc>,
    /// Time at which the first attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// Time at which the execution ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Time from the start of the first attempt to the end, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<i64>,
    /// Id of the running process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Exit code of the last process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Error of the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Resources that the execution has used, as far as its agent reports them.
    #[serde(skip_serializing_if = "UsageAmounts::is_zero", default)]
    pub usage: UsageAmounts,
    /// Caller and start of the request, if the caller of the list requested them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub summary: Option<RequestSummary>,
}

/// Caller and start of a request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestSummary {
    /// Name of the caller, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub caller: Option<String>,
    /// First line of the request, shortened.
    pub request: String,
}

/// Page of executions, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionList {
    /// Executions on this page.
    pub executions: Vec<ExecutionEntry>,
    /// Opaque cursor of the next page, for the query parameter `cursor`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// State of the service and its supervision tree.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServiceStatus {
    /// Version of the service.
    pub version: String,
    /// Configuration in force.
    #[serde(default)]
    pub configuration: ConfigurationStatus,
    /// Capabilities of the machine for the confinement of programs.
    pub machine: MachineStatus,
    /// Size of the stored data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<StorageStats>,
    /// Supervision tree.
    #[serde(flatten)]
    pub tree: algonius_actors::model::observation::status::TreeStatus,
}

/// Confinement of the agents' programs on this machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Capabilities of the machine at the start of the service.
    #[serde(flatten)]
    pub capabilities: HostCapabilities,
    /// Process ids of the running process holders.
    pub wardens: Vec<u32>,
    /// Memory for output that programs have written and the service has not read yet (`server.output_memory`).
    #[serde(default, rename = "outputMemory", skip_serializing_if = "Option::is_none")]
    pub output_memory: Option<OutputMemoryStatus>,
}

/// Memory for the output of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputMemoryStatus {
    /// Maximum number of bytes for all programs together.
    pub limit_bytes: u64,
    /// Bytes in use now.
    pub used_bytes: u64,
    /// Number of output streams that wait for memory.
    pub waiting: usize,
}

/// Supported versions and bindings of the A2A protocol and the state of each agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct A2aStatus {
    /// Supported versions of the protocol.
    pub versions: Vec<String>,
    /// Supported protocol bindings.
    pub bindings: Vec<String>,
    /// Agents that the caller may use.
    pub agents: Vec<A2aAgent>,
}

/// Interfaces and state of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct A2aAgent {
    /// Id of the agent.
    pub id: String,
    /// True if the agent is enabled in the configuration.
    pub enabled: bool,
    /// Health of the agent.
    pub health: algonius_actors::model::observation::status::Health,
    /// Number of executions that hold a slot.
    pub running: usize,
    /// Number of executions that wait in the queue.
    pub queued: usize,
    /// Interfaces by which callers can reach the agent.
    pub interfaces: Vec<A2aInterface>,
}

/// Address and protocol by which callers can reach an agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct A2aInterface {
    /// Address of the interface.
    pub url: String,
    /// Protocol binding of the interface.
    pub binding: String,
    /// Protocol version of the interface.
    pub version: String,
    /// Tenant that a request must name if the address does not identify the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

impl ExecutionEntry {
    /// Creates the entry of an execution, with its queue position if it waits.
    #[must_use]
    pub fn from_record(record: &ExecutionRecord, queued: Option<Queued>) -> Self {
        let queue = queued.map(|queued| QueuePosition { queued, message: queued.to_string() });
        Self { queue, ..Self::from(record) }
    }
}

impl From<&ExecutionRecord> for ExecutionEntry {
    fn from(record: &ExecutionRecord) -> Self {
        // From the first start, so that the time of all attempts and of the pauses between them counts.
        let duration = record.started_at.zip(record.ended_at).map(|(begin, end)| end - begin);
        Self {
            id: record.id.to_string(),
            agent: record.agent.to_string(),
            context_id: record.context.0.clone(),
            trigger: record.trigger.kind().to_owned(),
            state: record.effective_state(),
            phase: record.state,
            outcome: record.outcome,
            queue: None,
            interruption: record.required_input(),
            attempt_id: record.attempt_id,
            accepted_at: record.accepted_at,
            started_at: record.started_at,
            ended_at: record.ended_at,
            duration_us: duration.and_then(|duration| duration.num_microseconds()),
            pid: record.pid,
            exit_code: record.exit_code,
            error: record.failure.as_ref().map(ErrorBody::from),
            usage: record.spent.into(),
            summary: None,
        }
    }
}

impl From<&Failure> for ErrorBody {
    fn from(failure: &Failure) -> Self {
        Self {
            code: failure.code.to_string(),
            category: failure.category().as_str().to_owned(),
            message: failure.message.clone(),
            hint: failure.hint().to_owned(),
        }
    }
}

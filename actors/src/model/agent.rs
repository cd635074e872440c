//! Configured agent: its access type, its capacity, its deadlines and its limits.

pub mod budget;
pub mod cognitive;
pub mod file_delivery;
pub mod model_provider;
pub mod queue;
pub mod quota;
pub mod remote;
pub mod success_criteria;
pub mod team;
pub mod workspace;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::budget::BudgetSpec;
use self::cognitive::CognitiveSpec;
use self::file_delivery::FileDelivery;
use self::quota::QuotaSpec;
use self::team::TeamPlan;
pub use super::access::Access;
use super::access::endpoint_config::EndpointConfig;
use super::code::Code;
use super::failure::Failure;
use super::host::resources::LimitEnforcement;
use super::host::sandbox::Confinement;
use super::id::AgentId;
use super::permission::PermissionPolicy;

/// Kind of an agent: what performs its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// A program on this machine.
    #[default]
    Program,
    /// An A2A agent of another service.
    Remote,
    /// A team: other agents of this service, in turn.
    Team,
    /// A language model that calls tools.
    Cognitive,
}

impl AgentKind {
    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Remote => "remote",
            Self::Team => "team",
            Self::Cognitive => "cognitive",
        }
    }
}

/// Limits of the slots and of the queue of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Number of executions that may run at the same time; `None` is unlimited.
    pub max_running: Option<NonZeroU32>,
    /// Number of executions that may wait in the queue.
    pub max_waiting: u32,
    /// Longest time in the queue; an execution that waits longer fails with `queue-timeout`.
    pub queue_timeout: Duration,
}

/// Time limits of the phases of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTimeouts {
    /// Longest time from the start request to a running process.
    pub start: Duration,
    /// Longest run time of the process, for each attempt.
    pub run: Duration,
    /// Longest time without output while the process runs; `None` applies the run deadline only.
    pub idle: Option<Duration>,
    /// Time between the polite termination request and the kill.
    pub grace: Duration,
    /// Longest time from a question of the agent to its answer.
    pub question: Duration,
}

/// Retry policy: number of retries and the pauses between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetrySpec {
    /// Maximum number of retries after the first attempt; 0 disables retries.
    pub max_retries: u32,
    /// Pause before the first retry.
    pub base_delay: Duration,
    /// Factor by which the pause grows from one retry to the next.
    pub backoff_factor: f64,
    /// True if a read-write agent is retried even after it received its input.
    pub retries_after_start: bool,
}

impl Default for RetrySpec {
    /// Three retries, after 1, 2 and 4 seconds.
    fn default() -> Self {
        Self {
            max_retries: 3,
            base_delay: Duration::from_secs(1),
            backoff_factor: 2.0,
            retries_after_start: false,
        }
    }
}

/// Limits of the text that an agent receives and returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// Longest input in bytes; a longer input is rejected.
    pub max_input_bytes: usize,
    /// Longest output kept for each stream, in bytes. Of a longer output the service keeps the start and the end, with
    /// a line between them that states how many bytes are missing.
    pub max_output_bytes: usize,
}

/// Overrides that a caller may choose for one request beside the input. The default allows none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverridePolicy {
    /// Absolute folders below which a caller may choose the working folder.
    pub working_dir_roots: Vec<PathBuf>,
    /// Names of the environment variables that a caller may set.
    pub variables: Vec<String>,
    /// Parameters of the agent's templates that a caller may set.
    pub params: Vec<String>,
}

impl OverridePolicy {
    /// Returns true if a caller can choose neither a folder nor a variable.
    #[must_use]
    pub const fn forbids_folders_and_variables(&self) -> bool {
        self.working_dir_roots.is_empty() && self.variables.is_empty()
    }
}

/// Skill of an agent, as shown on its card.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Id of the skill, unique on the card.
    pub id: String,
    /// Display name of the skill.
    pub name: String,
    /// Description of what the skill does.
    pub description: String,
    /// Keywords for search.
    pub tags: Vec<String>,
    /// Example requests that the skill can answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Media types that the skill reads, if they differ from those of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<String>,
    /// Media types that the skill writes, if they differ from those of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
}

/// Presentation of an agent on its card and in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfile {
    /// Unique display name.
    pub name: String,
    /// Description in one or two sentences, for people and for other agents.
    pub description: String,
    /// Version of the agent itself.
    pub version: String,
    /// Skills; never empty.
    pub skills: Vec<Skill>,
}

/// Limits of the work of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkLimits {
    /// Limits of the slots and of the queue.
    pub capacity: Capacity,
    /// Deadlines of an attempt.
    pub timeouts: PhaseTimeouts,
    /// Size limits of input and output.
    pub sizes: SizeLimits,
}

/// Facts about the program of an agent on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramWorkerSpec {
    /// File name of the program while the program is not installed. The agent accepts no work meanwhile.
    pub missing_program: Option<Box<str>>,
    /// Confinement of the processes.
    pub confinement: Confinement,
    /// Resource limits of the processes, and the enforcer of each limit.
    pub limit_enforcement: LimitEnforcement,
    /// Expected memory of an attempt in bytes, if known.
    pub expected_memory: Option<u64>,
    /// Interval between two measurements of the resource usage of the processes; `None` disables them.
    pub heartbeat_interval: Option<Duration>,
    /// Permission policy, for a program that asks before it acts.
    pub permission_policy: Option<Arc<PermissionPolicy>>,
    /// Delivery of the files of a message.
    pub file_delivery: FileDelivery,
}

/// Worker of an agent: its kind, with the facts that only agents of this kind have.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerSpec {
    /// Program on this machine.
    Program(ProgramWorkerSpec),
    /// A2A agent of another service.
    Remote,
    /// Team of other agents of this service.
    Team(Arc<TeamPlan>),
    /// Language model that calls tools.
    Cognitive(Arc<CognitiveSpec>),
}

/// Validated definition of an agent of any kind: the data for the supervision tree and the card.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    /// Unique id, part of every path of the agent.
    pub id: AgentId,
    /// Presentation on the card and in lists.
    pub profile: AgentProfile,
    /// True if the agent accepts work; a disabled agent is listed and rejects work.
    pub enabled: bool,
    /// Access type: read-only or read-write.
    pub access: Access,
    /// Worker behind the agent.
    pub worker: WorkerSpec,
    /// Limits of slots, queue, time and size.
    pub limits: WorkLimits,
    /// Retry policy.
    pub retry: RetrySpec,
    /// Behaviour when the quota of the agent's account is exhausted.
    pub quota: QuotaSpec,
    /// Budget of the agent.
    pub budget: BudgetSpec,
    /// Time after a request during which an equal request takes its result; `None` disables coalescing.
    pub dedup_window: Option<Duration>,
    /// Overrides that callers may choose.
    pub override_policy: OverridePolicy,
    /// Endpoint settings of the agent: what callers can reach. Agents with the default settings share one value.
    pub endpoint_config: Arc<EndpointConfig>,
}

impl AgentSpec {
    /// Returns the kind of the agent.
    #[must_use]
    pub const fn kind(&self) -> AgentKind {
        match self.worker {
            WorkerSpec::Program(_) => AgentKind::Program,
            WorkerSpec::Remote => AgentKind::Remote,
            WorkerSpec::Team(_) => AgentKind::Team,
            WorkerSpec::Cognitive(_) => AgentKind::Cognitive,
        }
    }

    /// Returns the facts about the agent's program, or `None` for an agent of another kind.
    #[must_use]
    pub const fn program_worker(&self) -> Option<&ProgramWorkerSpec> {
        match &self.worker {
            WorkerSpec::Program(program) => Some(program),
            _ => None,
        }
    }

    /// Returns the facts about the agent's program to change them, or `None` for an agent of another kind.
    pub const fn program_worker_mut(&mut self) -> Option<&mut ProgramWorkerSpec> {
        match &mut self.worker {
            WorkerSpec::Program(program) => Some(program),
            _ => None,
        }
    }

    /// Returns the plan of a team, or `None` for an agent of another kind.
    #[must_use]
    pub const fn team(&self) -> Option<&Arc<TeamPlan>> {
        match &self.worker {
            WorkerSpec::Team(plan) => Some(plan),
            _ => None,
        }
    }

    /// Returns the settings of a cognitive agent, or `None` for an agent of another kind.
    #[must_use]
    pub const fn cognitive(&self) -> Option<&Arc<CognitiveSpec>> {
        match &self.worker {
            WorkerSpec::Cognitive(cognitive) => Some(cognitive),
            _ => None,
        }
    }

    /// Returns the settings of a cognitive agent to change them, or `None` for an agent of another kind.
    pub fn cognitive_mut(&mut self) -> Option<&mut CognitiveSpec> {
        match &mut self.worker {
            WorkerSpec::Cognitive(cognitive) => Some(Arc::make_mut(cognitive)),
            _ => None,
        }
    }

    /// Returns the delivery of the files of a message. The members of a team each have their own, and an agent of
    /// another service decides itself.
    #[must_use]
    pub const fn file_delivery(&self) -> FileDelivery {
        match &self.worker {
            WorkerSpec::Program(program) => program.file_delivery,
            WorkerSpec::Remote | WorkerSpec::Team(_) => FileDelivery::Forward,
            WorkerSpec::Cognitive(_) => FileDelivery::None,
        }
    }

    /// Returns the reason why an enabled agent can start nothing, as a clause; `None` if the agent can start work.
    #[must_use]
    pub fn unavailable_reason(&self) -> Option<String> {
        let program = self.program_worker()?.missing_program.as_deref().filter(|_| self.enabled)?;
        Some(not_installed_reason(program))
    }

    /// Returns the failure of an enabled agent that can start nothing; `None` if the agent can start work.
    #[must_use]
    pub fn unavailable_failure(&self) -> Option<Failure> {
        self.unavailable_reason().map(|reason| unavailable_failure(&self.id, &reason))
    }

    /// Returns the confinement of the agent's work on this machine; `None` if the agent runs nothing here.
    #[must_use]
    pub fn confinement(&self) -> Option<&Confinement> {
        self.program_worker().map(|program| &program.confinement)
    }

    /// Returns the enforced resource limits; there are none for an agent that runs nothing on this machine.
    #[must_use]
    pub fn limit_enforcement(&self) -> LimitEnforcement {
        self.program_worker().map(|program| program.limit_enforcement).unwrap_or_default()
    }

    /// Returns the expected memory of an attempt in bytes, if known; it starts once that much of the memory budget is
    /// free.
    #[must_use]
    pub fn expected_memory(&self) -> Option<u64> {
        self.program_worker()?.expected_memory
    }

    /// Returns the permission policy; an agent without one asks for everything that it asks at all.
    #[must_use]
    pub fn permission_policy(&self) -> &PermissionPolicy {
        static DEFAULT_POLICY: LazyLock<PermissionPolicy> =
            LazyLock::new(PermissionPolicy::default);
        self.program_worker()
            .and_then(|program| program.permission_policy.as_deref())
            .unwrap_or(&DEFAULT_POLICY)
    }

    /// Returns the interval between two measurements of the resource usage of running work, if it is measured.
    #[must_use]
    pub fn heartbeat_interval(&self) -> Option<Duration> {
        self.program_worker()?.heartbeat_interval
    }
}

/// Returns the failure of an agent whose program is not installed. The message names the program without its folder.
#[must_use]
pub fn program_missing_failure(agent: &AgentId, program: &str) -> Failure {
    unavailable_failure(agent, &not_installed_reason(program))
}

fn not_installed_reason(program: &str) -> String {
    format!("its program `{program}` is not installed")
}

fn unavailable_failure(agent: &AgentId, reason: &str) -> Failure {
    Failure::new(Code::AgentUnavailable, format!("agent `{agent}` is unavailable: {reason}"))
}

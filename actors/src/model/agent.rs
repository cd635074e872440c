//! One configured thing that can be asked, whatever does its work.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::BudgetSpec;
use super::exposure::Exposure;
use super::id::AgentId;
use super::quota::QuotaSpec;
use super::resources::Holding;
use super::sandbox::{Enforcement, Isolation};

/// Whether an agent changes what it works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Retrieves only; many may run at once.
    #[default]
    ReadOnly,
    /// Modifies files, system state or external resources; exactly one runs at a time.
    ReadWrite,
}

/// How many may run and wait, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Executions at once; `None` is unlimited.
    pub running: Option<NonZeroU32>,
    /// Executions that may wait.
    pub waiting: u32,
    /// How long one may wait before it fails with `queue-timeout`.
    pub patience: Duration,
}

/// How long each part of an attempt may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the order to start to a living process.
    pub start: Duration,
    /// From a living process to its end, for each attempt.
    pub run: Duration,
    /// From one sign of life to the next, while it runs; `None` is as long as it may run.
    pub idle: Option<Duration>,
    /// From the polite request to end to the kill.
    pub grace: Duration,
    /// From a question of the agent to its answer.
    pub answer: Duration,
}

/// Which failures are tried again, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetrySpec {
    /// Retries after the first attempt; 0 turns retry off.
    pub max: u32,
    /// Pause before the first retry.
    pub base: Duration,
    /// What the pause is multiplied by from one retry to the next.
    pub factor: f64,
    /// Whether a read-write agent is retried although it had its input already.
    pub after_start: bool,
}

impl Default for RetrySpec {
    /// Three retries, after 1, 2 and 4 seconds.
    fn default() -> Self {
        Self { max: 3, base: Duration::from_secs(1), factor: 2.0, after_start: false }
    }
}

/// How much text goes in and out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Longest input in bytes; a longer one is refused.
    pub input: usize,
    /// Longest output kept for each stream in bytes; of a longer one the ends are kept, with a line
    /// between them that tells how many bytes are missing.
    pub output: usize,
}

/// What a caller may choose for one request beside the input. By default that is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowance {
    /// Absolute folders, below which a caller may choose one to start in.
    pub folders: Vec<PathBuf>,
    /// Names of the environment that a caller may set.
    pub variables: Vec<String>,
}

impl Allowance {
    /// Whether there is anything to choose.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.variables.is_empty()
    }
}

/// One thing an agent can do, as shown on its card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skill {
    /// Id, unique on the card.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// A checked agent: what the tree and the card need to know, not how the work is done.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    /// Unique id, part of every path of the agent.
    pub id: AgentId,
    /// Unique name for people.
    pub name: String,
    /// One or two sentences for people and for other agents.
    pub description: String,
    /// The agent's own version, as shown on its card.
    pub version: String,
    /// Skills on the card; never empty.
    pub skills: Vec<Skill>,
    /// A disabled agent is listed and refuses work.
    pub enabled: bool,
    /// Read-only or read-write.
    pub access: Access,
    /// Whether the system holds it to that, and to what else it may not do.
    pub enforcement: Enforcement,
    /// By what means, where it is held at all.
    pub isolation: Option<Isolation>,
    /// What it may take of the machine, and what holds it to that.
    pub holding: Holding,
    /// Bytes of memory that an attempt takes, where that is known; it begins when there is so much left.
    pub expects: Option<u64>,
    /// Concurrency and queue.
    pub capacity: Capacity,
    /// Deadlines of an attempt.
    pub deadlines: Deadlines,
    /// From one look at what running work takes of the machine to the next; `None` is never.
    pub heartbeat: Option<Duration>,
    /// Retry policy.
    pub retry: RetrySpec,
    /// What it does when its account has used up what it may.
    pub quota: QuotaSpec,
    /// What it may use up.
    pub budget: BudgetSpec,
    /// Sizes of input and output.
    pub sizes: Sizes,
    /// For how long after a request an equal one takes its result; `None` is never.
    pub dedup_window: Option<Duration>,
    /// What callers may choose.
    pub allowance: Allowance,
    /// What others can reach of it. Agents that are exposed as usual share it.
    pub exposure: Arc<Exposure>,
}

//! Services that all actors of the tree share.

pub mod active_writers;
pub mod credential_breakers;
pub(crate) mod input_sealer;
pub(crate) mod memory_budget;
pub mod monitor_handle;
pub(crate) mod panic_guard;
pub(crate) mod sealed_inputs;
pub mod workspace_queue;

use std::sync::Arc;

use algonius_redact::Redactor;
use tokio::sync::watch;

pub use crate::services::active_writers::ActiveWriters;
pub use crate::services::credential_breakers::CredentialBreakers;

use crate::decide::admission::keyed_hasher::KeyedHasher;
pub use crate::driver::report::BudgetUsageCache;
use crate::model::agent::AgentSpec;
use crate::ports::clock::Clock;
use crate::ports::history::History;
use crate::ports::interaction_store::InteractionStore;
use crate::ports::ledger::Ledger;
use crate::ports::observer::Observer;
pub use crate::services::input_sealer::InputSealer;
pub use crate::services::memory_budget::MemoryBudget;
use crate::services::monitor_handle::MonitorHandle;
use crate::services::workspace_queue::WorkspaceQueue;

/// Ports, secrets and shared state of the actors.
#[derive(Clone)]
pub struct Services {
    /// Ledger of executions.
    pub ledger: Arc<dyn Ledger>,
    /// Stores beside the ledger of executions.
    pub stores: RecordStores,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Redactor of secrets.
    pub redactor: RedactorHandle,
    /// Sealer of inputs that redaction would change.
    pub input_sealer: InputSealer,
    /// Hasher for the keys of requests.
    pub keyed_hasher: KeyedHasher,
    /// Receiver of telemetry events.
    pub observer: Arc<dyn Observer>,
    /// Handle of the monitor.
    pub monitor: MonitorHandle,
    /// Resources that the attempts of all agents share.
    pub attempt_resources: AttemptResources,
    /// Active writers of executions.
    pub active_writers: ActiveWriters,
    /// Circuit breakers of the agents' credentials.
    pub breakers: CredentialBreakers,
    /// Amounts that each agent has used today.
    pub budget_usages: BudgetUsageCache,
}

/// Stores of records that belong to executions.
#[derive(Clone)]
pub struct RecordStores {
    /// History of executions.
    pub history: Arc<dyn History>,
    /// Interactions and permission decisions.
    pub interactions: Arc<dyn InteractionStore>,
}

/// Resources that an attempt claims before it starts.
#[derive(Clone, Default)]
pub struct AttemptResources {
    /// Queue of the executions that wait for a workspace, across all agents.
    pub workspace_queue: WorkspaceQueue,
    /// Memory budget of all agents together.
    pub memory_budget: MemoryBudget,
}

impl AttemptResources {
    /// Creates the resources with a memory limit in bytes, if there is one.
    #[must_use]
    pub fn with_memory_limit(limit: Option<u64>) -> Self {
        Self { memory_budget: MemoryBudget::new(limit), ..Self::default() }
    }
}

impl Services {
    /// Reports to the monitor how much of its day's budget an agent has used.
    pub(crate) fn report_budget_usage(&self, spec: &AgentSpec) {
        if let Some(alert_input) = self.budget_usages.alert_input(spec, &*self.clock) {
            self.monitor.send_alert_input(alert_input);
        }
    }
}

/// Handle of the redactor that is in force. Clones are cheap. A stream keeps the redactor of its start.
#[derive(Clone)]
pub struct RedactorHandle(watch::Receiver<Arc<Redactor>>);

impl RedactorHandle {
    /// Creates a handle whose redactor the owner of the sender replaces.
    #[must_use]
    pub const fn new(redactor: watch::Receiver<Arc<Redactor>>) -> Self {
        Self(redactor)
    }

    /// Creates a handle with a fixed redactor.
    #[must_use]
    pub fn from_redactor(redactor: Arc<Redactor>) -> Self {
        Self(watch::channel(redactor).1)
    }

    /// Returns the present redactor.
    #[must_use]
    pub fn current(&self) -> Arc<Redactor> {
        Arc::clone(&self.0.borrow())
    }
}

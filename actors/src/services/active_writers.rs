//! Registry of the active writers of executions. The successor of a stopped actor first waits for its writer, because
//! late writes would invalidate what the successor reads from the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::model::id::{AgentId, ExecutionId};

/// Active writers of a service. Clones are cheap.
#[derive(Clone, Default)]
pub struct ActiveWriters(Arc<watch::Sender<WriterRegistry>>);

/// Registered writers by a unique number: one execution may temporarily have two.
#[derive(Default)]
struct WriterRegistry {
    last_number: u64,
    writers: BTreeMap<u64, (AgentId, ExecutionId)>,
}

impl ActiveWriters {
    /// Registers a writer of an execution until the returned guard is dropped.
    pub(crate) fn register(&self, agent: AgentId, id: ExecutionId) -> WriterRegistration {
        let mut number = 0;
        self.0.send_if_modified(|registry| {
            registry.last_number += 1;
            number = registry.last_number;
            registry.writers.insert(number, (agent, id));
            false // No receiver waits for this change.
        });
        WriterRegistration { number, active_writers: self.clone() }
    }

    /// Waits until an execution has no writer. Its actor must have stopped.
    pub(crate) async fn wait_until_idle(&self, id: ExecutionId) {
        self.wait_until_no_writer(|_, execution| *execution == id).await;
    }

    /// Waits until no execution of an agent has a writer. All actors of the agent must have stopped.
    pub(crate) async fn wait_until_all_idle(&self, agent: &AgentId) {
        self.wait_until_no_writer(|writer_agent, _| writer_agent == agent).await;
    }

    async fn wait_until_no_writer(&self, matches: impl Fn(&AgentId, &ExecutionId) -> bool) {
        let has_writer = |registry: &WriterRegistry| {
            registry.writers.values().any(|(agent, id)| matches(agent, id))
        };
        let mut changes = self.0.subscribe();
        _ = changes.wait_for(|registry| !has_writer(registry)).await; // `self` holds the sender.
    }
}

/// Registration of an active writer.
pub(crate) struct WriterRegistration {
    number: u64,
    active_writers: ActiveWriters,
}

impl Drop for WriterRegistration {
    fn drop(&mut self) {
        self.active_writers.0.send_modify(|registry| _ = registry.writers.remove(&self.number));
    }
}

//! Who writes what executions do. Whoever follows an actor that is gone waits for its pen first: what that
//! still writes would come between a look into the ledger and what is made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::model::id::{AgentId, ExecutionId};

/// The pens of a service. Cheap to clone.
#[derive(Clone, Default)]
pub struct Pens(Arc<watch::Sender<Writers>>);

/// Every pen that is held, by a number of its own: one execution may for a moment have two.
#[derive(Default)]
struct Writers {
    last: u64,
    held: BTreeMap<u64, (AgentId, ExecutionId)>,
}

impl Pens {
    /// An execution of an agent is written until the answer is dropped.
    pub(crate) fn hold(&self, agent: AgentId, id: ExecutionId) -> Held {
        let mut number = 0;
        self.0.send_if_modified(|writers| {
            writers.last += 1;
            number = writers.last;
            writers.held.insert(number, (agent, id));
            false // Nobody waits for this.
        });
        Held { number, pens: self.clone() }
    }

    /// Waits until nobody writes an execution. Its actor must be gone.
    pub(crate) async fn laid_down(&self, id: ExecutionId) {
        self.none(|_, written| *written == id).await;
    }

    /// Waits until nobody writes any execution of an agent. All its actors must be gone.
    pub(crate) async fn all_laid_down(&self, agent: &AgentId) {
        self.none(|of, _| of == agent).await;
    }

    async fn none(&self, is_it: impl Fn(&AgentId, &ExecutionId) -> bool) {
        let is_there = |writers: &Writers| writers.held.values().any(|(of, id)| is_it(of, id));
        let mut changes = self.0.subscribe();
        _ = changes.wait_for(|writers| !is_there(writers)).await; // What it listens to is held here.
    }
}

/// A pen that is held.
pub(crate) struct Held {
    number: u64,
    pens: Pens,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pens.0.send_modify(|writers| _ = writers.held.remove(&self.number));
    }
}

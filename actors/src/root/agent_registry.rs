//! Changes to the set of agents at run time: adding, reconfiguring and removing.

use std::sync::Arc;

use ractor::concurrency::oneshot;
use ractor::{ActorRef, RpcReplyPort};

use super::agents::{AgentChildren, AgentRemoval, is_ledger_error};
use super::context::RootContext;
use super::{AgentDefinition, RootMsg};
use crate::agent::{AgentMsg, agent_removed_failure};
use crate::decide::recovery::restart::RestartHistory;
use crate::execution::recovery::settle_waiting_as_failed;
use crate::gateway::GatewayMsg;
use crate::model::agent::AgentSpec;
use crate::model::id::AgentId;

/// Handle that adds and removes agents. Clones are cheap.
#[derive(Clone)]
pub struct AgentRegistry(pub(crate) ActorRef<RootMsg>);

impl AgentRegistry {
    /// Adds an agent, or replaces the definition of an existing one, which keeps its queue and its running executions.
    /// Returns once the agent accepts requests.
    pub async fn register(&self, definition: AgentDefinition) {
        _ = self.0.call(|reply| RootMsg::AddAgent(definition, reply), None).await; // A stopped root has no agents.
    }

    /// Replaces the settings of an agent and keeps its driver, with the processes that it keeps for sessions. Without
    /// effect if there is no such agent. Returns once the agent uses them.
    pub async fn replace_spec(&self, spec: Arc<AgentSpec>) {
        _ = self.0.call(|reply| RootMsg::ReplaceSpec(spec, reply), None).await; // A stopped root has no agents.
    }

    /// Removes an agent, which finishes its work and accepts nothing new. The returned future completes when the work
    /// has ended; it is false if the agent was added again before.
    pub fn unregister(&self, agent: AgentId) -> impl Future<Output = bool> + Send + use<> {
        let (reply, end_receiver) = oneshot();
        _ = self.0.cast(RootMsg::RemoveAgent(agent, reply.into())); // A stopped root drops the reply port.
        async move { end_receiver.await.is_ok() }
    }
}

impl AgentChildren {
    /// Adds an agent, or replaces the definition of an existing one.
    pub(super) async fn add(&mut self, definition: AgentDefinition, context: &mut RootContext) {
        let id = definition.spec.id.clone();
        let child = self.set_definition(definition.clone());
        child.removal = None;
        if let Some(actor) = &child.actor {
            _ = actor.cast(AgentMsg::Reconfigure(definition)); // A failed actor restarts with the new definition.
            return;
        }
        child.restart_history = RestartHistory::default(); // Earlier failures belong to the old definition.
        match self.start(&id, false, context).await {
            Ok(()) => {}
            Err(error) if is_ledger_error(&error) => self.restart_later(&id, context),
            Err(error) => self.handle_failure(&id, &error.to_string(), context).await,
        }
    }

    /// Starts the drain of an agent, which [`Self::remove_drained`] then removes.
    pub(super) fn request_removal(
        &mut self,
        id: &AgentId,
        reply: RpcReplyPort<()>,
        context: &mut RootContext,
    ) {
        let removal_number = self.removal_count + 1;
        let Some(child) = self.child_mut(id) else {
            _ = reply.send(());
            return;
        };
        child
            .removal
            .get_or_insert(AgentRemoval { number: removal_number, replies: Vec::new() })
            .replies
            .push(reply);
        self.removal_count = removal_number;
        self.request_shutdown_if_removed(id, context);
    }

    /// Requests the actor of a removed agent to finish. In quarantine there is no actor, and only the questions that
    /// nobody can answer any more are left.
    pub(super) fn request_shutdown_if_removed(&self, id: &AgentId, context: &mut RootContext) {
        let Some(child) = self.get(id) else { return };
        let Some(removal_number) = child.removal.as_ref().map(|removal| removal.number) else {
            return;
        };
        if child.restart_pause.is_some() {
            return; // The request follows the next start of the agent, which may have work left.
        }
        let end_receiver = child.actor.as_ref().map(|actor| {
            let (reply, end_receiver) = oneshot();
            _ = actor.cast(AgentMsg::Remove(reply.into())); // A failed actor is replaced.
            end_receiver
        });
        let (root, services, id) = (context.root.clone(), context.services.clone(), id.clone());
        context.spawn(async move {
            let has_ended = match end_receiver {
                Some(end_receiver) => end_receiver.await.is_ok(),
                None => {
                    settle_waiting_as_failed(&services, &id, &agent_removed_failure(&id)).await;
                    true
                }
            };
            if has_ended {
                _ = root.cast(RootMsg::AgentDrained(id, removal_number));
            }
        });
    }

    /// Drops a removed agent that has finished its work, unless it was added again meanwhile.
    pub(super) fn remove_drained(
        &mut self,
        id: &AgentId,
        removal_number: u64,
        context: &RootContext,
    ) {
        let is_same_removal = |removal: &AgentRemoval| removal.number == removal_number;
        if !self.get(id).and_then(|child| child.removal.as_ref()).is_some_and(is_same_removal) {
            return;
        }
        let Some(child) = self.take(id) else { return };
        tracing::info!(agent = %id, "agent is gone");
        // The gateway stops the actor after the messages that it has forwarded; without a gateway the root does.
        let gateway = context.gateway.borrow().clone();
        let cast_result = gateway.map(|gateway| gateway.cast(GatewayMsg::RemoveAgent(id.clone())));
        if let (Some(actor), None | Some(Err(_))) = (child.actor, cast_result) {
            actor.stop(None);
        }
        for reply in child.removal.into_iter().flat_map(|removal| removal.replies) {
            _ = reply.send(());
        }
    }
}

//! Agents that come, change and go while the tree lives.

use ractor::concurrency::oneshot;
use ractor::{ActorRef, RpcReplyPort};

use super::{Part, RootData, RootMsg, Seat};
use crate::agent::{AgentMsg, removed};
use crate::decide::restart::Restarts;
use crate::gateway::GatewayMsg;
use crate::model::id::AgentId;
use crate::recover::settle_questions;

/// An agent that was let go and has work left.
pub(super) struct Leaving {
    /// Tells this time from others: it may be taken in and let go again.
    farewell: u64,
    /// Who waits for its end.
    replies: Vec<RpcReplyPort<()>>,
}

/// Takes agents in and lets them go. Cheap to clone.
#[derive(Clone)]
pub struct Seating(pub(crate) ActorRef<RootMsg>);

impl Seating {
    /// Takes an agent in; one that is there keeps its line and what it runs, and is configured like
    /// this from now on. Returns when it can be asked.
    pub async fn seat(&self, seat: Seat) {
        _ = self.0.call(|reply| RootMsg::Seat(seat, reply), None).await; // A root that is gone has no seats.
    }

    /// Has an agent finish what it has and take nothing new. What is returned ends when it has
    /// finished, with whether it is gone: it may be taken in again before.
    pub fn unseat(&self, agent: AgentId) -> impl Future<Output = bool> + Send + use<> {
        let (told, gone) = oneshot();
        _ = self.0.cast(RootMsg::Unseat(agent, told.into())); // A root that is gone drops the reply.
        async move { gone.await.is_ok() }
    }
}

impl RootData {
    /// Takes an agent in, or gives one that is there what it is now.
    pub(super) async fn seat(&mut self, me: &ActorRef<RootMsg>, seat: Seat) {
        let id = seat.spec.id.clone();
        let part = self.parts.entry(id.clone()).or_insert_with(|| Part::new(seat.clone()));
        (part.seat, part.leaving) = (seat.clone(), None);
        if let Some(actor) = &part.actor {
            _ = actor.cast(AgentMsg::Reseat(seat)); // One that has failed is started as it is now.
            return;
        }
        part.restarts = Restarts::default(); // What failed was something else.
        if let Err(error) = self.start_agent(me, &id, false).await {
            self.agent_failed(me, &id, &error.to_string()).await;
        }
    }

    /// Lets an agent go.
    pub(super) fn unseat(&mut self, id: &AgentId, reply: RpcReplyPort<()>) {
        let Some(part) = self.parts.get_mut(id) else {
            _ = reply.send(());
            return;
        };
        self.farewells += 1;
        let farewell = self.farewells;
        part.leaving.get_or_insert(Leaving { farewell, replies: Vec::new() }).replies.push(reply);
        self.ask_to_leave(id);
    }

    /// Asks the actor of an agent that was let go to finish. In quarantine there is none, and what is
    /// left are the questions that nobody can answer any more.
    pub(super) fn ask_to_leave(&mut self, id: &AgentId) {
        let Some(part) = self.parts.get(id) else { return };
        let Some(farewell) = part.leaving.as_ref().map(|leaving| leaving.farewell) else { return };
        let left = part.actor.as_ref().map(|actor| {
            let (told, left) = oneshot();
            _ = actor.cast(AgentMsg::Leave(told.into())); // One that has failed is followed by another.
            left
        });
        let (me, kit, id) = (self.me.clone(), self.kit.clone(), id.clone());
        self.tasks.spawn(async move {
            let is_empty = match left {
                Some(left) => left.await.is_ok(),
                None => {
                    settle_questions(&kit, &id, &removed(&id)).await;
                    true
                }
            };
            if is_empty {
                _ = me.cast(RootMsg::Emptied(id, farewell));
            }
        });
    }

    /// An agent that was let go has nothing left; unless it was taken in again meanwhile, it ends.
    pub(super) fn emptied(&mut self, id: &AgentId, farewell: u64) {
        let is_it = |part: &Part| part.leaving.as_ref().is_some_and(|it| it.farewell == farewell);
        if !self.parts.get(id).is_some_and(is_it) {
            return;
        }
        let Some(part) = self.parts.remove(id) else { return };
        tracing::info!(agent = %id, "agent is gone");
        let gateway = self.gateway.borrow().clone();
        let told = gateway.map(|gateway| gateway.cast(GatewayMsg::Gone(id.clone())));
        if let (Some(actor), None | Some(Err(_))) = (part.actor, told) {
            actor.stop(None);
        }
        for reply in part.leaving.into_iter().flat_map(|leaving| leaving.replies) {
            _ = reply.send(());
        }
    }
}

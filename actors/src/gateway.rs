//! `GatewayActor`: routes each request to its agent, and awaits nothing.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;

use crate::agent::{AgentMsg, Submission};
use crate::kit::Kit;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::model::progress::Progress;
use crate::model::record::Record;

/// Bridges the door to the agents.
pub struct GatewayActor;

/// Where the requests of an agent go.
#[derive(Clone)]
pub enum Route {
    /// To its actor.
    Open(ActorRef<AgentMsg>),
    /// Nowhere, for this reason.
    Shut(Failure),
}

/// What the gateway is told.
pub enum GatewayMsg {
    /// A request for one agent. Answered by the agent.
    Submit(Box<Submission>),
    /// Calls an execution off. Answered by the agent.
    Cancel {
        /// Which, as the ledger knows it.
        record: Box<Record>,
        /// Why, for its history.
        why: String,
        /// Its progress; `None` when no actor holds it.
        reply: RpcReplyPort<Option<watch::Receiver<Progress>>>,
    },
    /// Asks for progress. Answered by the agent.
    Watch(AgentId, ExecutionId, RpcReplyPort<Option<watch::Receiver<Progress>>>),
    /// The actor of an agent is another one now, or is gone. Sent by the root.
    Routed(AgentId, Route),
    /// An agent is there no longer. Its actor is told when all that came before was passed on.
    Gone(AgentId),
    /// Refuses all that comes from now on.
    Drain,
    /// Asks since when it lives.
    Inspect(RpcReplyPort<DateTime<Utc>>),
}

/// Loop data.
pub struct GatewayData {
    routes: HashMap<AgentId, Route>,
    draining: bool,
    since: DateTime<Utc>,
}

impl Actor for GatewayActor {
    type Msg = GatewayMsg;
    type State = GatewayData;
    type Arguments = (Kit, HashMap<AgentId, Route>);

    async fn pre_start(
        &self,
        _: ActorRef<GatewayMsg>,
        (kit, routes): Self::Arguments,
    ) -> Result<GatewayData, ActorProcessingErr> {
        Ok(GatewayData { routes, draining: false, since: kit.clock.now() })
    }

    async fn handle(
        &self,
        _: ActorRef<GatewayMsg>,
        msg: GatewayMsg,
        data: &mut GatewayData,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            GatewayMsg::Submit(submission) => data.submit(submission),
            GatewayMsg::Cancel { record, why, reply } => {
                let agent = record.agent.clone();
                data.pass(&agent, AgentMsg::Cancel { record, why, reply });
            }
            GatewayMsg::Watch(agent, id, reply) => data.pass(&agent, AgentMsg::Watch(id, reply)),
            GatewayMsg::Routed(agent, route) => _ = data.routes.insert(agent, route),
            GatewayMsg::Gone(agent) => data.forget(&agent),
            GatewayMsg::Drain => data.draining = true,
            GatewayMsg::Inspect(reply) => _ = reply.send(data.since),
        }
        Ok(())
    }

    /// Written out because the default stops the supervisor when any child ends, even well.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<GatewayMsg>,
        _: SupervisionEvent,
        _: &mut GatewayData,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // It has no children.
    }
}

impl GatewayData {
    fn submit(&self, submission: Box<Submission>) {
        let agent = &submission.request.agent;
        let refusal = match self.routes.get(agent) {
            _ if self.draining => Failure::new(Code::Draining, "the service is stopping"),
            None => unknown(agent),
            Some(Route::Shut(failure)) => failure.clone(),
            Some(Route::Open(actor)) => {
                _ = actor.cast(AgentMsg::Submit(submission)); // A dropped reply is an answer.
                return;
            }
        };
        _ = submission.reply.send(Err(refusal));
    }

    fn forget(&mut self, agent: &AgentId) {
        if let Some(Route::Open(actor)) = self.routes.remove(agent) {
            _ = actor.cast(AgentMsg::Close); // One that is gone is closed.
        }
    }

    /// Passes a question on. Where there is no actor the reply is dropped, which is an answer.
    fn pass(&self, agent: &AgentId, msg: AgentMsg) {
        if let Some(Route::Open(actor)) = self.routes.get(agent) {
            _ = actor.cast(msg);
        }
    }
}

/// The refusal of an agent that is not configured.
pub(crate) fn unknown(agent: &AgentId) -> Failure {
    Failure::new(Code::AgentUnknown, format!("there is no agent `{agent}`"))
}

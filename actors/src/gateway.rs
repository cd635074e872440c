//! `GatewayActor`: routes each request to its agent without waiting.

pub(crate) mod handle;
pub(crate) mod reader;
pub(crate) mod request_handle_cell;
pub(crate) mod requests;
pub(crate) mod subscription;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;

use crate::agent::{AgentMsg, Submission};
use crate::model::code::Code;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::Request;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};
use crate::model::interaction::Interaction;
use crate::services::Services;

/// Actor between the client handle and the agents.
pub struct GatewayActor;

/// Route of the requests to an agent.
#[derive(Clone)]
pub enum AgentRoute {
    /// To the actor of the agent.
    Open(ActorRef<AgentMsg>),
    /// Rejected for this reason.
    Rejecting(Failure),
}

/// Message to the gateway.
pub enum GatewayMsg {
    /// Submits a request to one agent. The agent replies.
    Submit(Box<Submission>),
    /// Checks whether the agent would accept a request now. The agent replies.
    CheckAdmission(Box<Request>, RpcReplyPort<Result<(), Failure>>),
    /// Cancels an execution. The agent replies.
    Cancel {
        /// Record of the execution.
        record: Box<ExecutionRecord>,
        /// Reason for its history.
        reason: String,
        /// Progress of the execution; `None` if no actor holds it.
        reply: RpcReplyPort<Option<watch::Receiver<Progress>>>,
    },
    /// Reports the recorded answer of an interaction. The agent replies.
    InteractionAnswered(Box<Interaction>, RpcReplyPort<Option<watch::Receiver<Progress>>>),
    /// Requests the progress of an execution. The agent replies.
    WatchProgress(AgentId, ExecutionId, RpcReplyPort<Option<watch::Receiver<Progress>>>),
    /// Sets the route of an agent. Sent by the root.
    SetRoute(AgentId, AgentRoute),
    /// Removes an agent. Its actor is stopped after all earlier messages.
    RemoveAgent(AgentId),
    /// Rejects all later requests.
    Drain,
    /// Requests the start time.
    Inspect(RpcReplyPort<DateTime<Utc>>),
}

/// State of the actor.
pub struct GatewayActorState {
    routes: HashMap<AgentId, AgentRoute>,
    is_draining: bool,
    started_at: DateTime<Utc>,
}

impl Actor for GatewayActor {
    type Msg = GatewayMsg;
    type State = GatewayActorState;
    type Arguments = (Services, HashMap<AgentId, AgentRoute>);

    async fn pre_start(
        &self,
        _: ActorRef<GatewayMsg>,
        (services, routes): Self::Arguments,
    ) -> Result<GatewayActorState, ActorProcessingErr> {
        Ok(GatewayActorState { routes, is_draining: false, started_at: services.clock.now() })
    }

    async fn handle(
        &self,
        _: ActorRef<GatewayMsg>,
        msg: GatewayMsg,
        state: &mut GatewayActorState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            GatewayMsg::Submit(submission) => state.submit(submission),
            GatewayMsg::CheckAdmission(request, reply) => state.check_admission(request, reply),
            GatewayMsg::Cancel { record, reason, reply } => {
                let agent = record.agent.clone();
                state.forward(&agent, AgentMsg::Cancel { record, reason, reply });
            }
            GatewayMsg::InteractionAnswered(interaction, reply) => {
                let agent = interaction.origin.agent.clone();
                state.forward(&agent, AgentMsg::InteractionAnswered(interaction, reply));
            }
            GatewayMsg::WatchProgress(agent, id, reply) => {
                state.forward(&agent, AgentMsg::WatchProgress(id, reply));
            }
            GatewayMsg::SetRoute(agent, route) => _ = state.routes.insert(agent, route),
            GatewayMsg::RemoveAgent(agent) => state.remove_agent(&agent),
            GatewayMsg::Drain => state.is_draining = true,
            GatewayMsg::Inspect(reply) => _ = reply.send(state.started_at),
        }
        Ok(())
    }

    /// Overridden because the default stops the supervisor when any child ends, even normally.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<GatewayMsg>,
        _: SupervisionEvent,
        _: &mut GatewayActorState,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // This actor has no children.
    }
}

impl GatewayActorState {
    fn submit(&self, submission: Box<Submission>) {
        match self.find_agent_actor(&submission.request.agent) {
            // A dropped reply port is an answer too.
            Ok(actor) => _ = actor.cast(AgentMsg::Submit(submission)),
            Err(refusal) => _ = submission.reply.send(Err(refusal)),
        }
    }

    fn check_admission(&self, request: Box<Request>, reply: RpcReplyPort<Result<(), Failure>>) {
        match self.find_agent_actor(&request.agent) {
            Ok(actor) => _ = actor.cast(AgentMsg::CheckAdmission(request, reply)),
            Err(refusal) => _ = reply.send(Err(refusal)),
        }
    }

    fn find_agent_actor(&self, agent: &AgentId) -> Result<&ActorRef<AgentMsg>, Failure> {
        match self.routes.get(agent) {
            _ if self.is_draining => Err(Failure::new(Code::Draining, "the service is stopping")),
            None => Err(agent_unknown_failure(agent)),
            Some(AgentRoute::Rejecting(failure)) => Err(failure.clone()),
            Some(AgentRoute::Open(actor)) => Ok(actor),
        }
    }

    fn remove_agent(&mut self, agent: &AgentId) {
        if let Some(AgentRoute::Open(actor)) = self.routes.remove(agent) {
            _ = actor.cast(AgentMsg::StopActor); // A stopped actor needs no message.
        }
    }

    /// Forwards a request. Without an actor the reply port is dropped, which is an answer.
    fn forward(&self, agent: &AgentId, msg: AgentMsg) {
        if let Some(AgentRoute::Open(actor)) = self.routes.get(agent) {
            _ = actor.cast(msg);
        }
    }
}

/// Returns the rejection of an agent that is not configured.
pub(crate) fn agent_unknown_failure(agent: &AgentId) -> Failure {
    Failure::new(Code::AgentUnknown, format!("there is no agent `{agent}`"))
}

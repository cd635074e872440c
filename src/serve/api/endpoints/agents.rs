//! Operations on agents.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::observation::status::AgentStatus;

use crate::serve::api::agents::{self, WaitQuery};
use crate::serve::api::endpoint::ApiEndpoint;
use crate::serve::api::usage::{self, UsageQuery};
use crate::serve::ops::{admin, status};
use crate::wire::admin::{SwitchRejection, SwitchedAgent};
use crate::wire::api::agent::{AgentActivity, AgentDetail};
use crate::wire::api::usage::UsageReport;
use crate::wire::api::{A2aStatus, AgentList};

/// Description of the path parameter.
const ID_DESCRIPTION: &str = "Id of the agent.";

pub(super) fn operations() -> Vec<ApiEndpoint> {
    let mut endpoints = all_agents_endpoints();
    endpoints.extend(agent_endpoints());
    endpoints
}

fn all_agents_endpoints() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/agents", agents::list)
            .with_operation("listAgents", "List the agents that the caller may use.")
            .with_required_right(Right::Read)
            .with_response::<AgentList>(200, "The agents."),
        ApiEndpoint::get("/agents", agents::list)
            .with_operation(
                "listHostedAgents",
                "List the agents that the caller may use, at the parent of their A2A paths.",
            )
            .with_required_right(Right::Read)
            .with_response::<AgentList>(200, "The agents."),
        ApiEndpoint::get("/agents/list.json", agents::list)
            .with_operation(
                "listHostedAgentsFile",
                "List the agents, at the path that clients of A2A 0.2 use.",
            )
            .with_required_right(Right::Read)
            .with_response::<AgentList>(200, "The agents."),
        ApiEndpoint::get("/api/v1/usage", usage::report)
            .with_operation("getUsage", "Get turns, tokens and cost of agents by day.")
            .with_required_right(Right::Read)
            .with_query::<UsageQuery>()
            .with_response::<UsageReport>(200, "Days on which the agents used something.")
            .with_errors(&[Code::LedgerUnavailable]),
        ApiEndpoint::get("/a2a/status", status::a2a_status)
            .with_operation(
                "getA2aStatus",
                "Get A2A versions and bindings, with the health of each agent.",
            )
            .with_required_right(Right::Read)
            .with_response::<A2aStatus>(200, "Versions, bindings and agents."),
    ]
}

fn agent_endpoints() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/agents/{id}", agents::show)
            .with_operation("getAgent", "Get one agent with its limits, health and use of slots.")
            .with_required_right(Right::Read)
            .with_path_parameter::<AgentId>("id", ID_DESCRIPTION)
            .with_response::<AgentDetail>(200, "The agent.")
            .with_errors(&[Code::AgentUnknown]),
        ApiEndpoint::post("/api/v1/agents/{id}/wait", agents::wait)
            .with_operation(
                "waitForAgent",
                "Wait until an agent has no running and no queued execution.",
            )
            .with_required_right(Right::Read)
            .with_path_parameter::<AgentId>("id", ID_DESCRIPTION)
            .with_query::<WaitQuery>()
            .with_response::<AgentActivity>(200, "The agent is idle, or the time has elapsed.")
            .with_errors(&[Code::AgentUnknown]),
        ApiEndpoint::post("/api/v1/agents/{id}/enable", admin::enable_agent)
            .with_operation("enableAgent", "Enable an agent.")
            .with_required_right(Right::Admin)
            .with_path_parameter::<AgentId>("id", ID_DESCRIPTION)
            .with_response::<SwitchedAgent>(200, "The agent accepts requests.")
            .with_error_body::<SwitchRejection>(Code::ConfigurationRejected)
            .with_errors(&[Code::AgentUnknown, Code::Draining]),
        ApiEndpoint::post("/api/v1/agents/{id}/disable", admin::disable_agent)
            .with_operation("disableAgent", "Disable an agent. Accepted executions continue.")
            .with_required_right(Right::Admin)
            .with_path_parameter::<AgentId>("id", ID_DESCRIPTION)
            .with_response::<SwitchedAgent>(200, "The agent is listed and refuses requests.")
            .with_error_body::<SwitchRejection>(Code::ConfigurationRejected)
            .with_errors(&[Code::AgentUnknown, Code::Draining]),
        ApiEndpoint::get("/status/agents/{agent}", status::agent_status)
            .with_operation("getAgentStatus", "Get the status of one agent.")
            .with_required_right(Right::Read)
            .with_path_parameter::<AgentId>("agent", ID_DESCRIPTION)
            .with_response::<AgentStatus>(200, "Status of the agent.")
            .with_errors(&[Code::AgentUnknown]),
    ]
}

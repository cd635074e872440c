//! Operations on agents.

use algonius_actors::model::code::Code;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::Right;
use algonius_actors::model::status::AgentStatus;

use crate::serve::api::agents::{self, WaitQuery};
use crate::serve::api::operation::Operation;
use crate::serve::{admin, status};
use crate::wire::admin::{SwitchRejected, Switched};
use crate::wire::api::agent::{AgentDetail, Idleness};
use crate::wire::api::{A2aStatus, AgentList};

/// Says which agent.
const WHICH: &str = "The agent's id.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/agents", agents::list)
            .called("listAgents", "The agents that the caller may use.")
            .needs(Right::Read)
            .tells::<AgentList>(200, "The agents."),
        Operation::get("/agents", agents::list)
            .called(
                "listAgentsOfHost",
                "The agents that the caller may use, beside their A2A paths.",
            )
            .needs(Right::Read)
            .tells::<AgentList>(200, "The agents."),
        Operation::get("/api/v1/agents/{id}", agents::show)
            .called("showAgent", "One agent: its bounds, how it is, how its slots are used.")
            .needs(Right::Read)
            .names::<AgentId>("id", WHICH)
            .tells::<AgentDetail>(200, "The agent.")
            .refuses(&[Code::AgentUnknown]),
        Operation::post("/api/v1/agents/{id}/wait", agents::wait)
            .called("waitForAgent", "Waits until an agent has nothing that runs or waits.")
            .needs(Right::Read)
            .names::<AgentId>("id", WHICH)
            .asks::<WaitQuery>()
            .tells::<Idleness>(200, "Whether it is idle, or the time was over.")
            .refuses(&[Code::AgentUnknown]),
        Operation::post("/api/v1/agents/{id}/enable", admin::enable)
            .called("enableAgent", "Switches an agent on.")
            .needs(Right::Admin)
            .names::<AgentId>("id", WHICH)
            .tells::<Switched>(200, "It takes work.")
            .refuses_with::<SwitchRejected>(Code::ConfigurationRejected)
            .refuses(&[Code::AgentUnknown, Code::Draining]),
        Operation::post("/api/v1/agents/{id}/disable", admin::disable)
            .called("disableAgent", "Switches an agent off; what runs or waits goes on.")
            .needs(Right::Admin)
            .names::<AgentId>("id", WHICH)
            .tells::<Switched>(200, "It is listed, and takes no work.")
            .refuses_with::<SwitchRejected>(Code::ConfigurationRejected)
            .refuses(&[Code::AgentUnknown, Code::Draining]),
        Operation::get("/status/agents/{agent}", status::agent)
            .called("showAgentStatus", "How one agent is.")
            .needs(Right::Read)
            .names::<AgentId>("agent", WHICH)
            .tells::<AgentStatus>(200, "How it is.")
            .refuses(&[Code::AgentUnknown]),
        Operation::get("/a2a/status", status::a2a)
            .called("showA2aStatus", "What is spoken, by which agent, and how each is.")
            .needs(Right::Read)
            .tells::<A2aStatus>(200, "The ways in."),
    ]
}

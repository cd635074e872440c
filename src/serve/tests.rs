//! Helpers shared by the tests of several servers.

use std::time::Duration;

use algonius_actors::model::access::endpoint_config::EndpointConfig;
use algonius_actors::model::agent::{
    Access, AgentProfile, AgentSpec, Capacity, OverridePolicy, PhaseTimeouts, ProgramWorkerSpec,
    RetrySpec, SizeLimits, Skill, WorkLimits, WorkerSpec,
};
use algonius_actors::model::id::AgentId;

/// Returns an agent whose endpoint alone matters to the test.
pub(super) fn agent_spec(id: &str, endpoint: EndpointConfig) -> AgentSpec {
    let day = Duration::from_secs(86_400);
    AgentSpec {
        id: AgentId::new(id).expect("the id of an agent"),
        profile: AgentProfile {
            name: id.to_owned(),
            description: String::new(),
            version: "1".to_owned(),
            skills: Vec::<Skill>::new(),
        },
        enabled: true,
        access: Access::ReadOnly,
        worker: WorkerSpec::Program(ProgramWorkerSpec::default()),
        limits: WorkLimits {
            capacity: Capacity { max_running: None, max_waiting: 0, queue_timeout: day },
            timeouts: PhaseTimeouts { start: day, run: day, idle: None, grace: day, question: day },
            sizes: SizeLimits { max_input_bytes: 1000, max_output_bytes: 1000 },
        },
        retry: RetrySpec::default(),
        quota: Default::default(),
        budget: Default::default(),
        dedup_window: None,
        override_policy: OverridePolicy::default(),
        endpoint_config: endpoint.into(),
    }
}

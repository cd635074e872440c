//! What tests of several doors need.

use std::time::Duration;

use algonius_actors::model::agent::{
    Access, AgentSpec, Allowance, Capacity, Deadlines, RetrySpec, Sizes, Skill,
};
use algonius_actors::model::exposure::Exposure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::resources::Holding;
use algonius_actors::model::sandbox::Enforcement;

/// An agent of which nothing matters but what others can reach.
pub(super) fn spec(id: &str, exposure: Exposure) -> AgentSpec {
    let day = Duration::from_secs(86_400);
    AgentSpec {
        id: AgentId::new(id).expect("the id of an agent"),
        name: id.to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        skills: Vec::<Skill>::new(),
        enabled: true,
        access: Access::ReadOnly,
        enforcement: Enforcement::Unneeded,
        isolation: None,
        holding: Holding::default(),
        expects: None,
        capacity: Capacity { running: None, waiting: 0, patience: day },
        deadlines: Deadlines { start: day, run: day, idle: None, grace: day, answer: day },
        heartbeat: None,
        retry: RetrySpec::default(),
        quota: Default::default(),
        budget: Default::default(),
        sizes: Sizes { input: 1000, output: 1000 },
        dedup_window: None,
        allowance: Allowance::default(),
        exposure: exposure.into(),
    }
}

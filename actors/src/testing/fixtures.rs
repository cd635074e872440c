//! Fixtures of an environment: the agent, the caller, and the request.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::model::access::principal::{Caller, Right, Scope};
use crate::model::agent::budget::BudgetSpec;
use crate::model::agent::quota::QuotaSpec;
use crate::model::agent::{
    Access, AgentProfile, AgentSpec, Capacity, OverridePolicy, PhaseTimeouts, ProgramWorkerSpec,
    RetrySpec, SizeLimits, WorkLimits, WorkerSpec,
};
use crate::model::execution::request::{Input, Overrides, Request, RequestOrigin, Trigger};
use crate::model::id::{AgentId, ContextId, MessageId, PrincipalId};

/// Returns a read-only agent: one execution runs, ten may wait for half an hour.
#[must_use]
#[expect(clippy::missing_panics_doc, clippy::expect_used, reason = "a test fails by panicking")]
pub fn agent_spec(id: &str) -> AgentSpec {
    AgentSpec {
        id: AgentId::new(id).expect("the id of an agent"),
        profile: AgentProfile {
            name: id.to_owned(),
            description: "Plays its part.".to_owned(),
            version: "1".to_owned(),
            skills: Vec::new(),
        },
        enabled: true,
        access: Access::ReadOnly,
        worker: WorkerSpec::Program(ProgramWorkerSpec::default()),
        limits: WorkLimits {
            capacity: Capacity {
                max_running: NonZeroU32::new(1),
                max_waiting: 10,
                queue_timeout: Duration::from_secs(1800),
            },
            timeouts: PhaseTimeouts {
                start: Duration::from_secs(30),
                run: Duration::from_secs(300),
                idle: None,
                grace: Duration::from_secs(5),
                question: Duration::from_secs(600),
            },
            sizes: SizeLimits { max_input_bytes: 1000, max_output_bytes: 100_000 },
        },
        retry: RetrySpec::default(),
        quota: QuotaSpec::default(),
        budget: BudgetSpec::default(),
        dedup_window: None,
        override_policy: OverridePolicy::default(),
        endpoint_config: Arc::default(),
    }
}

/// Returns the caller of an environment, with all rights.
pub(super) fn caller() -> Caller {
    let rights = vec![Right::Read, Right::Run, Right::Admin];
    Caller {
        principal: PrincipalId(Uuid::from_u128(1)),
        name: "somebody".to_owned(),
        scope: Scope { rights, agents: None },
    }
}

/// Returns a text request to an agent under this message id.
pub(super) fn text_request(agent: &str, message_id: &str, text: &str) -> Request {
    Request {
        agent: agent_spec(agent).id,
        origin: RequestOrigin::for_direct_request(caller().principal, Trigger::Api),
        message_id: MessageId(message_id.to_owned()),
        context: ContextId("context".to_owned()),
        starts_context: true,
        idempotency_key: None,
        continued_execution: None,
        inherited_overrides: Overrides::default(),
        input: Input::from_text(text),
    }
}

//! Who plays in a world: the agent, whoever asks, and what is asked.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::model::agent::{Access, AgentSpec, Allowance, Capacity, Deadlines, RetrySpec, Sizes};
use crate::model::budget::BudgetSpec;
use crate::model::id::{AgentId, ContextId, MessageId, PrincipalId};
use crate::model::principal::{Caller, Right, Scope};
use crate::model::quota::QuotaSpec;
use crate::model::request::{Input, Overrides, Request, Trigger};
use crate::model::resources::Holding;
use crate::model::sandbox::Enforcement;

/// A read-only agent: one runs, ten may wait for half an hour.
#[must_use]
#[expect(clippy::missing_panics_doc, clippy::expect_used, reason = "a test fails by panicking")]
pub fn spec(id: &str) -> AgentSpec {
    AgentSpec {
        id: AgentId::new(id).expect("the id of an agent"),
        name: id.to_owned(),
        description: "Plays its part.".to_owned(),
        version: "1".to_owned(),
        skills: Vec::new(),
        enabled: true,
        access: Access::ReadOnly,
        enforcement: Enforcement::Unneeded,
        isolation: None,
        holding: Holding::default(),
        expects: None,
        capacity: Capacity {
            running: NonZeroU32::new(1),
            waiting: 10,
            patience: Duration::from_secs(1800),
        },
        deadlines: Deadlines {
            start: Duration::from_secs(30),
            run: Duration::from_secs(300),
            idle: None,
            grace: Duration::from_secs(5),
            answer: Duration::from_secs(600),
        },
        heartbeat: None,
        retry: RetrySpec::default(),
        quota: QuotaSpec::default(),
        budget: BudgetSpec::default(),
        sizes: Sizes { input: 1000, output: 100_000 },
        dedup_window: None,
        allowance: Allowance::default(),
        exposure: Arc::default(),
    }
}

/// Whoever asks in a world: somebody who may do everything.
pub(super) fn caller() -> Caller {
    let rights = vec![Right::Read, Right::Run, Right::Admin];
    Caller {
        principal: PrincipalId(Uuid::from_u128(1)),
        name: "somebody".to_owned(),
        scope: Scope { rights, agents: None },
    }
}

/// A text for an agent, under this id of the message.
pub(super) fn asked(agent: &str, message: &str, text: &str) -> Request {
    Request {
        agent: spec(agent).id,
        owner: caller().principal,
        message: MessageId(message.to_owned()),
        context: ContextId("context".to_owned()),
        opens: true,
        idempotency: None,
        continues: None,
        standing: Overrides::default(),
        trigger: Trigger::Api,
        trace: None,
        input: Input::text_of(text),
    }
}

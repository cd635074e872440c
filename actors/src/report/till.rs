//! Where what an agent uses up is added to its day.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::purses::Purses;
use crate::decide::budget::today;
use crate::model::agent::AgentSpec;
use crate::model::budget::Charge;
use crate::model::event::Fact;
use crate::model::id::AgentId;

/// The till of one agent.
#[derive(Clone)]
pub struct Till {
    agent: AgentId,
    zone: Tz,
    purses: Purses,
}

impl Till {
    /// That of an agent.
    #[must_use]
    pub fn of(spec: &AgentSpec, purses: &Purses) -> Self {
        Self { agent: spec.id.clone(), zone: spec.budget.zone, purses: purses.clone() }
    }

    /// The fact that so much is used up now; `None` when it is nothing.
    #[must_use]
    pub fn charged(&self, now: DateTime<Utc>, charge: Charge) -> Option<Fact> {
        let day = today(self.zone, now);
        (!charge.is_nothing()).then_some(Fact::Charged { day, charge })
    }

    /// Adds what is in the ledger by now, or will be.
    pub fn take(&self, charged: Option<&Fact>) {
        if let Some(Fact::Charged { day, charge }) = charged {
            self.purses.add(&self.agent, *day, *charge);
        }
    }
}

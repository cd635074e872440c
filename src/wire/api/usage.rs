//! Shapes of `/api/v1/usage`: resources that agents have used, by day.

use algonius_actors::model::agent::budget::Charge;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Amounts that an agent reports; 0 if the agent does not report an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "Amounts")]
pub struct UsageAmounts {
    /// Number of turns of the agent's conversation with its model.
    pub turns: u64,
    /// Number of tokens sent to models.
    pub input_tokens: u64,
    /// Number of tokens read from a cache.
    pub cached_input_tokens: u64,
    /// Number of tokens returned by models.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_micros: u64,
}

impl UsageAmounts {
    /// True if the agent has reported nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the sum of both amounts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            // Agents report the numbers themselves, so a sum may exceed every bound.
            turns: self.turns.saturating_add(other.turns),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }
}

impl From<Charge> for UsageAmounts {
    fn from(charge: Charge) -> Self {
        let Charge { turns, input_tokens, output_tokens, cached_input_tokens, cost_micros, .. } =
            charge;
        Self { turns, input_tokens, cached_input_tokens, output_tokens, cost_micros }
    }
}

/// Resources that one agent used on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageEntry {
    /// Day in the time zone of the agent's budget; in UTC if the agent has no budget.
    pub day: NaiveDate,
    /// Id of the agent, which may no longer be configured.
    pub agent: String,
    /// Amounts of the day.
    #[serde(flatten)]
    pub amounts: UsageAmounts,
}

/// Resources that agents used in a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// First day of the period.
    pub since: NaiveDate,
    /// Last day of the period.
    pub until: NaiveDate,
    /// Agents and days with an amount, latest day first.
    pub entries: Vec<UsageEntry>,
    /// Sum of all entries.
    pub total: UsageAmounts,
}

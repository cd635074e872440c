//! Budgets of agents: turns, tokens, cost and run time.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Amounts that an agent has used. Stored as JSON, so fields are only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Charge {
    /// Turns of the agent's own conversation with its model.
    pub turns: u64,
    /// Input tokens of models. The agent decides whether the count includes tokens from a cache.
    pub input_tokens: u64,
    /// Output tokens of models.
    pub output_tokens: u64,
    /// Input tokens that came from a cache.
    pub cached_input_tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_micros: u64,
    /// Run time in milliseconds.
    pub wall_ms: u64,
}

impl Charge {
    /// Returns the amounts that an agent reports under the published names; other names do not count towards a budget.
    #[must_use]
    pub fn from_counters(numbers: &BTreeMap<String, Number>) -> Self {
        let count = |name: &str| numbers.get(name).and_then(Number::as_u64).unwrap_or_default();
        let cost = numbers.get("cost_usd").and_then(Number::as_f64).unwrap_or_default();
        Self {
            turns: count("turns"),
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            cached_input_tokens: count("cached_input_tokens"),
            cost_micros: to_micros(cost),
            wall_ms: 0,
        }
    }

    /// Returns the sum of both amounts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            wall_ms: self.wall_ms.saturating_add(other.wall_ms),
        }
    }

    /// Returns these amounts minus `other`; no amount falls below 0.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(other.turns),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_sub(other.cached_input_tokens),
            cost_micros: self.cost_micros.saturating_sub(other.cost_micros),
            wall_ms: self.wall_ms.saturating_sub(other.wall_ms),
        }
    }

    /// Returns the number of input and output tokens together.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns true if every amount is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Converts an amount to millionths of its unit. A negative value or NaN becomes 0.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is no less than nothing, and a cast of what is too large stops at the largest"
)]
pub fn to_micros(amount: f64) -> u64 {
    (amount.max(0.0) * 1e6).round() as u64
}

/// Measure that a budget can limit.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BudgetMeasure {
    /// Turns of the agent's conversation with its model.
    Turns,
    /// Input tokens.
    InputTokens,
    /// Output tokens.
    OutputTokens,
    /// Input and output tokens together.
    Tokens,
    /// Cost in US dollars.
    CostUsd,
    /// Run time.
    WallTime,
}

impl BudgetMeasure {
    /// Every measure.
    pub const ALL: &[Self] = &[
        Self::Turns,
        Self::InputTokens,
        Self::OutputTokens,
        Self::Tokens,
        Self::CostUsd,
        Self::WallTime,
    ];

    /// Returns the published name, which is the key of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Tokens => "tokens",
            Self::CostUsd => "cost_usd",
            Self::WallTime => "wall_time",
        }
    }

    /// Returns the amount of this measure in a charge: a number, millionths of a dollar, or milliseconds.
    #[must_use]
    pub const fn amount_in(self, charge: Charge) -> u64 {
        match self {
            Self::Turns => charge.turns,
            Self::InputTokens => charge.input_tokens,
            Self::OutputTokens => charge.output_tokens,
            Self::Tokens => charge.tokens(),
            Self::CostUsd => charge.cost_micros,
            Self::WallTime => charge.wall_ms,
        }
    }

    /// Formats an amount with its unit.
    #[must_use]
    pub fn format_amount(self, amount: u64) -> String {
        match self {
            Self::Turns => format!("{amount} turns"),
            Self::InputTokens => format!("{amount} input tokens"),
            Self::OutputTokens => format!("{amount} output tokens"),
            Self::Tokens => format!("{amount} tokens"),
            Self::CostUsd => format!("{}.{:06} US dollars", amount / 1_000_000, amount % 1_000_000),
            Self::WallTime => format!("{}.{:03} s", amount / 1000, amount % 1000),
        }
    }
}

/// Time zone that determines when a day begins.
pub type Zone = Tz;

/// Returns the time zone of a name such as `Europe/Berlin`, or `None` if the name is unknown.
#[must_use]
pub fn parse_zone(name: &str) -> Option<Zone> {
    name.parse().ok()
}

/// Limits by measure; a measure without an entry is unlimited.
pub type BudgetLimits = BTreeMap<BudgetMeasure, u64>;

/// Budget of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BudgetSpec {
    /// Limits for one execution, with all its attempts and turns.
    pub execution_limits: BudgetLimits,
    /// Limits for all executions of one day.
    pub daily_limits: BudgetLimits,
    /// Time zone that determines when the day begins.
    pub zone: Zone,
}

/// Amounts that an agent has used on one day, as shown in the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// Day in the time zone of the agent.
    pub day: NaiveDate,
    /// Start of the next day, when the budget is renewed.
    pub renews: DateTime<Utc>,
    /// Amounts used on the day.
    pub spent: Charge,
    /// Limits of the day, each with the remaining amount.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bounds: Vec<BoundStatus>,
}

/// Limit of one measure for a day. Amounts are numbers, millionths of a dollar, or milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundStatus {
    /// Measure that is limited.
    pub measure: BudgetMeasure,
    /// Limit of the day.
    pub limit: u64,
    /// Amount that remains until the limit.
    pub remaining: u64,
}

//! What an agent may use up, of what it counts itself and of time.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// What was used up. Stored as JSON, so fields are only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Charge {
    /// Turns of the agent's own conversation with its model.
    pub turns: u64,
    /// Tokens that models were given, those from a cache among them or beside them as the agent counts.
    pub input_tokens: u64,
    /// Tokens that they answered.
    pub output_tokens: u64,
    /// Tokens that came from a cache.
    pub cached_input_tokens: u64,
    /// Millionths of a US dollar.
    pub cost_micros: u64,
    /// Milliseconds in which work ran.
    pub wall_ms: u64,
}

impl Charge {
    /// What an agent counts under the published names; other names are none of the budget's.
    #[must_use]
    pub fn counted(numbers: &BTreeMap<String, Number>) -> Self {
        let whole = |name: &str| numbers.get(name).and_then(Number::as_u64).unwrap_or_default();
        let cost = numbers.get("cost_usd").and_then(Number::as_f64).unwrap_or_default();
        Self {
            turns: whole("turns"),
            input_tokens: whole("input_tokens"),
            output_tokens: whole("output_tokens"),
            cached_input_tokens: whole("cached_input_tokens"),
            cost_micros: micros(cost),
            wall_ms: 0,
        }
    }

    /// These and others.
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

    /// What of these was not in others.
    #[must_use]
    pub const fn beyond(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(other.turns),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_sub(other.cached_input_tokens),
            cost_micros: self.cost_micros.saturating_sub(other.cost_micros),
            wall_ms: self.wall_ms.saturating_sub(other.wall_ms),
        }
    }

    /// Tokens of both kinds.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Dollars in millionths. What is negative or no number is nothing.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is no less than nothing, and a cast of what is too large stops at the largest"
)]
pub fn micros(dollars: f64) -> u64 {
    (dollars.max(0.0) * 1e6).round() as u64
}

/// What of a budget.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Turns.
    Turns,
    /// Tokens that models were given.
    InputTokens,
    /// Tokens that they answered.
    OutputTokens,
    /// Tokens of both kinds.
    Tokens,
    /// US dollars.
    CostUsd,
    /// Time in which work ran.
    WallTime,
}

impl Measure {
    /// Every measure.
    pub const ALL: &[Self] = &[
        Self::Turns,
        Self::InputTokens,
        Self::OutputTokens,
        Self::Tokens,
        Self::CostUsd,
        Self::WallTime,
    ];

    /// The published word, which is the key of the configuration.
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

    /// How much of it a charge is: a number, millionths of a dollar, or milliseconds.
    #[must_use]
    pub const fn of(self, charge: Charge) -> u64 {
        match self {
            Self::Turns => charge.turns,
            Self::InputTokens => charge.input_tokens,
            Self::OutputTokens => charge.output_tokens,
            Self::Tokens => charge.tokens(),
            Self::CostUsd => charge.cost_micros,
            Self::WallTime => charge.wall_ms,
        }
    }

    /// An amount in words.
    #[must_use]
    pub fn told(self, amount: u64) -> String {
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

/// Where a day begins.
pub type Zone = Tz;

/// The zone of a name such as `Europe/Berlin`.
#[must_use]
pub fn zone(name: &str) -> Option<Zone> {
    name.parse().ok()
}

/// Bounds by what they bound; what is not there has none.
pub type Bounds = BTreeMap<Measure, u64>;

/// What an agent may use up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BudgetSpec {
    /// In one execution, with all its attempts and turns.
    pub run: Bounds,
    /// In all executions of one day.
    pub day: Bounds,
    /// Where the day begins.
    pub zone: Zone,
}

/// What an agent has used up in a day, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// The day, in the zone of the agent.
    pub day: NaiveDate,
    /// When the next one begins.
    pub renews: DateTime<Utc>,
    /// What was used up.
    pub spent: Charge,
    /// The bounds of the day, and what is left of each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bounds: Vec<BoundStatus>,
}

/// One bound of a day. Amounts are numbers, millionths of a dollar, or milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundStatus {
    /// Of what.
    pub of: Measure,
    /// The bound.
    pub limit: u64,
    /// What is left of it.
    pub left: u64,
}

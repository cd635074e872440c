//! Row of an interaction in the in-memory ledger.

use crate::model::id::ExecutionId;
use crate::model::interaction::{Interaction, InteractionEnd};

/// Row of one interaction.
pub(super) struct InteractionRow {
    /// Interaction; its answer is redacted.
    pub(super) interaction: Interaction,
    /// Raw end until the delivery of the answer.
    pub(super) raw_end: Option<InteractionEnd>,
    /// Runs of teams above the execution, the outermost first.
    pub(super) team_runs: Vec<ExecutionId>,
}

impl InteractionRow {
    /// Returns the interaction with its raw end.
    pub(super) fn interaction_with_raw_end(&self) -> Interaction {
        let raw_or_redacted_end = self.raw_end.clone().or_else(|| self.interaction.end.clone());
        Interaction { end: raw_or_redacted_end, ..self.interaction.clone() }
    }
}

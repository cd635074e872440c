//! Row of an interaction in the in-memory ledger.

use crate::model::interaction::{Interaction, InteractionEnd};

/// Row of one interaction.
pub(super) struct InteractionRow {
    /// Interaction; its answer is redacted.
    pub(super) interaction: Interaction,
    /// Raw end until the delivery of the answer.
    pub(super) raw: Option<InteractionEnd>,
}

impl InteractionRow {
    /// Returns the interaction with its raw end.
    pub(super) fn raw(&self) -> Interaction {
        let closed = self.raw.clone().or_else(|| self.interaction.closed.clone());
        Interaction { closed, ..self.interaction.clone() }
    }
}

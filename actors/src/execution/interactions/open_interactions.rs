//! Questions of the present attempt without a delivered answer.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::decide::execution::paused_deadlines::{
    DeadlineDecision, InteractionPauses, PausableDeadline,
};
use crate::model::interaction::{InteractionId, WireId};

/// Questions of the present attempt without a delivered answer.
pub(in crate::execution) struct OpenInteractions {
    /// Ids by the request of the agent; the agent knows no other id.
    pub(super) by_wire_id: BTreeMap<WireId, InteractionId>,
    /// Requests whose answers are sent and not yet written to the agent; without an id for a request without an
    /// interaction.
    pub(super) undelivered_answers: BTreeMap<WireId, Option<InteractionId>>,
    /// Number of open questions of the members of a team, which their executions hold.
    member_questions: u32,
    interaction_pauses: InteractionPauses,
    /// Start of the attempt, from which the pauses are measured.
    started_at: Instant,
}

impl OpenInteractions {
    /// Creates the part without a question.
    pub(in crate::execution) fn new() -> Self {
        Self {
            by_wire_id: BTreeMap::new(),
            undelivered_answers: BTreeMap::new(),
            member_questions: 0,
            interaction_pauses: InteractionPauses::default(),
            started_at: Instant::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Adds a question.
    pub(super) fn add(&mut self, wire_id: WireId, id: InteractionId) {
        if self.by_wire_id.insert(wire_id, id).is_none() {
            self.interaction_pauses.record_open(self.elapsed());
        }
    }

    /// Removes a question. Returns its request and the deadlines that passed meanwhile; `None` if it is unknown.
    pub(super) fn remove(
        &mut self,
        id: InteractionId,
    ) -> Option<(WireId, Vec<(PausableDeadline, Duration)>)> {
        let wire_id = self.by_wire_id.iter().find(|(_, known)| **known == id)?.0.clone();
        self.by_wire_id.remove(&wire_id);
        let held_deadlines = self.interaction_pauses.close_and_take_held_deadlines(self.elapsed());
        Some((wire_id, held_deadlines))
    }

    /// Returns true while a question is open, and deadlines pause.
    pub(super) const fn has_paused_deadlines(&self) -> bool {
        self.interaction_pauses.has_open_interaction()
    }

    /// Decides about a deadline whose timer fired now.
    pub(super) fn decide_deadline(&mut self, deadline: PausableDeadline) -> DeadlineDecision {
        self.interaction_pauses.decide_deadline(deadline, self.elapsed())
    }

    /// Sets the number of open questions of members. Returns the deadlines that passed meanwhile, if the last one
    /// closed.
    pub(super) fn set_member_questions(&mut self, count: u32) -> Vec<(PausableDeadline, Duration)> {
        let had_questions = std::mem::replace(&mut self.member_questions, count) > 0;
        match (had_questions, count > 0) {
            (false, true) => self.interaction_pauses.record_open(self.elapsed()),
            (true, false) => {
                return self.interaction_pauses.close_and_take_held_deadlines(self.elapsed());
            }
            (true, true) | (false, false) => {}
        }
        Vec::new()
    }

    /// Returns the ids of the open questions.
    pub(super) fn ids(&self) -> Vec<InteractionId> {
        self.by_wire_id.values().copied().collect()
    }

    /// Returns true if the question is open.
    pub(super) fn contains(&self, id: InteractionId) -> bool {
        self.by_wire_id.values().any(|known| *known == id)
    }

    /// Returns the number of open questions of the agent.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.by_wire_id.len()).unwrap_or(u32::MAX)
    }
}

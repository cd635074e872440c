//! Deadlines of an attempt while a person is asked: the time until the answer does not count.

use std::collections::BTreeMap;
use std::time::Duration;

/// Deadline that pauses while an interaction is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PausableDeadline {
    /// Warning before the end of the run time.
    RunWarning,
    /// End of the run time.
    Run,
}

/// Decision about a deadline whose timer fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineDecision {
    /// The deadline has passed.
    Passed,
    /// The deadline passes after this time, unless another interaction opens.
    Postponed(Duration),
    /// An interaction is open. The deadline is decided again when the last one closes.
    Held,
}

/// Time during which at least one interaction of an attempt was open. Times are offsets from the start of the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InteractionPauses {
    open_interaction_count: u32,
    /// Time at which the first of the open interactions opened.
    open_since: Duration,
    /// Sum of the ended pauses.
    total_pause: Duration,
    /// Pause that the timer of each deadline has already waited for.
    applied_pauses: BTreeMap<PausableDeadline, Duration>,
    /// Deadlines whose timers fired while an interaction was open, with the time of that.
    held_deadlines: Vec<(PausableDeadline, Duration)>,
}

impl InteractionPauses {
    /// Counts an interaction that opened at this time.
    pub fn record_open(&mut self, now: Duration) {
        if self.open_interaction_count == 0 {
            self.open_since = now;
        }
        self.open_interaction_count += 1;
    }

    /// Counts an interaction that closed at this time. Returns the deadlines whose timers fired meanwhile, each with
    /// the time after which it passes.
    pub fn close_and_take_held_deadlines(
        &mut self,
        now: Duration,
    ) -> Vec<(PausableDeadline, Duration)> {
        self.open_interaction_count = self.open_interaction_count.saturating_sub(1);
        if self.open_interaction_count > 0 {
            return Vec::new();
        }
        self.total_pause += now.saturating_sub(self.open_since);
        let held = std::mem::take(&mut self.held_deadlines);
        let postponed = held.into_iter().map(|(deadline, fired_at)| {
            // The timer should have waited for the pause. It waited for the part after it fired.
            let delay = self.take_unapplied_pause(deadline);
            (deadline, delay.saturating_sub(now.saturating_sub(fired_at)))
        });
        postponed.collect()
    }

    /// Returns true while an interaction is open.
    #[must_use]
    pub const fn has_open_interaction(&self) -> bool {
        self.open_interaction_count > 0
    }

    /// Decides about a deadline whose timer fired at this time.
    pub fn decide_deadline(
        &mut self,
        deadline: PausableDeadline,
        now: Duration,
    ) -> DeadlineDecision {
        if self.has_open_interaction() {
            self.held_deadlines.push((deadline, now));
            return DeadlineDecision::Held;
        }
        match self.take_unapplied_pause(deadline) {
            Duration::ZERO => DeadlineDecision::Passed,
            unapplied_pause => DeadlineDecision::Postponed(unapplied_pause),
        }
    }

    /// Returns the part of the pauses for which the timer of a deadline has not waited, and counts it as waited for.
    fn take_unapplied_pause(&mut self, deadline: PausableDeadline) -> Duration {
        let waited = self.applied_pauses.insert(deadline, self.total_pause).unwrap_or_default();
        self.total_pause.saturating_sub(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: PausableDeadline = PausableDeadline::Run;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_deadline_without_interactions_passes_in_time() {
        assert_eq!(
            InteractionPauses::default().decide_deadline(RUN, seconds(9)),
            DeadlineDecision::Passed
        );
    }

    #[test]
    fn a_closed_pause_postpones_each_deadline_once() {
        let mut pause = InteractionPauses::default();
        pause.record_open(seconds(10));
        assert_eq!(pause.close_and_take_held_deadlines(seconds(40)), []);
        let mut decide = |deadline| pause.decide_deadline(deadline, seconds(60));
        assert_eq!(decide(RUN), DeadlineDecision::Postponed(seconds(30)));
        assert_eq!(decide(PausableDeadline::RunWarning), DeadlineDecision::Postponed(seconds(30)));
        assert_eq!(decide(RUN), DeadlineDecision::Passed);
    }

    #[test]
    fn a_deadline_during_a_pause_waits_for_its_rest() {
        let mut pause = InteractionPauses::default();
        pause.record_open(seconds(10));
        pause.record_open(seconds(20));
        assert_eq!(pause.decide_deadline(RUN, seconds(30)), DeadlineDecision::Held);
        assert_eq!(
            pause.close_and_take_held_deadlines(seconds(50)),
            [],
            "another interaction is open"
        );
        // Of its 30 seconds, 10 had passed before the pause.
        assert_eq!(pause.close_and_take_held_deadlines(seconds(70)), [(RUN, seconds(20))]);
        assert_eq!(pause.decide_deadline(RUN, seconds(90)), DeadlineDecision::Passed);
    }
}

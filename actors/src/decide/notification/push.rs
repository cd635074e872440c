//! Push notifications: decides what a target receives, when a delivery is retried, and when it is given up.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::execution::State;
use crate::model::execution::event::{Event, EventKind, MessageRole};
use crate::model::push::{DeliveryState, PendingTarget, PushStage};

/// Pause after the first failure; each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between two tries.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Maximum number of tries for one notification.
pub const TRIES: u32 = 20;

/// Next step for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStep {
    /// Send the event with this number.
    Tell {
        /// Number of the event.
        event: u64,
        /// True if this is the outcome, after which nothing is sent.
        last: bool,
    },
    /// Record that there was nothing to send.
    Note(DeliveryState),
    /// Wait for further events.
    Rest,
}

/// Result of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The receiver acknowledged the event.
    Received {
        /// True if the event was the outcome.
        last: bool,
    },
    /// The delivery failed, or its result is unknown.
    Failed,
}

/// Decides the next step for a target from its undelivered events.
#[must_use]
pub fn next(pending: &PendingTarget, events: &[Event], now: DateTime<Utc>) -> DeliveryStep {
    let standing = pending.state;
    let seen = |event: &&Event| event.number > standing.delivered;
    let told = events.iter().filter(seen).find(|event| is_told(&event.data));
    if let Some(event) = told {
        return DeliveryStep::Tell { event: event.number, last: is_end(&event.data) };
    }
    let delivered = events.last().map_or(standing.delivered, |event| event.number);
    if pending.ended {
        let stage = PushStage::Finished;
        return DeliveryStep::Note(DeliveryState { delivered, stage, due: now, ..standing });
    }
    if delivered > standing.delivered {
        return DeliveryStep::Note(DeliveryState { delivered, due: now, ..standing });
    }
    DeliveryStep::Rest
}

/// Returns the delivery state after an attempt to deliver `event`.
#[must_use]
pub fn after(
    standing: DeliveryState,
    event: u64,
    told: DeliveryResult,
    now: DateTime<Utc>,
    max_age: Duration,
) -> DeliveryState {
    match told {
        DeliveryResult::Received { last } => DeliveryState {
            delivered: event,
            failures: 0,
            failing_since: None,
            due: now,
            stage: if last { PushStage::Finished } else { PushStage::Open },
        },
        DeliveryResult::Failed => {
            let failures = standing.failures.saturating_add(1);
            let since = standing.failing_since.unwrap_or(now);
            let is_old = (now - since).to_std().is_ok_and(|age| age >= max_age);
            let given_up = failures >= TRIES || is_old;
            DeliveryState {
                delivered: standing.delivered,
                failures,
                failing_since: Some(since),
                due: now + TimeDelta::from_std(pause(failures)).unwrap_or_default(),
                stage: if given_up { PushStage::GivenUp } else { PushStage::Open },
            }
        }
    }
}

/// Returns the pause after this number of failures.
fn pause(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
}

/// Returns true if callers see a difference. Of the transitions to the outcome callers see only the last one, into the
/// clean-up, because a failed attempt that is retried is no outcome.
fn is_told(fact: &EventKind) -> bool {
    match fact {
        EventKind::StateChanged(moved) => match (shown(moved.from), shown(moved.to)) {
            (Some(from), Some(to)) => from != to,
            (None, _) | (_, None) => is_end(fact),
        },
        EventKind::Artifact { .. }
        | EventKind::Message { speaker: MessageRole::AgentProgress, .. } => true,
        _ => false,
    }
}

/// Returns true if the event is the outcome. The clean-up follows every outcome in the same commit.
fn is_end(fact: &EventKind) -> bool {
    matches!(fact, EventKind::StateChanged(moved) if moved.to == State::Cleanup)
}

/// Public form of a state that belongs neither to an outcome nor to a retry.
#[derive(PartialEq, Eq)]
enum ShownState {
    Submitted,
    Working,
    Asking,
}

fn shown(state: State) -> Option<ShownState> {
    match state {
        State::Idle => Some(ShownState::Submitted),
        State::Starting | State::Running => Some(ShownState::Working),
        State::Waiting => Some(ShownState::Asking),
        State::Completed | State::Failed | State::Timeout | State::Cancelled | State::Cleanup => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::execution::{AttemptId, MOVES, StateChange};
    use crate::model::id::{ExecutionId, PrincipalId};

    fn second(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn delivery_state(delivered: u64) -> DeliveryState {
        let stage = PushStage::Open;
        DeliveryState { delivered, failures: 0, failing_since: None, due: second(0), stage }
    }

    fn pending(delivered: u64, ended: bool) -> PendingTarget {
        PendingTarget {
            execution: ExecutionId(Uuid::nil()),
            id: "it".to_owned(),
            registration: Uuid::nil(),
            owner: PrincipalId(Uuid::nil()),
            state: delivery_state(delivered),
            ended,
        }
    }

    fn moved((from, to): (State, State)) -> EventKind {
        let reason = "because".to_owned();
        EventKind::StateChanged(StateChange::new((from, to), AttemptId::FIRST, second(0), reason))
    }

    fn events(facts: &[EventKind]) -> Vec<Event> {
        let numbered = (1..).zip(facts);
        numbered.map(|(number, fact)| Event { number, at: second(0), data: fact.clone() }).collect()
    }

    #[test]
    fn pushes_cover_starts_questions_and_ends() {
        use State::{Cleanup, Idle, Running, Starting, Waiting};
        let told: Vec<_> = MOVES.iter().filter(|made| is_told(&moved(**made))).copied().collect();
        let mut wanted = vec![(Idle, Starting), (Running, Waiting), (Waiting, Starting)];
        wanted.extend(MOVES.iter().filter(|(_, to)| *to == Cleanup));
        assert_eq!(told.len(), wanted.len(), "{told:?}");
        assert!(wanted.iter().all(|made| told.contains(made)), "{told:?}");
    }

    #[test]
    fn events_are_pushed_one_by_one_without_retries() {
        use State::{Cleanup, Completed, Failed, Idle, Running, Starting};
        let said = |speaker| {
            let (message, pieces) = ("m".to_owned(), Vec::new());
            EventKind::Message { speaker, message, pieces }
        };
        let id = "a".to_owned();
        let (name, description, pieces, append, last) = (None, None, Vec::new(), false, true);
        let artifact = EventKind::Artifact { id, name, description, pieces, append, last };
        let all = events(&[
            moved((Idle, Starting)),
            moved((Starting, Running)),
            EventKind::ProcessStarted { pid: 1 },
            moved((Running, Failed)),
            moved((Failed, Starting)),
            moved((Starting, Running)),
            artifact,
            said(MessageRole::AgentProgress),
            said(MessageRole::AgentOutcome),
            moved((Running, Completed)),
            moved((Completed, Cleanup)),
            moved((Cleanup, Idle)),
        ]);
        let tell = |event, last| DeliveryStep::Tell { event, last };
        let mut told = Vec::new();
        let mut known = 0;
        while let DeliveryStep::Tell { event, last } = next(&pending(known, true), &all, second(0))
        {
            told.push(tell(event, last));
            known = event;
        }
        assert_eq!(told, [tell(1, false), tell(7, false), tell(8, false), tell(11, true)]);
        assert_eq!(
            next(&pending(1, false), &all[..4], second(5)),
            DeliveryStep::Note(DeliveryState { due: second(5), ..delivery_state(4) }),
            "nothing to tell, and known"
        );
        assert_eq!(next(&pending(4, false), &[], second(5)), DeliveryStep::Rest);
        let finished =
            DeliveryState { due: second(5), stage: PushStage::Finished, ..delivery_state(12) };
        assert_eq!(next(&pending(11, true), &all[11..], second(5)), DeliveryStep::Note(finished));
    }

    #[test]
    fn push_retries_back_off_exponentially_up_to_20_times() {
        let (mut standing, mut now, mut pauses) = (delivery_state(3), second(0), Vec::new());
        let day = Duration::from_secs(86_400);
        while standing.stage == PushStage::Open {
            standing = after(standing, 4, DeliveryResult::Failed, now, day);
            pauses.push((standing.due - now).num_seconds());
            now = standing.due;
        }
        assert_eq!(pauses[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((pauses.len(), standing.stage, standing.delivered), (20, PushStage::GivenUp, 3));
    }

    #[test]
    fn an_old_push_is_given_up_and_a_success_resets_the_backoff() {
        let hour = Duration::from_secs(3600);
        let failed = after(delivery_state(3), 4, DeliveryResult::Failed, second(0), hour);
        let later = after(failed, 4, DeliveryResult::Failed, second(3599), hour);
        assert_eq!((later.stage, later.failures), (PushStage::Open, 2));
        assert_eq!(
            after(later, 4, DeliveryResult::Failed, second(3600), hour).stage,
            PushStage::GivenUp
        );
        let received = after(later, 4, DeliveryResult::Received { last: false }, second(9), hour);
        assert_eq!(received, DeliveryState { due: second(9), ..delivery_state(4) });
        let last = after(later, 4, DeliveryResult::Received { last: true }, second(9), hour);
        assert_eq!(last.stage, PushStage::Finished);
    }
}

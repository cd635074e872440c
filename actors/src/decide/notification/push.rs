//! Push notifications: decides what a target receives, when a delivery is retried, and when it is given up.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::execution::ExecutionState;
use crate::model::execution::event::{Event, EventKind, MessageRole};
use crate::model::push::{DeliveryProgress, DeliveryStage, PendingTarget};

/// Pause after the first failure; each further failure doubles it.
const FIRST_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between two tries.
pub const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Maximum number of tries for one notification.
pub const MAX_DELIVERY_ATTEMPTS: u32 = 20;

/// Next step for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStep {
    /// Send the event with this number.
    Send {
        /// Number of the event.
        event: u64,
        /// True if this is the outcome, after which nothing is sent.
        is_last: bool,
    },
    /// Record that there was nothing to send.
    RecordProgress(DeliveryProgress),
    /// Wait for further events.
    Wait,
}

/// Result of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The receiver acknowledged the event.
    Received {
        /// True if the event was the outcome.
        is_last: bool,
    },
    /// The delivery failed, or its result is unknown.
    Failed,
}

/// Decides the next step for a target from its undelivered events.
#[must_use]
pub fn next_delivery_step(
    target: &PendingTarget,
    events: &[Event],
    now: DateTime<Utc>,
) -> DeliveryStep {
    let progress = target.progress;
    let is_undelivered = |event: &&Event| event.number > progress.last_delivered_event;
    let next = events.iter().filter(is_undelivered).find(|event| should_notify(&event.data));
    if let Some(event) = next {
        return DeliveryStep::Send { event: event.number, is_last: is_outcome(&event.data) };
    }
    let last_delivered_event =
        events.last().map_or(progress.last_delivered_event, |event| event.number);
    if target.has_execution_ended {
        let stage = DeliveryStage::Finished;
        return DeliveryStep::RecordProgress(DeliveryProgress {
            last_delivered_event,
            stage,
            due_at: now,
            ..progress
        });
    }
    if last_delivered_event > progress.last_delivered_event {
        return DeliveryStep::RecordProgress(DeliveryProgress {
            last_delivered_event,
            due_at: now,
            ..progress
        });
    }
    DeliveryStep::Wait
}

/// Returns the delivery state after an attempt to deliver `event`.
#[must_use]
pub fn next_progress(
    progress: DeliveryProgress,
    event: u64,
    result: DeliveryResult,
    now: DateTime<Utc>,
    max_retry_duration: Duration,
) -> DeliveryProgress {
    match result {
        DeliveryResult::Received { is_last } => DeliveryProgress {
            last_delivered_event: event,
            next_event_failures: 0,
            failing_since: None,
            due_at: now,
            stage: if is_last { DeliveryStage::Finished } else { DeliveryStage::Open },
        },
        DeliveryResult::Failed => {
            let failures = progress.next_event_failures.saturating_add(1);
            let failing_since = progress.failing_since.unwrap_or(now);
            let is_old = (now - failing_since).to_std().is_ok_and(|age| age >= max_retry_duration);
            let is_abandoned = failures >= MAX_DELIVERY_ATTEMPTS || is_old;
            DeliveryProgress {
                last_delivered_event: progress.last_delivered_event,
                next_event_failures: failures,
                failing_since: Some(failing_since),
                due_at: now + TimeDelta::from_std(retry_pause(failures)).unwrap_or_default(),
                stage: if is_abandoned { DeliveryStage::Abandoned } else { DeliveryStage::Open },
            }
        }
    }
}

/// Returns the pause after this number of failures.
fn retry_pause(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_RETRY_PAUSE.saturating_mul(factor).min(MAX_RETRY_PAUSE)
}

/// Returns true if callers see a difference. Of the transitions to the outcome callers see only the last one, into the
/// clean-up, because a failed attempt that is retried is no outcome.
fn should_notify(event: &EventKind) -> bool {
    match event {
        EventKind::StateChanged(change) => {
            match (notified_state(change.from), notified_state(change.to)) {
                (Some(from), Some(to)) => from != to,
                (None, _) | (_, None) => is_outcome(event),
            }
        }
        EventKind::Artifact { .. }
        | EventKind::Message { speaker: MessageRole::AgentProgress, .. }
        | EventKind::InteractionOpened { .. } => true,
        _ => false,
    }
}

/// Returns true if the event is the outcome. The clean-up follows every outcome in the same commit.
fn is_outcome(event: &EventKind) -> bool {
    matches!(event, EventKind::StateChanged(change) if change.to == ExecutionState::Cleanup)
}

/// Public form of a state that belongs neither to an outcome nor to a retry.
#[derive(PartialEq, Eq)]
enum NotifiedState {
    Submitted,
    Working,
    InputRequired,
}

fn notified_state(state: ExecutionState) -> Option<NotifiedState> {
    match state {
        ExecutionState::Idle => Some(NotifiedState::Submitted),
        ExecutionState::Starting | ExecutionState::Running => Some(NotifiedState::Working),
        ExecutionState::Waiting => Some(NotifiedState::InputRequired),
        ExecutionState::Completed
        | ExecutionState::Failed
        | ExecutionState::Timeout
        | ExecutionState::Cancelled
        | ExecutionState::Cleanup => None,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::execution::{AttemptId, StateChange, TRANSITIONS};
    use crate::model::id::{ExecutionId, PrincipalId};

    fn at_second(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn open_delivery_progress(last_delivered_event: u64) -> DeliveryProgress {
        let stage = DeliveryStage::Open;
        DeliveryProgress {
            last_delivered_event,
            next_event_failures: 0,
            failing_since: None,
            due_at: at_second(0),
            stage,
        }
    }

    fn pending_target(last_delivered_event: u64, ended: bool) -> PendingTarget {
        PendingTarget {
            execution: ExecutionId(Uuid::nil()),
            id: "it".to_owned(),
            registration_id: Uuid::nil(),
            owner: PrincipalId(Uuid::nil()),
            progress: open_delivery_progress(last_delivered_event),
            has_execution_ended: ended,
        }
    }

    fn state_change((from, to): (ExecutionState, ExecutionState)) -> EventKind {
        let reason = "because".to_owned();
        EventKind::StateChanged(StateChange::new(
            (from, to),
            AttemptId::FIRST,
            at_second(0),
            reason,
        ))
    }

    fn events(kinds: &[EventKind]) -> Vec<Event> {
        let numbered = (1..).zip(kinds);
        numbered
            .map(|(number, kind)| Event { number, at: at_second(0), data: kind.clone() })
            .collect()
    }

    #[test]
    fn pushes_cover_starts_questions_and_ends() {
        use ExecutionState::{Cleanup, Idle, Running, Starting, Waiting};
        let notified: Vec<_> = TRANSITIONS
            .iter()
            .filter(|transition| should_notify(&state_change(**transition)))
            .copied()
            .collect();
        let mut expected = vec![(Idle, Starting), (Running, Waiting), (Waiting, Starting)];
        expected.extend(TRANSITIONS.iter().filter(|(_, to)| *to == Cleanup));
        assert_eq!(notified.len(), expected.len(), "{notified:?}");
        assert!(expected.iter().all(|transition| notified.contains(transition)), "{notified:?}");
    }

    #[test]
    fn events_are_pushed_one_by_one_without_retries() {
        use ExecutionState::{Cleanup, Completed, Failed, Idle, Running, Starting};
        let message_event = |speaker| {
            let (message, pieces) = ("m".to_owned(), Vec::new());
            EventKind::message(speaker, message, pieces)
        };
        let id = "a".to_owned();
        let (name, description, pieces, append, last) = (None, None, Vec::new(), false, true);
        let artifact = EventKind::Artifact { id, name, description, pieces, append, last };
        let all_events = events(&[
            state_change((Idle, Starting)),
            state_change((Starting, Running)),
            EventKind::ProcessStarted { pid: 1 },
            state_change((Running, Failed)),
            state_change((Failed, Starting)),
            state_change((Starting, Running)),
            artifact,
            message_event(MessageRole::AgentProgress),
            message_event(MessageRole::AgentOutcome),
            state_change((Running, Completed)),
            state_change((Completed, Cleanup)),
            state_change((Cleanup, Idle)),
        ]);
        let send = |event, is_last| DeliveryStep::Send { event, is_last };
        let mut notified = Vec::new();
        let mut last_delivered_event = 0;
        while let DeliveryStep::Send { event, is_last } = next_delivery_step(
            &pending_target(last_delivered_event, true),
            &all_events,
            at_second(0),
        ) {
            notified.push(send(event, is_last));
            last_delivered_event = event;
        }
        assert_eq!(notified, [send(1, false), send(7, false), send(8, false), send(11, true)]);
        assert_eq!(
            next_delivery_step(&pending_target(1, false), &all_events[..4], at_second(5)),
            DeliveryStep::RecordProgress(DeliveryProgress {
                due_at: at_second(5),
                ..open_delivery_progress(4)
            }),
            "nothing to tell, and known"
        );
        assert_eq!(
            next_delivery_step(&pending_target(4, false), &[], at_second(5)),
            DeliveryStep::Wait
        );
        let finished = DeliveryProgress {
            due_at: at_second(5),
            stage: DeliveryStage::Finished,
            ..open_delivery_progress(12)
        };
        assert_eq!(
            next_delivery_step(&pending_target(11, true), &all_events[11..], at_second(5)),
            DeliveryStep::RecordProgress(finished)
        );
    }

    #[test]
    fn push_retries_back_off_exponentially_up_to_20_times() {
        let (mut state, mut now, mut pauses) =
            (open_delivery_progress(3), at_second(0), Vec::new());
        let day = Duration::from_secs(86_400);
        while state.stage == DeliveryStage::Open {
            state = next_progress(state, 4, DeliveryResult::Failed, now, day);
            pauses.push((state.due_at - now).num_seconds());
            now = state.due_at;
        }
        assert_eq!(pauses[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(
            (pauses.len(), state.stage, state.last_delivered_event),
            (20, DeliveryStage::Abandoned, 3)
        );
    }

    #[test]
    fn an_old_push_is_given_up_and_a_success_resets_the_backoff() {
        let hour = Duration::from_secs(3600);
        let failed =
            next_progress(open_delivery_progress(3), 4, DeliveryResult::Failed, at_second(0), hour);
        let later = next_progress(failed, 4, DeliveryResult::Failed, at_second(3599), hour);
        assert_eq!((later.stage, later.next_event_failures), (DeliveryStage::Open, 2));
        assert_eq!(
            next_progress(later, 4, DeliveryResult::Failed, at_second(3600), hour).stage,
            DeliveryStage::Abandoned
        );
        let received = next_progress(
            later,
            4,
            DeliveryResult::Received { is_last: false },
            at_second(9),
            hour,
        );
        assert_eq!(
            received,
            DeliveryProgress { due_at: at_second(9), ..open_delivery_progress(4) }
        );
        let last =
            next_progress(later, 4, DeliveryResult::Received { is_last: true }, at_second(9), hour);
        assert_eq!(last.stage, DeliveryStage::Finished);
    }
}

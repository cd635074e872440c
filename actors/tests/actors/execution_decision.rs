//! The decision of an execution under arbitrary events in any order.

mod events;
mod model;

use algonius_actors::decide::execution::{
    ExecutionDeadline, ExecutionEffect, ExecutionEvent, ExecutionPhase, NextAttempt,
};
use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{AttemptId, ExecutionState, Interruption, Outcome};
use algonius_actors::model::failure::Failure;
use proptest::prelude::*;

use events::{accesses, events, results};
use model::ExecutionModel;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Events of all attempts in any order: the model finds no rule broken.
    #[test]
    fn no_sequence_of_events_breaks_an_invariant(
        access in accesses(),
        events in proptest::collection::vec(events(), 0..40),
    ) {
        let mut model = ExecutionModel::new(access);
        for event in events {
            model.apply(event);
        }
    }

    /// The same with mostly meaningful events, so that the later phases are reached.
    #[test]
    fn no_likely_sequence_of_events_breaks_an_invariant(
        access in accesses(),
        choices in proptest::collection::vec((0usize..8, events(), results()), 0..50),
    ) {
        let mut model = ExecutionModel::new(access);
        let mut pending_events = vec![ExecutionEvent::SlotAvailable];
        for (choice, random_event, result) in choices {
            let event = if choice == 0 || pending_events.is_empty() {
                random_event
            } else {
                pending_events.remove(choice % pending_events.len())
            };
            for effect in model.apply(event) {
                pending_events.extend(model.respond_to_effect(effect, &result, choice == 1));
            }
        }
    }

    /// When drivers end, clean-ups end and the ledger answers, every execution comes to rest with
    /// one outcome, also if it is called off at any moment.
    #[test]
    fn every_execution_ends(
        access in accesses(),
        script in proptest::collection::vec((results(), any::<bool>()), 1..6),
        cancel_after in proptest::option::of(0usize..30),
    ) {
        let mut model = ExecutionModel::new(access);
        let mut pending_events = std::collections::VecDeque::from([ExecutionEvent::SlotAvailable]);
        let mut start_count = 0;
        for round in 0..1000 {
            if Some(round) == cancel_after {
                pending_events.push_front(ExecutionEvent::CancelRequested { reason: "called off".to_owned() });
            }
            let Some(event) = pending_events.pop_front() else {
                break;
            };
            for effect in model.apply(event) {
                let (result, never_ends) = script[start_count % script.len()].clone();
                start_count += usize::from(matches!(effect, ExecutionEffect::StartAttempt { .. }));
                pending_events.extend(model.respond_to_effect(effect, &result, never_ends));
            }
        }
        prop_assert!(matches!(model.phase, ExecutionPhase::Done { outcome: Some(_) }), "{model:?}");
        prop_assert_eq!((model.settle_count, model.state), (1, ExecutionState::Idle));
    }
}

/// The events up to an attempt that runs.
fn running_model(attempt_number: u32) -> ExecutionModel {
    let mut model = ExecutionModel::new(Access::ReadOnly);
    let mut pending_events = vec![ExecutionEvent::SlotAvailable];
    let failure = Failure::new(Code::TransientFailure, "it failed");
    while let Some(event) = pending_events.pop() {
        for effect in model.apply(event) {
            match effect {
                ExecutionEffect::StartAttempt { attempt_id }
                    if attempt_id.attempt == attempt_number =>
                {
                    model.apply(ExecutionEvent::Started { attempt_id });
                    return model;
                }
                ExecutionEffect::SendLater { .. } | ExecutionEffect::CheckSilence { .. } => {}
                effect => {
                    let events = model.respond_to_effect(effect, &Err(failure.clone()), false);
                    pending_events.extend(events.into_iter().rev());
                }
            }
        }
    }
    unreachable!("attempt {attempt_number} does not come")
}

#[test]
fn a_stop_keeps_the_reason_for_which_it_was_requested() {
    let mut model = running_model(1);
    let attempt_id = AttemptId::FIRST;
    model.apply(ExecutionEvent::DeadlinePassed { attempt_id, deadline: ExecutionDeadline::Run });
    let effects = model.apply(ExecutionEvent::Ended { attempt_id, result: Ok(()) });
    let failure_code = effects.iter().find_map(|effect| match effect {
        ExecutionEffect::Settle { ending, .. } => {
            ending.failure.as_ref().map(|failure| failure.code)
        }
        _ => None,
    });
    assert_eq!(failure_code, Some(Code::Timeout));
}

#[test]
fn an_answered_turn_begins_with_its_first_attempt() {
    for required_input in Interruption::ALL.iter().copied() {
        let mut model = running_model(2);
        let second_attempt_id = AttemptId::FIRST.next_attempt();
        let effects = model
            .apply(ExecutionEvent::NeedsInput { attempt_id: second_attempt_id, required_input });
        assert_eq!(
            effects[0],
            ExecutionEffect::RecordInputRequest { attempt_id: second_attempt_id, required_input }
        );
        assert_eq!(model.state, ExecutionState::Waiting);
        let effects = model.apply(ExecutionEvent::InputReceived);
        let attempt_id = AttemptId { turn: 2, attempt: 1 };
        assert_eq!(effects, [ExecutionEffect::Claim { attempt_id, from: ExecutionState::Waiting }]);
    }
}

/// A running attempt that has failed, with the effects of its failure.
fn failed_model() -> (ExecutionModel, Vec<ExecutionEffect>) {
    let (mut model, attempt_id) = (running_model(1), AttemptId::FIRST);
    let failure = Failure::new(Code::TransientFailure, "it failed");
    let effects = model.apply(ExecutionEvent::Ended { attempt_id, result: Err(failure) });
    (model, effects)
}

fn settled_outcome(effects: &[ExecutionEffect]) -> Option<(Outcome, Option<Code>)> {
    effects.iter().find_map(|effect| match effect {
        ExecutionEffect::Settle { ending, .. } => {
            Some((ending.outcome, ending.failure.as_ref().map(|failure| failure.code)))
        }
        _ => None,
    })
}

#[test]
fn a_failed_attempt_awaits_the_decision_of_its_agent() {
    let (mut model, effects) = failed_model();
    let attempt_id = AttemptId::FIRST;
    let failure = Failure::new(Code::TransientFailure, "it failed");
    let report = ExecutionEffect::ReportFailure {
        attempt_id,
        failure,
        retry_after: None,
        may_have_received_input: true,
    };
    assert_eq!((effects, model.state), (vec![report], ExecutionState::Running));
    let late_deadline =
        ExecutionEvent::DeadlinePassed { attempt_id, deadline: ExecutionDeadline::Run };
    let effects = model.apply(late_deadline.clone());
    assert_eq!(effects, [ExecutionEffect::Ignore { event: late_deadline }]);
    let next_attempt = NextAttempt::None;
    let effects = model.apply(ExecutionEvent::NextAttemptDecided { attempt_id, next_attempt });
    assert_eq!(settled_outcome(&effects), Some((Outcome::Failed, Some(Code::TransientFailure))));
}

#[test]
fn a_retry_is_another_attempt_of_another_actor() {
    let (mut model, _) = failed_model();
    let (attempt_id, next_attempt) = (AttemptId::FIRST, NextAttempt::AfterPause);
    let effects = model.apply(ExecutionEvent::NextAttemptDecided { attempt_id, next_attempt });
    let clean_up = ExecutionEffect::CleanUp { attempt_id, waits_for_end_record: true };
    assert!(effects.ends_with(&[ExecutionEffect::StopActorAfterCleanUp, clean_up]), "{effects:?}");
    assert_eq!((model.state, settled_outcome(&effects)), (ExecutionState::Failed, None));
    let effects = model.apply(ExecutionEvent::RetryDue { attempt_id });
    let attempt_id = attempt_id.next_attempt();
    assert_eq!(effects, [ExecutionEffect::Claim { attempt_id, from: ExecutionState::Failed }]);
}

#[test]
fn a_cancellation_before_the_decision_ends_the_execution() {
    let (mut model, _) = failed_model();
    let effects = model.apply(ExecutionEvent::CancelRequested { reason: "called off".to_owned() });
    assert_eq!(settled_outcome(&effects), Some((Outcome::Cancelled, Some(Code::Cancelled))));
}

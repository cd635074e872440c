//! Whatever happens to an execution, in whatever order, its decision keeps its word.

mod events;

use std::time::Duration;

use algonius_actors::decide::execution::{
    Deadline, ExecutionEffect, ExecutionEvent, ExecutionPhase, ExecutionPolicy, step,
};
use algonius_actors::model::agent::quota::DeferralPolicy;
use algonius_actors::model::agent::{Access, Deadlines, RetrySpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{AttemptId, Interruption, Outcome, State};
use algonius_actors::model::failure::Failure;
use proptest::prelude::*;

use events::{accesses, events, results};

fn policy(access: Access) -> ExecutionPolicy {
    ExecutionPolicy {
        deadlines: Deadlines {
            start: Duration::from_secs(30),
            run: Duration::from_secs(300),
            idle: Some(Duration::from_secs(60)),
            grace: Duration::from_secs(5),
            answer: Duration::from_secs(600),
        },
        heartbeat: Some(Duration::from_secs(30)),
        retry: RetrySpec::default(),
        deferral: DeferralPolicy::default(),
        deferrals: 0,
        own_retries: 0,
        overloads: 0,
        queue_timeout: Duration::from_secs(60),
        access,
    }
}

/// The attempt an event speaks of.
fn attempt_of(event: &ExecutionEvent) -> Option<AttemptId> {
    match event {
        ExecutionEvent::Claimed { attempt_id }
        | ExecutionEvent::Busy { attempt_id, .. }
        | ExecutionEvent::ClaimDue { attempt_id }
        | ExecutionEvent::ClaimFailed { attempt_id }
        | ExecutionEvent::Started { attempt_id }
        | ExecutionEvent::Resumed { attempt_id, .. }
        | ExecutionEvent::Ended { attempt_id, .. }
        | ExecutionEvent::Failed { attempt_id, .. }
        | ExecutionEvent::LimitExceeded { attempt_id, .. }
        | ExecutionEvent::NeedsInput { attempt_id, .. }
        | ExecutionEvent::RunDeadlineNear { attempt_id }
        | ExecutionEvent::Silent { attempt_id, .. }
        | ExecutionEvent::HeartbeatDue { attempt_id }
        | ExecutionEvent::DeadlinePassed { attempt_id, .. }
        | ExecutionEvent::RetryDue { attempt_id }
        | ExecutionEvent::Cleaned { attempt_id } => Some(*attempt_id),
        ExecutionEvent::Begin
        | ExecutionEvent::Superseded
        | ExecutionEvent::Answered
        | ExecutionEvent::QueueExpired
        | ExecutionEvent::Denied { .. }
        | ExecutionEvent::Cancel { .. }
        | ExecutionEvent::Settled => None,
    }
}

/// The attempt a phase is in.
fn attempt_in(phase: &ExecutionPhase) -> Option<AttemptId> {
    match phase {
        ExecutionPhase::Claiming { attempt_id, .. }
        | ExecutionPhase::Starting { attempt_id }
        | ExecutionPhase::Running { attempt_id }
        | ExecutionPhase::Stopping { attempt_id, .. }
        | ExecutionPhase::Waiting { attempt_id }
        | ExecutionPhase::CleaningUp { attempt_id, .. }
        | ExecutionPhase::Paused { attempt_id }
        | ExecutionPhase::Ended { attempt_id, .. } => Some(*attempt_id),
        ExecutionPhase::Idle | ExecutionPhase::Done { .. } => None,
    }
}

/// Model that knows the rules and panics when one is broken.
#[derive(Debug)]
struct ExecutionModel {
    phase: ExecutionPhase,
    policy: ExecutionPolicy,
    state: State,
    claims: Vec<AttemptId>,
    settle_count: usize,
    /// Whether work may live: it was started and did not end, nor was it given up.
    is_alive: bool,
    is_superseded: bool,
}

impl ExecutionModel {
    fn new(access: Access) -> Self {
        Self {
            phase: ExecutionPhase::Idle,
            policy: policy(access),
            state: State::Idle,
            claims: Vec::new(),
            settle_count: 0,
            is_alive: false,
            is_superseded: false,
        }
    }

    fn apply(&mut self, event: ExecutionEvent) -> Vec<ExecutionEffect> {
        let before = self.phase.clone();
        let (phase, effects) = step(before.clone(), event.clone(), &self.policy);
        self.expect_late_events_ignored(&before, &event, &phase, &effects);
        self.track_work(&before, &event);
        if matches!(
            (&before, &event),
            (ExecutionPhase::Claiming { attempt_id, .. }, ExecutionEvent::Claimed { attempt_id: at }) if attempt_id == at
        ) {
            self.change_state(self.state, State::Starting);
        }
        for effect in &effects {
            self.apply_effect(effect);
        }
        self.phase = phase;
        effects
    }

    fn expect_late_events_ignored(
        &self,
        before: &ExecutionPhase,
        event: &ExecutionEvent,
        after: &ExecutionPhase,
        effects: &[ExecutionEffect],
    ) {
        let is_late = attempt_of(event).is_some_and(|at| attempt_in(before) != Some(at));
        let is_over = self.settle_count > 0
            && !matches!(event, ExecutionEvent::Settled | ExecutionEvent::Cleaned { .. });
        if is_late || is_over {
            assert_eq!(before, after, "changed by {event:?}");
            assert_eq!(effects, [ExecutionEffect::Ignore { event: event.clone() }]);
        }
    }

    fn track_work(&mut self, before: &ExecutionPhase, event: &ExecutionEvent) {
        let is_current = attempt_of(event).is_some() && attempt_of(event) == attempt_in(before);
        let is_given_up = matches!(before, ExecutionPhase::Stopping { .. })
            && matches!(event, ExecutionEvent::DeadlinePassed { deadline: Deadline::Stop, .. });
        let has_ended = match event {
            ExecutionEvent::Ended { .. } | ExecutionEvent::Failed { .. } => true,
            ExecutionEvent::NeedsInput { .. } => !matches!(before, ExecutionPhase::Starting { .. }),
            _ => false,
        };
        if is_current && (has_ended || is_given_up) {
            self.is_alive = false;
        }
        self.is_superseded |= *event == ExecutionEvent::Superseded;
    }

    fn apply_effect(&mut self, effect: &ExecutionEffect) {
        match effect {
            ExecutionEffect::Claim { attempt_id, from } => {
                assert_eq!(*from, self.state, "the claim leaves the present state");
                self.claim(*attempt_id);
            }
            ExecutionEffect::Resume { .. } => assert!(!self.is_alive, "resumed while it runs"),
            ExecutionEffect::Start { attempt_id } => {
                assert_eq!(self.state, State::Starting);
                assert_eq!(self.claims.last(), Some(attempt_id), "what starts was claimed");
                assert!(!self.is_alive, "two attempts at once");
                self.is_alive = true;
            }
            ExecutionEffect::RecordTransition { from, to, .. } => self.change_state(*from, *to),
            ExecutionEffect::Interrupt { .. } => self.change_state(State::Running, State::Waiting),
            ExecutionEffect::Settle { ending, .. } => {
                assert!(!self.is_alive, "settled while the work lives");
                assert_eq!(self.state, State::Cleanup, "settled with its moves");
                assert_eq!(ending.outcome == Outcome::Completed, ending.failure.is_none());
                self.settle_count += 1;
                assert_eq!(self.settle_count, 1, "settled twice");
            }
            ExecutionEffect::Clean { .. } => {
                assert!(!self.is_alive, "cleaned while the work lives");
            }
            ExecutionEffect::Defer { wait, .. } => {
                let policy = &mut self.policy;
                assert!(*wait <= policy.deferral.max_wait, "deferred for too long");
                policy.deferrals += 1; // The next actor of the execution counts the same.
                assert!(policy.deferrals <= policy.deferral.max_deferrals, "deferred too often");
            }
            ExecutionEffect::Finish => {
                assert!(self.settle_count == 1 || self.is_superseded, "finishes without an end");
            }
            ExecutionEffect::Stop => assert!(self.is_alive, "stopped what does not live"),
            ExecutionEffect::CheckSilence { .. }
            | ExecutionEffect::ReadUsage { .. }
            | ExecutionEffect::Warn { .. } => {
                assert!(self.is_alive, "nothing lives");
            }
            ExecutionEffect::SendLater { .. }
            | ExecutionEffect::RetryClaim { .. }
            | ExecutionEffect::RecordFailedAttempt { .. }
            | ExecutionEffect::Suspend
            | ExecutionEffect::Ignore { .. } => {}
        }
    }

    /// Attempts count 1, 2, 3 in each turn; a busy slot is asked for again as the same attempt.
    fn claim(&mut self, attempt_id: AttemptId) {
        let expected = match self.claims.last() {
            None => vec![AttemptId::FIRST],
            Some(last) => vec![*last, last.next_attempt(), last.next_turn()],
        };
        assert!(expected.contains(&attempt_id), "{attempt_id:?} after {:?}", self.claims);
        let max = self.policy.retry.max + 1 + self.policy.deferrals;
        assert!(attempt_id.attempt <= max, "{} attempts", attempt_id.attempt);
        self.claims.push(attempt_id);
    }

    fn change_state(&mut self, from: State, to: State) {
        assert_eq!(from, self.state, "the move to {to} does not follow");
        assert!(from.may_become(to), "{from} -> {to} is not in the table");
        self.state = to;
    }
}

/// Answers an effect as a world does in which everything comes at last.
fn answer(
    effect: ExecutionEffect,
    result: &Result<(), Failure>,
    never_ends: bool,
) -> Vec<ExecutionEvent> {
    match effect {
        ExecutionEffect::Claim { attempt_id, .. } => vec![ExecutionEvent::Claimed { attempt_id }],
        ExecutionEffect::Start { attempt_id } | ExecutionEffect::Resume { attempt_id } => {
            let mut events = vec![ExecutionEvent::Started { attempt_id }];
            if !never_ends {
                events.push(ExecutionEvent::Ended { attempt_id, result: result.clone() });
            }
            events
        }
        ExecutionEffect::SendLater { event, .. } => vec![event],
        ExecutionEffect::Defer { attempt_id, .. } => vec![ExecutionEvent::RetryDue { attempt_id }],
        ExecutionEffect::RetryClaim { attempt_id, .. } => {
            vec![ExecutionEvent::ClaimDue { attempt_id }]
        }
        ExecutionEffect::CheckSilence { attempt_id, .. } => {
            vec![ExecutionEvent::Silent { attempt_id, silence: Duration::from_secs(60) }]
        }
        ExecutionEffect::Clean { attempt_id } => vec![ExecutionEvent::Cleaned { attempt_id }],
        ExecutionEffect::Settle { .. } => vec![ExecutionEvent::Settled],
        ExecutionEffect::Stop
        | ExecutionEffect::ReadUsage { .. }
        | ExecutionEffect::Warn { .. }
        | ExecutionEffect::RecordTransition { .. }
        | ExecutionEffect::Interrupt { .. }
        | ExecutionEffect::RecordFailedAttempt { .. }
        | ExecutionEffect::Suspend
        | ExecutionEffect::Finish
        | ExecutionEffect::Ignore { .. } => Vec::new(),
    }
}

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
        let mut pending = vec![ExecutionEvent::Begin];
        for (choice, random_event, result) in choices {
            let event = if choice == 0 || pending.is_empty() {
                random_event
            } else {
                pending.remove(choice % pending.len())
            };
            for effect in model.apply(event) {
                pending.extend(answer(effect, &result, choice == 1));
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
        let mut pending = std::collections::VecDeque::from([ExecutionEvent::Begin]);
        let mut attempt = 0;
        for round in 0..1000 {
            if Some(round) == cancel_after {
                pending.push_front(ExecutionEvent::Cancel { reason: "called off".to_owned() });
            }
            let Some(event) = pending.pop_front() else {
                break;
            };
            for effect in model.apply(event) {
                let (result, never_ends) = script[attempt % script.len()].clone();
                attempt += usize::from(matches!(effect, ExecutionEffect::Start { .. }));
                pending.extend(answer(effect, &result, never_ends));
            }
        }
        prop_assert!(matches!(model.phase, ExecutionPhase::Done { outcome: Some(_) }), "{model:?}");
        prop_assert_eq!((model.settle_count, model.state), (1, State::Idle));
    }
}

/// The events up to an attempt that runs.
fn running(attempts: u32) -> ExecutionModel {
    let mut model = ExecutionModel::new(Access::ReadOnly);
    let mut pending = vec![ExecutionEvent::Begin];
    let failure = Failure::new(Code::TransientFailure, "it failed");
    while let Some(event) = pending.pop() {
        for effect in model.apply(event) {
            match effect {
                ExecutionEffect::Start { attempt_id } if attempt_id.attempt == attempts => {
                    model.apply(ExecutionEvent::Started { attempt_id });
                    return model;
                }
                ExecutionEffect::SendLater {
                    event: event @ ExecutionEvent::RetryDue { .. },
                    ..
                } => {
                    pending.push(event);
                }
                ExecutionEffect::SendLater { .. } | ExecutionEffect::CheckSilence { .. } => {}
                effect => {
                    pending.extend(answer(effect, &Err(failure.clone()), false).into_iter().rev());
                }
            }
        }
    }
    unreachable!("attempt {attempts} does not come")
}

#[test]
fn a_stop_keeps_the_reason_for_which_it_was_requested() {
    let mut model = running(1);
    let attempt_id = AttemptId::FIRST;
    model.apply(ExecutionEvent::DeadlinePassed { attempt_id, deadline: Deadline::Run });
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
    for interruption in Interruption::ALL.iter().copied() {
        let mut model = running(2);
        let second = AttemptId::FIRST.next_attempt();
        let effects = model.apply(ExecutionEvent::NeedsInput { attempt_id: second, interruption });
        assert_eq!(effects[0], ExecutionEffect::Interrupt { attempt_id: second, interruption });
        assert_eq!(model.state, State::Waiting);
        let effects = model.apply(ExecutionEvent::Answered);
        let attempt_id = AttemptId { turn: 2, attempt: 1 };
        assert_eq!(effects, [ExecutionEffect::Claim { attempt_id, from: State::Waiting }]);
    }
}

#[test]
fn retry_pauses_are_1_2_and_4_seconds() {
    let pauses = (1..=3).map(|attempt| {
        let mut model = running(attempt);
        let attempt_id = AttemptId { turn: 1, attempt };
        let failure = Failure::new(Code::TransientFailure, "it failed");
        model.apply(ExecutionEvent::Ended { attempt_id, result: Err(failure) });
        let effects = model.apply(ExecutionEvent::Cleaned { attempt_id });
        effects.into_iter().find_map(|effect| match effect {
            ExecutionEffect::SendLater { after, .. } => Some(after.as_secs()),
            _ => None,
        })
    });
    assert_eq!(pauses.collect::<Vec<_>>(), [Some(1), Some(2), Some(4)]);
}

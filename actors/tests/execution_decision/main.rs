//! Whatever happens to an execution, in whatever order, its decision keeps its word.

mod events;

use std::time::Duration;

use algonius_actors::decide::execution::{
    Deadline, ExecutionEffect, ExecutionEvent, ExecutionPhase, ExecutionPolicy, step,
};
use algonius_actors::model::agent::quota::Parking;
use algonius_actors::model::agent::{Access, Deadlines, RetrySpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{AttemptId, Interruption, Outcome, State};
use algonius_actors::model::failure::Failure;
use proptest::prelude::*;

use events::{accesses, events, verdicts};

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
        parking: Parking::default(),
        parks: 0,
        own_retries: 0,
        overloads: 0,
        patience: Duration::from_secs(60),
        access,
    }
}

/// The attempt an event speaks of.
fn stamp_of(event: &ExecutionEvent) -> Option<AttemptId> {
    match event {
        ExecutionEvent::Claimed { at }
        | ExecutionEvent::Busy { at, .. }
        | ExecutionEvent::ClaimDue { at }
        | ExecutionEvent::ClaimFailed { at }
        | ExecutionEvent::Started { at }
        | ExecutionEvent::TakenUp { at, .. }
        | ExecutionEvent::Ended { at, .. }
        | ExecutionEvent::Failed { at, .. }
        | ExecutionEvent::Overspent { at, .. }
        | ExecutionEvent::Asked { at, .. }
        | ExecutionEvent::Nearing { at }
        | ExecutionEvent::Quiet { at, .. }
        | ExecutionEvent::BeatDue { at }
        | ExecutionEvent::Overdue { at, .. }
        | ExecutionEvent::RetryDue { at }
        | ExecutionEvent::Cleaned { at } => Some(*at),
        ExecutionEvent::Begin
        | ExecutionEvent::Gone
        | ExecutionEvent::Answered
        | ExecutionEvent::QueueExpired
        | ExecutionEvent::Denied { .. }
        | ExecutionEvent::Cancel { .. }
        | ExecutionEvent::Settled => None,
    }
}

/// The attempt a phase is in.
fn stamp_in(phase: &ExecutionPhase) -> Option<AttemptId> {
    match phase {
        ExecutionPhase::Claiming { stamp, .. }
        | ExecutionPhase::Starting { stamp }
        | ExecutionPhase::Running { stamp }
        | ExecutionPhase::Stopping { stamp, .. }
        | ExecutionPhase::Waiting { stamp }
        | ExecutionPhase::Clearing { stamp, .. }
        | ExecutionPhase::Paused { stamp }
        | ExecutionPhase::Ended { stamp, .. } => Some(*stamp),
        ExecutionPhase::Idle | ExecutionPhase::Rest { .. } => None,
    }
}

/// An onlooker who knows the rules and panics when one is broken.
#[derive(Debug)]
struct Witness {
    phase: ExecutionPhase,
    policy: ExecutionPolicy,
    state: State,
    claimed: Vec<AttemptId>,
    settled: usize,
    /// Whether work may live: it was started and did not end, nor was it given up.
    is_alive: bool,
    gone: bool,
}

impl Witness {
    fn new(access: Access) -> Self {
        Self {
            phase: ExecutionPhase::Idle,
            policy: policy(access),
            state: State::Idle,
            claimed: Vec::new(),
            settled: 0,
            is_alive: false,
            gone: false,
        }
    }

    fn see(&mut self, event: ExecutionEvent) -> Vec<ExecutionEffect> {
        let before = self.phase.clone();
        let (phase, effects) = step(before.clone(), event.clone(), &self.policy);
        self.expect_late_news_to_change_nothing(&before, &event, &phase, &effects);
        self.follow_the_work(&before, &event);
        if matches!(
            (&before, &event),
            (ExecutionPhase::Claiming { stamp, .. }, ExecutionEvent::Claimed { at }) if stamp == at
        ) {
            self.go(self.state, State::Starting);
        }
        for effect in &effects {
            self.follow(effect);
        }
        self.phase = phase;
        effects
    }

    fn expect_late_news_to_change_nothing(
        &self,
        before: &ExecutionPhase,
        event: &ExecutionEvent,
        after: &ExecutionPhase,
        effects: &[ExecutionEffect],
    ) {
        let is_late = stamp_of(event).is_some_and(|at| stamp_in(before) != Some(at));
        let is_over = self.settled > 0
            && !matches!(event, ExecutionEvent::Settled | ExecutionEvent::Cleaned { .. });
        if is_late || is_over {
            assert_eq!(before, after, "changed by {event:?}");
            assert_eq!(effects, [ExecutionEffect::Ignore { event: event.clone() }]);
        }
    }

    fn follow_the_work(&mut self, before: &ExecutionPhase, event: &ExecutionEvent) {
        let is_mine = stamp_of(event).is_some() && stamp_of(event) == stamp_in(before);
        let is_given_up = matches!(before, ExecutionPhase::Stopping { .. })
            && matches!(event, ExecutionEvent::Overdue { deadline: Deadline::Stop, .. });
        let has_ended = match event {
            ExecutionEvent::Ended { .. } | ExecutionEvent::Failed { .. } => true,
            ExecutionEvent::Asked { .. } => !matches!(before, ExecutionPhase::Starting { .. }),
            _ => false,
        };
        if is_mine && (has_ended || is_given_up) {
            self.is_alive = false;
        }
        self.gone |= *event == ExecutionEvent::Gone;
    }

    fn follow(&mut self, effect: &ExecutionEffect) {
        match effect {
            ExecutionEffect::Claim { stamp, from } => {
                assert_eq!(*from, self.state, "the claim leaves the present state");
                self.claim(*stamp);
            }
            ExecutionEffect::TakeUp { .. } => assert!(!self.is_alive, "taken up while it lives"),
            ExecutionEffect::Start { stamp } => {
                assert_eq!(self.state, State::Starting);
                assert_eq!(self.claimed.last(), Some(stamp), "what starts was claimed");
                assert!(!self.is_alive, "two attempts at once");
                self.is_alive = true;
            }
            ExecutionEffect::Move { from, to, .. } => self.go(*from, *to),
            ExecutionEffect::Interrupt { .. } => self.go(State::Running, State::Waiting),
            ExecutionEffect::Settle { ending, .. } => {
                assert!(!self.is_alive, "settled while the work lives");
                assert_eq!(self.state, State::Cleanup, "settled with its moves");
                assert_eq!(ending.outcome == Outcome::Completed, ending.failure.is_none());
                self.settled += 1;
                assert_eq!(self.settled, 1, "settled twice");
            }
            ExecutionEffect::Clean { .. } => {
                assert!(!self.is_alive, "cleaned while the work lives");
            }
            ExecutionEffect::ParkFor { wait, .. } => {
                assert!(*wait <= self.policy.parking.max, "parked for too long");
                self.policy.parks += 1; // As the actor knows it that goes on.
                assert!(self.policy.parks <= self.policy.parking.times, "parked too often");
            }
            ExecutionEffect::Rest => {
                assert!(self.settled == 1 || self.gone, "rests without an end");
            }
            ExecutionEffect::Stop => assert!(self.is_alive, "stopped what does not live"),
            ExecutionEffect::Look { .. }
            | ExecutionEffect::Measure { .. }
            | ExecutionEffect::Warn { .. } => {
                assert!(self.is_alive, "nothing lives");
            }
            ExecutionEffect::Wake { .. }
            | ExecutionEffect::AskAgain { .. }
            | ExecutionEffect::Note { .. }
            | ExecutionEffect::Park
            | ExecutionEffect::Ignore { .. } => {}
        }
    }

    /// Attempts count 1, 2, 3 in each turn; a busy slot is asked for again as the same attempt.
    fn claim(&mut self, stamp: AttemptId) {
        let expected = match self.claimed.last() {
            None => vec![AttemptId::FIRST],
            Some(last) => vec![*last, last.retried(), last.continued()],
        };
        assert!(expected.contains(&stamp), "{stamp:?} after {:?}", self.claimed);
        let max = self.policy.retry.max + 1 + self.policy.parks;
        assert!(stamp.attempt <= max, "{} attempts", stamp.attempt);
        self.claimed.push(stamp);
    }

    fn go(&mut self, from: State, to: State) {
        assert_eq!(from, self.state, "the move to {to} does not follow");
        assert!(from.may_become(to), "{from} -> {to} is not in the table");
        self.state = to;
    }
}

/// Answers an effect as a world does in which everything comes at last.
fn answer(
    effect: ExecutionEffect,
    verdict: &Result<(), Failure>,
    is_deaf: bool,
) -> Vec<ExecutionEvent> {
    match effect {
        ExecutionEffect::Claim { stamp, .. } => vec![ExecutionEvent::Claimed { at: stamp }],
        ExecutionEffect::Start { stamp } | ExecutionEffect::TakeUp { stamp } if is_deaf => {
            vec![ExecutionEvent::Started { at: stamp }]
        }
        ExecutionEffect::Start { stamp } | ExecutionEffect::TakeUp { stamp } => {
            let verdict = verdict.clone();
            vec![
                ExecutionEvent::Started { at: stamp },
                ExecutionEvent::Ended { at: stamp, verdict },
            ]
        }
        ExecutionEffect::Wake { with, .. } => vec![with],
        ExecutionEffect::ParkFor { stamp, .. } => vec![ExecutionEvent::RetryDue { at: stamp }],
        ExecutionEffect::AskAgain { at, .. } => vec![ExecutionEvent::ClaimDue { at }],
        ExecutionEffect::Look { at, .. } => {
            vec![ExecutionEvent::Quiet { at, quiet: Duration::from_secs(60) }]
        }
        ExecutionEffect::Clean { stamp } => vec![ExecutionEvent::Cleaned { at: stamp }],
        ExecutionEffect::Settle { .. } => vec![ExecutionEvent::Settled],
        ExecutionEffect::Stop
        | ExecutionEffect::Measure { .. }
        | ExecutionEffect::Warn { .. }
        | ExecutionEffect::Move { .. }
        | ExecutionEffect::Interrupt { .. }
        | ExecutionEffect::Note { .. }
        | ExecutionEffect::Park
        | ExecutionEffect::Rest
        | ExecutionEffect::Ignore { .. } => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Events of all attempts in any order: the witness sees no rule broken.
    #[test]
    fn no_sequence_of_events_breaks_an_invariant(
        access in accesses(),
        events in proptest::collection::vec(events(), 0..40),
    ) {
        let mut witness = Witness::new(access);
        for event in events {
            witness.see(event);
        }
    }

    /// The same with mostly meaningful events, so that the later phases are reached.
    #[test]
    fn no_likely_sequence_of_events_breaks_an_invariant(
        access in accesses(),
        choices in proptest::collection::vec((0usize..8, events(), verdicts()), 0..50),
    ) {
        let mut witness = Witness::new(access);
        let mut due = vec![ExecutionEvent::Begin];
        for (choice, wild, verdict) in choices {
            let event = if choice == 0 || due.is_empty() {
                wild
            } else {
                due.remove(choice % due.len())
            };
            for effect in witness.see(event) {
                due.extend(answer(effect, &verdict, choice == 1));
            }
        }
    }

    /// When drivers end, clean-ups end and the ledger answers, every execution comes to rest with
    /// one outcome, also if it is called off at any moment.
    #[test]
    fn every_execution_ends(
        access in accesses(),
        script in proptest::collection::vec((verdicts(), any::<bool>()), 1..6),
        cancel_after in proptest::option::of(0usize..30),
    ) {
        let mut witness = Witness::new(access);
        let mut due = std::collections::VecDeque::from([ExecutionEvent::Begin]);
        let mut attempt = 0;
        for moment in 0..1000 {
            if Some(moment) == cancel_after {
                due.push_front(ExecutionEvent::Cancel { why: "called off".to_owned() });
            }
            let Some(event) = due.pop_front() else {
                break;
            };
            for effect in witness.see(event) {
                let (verdict, is_deaf) = script[attempt % script.len()].clone();
                attempt += usize::from(matches!(effect, ExecutionEffect::Start { .. }));
                due.extend(answer(effect, &verdict, is_deaf));
            }
        }
        prop_assert!(matches!(witness.phase, ExecutionPhase::Rest { outcome: Some(_) }), "{witness:?}");
        prop_assert_eq!((witness.settled, witness.state), (1, State::Idle));
    }
}

/// The events up to an attempt that runs.
fn running(attempts: u32) -> Witness {
    let mut witness = Witness::new(Access::ReadOnly);
    let mut due = vec![ExecutionEvent::Begin];
    let failure = Failure::new(Code::TransientFailure, "it failed");
    while let Some(event) = due.pop() {
        for effect in witness.see(event) {
            match effect {
                ExecutionEffect::Start { stamp } if stamp.attempt == attempts => {
                    witness.see(ExecutionEvent::Started { at: stamp });
                    return witness;
                }
                ExecutionEffect::Wake { with: with @ ExecutionEvent::RetryDue { .. }, .. } => {
                    due.push(with);
                }
                ExecutionEffect::Wake { .. } | ExecutionEffect::Look { .. } => {}
                effect => {
                    due.extend(answer(effect, &Err(failure.clone()), false).into_iter().rev());
                }
            }
        }
    }
    unreachable!("attempt {attempts} does not come")
}

#[test]
fn a_stop_keeps_the_reason_for_which_it_was_requested() {
    let mut witness = running(1);
    witness.see(ExecutionEvent::Overdue { at: AttemptId::FIRST, deadline: Deadline::Run });
    let effects = witness.see(ExecutionEvent::Ended { at: AttemptId::FIRST, verdict: Ok(()) });
    let settled = effects.iter().find_map(|effect| match effect {
        ExecutionEffect::Settle { ending, .. } => {
            ending.failure.as_ref().map(|failure| failure.code)
        }
        _ => None,
    });
    assert_eq!(settled, Some(Code::Timeout));
}

#[test]
fn an_answered_turn_begins_with_its_first_attempt() {
    for interruption in Interruption::ALL.iter().copied() {
        let mut witness = running(2);
        let second = AttemptId::FIRST.retried();
        let effects = witness.see(ExecutionEvent::Asked { at: second, interruption });
        assert_eq!(effects[0], ExecutionEffect::Interrupt { stamp: second, interruption });
        assert_eq!(witness.state, State::Waiting);
        let effects = witness.see(ExecutionEvent::Answered);
        let stamp = AttemptId { turn: 2, attempt: 1 };
        assert_eq!(effects, [ExecutionEffect::Claim { stamp, from: State::Waiting }]);
    }
}

#[test]
fn retry_pauses_are_1_2_and_4_seconds() {
    let pauses = (1..=3).map(|attempt| {
        let mut witness = running(attempt);
        let at = AttemptId { turn: 1, attempt };
        let failure = Failure::new(Code::TransientFailure, "it failed");
        witness.see(ExecutionEvent::Ended { at, verdict: Err(failure) });
        witness.see(ExecutionEvent::Cleaned { at }).into_iter().find_map(|effect| match effect {
            ExecutionEffect::Wake { after, .. } => Some(after.as_secs()),
            _ => None,
        })
    });
    assert_eq!(pauses.collect::<Vec<_>>(), [Some(1), Some(2), Some(4)]);
}

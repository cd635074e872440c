//! Whatever happens to an execution, in whatever order, its decision keeps its word.

mod events;

use std::time::Duration;

use algonius_actors::decide::execution::{Deadline, Effect, Event, Phase, Policy, step};
use algonius_actors::model::agent::{Access, Deadlines, RetrySpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{Outcome, Stamp, State};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::quota::Parking;
use proptest::prelude::*;

use events::{accesses, events, verdicts};

fn policy(access: Access) -> Policy {
    Policy {
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
        patience: Duration::from_secs(60),
        access,
    }
}

/// The attempt an event speaks of.
fn stamp_of(event: &Event) -> Option<Stamp> {
    match event {
        Event::Claimed { at }
        | Event::Busy { at, .. }
        | Event::ClaimDue { at }
        | Event::ClaimFailed { at }
        | Event::Started { at }
        | Event::TakenUp { at, .. }
        | Event::Ended { at, .. }
        | Event::Failed { at, .. }
        | Event::Overspent { at, .. }
        | Event::Asked { at }
        | Event::Nearing { at }
        | Event::Quiet { at, .. }
        | Event::BeatDue { at }
        | Event::Overdue { at, .. }
        | Event::RetryDue { at }
        | Event::Cleaned { at } => Some(*at),
        Event::Begin
        | Event::Gone
        | Event::Answered
        | Event::QueueExpired
        | Event::Denied { .. }
        | Event::Cancel { .. }
        | Event::Settled => None,
    }
}

/// The attempt a phase is in.
fn stamp_in(phase: &Phase) -> Option<Stamp> {
    match phase {
        Phase::Claiming { stamp, .. }
        | Phase::Starting { stamp }
        | Phase::Running { stamp }
        | Phase::Stopping { stamp, .. }
        | Phase::Waiting { stamp }
        | Phase::Clearing { stamp, .. }
        | Phase::Paused { stamp }
        | Phase::Ended { stamp, .. } => Some(*stamp),
        Phase::Idle | Phase::Rest { .. } => None,
    }
}

/// An onlooker who knows the rules and panics when one is broken.
#[derive(Debug)]
struct Witness {
    phase: Phase,
    policy: Policy,
    state: State,
    claimed: Vec<Stamp>,
    settled: usize,
    /// Whether work may live: it was started and did not end, nor was it given up.
    is_alive: bool,
    gone: bool,
}

impl Witness {
    fn new(access: Access) -> Self {
        Self {
            phase: Phase::Idle,
            policy: policy(access),
            state: State::Idle,
            claimed: Vec::new(),
            settled: 0,
            is_alive: false,
            gone: false,
        }
    }

    fn see(&mut self, event: Event) -> Vec<Effect> {
        let before = self.phase.clone();
        let (phase, effects) = step(before.clone(), event.clone(), &self.policy);
        self.expect_late_news_to_change_nothing(&before, &event, &phase, &effects);
        self.follow_the_work(&before, &event);
        if matches!(
            (&before, &event),
            (Phase::Claiming { stamp, .. }, Event::Claimed { at }) if stamp == at
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
        before: &Phase,
        event: &Event,
        after: &Phase,
        effects: &[Effect],
    ) {
        let is_late = stamp_of(event).is_some_and(|at| stamp_in(before) != Some(at));
        let is_over = self.settled > 0 && !matches!(event, Event::Settled | Event::Cleaned { .. });
        if is_late || is_over {
            assert_eq!(before, after, "changed by {event:?}");
            assert_eq!(effects, [Effect::Ignore { event: event.clone() }]);
        }
    }

    fn follow_the_work(&mut self, before: &Phase, event: &Event) {
        let is_mine = stamp_of(event).is_some() && stamp_of(event) == stamp_in(before);
        let is_given_up = matches!(before, Phase::Stopping { .. })
            && matches!(event, Event::Overdue { deadline: Deadline::Stop, .. });
        let has_ended = match event {
            Event::Ended { .. } | Event::Failed { .. } => true,
            Event::Asked { .. } => !matches!(before, Phase::Starting { .. }),
            _ => false,
        };
        if is_mine && (has_ended || is_given_up) {
            self.is_alive = false;
        }
        self.gone |= *event == Event::Gone;
    }

    fn follow(&mut self, effect: &Effect) {
        match effect {
            Effect::Claim { stamp, from } => {
                assert_eq!(*from, self.state, "the claim leaves the present state");
                self.claim(*stamp);
            }
            Effect::TakeUp { .. } => assert!(!self.is_alive, "taken up while it lives"),
            Effect::Start { stamp } => {
                assert_eq!(self.state, State::Starting);
                assert_eq!(self.claimed.last(), Some(stamp), "what starts was claimed");
                assert!(!self.is_alive, "two attempts at once");
                self.is_alive = true;
            }
            Effect::Move { from, to, .. } => self.go(*from, *to),
            Effect::Settle { ending, .. } => {
                assert!(!self.is_alive, "settled while the work lives");
                assert_eq!(self.state, State::Cleanup, "settled with its moves");
                assert_eq!(ending.outcome == Outcome::Completed, ending.failure.is_none());
                self.settled += 1;
                assert_eq!(self.settled, 1, "settled twice");
            }
            Effect::Clean { .. } => assert!(!self.is_alive, "cleaned while the work lives"),
            Effect::ParkFor { wait, .. } => {
                assert!(*wait <= self.policy.parking.max, "parked for too long");
                self.policy.parks += 1; // As the actor knows it that goes on.
                assert!(self.policy.parks <= self.policy.parking.times, "parked too often");
            }
            Effect::Rest => assert!(self.settled == 1 || self.gone, "rests without an end"),
            Effect::Stop => assert!(self.is_alive, "stopped what does not live"),
            Effect::Look { .. } | Effect::Measure { .. } | Effect::Warn { .. } => {
                assert!(self.is_alive, "nothing lives");
            }
            Effect::Wake { .. }
            | Effect::AskAgain { .. }
            | Effect::Note { .. }
            | Effect::Park
            | Effect::Ignore { .. } => {}
        }
    }

    /// Attempts count 1, 2, 3 in each turn; a busy slot is asked for again as the same attempt.
    fn claim(&mut self, stamp: Stamp) {
        let expected = match self.claimed.last() {
            None => vec![Stamp::FIRST],
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
fn answer(effect: Effect, verdict: &Result<(), Failure>, is_deaf: bool) -> Vec<Event> {
    match effect {
        Effect::Claim { stamp, .. } => vec![Event::Claimed { at: stamp }],
        Effect::Start { stamp } | Effect::TakeUp { stamp } if is_deaf => {
            vec![Event::Started { at: stamp }]
        }
        Effect::Start { stamp } | Effect::TakeUp { stamp } => {
            let verdict = verdict.clone();
            vec![Event::Started { at: stamp }, Event::Ended { at: stamp, verdict }]
        }
        Effect::Wake { with, .. } => vec![with],
        Effect::ParkFor { stamp, .. } => vec![Event::RetryDue { at: stamp }],
        Effect::AskAgain { at, .. } => vec![Event::ClaimDue { at }],
        Effect::Look { at, .. } => vec![Event::Quiet { at, quiet: Duration::from_secs(60) }],
        Effect::Clean { stamp } => vec![Event::Cleaned { at: stamp }],
        Effect::Settle { .. } => vec![Event::Settled],
        Effect::Stop
        | Effect::Measure { .. }
        | Effect::Warn { .. }
        | Effect::Move { .. }
        | Effect::Note { .. }
        | Effect::Park
        | Effect::Rest
        | Effect::Ignore { .. } => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Events of all attempts in any order: the witness sees no rule broken.
    #[test]
    fn no_order_of_events_breaks_a_rule(
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
    fn no_likely_order_of_events_breaks_a_rule(
        access in accesses(),
        choices in proptest::collection::vec((0usize..8, events(), verdicts()), 0..50),
    ) {
        let mut witness = Witness::new(access);
        let mut due = vec![Event::Begin];
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
    fn every_execution_comes_to_rest(
        access in accesses(),
        script in proptest::collection::vec((verdicts(), any::<bool>()), 1..6),
        cancel_after in proptest::option::of(0usize..30),
    ) {
        let mut witness = Witness::new(access);
        let mut due = std::collections::VecDeque::from([Event::Begin]);
        let mut attempt = 0;
        for moment in 0..1000 {
            if Some(moment) == cancel_after {
                due.push_front(Event::Cancel { why: "called off".to_owned() });
            }
            let Some(event) = due.pop_front() else {
                break;
            };
            for effect in witness.see(event) {
                let (verdict, is_deaf) = script[attempt % script.len()].clone();
                attempt += usize::from(matches!(effect, Effect::Start { .. }));
                due.extend(answer(effect, &verdict, is_deaf));
            }
        }
        prop_assert!(matches!(witness.phase, Phase::Rest { outcome: Some(_) }), "{witness:?}");
        prop_assert_eq!((witness.settled, witness.state), (1, State::Idle));
    }
}

/// The events up to an attempt that runs.
fn running(attempts: u32) -> Witness {
    let mut witness = Witness::new(Access::ReadOnly);
    let mut due = vec![Event::Begin];
    let failure = Failure::new(Code::TransientFailure, "it failed");
    while let Some(event) = due.pop() {
        for effect in witness.see(event) {
            match effect {
                Effect::Start { stamp } if stamp.attempt == attempts => {
                    witness.see(Event::Started { at: stamp });
                    return witness;
                }
                Effect::Wake { with: with @ Event::RetryDue { .. }, .. } => due.push(with),
                Effect::Wake { .. } | Effect::Look { .. } => {}
                effect => {
                    due.extend(answer(effect, &Err(failure.clone()), false).into_iter().rev());
                }
            }
        }
    }
    unreachable!("attempt {attempts} does not come")
}

#[test]
fn a_stop_is_answered_by_the_ending_it_was_given_for() {
    let mut witness = running(1);
    witness.see(Event::Overdue { at: Stamp::FIRST, deadline: Deadline::Run });
    let effects = witness.see(Event::Ended { at: Stamp::FIRST, verdict: Ok(()) });
    let settled = effects.iter().find_map(|effect| match effect {
        Effect::Settle { ending, .. } => ending.failure.as_ref().map(|failure| failure.code),
        _ => None,
    });
    assert_eq!(settled, Some(Code::Timeout));
}

#[test]
fn a_turn_that_is_answered_begins_again_with_its_first_attempt() {
    let mut witness = running(2);
    let second = Stamp::FIRST.retried();
    witness.see(Event::Asked { at: second });
    assert_eq!(witness.state, State::Waiting);
    let effects = witness.see(Event::Answered);
    let stamp = Stamp { turn: 2, attempt: 1 };
    assert_eq!(effects, [Effect::Claim { stamp, from: State::Waiting }]);
}

#[test]
fn pauses_are_1_2_and_4_seconds() {
    let pauses = (1..=3).map(|attempt| {
        let mut witness = running(attempt);
        let at = Stamp { turn: 1, attempt };
        let failure = Failure::new(Code::TransientFailure, "it failed");
        witness.see(Event::Ended { at, verdict: Err(failure) });
        witness.see(Event::Cleaned { at }).into_iter().find_map(|effect| match effect {
            Effect::Wake { after, .. } => Some(after.as_secs()),
            _ => None,
        })
    });
    assert_eq!(pauses.collect::<Vec<_>>(), [Some(1), Some(2), Some(4)]);
}

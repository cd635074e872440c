//! Whatever happens at the counter, its line is fair and loses nobody.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use algonius_actors::decide::admission::{AdmissionEffect, AdmissionEvent, Queue, step};
use algonius_actors::model::id::ExecutionId;
use proptest::prelude::*;
use uuid::Uuid;

fn id(number: usize) -> ExecutionId {
    ExecutionId(Uuid::from_u128(number as u128))
}

/// What has become of somebody who came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Waits,
    Refused,
    Joined,
    Left,
    Runs,
    Parked,
    Ended,
}

/// An onlooker who knows the rules and panics when one is broken.
struct Witness {
    line: Queue,
    capacity: usize,
    depth: usize,
    fates: BTreeMap<ExecutionId, Fate>,
    recorded: BTreeSet<ExecutionId>,
    /// Those who wait for the result of an equal request, and those who ever did: they may be
    /// overtaken.
    leaning: BTreeSet<ExecutionId>,
    leaned: BTreeSet<ExecutionId>,
    /// Those who were taken up from an earlier life, whatever the depth.
    recovered: usize,
    /// Whether nobody may begin.
    held: bool,
    /// Whether nobody may begin but who tries, and who does.
    shut: bool,
    tries: Option<ExecutionId>,
    /// How many waited and ran before the present event.
    before: (usize, usize),
    /// The order in which they came, and in which they began.
    came: Vec<ExecutionId>,
    begun: Vec<ExecutionId>,
}

impl Witness {
    fn new(capacity: u32, depth: u32) -> Self {
        Self {
            line: Queue::new(Some(capacity), depth),
            capacity: capacity as usize,
            depth: depth as usize,
            fates: BTreeMap::new(),
            recorded: BTreeSet::new(),
            leaning: BTreeSet::new(),
            leaned: BTreeSet::new(),
            recovered: 0,
            held: false,
            shut: false,
            tries: None,
            before: (0, 0),
            came: Vec::new(),
            begun: Vec::new(),
        }
    }

    fn those(&self, fate: Fate) -> Vec<ExecutionId> {
        self.came.iter().copied().filter(|id| self.fates.get(id) == Some(&fate)).collect()
    }

    fn see(&mut self, event: AdmissionEvent) {
        match event {
            AdmissionEvent::Arrived(id) | AdmissionEvent::Recovered(id) => {
                self.came.push(id);
                self.fates.insert(id, Fate::Waits);
            }
            AdmissionEvent::Resumed(id) => _ = self.fates.insert(id, Fate::Runs),
            AdmissionEvent::Left(id) => _ = self.fates.insert(id, Fate::Left),
            AdmissionEvent::Ended(id) => _ = self.fates.insert(id, Fate::Ended),
            AdmissionEvent::Held | AdmissionEvent::Released => {
                self.held = event == AdmissionEvent::Held;
            }
            AdmissionEvent::Shut | AdmissionEvent::Opened => {
                self.shut = event == AdmissionEvent::Shut;
            }
            AdmissionEvent::Tried(id) => self.tries = Some(id),
            AdmissionEvent::Parked(id) => _ = self.fates.insert(id, Fate::Parked),
            AdmissionEvent::Woken(id) => {
                self.fates.insert(id, Fate::Waits);
                self.leaned.insert(id); // It has begun before, and may be overtaken by nobody's fault.
                self.recovered += 1;
            }
            AdmissionEvent::Resized { capacity, depth } => {
                self.capacity = capacity.unwrap() as usize;
                self.depth = depth as usize;
            }
            AdmissionEvent::Recorded(_)
            | AdmissionEvent::Leans(_)
            | AdmissionEvent::Freed(_)
            | AdmissionEvent::Twin(..) => {}
        }
        self.see_places(event);
        self.before = (self.those(Fate::Waits).len(), self.those(Fate::Runs).len());
        let was_full = self.is_full_without(event);
        let (line, effects) = step(std::mem::take(&mut self.line), event);
        self.line = line;
        for effect in effects {
            self.follow(effect, was_full);
        }
        self.tries = None;
        self.check();
    }

    /// Updates the recorded requests and the places that are expected to become free.
    fn see_places(&mut self, event: AdmissionEvent) {
        match event {
            AdmissionEvent::Recorded(id) => _ = self.recorded.insert(id),
            AdmissionEvent::Leans(id) => {
                self.recorded.insert(id);
                if self.leaning.len() < self.depth {
                    self.leaning.insert(id);
                    self.leaned.insert(id);
                }
            }
            AdmissionEvent::Freed(id) | AdmissionEvent::Left(id) => _ = self.leaning.remove(&id),
            AdmissionEvent::Recovered(id) => {
                self.recorded.insert(id);
                self.recovered += 1;
            }
            AdmissionEvent::Arrived(_)
            | AdmissionEvent::Resumed(_)
            | AdmissionEvent::Ended(_)
            | AdmissionEvent::Twin(..) => {}
            AdmissionEvent::Shut | AdmissionEvent::Opened | AdmissionEvent::Tried(_) => {}
            AdmissionEvent::Parked(_) | AdmissionEvent::Woken(_) => {}
            AdmissionEvent::Held | AdmissionEvent::Released | AdmissionEvent::Resized { .. } => {}
        }
    }

    /// Whether the one who arrives now finds no place.
    fn is_full_without(&self, event: AdmissionEvent) -> bool {
        let running = self.those(Fate::Runs).len();
        let waiting = self.those(Fate::Waits).len();
        let others = waiting - usize::from(matches!(event, AdmissionEvent::Arrived(_)));
        let free = if self.held || self.shut { 0 } else { self.capacity.saturating_sub(running) };
        let leaning = self.leaning.len();
        others - leaning >= free && others - free >= self.depth
    }

    fn follow(&mut self, effect: AdmissionEffect, was_full: bool) {
        match effect {
            AdmissionEffect::Record(_) => assert!(!was_full, "let in although full"),
            AdmissionEffect::Refuse(id) => {
                assert!(was_full, "refused although there is a place");
                self.fates.insert(id, Fate::Refused);
            }
            AdmissionEffect::Run(id) => {
                assert_eq!(self.fates.insert(id, Fate::Runs), Some(Fate::Waits), "runs twice");
                assert!(self.recorded.contains(&id), "runs before it is recorded");
                assert!(!self.held, "begins while held");
                assert!(!self.shut || self.tries == Some(id), "begins while shut");
                assert!(!self.leaning.contains(&id), "runs although an equal one does");
                if !self.leaned.contains(&id) {
                    self.begun.push(id);
                }
            }
            AdmissionEffect::Join(id, _) => _ = self.fates.insert(id, Fate::Joined),
            AdmissionEffect::Queue(id, position) => {
                let place = self.those(Fate::Waits).iter().position(|one| *one == id).unwrap();
                assert_eq!(position, place + 1, "the wrong place");
            }
        }
    }

    fn check(&self) {
        let (waiting, running) = (self.those(Fate::Waits), self.those(Fate::Runs));
        // Where there is less room than there was, those who are in stay.
        let (waited, ran) = self.before;
        assert!(running.len() <= self.capacity.max(ran), "more run than may");
        let free = self.capacity.saturating_sub(running.len());
        let room = free + self.depth + self.recovered;
        assert!(waiting.len() <= room.max(waited), "more wait than may");
        assert_eq!(self.line.waiting().collect::<Vec<_>>(), waiting, "somebody is lost");
        assert_eq!(
            self.line.running().iter().copied().collect::<BTreeSet<_>>(),
            running.into_iter().collect()
        );
        let order = |id: &ExecutionId| self.came.iter().position(|one| one == id);
        assert!(self.begun.is_sorted_by_key(order), "somebody was overtaken");
        let first = waiting.iter().find(|id| !self.leaning.contains(id));
        let first = first.filter(|id| self.recorded.contains(*id));
        let may_begin = free > 0 && !self.held && !self.shut;
        assert!(!may_begin || first.is_none(), "a slot is free while somebody may run");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Events that a caller, the ledger and executions can cause, in any order; at last all
    /// records come and all who run end: nobody is left.
    #[test]
    fn the_queue_is_fair_and_loses_no_request(
        capacity in 1u32..4,
        depth in 0u32..5,
        recovered in 0usize..6,
        events in proptest::collection::vec((0usize..16, any::<prop::sample::Index>()), 0..80),
    ) {
        let mut witness = Witness::new(capacity, depth);
        let mut next = 0;
        for _ in 0..recovered {
            next += 1;
            witness.see(AdmissionEvent::Recovered(id(next)));
        }
        for (kind, index) in events {
            let waiting = witness.those(Fate::Waits);
            let is_unrecorded = |id: &ExecutionId| !witness.recorded.contains(id);
            let unrecorded: Vec<_> = waiting.iter().copied().filter(is_unrecorded).collect();
            let running = witness.those(Fate::Runs);
            let parked = witness.those(Fate::Parked);
            let leaning: Vec<_> = witness.leaning.iter().copied().collect();
            let of = |those: &[ExecutionId]| (!those.is_empty()).then(|| *index.get(those));
            let event = match kind {
                0 | 1 => { next += 1; Some(AdmissionEvent::Arrived(id(next))) }
                2 => of(&unrecorded).map(AdmissionEvent::Recorded),
                3 => of(&unrecorded).map(|one| AdmissionEvent::Twin(one, id(0))),
                4 => of(&waiting).map(AdmissionEvent::Left),
                5 => of(&unrecorded).map(AdmissionEvent::Leans),
                6 => of(&leaning).map(AdmissionEvent::Freed),
                7 => Some(AdmissionEvent::Held),
                8 => Some(AdmissionEvent::Released),
                9 => {
                    let below = |most: usize| u32::try_from(index.index(most)).unwrap();
                    let (capacity, depth) = (1 + below(4), below(7));
                    Some(AdmissionEvent::Resized { capacity: Some(capacity), depth })
                }
                10 => Some(AdmissionEvent::Shut),
                11 => Some(AdmissionEvent::Opened),
                12 => witness.line.next().map(AdmissionEvent::Tried),
                13 => of(&running).map(AdmissionEvent::Parked),
                14 => of(&parked).map(AdmissionEvent::Woken),
                _ => of(&running).map(AdmissionEvent::Ended),
            };
            if let Some(event) = event {
                witness.see(event);
            }
        }
        for one in witness.came.clone() {
            if witness.fates.get(&one) == Some(&Fate::Waits) && !witness.recorded.contains(&one) {
                witness.see(AdmissionEvent::Recorded(one));
            }
        }
        witness.see(AdmissionEvent::Released);
        witness.see(AdmissionEvent::Opened);
        for one in witness.those(Fate::Parked) {
            witness.see(AdmissionEvent::Woken(one));
        }
        for one in witness.leaning.clone() {
            witness.see(AdmissionEvent::Freed(one));
        }
        while let Some(one) = witness.those(Fate::Runs).first() {
            witness.see(AdmissionEvent::Ended(*one));
        }
        prop_assert_eq!(witness.those(Fate::Waits), []);
    }

    /// Events that mean nothing, about strangers, change nothing.
    #[test]
    fn events_of_unknown_requests_change_nothing(arrivals in 0usize..6) {
        let mut line = Queue::new(Some(1), 3);
        for number in 0..arrivals {
            line = step(line, AdmissionEvent::Arrived(id(number + 1))).0;
        }
        let stranger = id(1000);
        for event in [
            AdmissionEvent::Recorded(stranger),
            AdmissionEvent::Leans(stranger),
            AdmissionEvent::Freed(stranger),
            AdmissionEvent::Left(stranger),
            AdmissionEvent::Ended(stranger),
            AdmissionEvent::Woken(stranger),
            AdmissionEvent::Tried(stranger),
        ] {
            prop_assert_eq!(step(line.clone(), event), (line.clone(), Vec::new()));
        }
    }
}

#[test]
fn a_queue_without_a_limit_delays_and_refuses_no_request() {
    let mut line = Queue::new(None, 0);
    for number in 1..=100 {
        let (next, arrived) = step(line, AdmissionEvent::Arrived(id(number)));
        let (next, recorded) = step(next, AdmissionEvent::Recorded(id(number)));
        assert_eq!(
            (arrived, recorded),
            (vec![AdmissionEffect::Record(id(number))], vec![AdmissionEffect::Run(id(number))])
        );
        line = next;
    }
}

#[test]
fn a_request_that_is_not_coalesced_waits_for_its_record() {
    let (line, _) = step(Queue::new(Some(1), 3), AdmissionEvent::Arrived(id(1)));
    assert_eq!(step(line.clone(), AdmissionEvent::Freed(id(1))), (line, Vec::new()));
}

#[test]
fn a_deferred_request_holds_no_slot_and_resumes_first() {
    let mut line = Queue::new(Some(1), 1);
    let mut seen = Vec::new();
    for event in [
        AdmissionEvent::Arrived(id(1)),
        AdmissionEvent::Recorded(id(1)),
        AdmissionEvent::Parked(id(1)),
        AdmissionEvent::Arrived(id(2)),
        AdmissionEvent::Recorded(id(2)),
        AdmissionEvent::Arrived(id(3)),
        AdmissionEvent::Recorded(id(3)),
        AdmissionEvent::Woken(id(1)),
        AdmissionEvent::Ended(id(2)),
    ] {
        let effects;
        (line, effects) = step(line, event);
        seen.extend(effects.into_iter().filter(|effect| matches!(effect, AdmissionEffect::Run(_))));
    }
    assert_eq!(seen, [1, 2, 1].map(|number| AdmissionEffect::Run(id(number))));
    assert_eq!(line.waiting().collect::<Vec<_>>(), [id(3)]);
}

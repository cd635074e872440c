//! The decision about admission under arbitrary events: the queue is fair and loses no execution.

use std::collections::{BTreeMap, BTreeSet};

use algonius_actors::decide::admission::{
    AdmissionEffect, AdmissionEvent, AdmissionState, apply_event,
};
use algonius_actors::model::id::ExecutionId;
use proptest::prelude::*;
use uuid::Uuid;

fn execution_id(number: usize) -> ExecutionId {
    ExecutionId(Uuid::from_u128(number as u128))
}

/// What has become of somebody who came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestState {
    Waiting,
    Refused,
    Duplicate,
    LeftQueue,
    Running,
    Deferred,
    Ended,
}

/// Model that knows the rules and panics when one is broken.
struct QueueModel {
    queue: AdmissionState,
    max_running: usize,
    max_waiting: usize,
    states: BTreeMap<ExecutionId, RequestState>,
    recorded_ids: BTreeSet<ExecutionId>,
    /// Those who wait for the result of an equal request, and those who ever did: they may be
    /// overtaken.
    coalesced_ids: BTreeSet<ExecutionId>,
    overtakable_ids: BTreeSet<ExecutionId>,
    /// Hops, which do not count towards the depth.
    hops: BTreeSet<ExecutionId>,
    /// Number of the requests that are queued whatever the depth: recovered ones, hops, and ended deferrals.
    depth_exempt_count: usize,
    /// Whether nobody may begin.
    is_suspended: bool,
    /// True if only a probe may begin, and the probe.
    is_account_blocked: bool,
    probe: Option<ExecutionId>,
    /// How many waited and ran before the present event.
    counts_before_event: (usize, usize),
    /// The order in which they came, and in which they began.
    arrival_order: Vec<ExecutionId>,
    start_order: Vec<ExecutionId>,
}

impl QueueModel {
    fn new(max_running: u32, max_waiting: u32) -> Self {
        Self {
            queue: AdmissionState::new(Some(max_running), max_waiting),
            max_running: max_running as usize,
            max_waiting: max_waiting as usize,
            states: BTreeMap::new(),
            recorded_ids: BTreeSet::new(),
            coalesced_ids: BTreeSet::new(),
            overtakable_ids: BTreeSet::new(),
            hops: BTreeSet::new(),
            depth_exempt_count: 0,
            is_suspended: false,
            is_account_blocked: false,
            probe: None,
            counts_before_event: (0, 0),
            arrival_order: Vec::new(),
            start_order: Vec::new(),
        }
    }

    fn requests_in_state(&self, state: RequestState) -> Vec<ExecutionId> {
        self.arrival_order
            .iter()
            .copied()
            .filter(|id| self.states.get(id) == Some(&state))
            .collect()
    }

    fn apply(&mut self, event: AdmissionEvent) {
        match event {
            AdmissionEvent::Arrived(id)
            | AdmissionEvent::HopArrived(id)
            | AdmissionEvent::RecoveredWaiting(id) => {
                self.arrival_order.push(id);
                self.states.insert(id, RequestState::Waiting);
            }
            AdmissionEvent::RecoveredRunning(id) => {
                _ = self.states.insert(id, RequestState::Running);
            }
            AdmissionEvent::LeftQueue(id) => _ = self.states.insert(id, RequestState::LeftQueue),
            AdmissionEvent::Ended(id) => _ = self.states.insert(id, RequestState::Ended),
            AdmissionEvent::Suspended | AdmissionEvent::Unsuspended => {
                self.is_suspended = event == AdmissionEvent::Suspended;
            }
            AdmissionEvent::AccountBlocked | AdmissionEvent::AccountUnblocked => {
                self.is_account_blocked = event == AdmissionEvent::AccountBlocked;
            }
            AdmissionEvent::ProbeRequested(id) => self.probe = Some(id),
            AdmissionEvent::Deferred(id) => _ = self.states.insert(id, RequestState::Deferred),
            AdmissionEvent::DeferralEnded(id) => {
                self.states.insert(id, RequestState::Waiting);
                self.overtakable_ids.insert(id); // It has begun before, and may be overtaken by nobody's fault.
                self.depth_exempt_count += 1;
            }
            AdmissionEvent::Resized { max_running, max_waiting } => {
                self.max_running = max_running.unwrap() as usize;
                self.max_waiting = max_waiting as usize;
            }
            AdmissionEvent::Recorded(_)
            | AdmissionEvent::CoalescingStarted(_)
            | AdmissionEvent::CoalescingEnded(_)
            | AdmissionEvent::Duplicate(..) => {}
        }
        self.update_request_sets(event);
        self.counts_before_event = (
            self.requests_in_state(RequestState::Waiting).len(),
            self.requests_in_state(RequestState::Running).len(),
        );
        let was_full = self.is_full_for(event);
        let (queue, effects) = apply_event(std::mem::take(&mut self.queue), event);
        self.queue = queue;
        for effect in effects {
            self.apply_effect(effect, was_full);
        }
        self.probe = None;
        self.assert_invariants();
    }

    /// Updates the recorded, coalesced and recovered requests.
    fn update_request_sets(&mut self, event: AdmissionEvent) {
        match event {
            AdmissionEvent::Recorded(id) => _ = self.recorded_ids.insert(id),
            AdmissionEvent::CoalescingStarted(id) => {
                self.recorded_ids.insert(id);
                if self.coalesced_ids.len() < self.max_waiting {
                    self.coalesced_ids.insert(id);
                    self.overtakable_ids.insert(id);
                }
            }
            AdmissionEvent::CoalescingEnded(id) | AdmissionEvent::LeftQueue(id) => {
                _ = self.coalesced_ids.remove(&id);
            }
            AdmissionEvent::RecoveredWaiting(id) => {
                self.recorded_ids.insert(id);
                self.depth_exempt_count += 1;
            }
            AdmissionEvent::HopArrived(id) => {
                self.depth_exempt_count += 1; // Whatever the depth, too.
                self.hops.insert(id);
            }
            AdmissionEvent::Arrived(_)
            | AdmissionEvent::RecoveredRunning(_)
            | AdmissionEvent::Ended(_)
            | AdmissionEvent::Duplicate(..) => {}
            AdmissionEvent::AccountBlocked
            | AdmissionEvent::AccountUnblocked
            | AdmissionEvent::ProbeRequested(_) => {}
            // After a deferral a hop counts like any other.
            AdmissionEvent::DeferralEnded(id) => _ = self.hops.remove(&id),
            AdmissionEvent::Deferred(_) => {}
            AdmissionEvent::Suspended
            | AdmissionEvent::Unsuspended
            | AdmissionEvent::Resized { .. } => {}
        }
    }

    /// Whether the one who arrives now finds no place.
    fn is_full_for(&self, event: AdmissionEvent) -> bool {
        if matches!(event, AdmissionEvent::HopArrived(_)) {
            return false;
        }
        let running_count = self.requests_in_state(RequestState::Running).len();
        let waiting = self.requests_in_state(RequestState::Waiting);
        let waiting_count = waiting.iter().filter(|id| !self.hops.contains(id)).count();
        let waiting_before =
            waiting_count - usize::from(matches!(event, AdmissionEvent::Arrived(_)));
        let free_slots = if self.is_suspended || self.is_account_blocked {
            0
        } else {
            self.max_running.saturating_sub(running_count)
        };
        let coalesced_count =
            self.coalesced_ids.iter().filter(|id| !self.hops.contains(id)).count();
        waiting_before - coalesced_count >= free_slots
            && waiting_before - free_slots >= self.max_waiting
    }

    fn apply_effect(&mut self, effect: AdmissionEffect, was_full: bool) {
        match effect {
            AdmissionEffect::Record(_) => assert!(!was_full, "let in although full"),
            AdmissionEffect::Reject(id) => {
                assert!(was_full, "refused although there is a place");
                self.states.insert(id, RequestState::Refused);
            }
            AdmissionEffect::Start(id) => {
                assert_eq!(
                    self.states.insert(id, RequestState::Running),
                    Some(RequestState::Waiting),
                    "runs twice"
                );
                assert!(self.recorded_ids.contains(&id), "runs before it is recorded");
                assert!(!self.is_suspended, "begins while suspended");
                assert!(
                    !self.is_account_blocked || self.probe == Some(id),
                    "begins while the account is blocked"
                );
                assert!(!self.coalesced_ids.contains(&id), "runs although an equal one does");
                if !self.overtakable_ids.contains(&id) {
                    self.start_order.push(id);
                }
            }
            AdmissionEffect::ReturnOriginal(id, _) => {
                _ = self.states.insert(id, RequestState::Duplicate);
            }
            AdmissionEffect::ConfirmQueued(id, position) => {
                let expected_index = self
                    .requests_in_state(RequestState::Waiting)
                    .iter()
                    .position(|one| *one == id)
                    .unwrap();
                assert_eq!(position, expected_index + 1, "the wrong place");
            }
        }
    }

    fn assert_invariants(&self) {
        let (waiting, running) = (
            self.requests_in_state(RequestState::Waiting),
            self.requests_in_state(RequestState::Running),
        );
        // Where there is less room than there was, those who are in stay.
        let (waiting_before, running_before) = self.counts_before_event;
        assert!(running.len() <= self.max_running.max(running_before), "more run than may");
        let free_slots = self.max_running.saturating_sub(running.len());
        let allowed_waiting_count = free_slots + self.max_waiting + self.depth_exempt_count;
        assert!(waiting.len() <= allowed_waiting_count.max(waiting_before), "more wait than may");
        assert_eq!(self.queue.waiting().collect::<Vec<_>>(), waiting, "somebody is lost");
        assert_eq!(
            self.queue.running().iter().copied().collect::<BTreeSet<_>>(),
            running.into_iter().collect()
        );
        let arrival_index = |id: &ExecutionId| self.arrival_order.iter().position(|one| one == id);
        assert!(self.start_order.is_sorted_by_key(arrival_index), "somebody was overtaken");
        let first_startable = waiting.iter().find(|id| !self.coalesced_ids.contains(id));
        let first_startable = first_startable.filter(|id| self.recorded_ids.contains(*id));
        let may_begin = free_slots > 0 && !self.is_suspended && !self.is_account_blocked;
        assert!(!may_begin || first_startable.is_none(), "a slot is free while somebody may run");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Events that a caller, the ledger and executions can cause, in any order; at last all
    /// records come and all who run end: nobody is left.
    #[test]
    fn the_queue_is_fair_and_loses_no_request(
        max_running in 1u32..4,
        max_waiting in 0u32..5,
        recovered_count in 0usize..6,
        events in proptest::collection::vec((0usize..17, any::<prop::sample::Index>()), 0..80),
    ) {
        let mut model = QueueModel::new(max_running, max_waiting);
        let mut last_number = 0;
        for _ in 0..recovered_count {
            last_number += 1;
            model.apply(AdmissionEvent::RecoveredWaiting(execution_id(last_number)));
        }
        for (kind, index) in events {
            let waiting = model.requests_in_state(RequestState::Waiting);
            let is_unrecorded = |id: &ExecutionId| !model.recorded_ids.contains(id);
            let unrecorded: Vec<_> = waiting.iter().copied().filter(is_unrecorded).collect();
            let running = model.requests_in_state(RequestState::Running);
            let deferred = model.requests_in_state(RequestState::Deferred);
            let coalesced: Vec<_> = model.coalesced_ids.iter().copied().collect();
            let pick = |ids: &[ExecutionId]| (!ids.is_empty()).then(|| *index.get(ids));
            let event = match kind {
                0 | 1 => { last_number += 1; Some(AdmissionEvent::Arrived(execution_id(last_number))) }
                2 => pick(&unrecorded).map(AdmissionEvent::Recorded),
                3 => pick(&unrecorded).map(|one| AdmissionEvent::Duplicate(one, execution_id(0))),
                4 => pick(&waiting).map(AdmissionEvent::LeftQueue),
                5 => pick(&unrecorded).map(AdmissionEvent::CoalescingStarted),
                6 => pick(&coalesced).map(AdmissionEvent::CoalescingEnded),
                7 => Some(AdmissionEvent::Suspended),
                8 => Some(AdmissionEvent::Unsuspended),
                9 => {
                    let number_below = |end: usize| u32::try_from(index.index(end)).unwrap();
                    let (max_running, max_waiting) = (1 + number_below(4), number_below(7));
                    Some(AdmissionEvent::Resized { max_running: Some(max_running), max_waiting })
                }
                10 => Some(AdmissionEvent::AccountBlocked),
                11 => Some(AdmissionEvent::AccountUnblocked),
                12 => model.queue.next_probe_candidate().map(AdmissionEvent::ProbeRequested),
                13 => pick(&running).map(AdmissionEvent::Deferred),
                14 => pick(&deferred).map(AdmissionEvent::DeferralEnded),
                15 => { last_number += 1; Some(AdmissionEvent::HopArrived(execution_id(last_number))) }
                _ => pick(&running).map(AdmissionEvent::Ended),
            };
            if let Some(event) = event {
                model.apply(event);
            }
        }
        for id in model.arrival_order.clone() {
            if model.states.get(&id) == Some(&RequestState::Waiting) && !model.recorded_ids.contains(&id) {
                model.apply(AdmissionEvent::Recorded(id));
            }
        }
        model.apply(AdmissionEvent::Unsuspended);
        model.apply(AdmissionEvent::AccountUnblocked);
        for id in model.requests_in_state(RequestState::Deferred) {
            model.apply(AdmissionEvent::DeferralEnded(id));
        }
        for id in model.coalesced_ids.clone() {
            model.apply(AdmissionEvent::CoalescingEnded(id));
        }
        while let Some(id) = model.requests_in_state(RequestState::Running).first() {
            model.apply(AdmissionEvent::Ended(*id));
        }
        prop_assert_eq!(model.requests_in_state(RequestState::Waiting), []);
    }

    /// Events that mean nothing, about strangers, change nothing.
    #[test]
    fn events_of_unknown_requests_change_nothing(arrivals in 0usize..6) {
        let mut queue = AdmissionState::new(Some(1), 3);
        for number in 0..arrivals {
            queue = apply_event(queue, AdmissionEvent::Arrived(execution_id(number + 1))).0;
        }
        let unknown_id = execution_id(1000);
        for event in [
            AdmissionEvent::Recorded(unknown_id),
            AdmissionEvent::CoalescingStarted(unknown_id),
            AdmissionEvent::CoalescingEnded(unknown_id),
            AdmissionEvent::LeftQueue(unknown_id),
            AdmissionEvent::Ended(unknown_id),
            AdmissionEvent::DeferralEnded(unknown_id),
            AdmissionEvent::ProbeRequested(unknown_id),
        ] {
            prop_assert_eq!(apply_event(queue.clone(), event), (queue.clone(), Vec::new()));
        }
    }
}

#[test]
fn a_queue_without_a_limit_delays_and_refuses_no_request() {
    let mut queue = AdmissionState::new(None, 0);
    for number in 1..=100 {
        let (next, arrived) = apply_event(queue, AdmissionEvent::Arrived(execution_id(number)));
        let (next, recorded) = apply_event(next, AdmissionEvent::Recorded(execution_id(number)));
        assert_eq!(
            (arrived, recorded),
            (
                vec![AdmissionEffect::Record(execution_id(number))],
                vec![AdmissionEffect::Start(execution_id(number))]
            )
        );
        queue = next;
    }
}

#[test]
fn a_request_that_is_not_coalesced_waits_for_its_record() {
    let (queue, _) =
        apply_event(AdmissionState::new(Some(1), 3), AdmissionEvent::Arrived(execution_id(1)));
    assert_eq!(
        apply_event(queue.clone(), AdmissionEvent::CoalescingEnded(execution_id(1))),
        (queue, Vec::new())
    );
}

#[test]
fn a_deferred_request_holds_no_slot_and_resumes_first() {
    let mut queue = AdmissionState::new(Some(1), 1);
    let mut start_effects = Vec::new();
    for event in [
        AdmissionEvent::Arrived(execution_id(1)),
        AdmissionEvent::Recorded(execution_id(1)),
        AdmissionEvent::Deferred(execution_id(1)),
        AdmissionEvent::Arrived(execution_id(2)),
        AdmissionEvent::Recorded(execution_id(2)),
        AdmissionEvent::Arrived(execution_id(3)),
        AdmissionEvent::Recorded(execution_id(3)),
        AdmissionEvent::DeferralEnded(execution_id(1)),
        AdmissionEvent::Ended(execution_id(2)),
    ] {
        let effects;
        (queue, effects) = apply_event(queue, event);
        start_effects.extend(
            effects.into_iter().filter(|effect| matches!(effect, AdmissionEffect::Start(_))),
        );
    }
    assert_eq!(start_effects, [1, 2, 1].map(|number| AdmissionEffect::Start(execution_id(number))));
    assert_eq!(queue.waiting().collect::<Vec<_>>(), [execution_id(3)]);
}

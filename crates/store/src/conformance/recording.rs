//! Conformance tests of events and of the end.

use std::collections::BTreeSet;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, TextChannel, TextChunk, TextRange};
use algonius_actors::model::execution::{AttemptId, ExecutionState, Fence, Outcome, StateChange};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::{ClaimCommand, ClaimResult, Settlement, WriteBatch};
use tokio::task::JoinSet;

use ExecutionState::{Cleanup, Completed, Failed, Idle, Running, Starting};

use super::{
    AnyLedger, accept_and_claim, accept_execution, at_second, event_numbers, load_record,
    new_claim_command, settlement, state_change, warning_event,
};

pub(crate) async fn the_row_follows_its_events(ledger: AnyLedger) {
    let (id, fence) = accept_and_claim(&ledger).await;
    let next = AttemptId::FIRST.next_turn();
    let next_turn_running = StateChange { attempt_id: next, ..state_change(Starting, Running, 4) };
    let failure = Failure::new(Code::Exit, "it went wrong");
    let recorded_events = vec![
        (at_second(4), EventKind::ProcessStarted { pid: 4711 }),
        (at_second(4), EventKind::StateChanged(next_turn_running)),
        (at_second(5), EventKind::AttemptFailed(failure.clone())),
        warning_event("disk is slow"),
    ];
    assert!(ledger.append_events(id, fence, recorded_events.clone()).await.unwrap());
    let row = load_record(&ledger, id).await;
    assert_eq!((row.state, row.attempt_id, row.changed_at), (Running, next, at_second(4)));
    assert_eq!((row.pid, row.failure, row.last_event_number), (Some(4711), Some(failure), 6));
    let events = ledger.events(id, 2).await.unwrap();
    assert_eq!(events.iter().map(|event| event.number).collect::<Vec<_>>(), [3, 4, 5, 6]);
    assert_eq!(
        events.into_iter().map(|event| (event.at, event.data)).collect::<Vec<_>>(),
        recorded_events
    );
}

pub(crate) async fn only_the_first_of_two_settlements_counts(ledger: AnyLedger) {
    let (id, fence) = accept_and_claim(&ledger).await;
    let mut tasks = JoinSet::new();
    for outcome in [Outcome::Completed, Outcome::Cancelled] {
        let ledger = ledger.clone();
        let end = settlement(id, fence, outcome);
        tasks.spawn(async move { ledger.settle(end).await.unwrap().then_some(outcome) });
    }
    let accepted_outcomes: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(accepted_outcomes.len(), 1);
    let row = load_record(&ledger, id).await;
    assert_eq!(
        (row.outcome, row.state),
        (Some(accepted_outcomes[0]), accepted_outcomes[0].state())
    );
    assert_eq!((row.ended_at, row.exit_code, row.pid), (Some(at_second(9)), Some(0), None));
    assert_eq!(event_numbers(&ledger, id).await, [1, 2, 3]);
}

pub(crate) async fn only_the_cleanup_is_recorded_after_the_end(ledger: AnyLedger) {
    let (id, fence) = accept_and_claim(&ledger).await;
    assert!(ledger.settle(settlement(id, fence, Outcome::Completed)).await.unwrap());
    let cleanup =
        |from, to| vec![(at_second(10), EventKind::StateChanged(state_change(from, to, 10)))];
    let mut append_results = Vec::new();
    for (fence, events) in [
        (fence, vec![warning_event("late")]),
        (fence, cleanup(Starting, Running)),
        (fence, cleanup(Completed, Cleanup)),
        (Fence(7), cleanup(Cleanup, Idle)),
        (fence, cleanup(Cleanup, Idle)),
    ] {
        append_results.push(ledger.append_events(id, fence, events).await.unwrap());
    }
    assert_eq!(append_results, [false, false, true, false, true]);
    let row = load_record(&ledger, id).await;
    assert_eq!((row.state, row.outcome), (Idle, Some(Outcome::Completed)));
    assert_eq!(event_numbers(&ledger, id).await, [1, 2, 3, 4, 5]);
}

pub(crate) async fn text_is_stored_with_any_events_of_its_batch(ledger: AnyLedger) {
    let (id, fence) = accept_and_claim(&ledger).await;
    let (mut offset, mut numbers) = (0, 0..);
    let mut batch = |text: &str, events| {
        let number = numbers.next().unwrap();
        let (attempt_id, channel) = (AttemptId::FIRST, TextChannel::Stdout);
        let chunk = TextChunk { attempt_id, channel, number, offset, text: text.to_owned() };
        offset += text.len() as u64;
        WriteBatch { chunks: vec![chunk], events }
    };
    assert!(ledger.append_batch(id, fence, batch("alone, ", Vec::new())).await.unwrap());
    assert!(
        ledger
            .append_batch(id, fence, batch("with a fact, ", vec![warning_event("one")]))
            .await
            .unwrap()
    );
    // Events under a lost claim are dropped; the output of its program is stored.
    assert!(
        !ledger
            .append_batch(id, Fence(7), batch("late, ", vec![warning_event("no")]))
            .await
            .unwrap()
    );
    let end = settlement(id, fence, Outcome::Completed);
    let last_batch = batch("at the end", vec![warning_event("two"), end.batch.events[0].clone()]);
    assert!(ledger.settle(Settlement { batch: last_batch, ..end }).await.unwrap());
    let range = TextRange {
        attempt_id: AttemptId::FIRST,
        channel: TextChannel::Stdout,
        from: 0,
        to: offset,
    };
    let text = ledger.text(id, range).await.unwrap();
    assert_eq!(text, "alone, with a fact, late, at the end");
    let event_data = ledger.events(id, 2).await.unwrap().into_iter().map(|event| event.data);
    let event_data: Vec<_> = event_data.take(2).collect();
    assert_eq!(event_data, [warning_event("one").1, warning_event("two").1]);
    assert_eq!(load_record(&ledger, id).await.state, Completed);
}

pub(crate) async fn an_ended_execution_is_not_claimed_again(ledger: AnyLedger) {
    let (id, fence) = accept_and_claim(&ledger).await;
    let spawned = vec![(at_second(2), EventKind::ProcessStarted { pid: 4711 })];
    assert!(ledger.append_events(id, fence, spawned).await.unwrap());
    assert!(ledger.settle(settlement(id, fence, Outcome::Failed)).await.unwrap());
    let row = load_record(&ledger, id).await;
    assert_eq!((row.state, row.pid), (Failed, None));
    let second_claim = ClaimCommand { fence, ..new_claim_command(id, None) };
    assert_eq!(ledger.claim(second_claim).await.unwrap(), ClaimResult::Superseded);
}

pub(crate) async fn an_execution_that_never_ran_is_settled_with_its_reason(ledger: AnyLedger) {
    let id = accept_execution(&ledger).await;
    let failure = Some(Failure::new(Code::QueueTimeout, "it waited too long"));
    let state_changes = vec![state_change(Idle, Failed, 9)];
    let end = Settlement {
        failure: failure.clone(),
        exit_code: None,
        batch: WriteBatch::from_transitions(state_changes),
        ..settlement(id, Fence(0), Outcome::Failed)
    };
    assert!(ledger.settle(end).await.unwrap());
    let row = load_record(&ledger, id).await;
    assert_eq!((row.failure, row.exit_code, row.started_at), (failure, None, None));
}

pub(crate) async fn two_writers_leave_no_gap_in_the_event_numbers(ledger: AnyLedger) {
    let (id, fence) = accept_and_claim(&ledger).await;
    let mut tasks = JoinSet::new();
    for recorder in 0..2 {
        let ledger = ledger.clone();
        tasks.spawn(async move {
            for number in 0..40 {
                let events =
                    vec![warning_event(&format!("{recorder} {number}")), warning_event("and more")];
                assert!(ledger.append_events(id, fence, events).await.unwrap());
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(event_numbers(&ledger, id).await, (1..=162).collect::<Vec<_>>());
    assert_eq!(load_record(&ledger, id).await.last_event_number, 162);
    let distinct: BTreeSet<String> = ledger
        .events(id, 2)
        .await
        .unwrap()
        .into_iter()
        .map(|event| format!("{:?}", event.data))
        .collect();
    assert_eq!(distinct.len(), 81);
}

/// Polling client that reads so often that the cache could return the state before a change.
struct Poller<'l>(&'l AnyLedger, ExecutionId);

impl Poller<'_> {
    /// Reads the state, the numbers of the events and the text four times, and expects equal results.
    async fn poll(&self) -> (ExecutionState, Vec<u64>, String) {
        let Self(ledger, id) = self;
        let (attempt_id, channel) = (AttemptId::FIRST, TextChannel::Stdout);
        let full_range = TextRange { attempt_id, channel, from: 0, to: 1 << 20 };
        let mut seen = BTreeSet::new();
        for _ in 0..4 {
            let state = load_record(ledger, *id).await.effective_state();
            let text = ledger.text(*id, full_range).await.unwrap();
            seen.insert((state.as_str(), event_numbers(ledger, *id).await, text));
        }
        let [(state, numbers, text)] = seen.into_iter().collect::<Vec<_>>().try_into().unwrap();
        (ExecutionState::parse(state).unwrap(), numbers, text)
    }

    async fn append_chunk(&self, number: u32, offset: u64, text: &str) {
        let (attempt_id, channel, text) = (AttemptId::FIRST, TextChannel::Stdout, text.to_owned());
        self.0
            .append_chunk(self.1, TextChunk { attempt_id, channel, number, offset, text })
            .await
            .unwrap();
    }
}

pub(crate) async fn repeated_polls_see_every_change(ledger: AnyLedger) {
    let (id, other) = (accept_execution(&ledger).await, accept_execution(&ledger).await);
    let (poller, other_poller) = (Poller(&ledger, id), Poller(&ledger, other));
    let expected_result =
        |state, last, text: &str| (state, (1..=last).collect::<Vec<u64>>(), text.to_owned());
    assert_eq!(poller.poll().await, expected_result(Idle, 1, ""));
    assert_eq!(
        ledger.claim(new_claim_command(id, None)).await.unwrap(),
        ClaimResult::Granted(Fence(1))
    );
    assert_eq!(poller.poll().await, expected_result(Starting, 2, ""));
    poller.append_chunk(0, 0, "one").await;
    assert_eq!(poller.poll().await, expected_result(Starting, 2, "one"));
    let started = vec![(at_second(4), EventKind::StateChanged(state_change(Starting, Running, 4)))];
    assert!(ledger.append_events(id, Fence(1), started).await.unwrap());
    assert_eq!(poller.poll().await, expected_result(Running, 3, "one"));
    ledger.delete_output(id, AttemptId::FIRST).await.unwrap();
    assert_eq!(poller.poll().await, expected_result(Running, 3, ""));
    poller.append_chunk(0, 0, "two").await;
    assert!(ledger.settle(settlement(id, Fence(1), Outcome::Completed)).await.unwrap());
    assert_eq!(poller.poll().await, expected_result(Completed, 4, "two"));
    assert_eq!(other_poller.poll().await, expected_result(Idle, 1, ""));
}

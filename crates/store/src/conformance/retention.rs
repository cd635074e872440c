//! Conformance tests of the history: reads in parts, statistics, and removal with all dependent data.

use algonius_actors::model::execution::event::{TextChannel, TextChunk, TextRange};
use algonius_actors::model::execution::record::ExecutionFilter;
use algonius_actors::model::execution::{AttemptId, Fence, Outcome};
use algonius_actors::model::host::storage_stats::{DeletionOutcome, RetentionBatchSelector};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::history::TextSlice;
use algonius_actors::ports::ledger::{AcceptCommand, Settlement};

use super::{
    AnyHistory, AnyLedger, accept_execution, at_second, new_accept_command, settlement,
    warning_event,
};

/// Instantiates all tests for a history that `$open` returns with its ledger.
macro_rules! history_conformance {
    ($open:path) => {
        history_conformance! { $open:
            events_are_read_in_parts_without_a_gap
            text_ranges_have_whole_characters_without_a_gap
            each_text_of_an_execution_is_listed_with_its_length
            a_sealed_input_is_erased_after_the_retry_window
            removing_an_execution_removes_all_its_data
            a_sweep_removes_the_oldest_ended_executions
        }
    };
    ($open:path: $($test:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $test() {
            let (ledger, history, _guard) = $open().await;
            crate::conformance::retention::$test(ledger, history).await;
        })*
    };
}
pub(crate) use history_conformance;

pub(crate) async fn events_are_read_in_parts_without_a_gap(ledger: AnyLedger, history: AnyHistory) {
    let id = accept_execution(&ledger).await;
    let warnings = (0..20).map(|_| warning_event("mind the gap")).collect();
    assert!(ledger.append_events(id, Fence(0), warnings).await.unwrap());
    let (mut numbers, mut after) = (Vec::new(), 0);
    loop {
        let event_page = history.next_events(id, after, 6).await.unwrap();
        assert!(event_page.len() <= 6);
        let Some(last) = event_page.last() else { break };
        after = last.number;
        numbers.extend(event_page.iter().map(|event| event.number));
    }
    assert_eq!(numbers, (1..=21).collect::<Vec<_>>());
}

async fn append_output(ledger: &AnyLedger, id: ExecutionId, pieces: &[&str]) {
    let mut offset = 0;
    for (number, text) in (0..).zip(pieces) {
        let (channel, attempt_id) = (TextChannel::Stdout, AttemptId::FIRST);
        let text = (*text).to_owned();
        let length = text.len() as u64;
        ledger
            .append_chunk(id, TextChunk { attempt_id, channel, number, offset, text })
            .await
            .unwrap();
        offset += length;
    }
}

pub(crate) async fn text_ranges_have_whole_characters_without_a_gap(
    ledger: AnyLedger,
    history: AnyHistory,
) {
    let id = accept_execution(&ledger).await;
    let pieces = ["aé€", "x𝄞", "zß\u{fffd}"];
    append_output(&ledger, id, &pieces).await;
    let full_text = pieces.concat();
    for step in 4..9 {
        let (mut read_text, mut from) = (String::new(), 0);
        loop {
            let range = TextRange {
                attempt_id: AttemptId::FIRST,
                channel: TextChannel::Stdout,
                from,
                to: from + step,
            };
            let slice = history.text_slice(id, range).await.unwrap();
            if slice.text.is_empty() {
                break;
            }
            assert_eq!(slice.start_offset, from);
            from = slice.end_offset();
            read_text += &slice.text;
        }
        assert_eq!(read_text, full_text, "by {step}");
    }
    let unaligned_range =
        TextRange { attempt_id: AttemptId::FIRST, channel: TextChannel::Stdout, from: 2, to: 6 };
    let slice = TextSlice { start_offset: 3, text: "€".to_owned() };
    assert_eq!(history.text_slice(id, unaligned_range).await.unwrap(), slice);
}

pub(crate) async fn each_text_of_an_execution_is_listed_with_its_length(
    ledger: AnyLedger,
    history: AnyHistory,
) {
    let id = accept_execution(&ledger).await;
    append_output(&ledger, id, &["one é", "two"]).await;
    let mut text_ranges = history.text_ranges(id).await.unwrap();
    text_ranges.sort_by_key(|text| text.channel.as_str());
    let text_range = |channel, to| TextRange { attempt_id: AttemptId::FIRST, channel, from: 0, to };
    let input_length = "look at this".len() as u64;
    assert_eq!(
        text_ranges,
        [text_range(TextChannel::Input, input_length), text_range(TextChannel::Stdout, 9)]
    );
    assert_eq!(history.text_ranges(ExecutionId::generate()).await.unwrap(), []);
}

pub(crate) async fn a_sealed_input_is_erased_after_the_retry_window(
    ledger: AnyLedger,
    history: AnyHistory,
) {
    let erased = super::sealing::failed_execution(&ledger, false).await.id;
    let retained = super::sealing::failed_execution(&ledger, true).await.id;
    let unfinished = super::sealing::sealed_request(&[1]);
    ledger.accept(unfinished.clone()).await.unwrap();
    let is_stored = async |id| ledger.sealed_input(id).await.unwrap().is_some();
    assert_eq!((is_stored(erased).await, is_stored(retained).await), (false, true));
    assert_eq!(history.erase_sealed_inputs(at_second(9)).await.unwrap(), 0);
    assert!(is_stored(retained).await);
    assert_eq!(history.erase_sealed_inputs(at_second(10)).await.unwrap(), 1);
    assert_eq!((is_stored(retained).await, is_stored(unfinished.id).await), (false, true));
    assert_eq!(history.erase_sealed_inputs(at_second(10)).await.unwrap(), 0);
}

pub(crate) async fn removing_an_execution_removes_all_its_data(
    ledger: AnyLedger,
    history: AnyHistory,
) {
    let command = new_accept_command("look at this");
    let (id, other) = (command.id, accept_execution(&ledger).await);
    ledger.accept(command.clone()).await.unwrap();
    append_output(&ledger, id, &["an answer"]).await;
    assert_eq!(history.remove(id).await.unwrap(), DeletionOutcome::NotEnded);
    assert!(ledger.settle(settlement(id, Fence(0), Outcome::Completed)).await.unwrap());
    let before = history.storage_stats().await.unwrap();
    assert_eq!((before.executions, before.ended), (2, 1));
    ledger.accept(AcceptCommand { id: ExecutionId::generate(), ..command.clone() }).await.unwrap();
    for _ in 0..3 {
        assert!(ledger.execution(id).await.unwrap().is_some());
        assert_ne!(ledger.events(id, 0).await.unwrap(), []);
    }
    assert_eq!(history.remove(id).await.unwrap(), DeletionOutcome::Removed);
    assert_eq!(history.remove(id).await.unwrap(), DeletionOutcome::Unknown);
    assert_eq!(ledger.execution(id).await.unwrap(), None);
    assert_eq!(ledger.events(id, 0).await.unwrap(), []);
    assert_eq!(history.text_ranges(id).await.unwrap(), []);
    let key = command.keys.message_key;
    assert_eq!(ledger.find_by_key(command.owner, &command.agent, key).await.unwrap(), None);
    assert_eq!(ledger.find_cached_by_key(command.owner, &command.agent, key).await, None);
    assert_eq!(history.storage_stats().await.unwrap().executions, 1);
    assert!(ledger.execution(other).await.unwrap().is_some());
}

pub(crate) async fn a_sweep_removes_the_oldest_ended_executions(
    ledger: AnyLedger,
    history: AnyHistory,
) {
    let running = accept_execution(&ledger).await;
    let mut ids = Vec::new();
    for at in [40, 20, 30] {
        let command = AcceptCommand { at: at_second(0), ..new_accept_command("look at this") };
        let end = settlement(command.id, Fence(0), Outcome::Completed);
        ids.push(command.id);
        ledger.accept(command).await.unwrap();
        assert!(ledger.settle(Settlement { at: at_second(at), ..end }).await.unwrap());
    }
    let remaining_ids = async || {
        let remaining = ledger.executions(ExecutionFilter::default()).await.unwrap();
        remaining.iter().map(|record| record.id).collect::<Vec<_>>()
    };
    let batch = RetentionBatchSelector { from: None, before: Some(at_second(40)), limit: 1 };
    assert_eq!(history.remove_batch(batch).await.unwrap(), 1);
    assert_eq!(remaining_ids().await, [ids[2], ids[0], running]);
    assert_eq!(
        history.remove_batch(RetentionBatchSelector { limit: 9, ..batch }).await.unwrap(),
        1
    );
    assert_eq!(history.remove_batch(batch).await.unwrap(), 0);
    assert_eq!(remaining_ids().await, [ids[0], running]);
    let later = RetentionBatchSelector { from: Some(at_second(41)), before: None, limit: 9 };
    assert_eq!(history.remove_batch(later).await.unwrap(), 0);
    assert_eq!(
        history
            .remove_batch(RetentionBatchSelector { from: Some(at_second(40)), ..later })
            .await
            .unwrap(),
        1
    );
    assert_eq!(remaining_ids().await, [running]);
}

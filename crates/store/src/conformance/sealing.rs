//! Conformance tests of sealed inputs of executions.

use algonius_actors::model::execution::{Fence, Outcome};
use algonius_actors::ports::ledger::{AcceptCommand, AnswerCommand, Settlement};

use super::answering::{execution_awaiting_input, new_answer_command};
use super::{AnyLedger, new_accept_command, settlement};

/// Returns a request whose input was changed by redaction.
pub(super) fn sealed_request(bytes: &[u8]) -> AcceptCommand {
    AcceptCommand {
        stores_raw_input: false,
        sealed_input: Some(bytes.to_vec()),
        ..new_accept_command("look at ***")
    }
}

pub(crate) async fn a_sealed_input_is_read_back_and_erased_with_the_end(ledger: AnyLedger) {
    let long: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    for bytes in [&[0_u8][..], &[7; 64 << 10], &[8; (64 << 10) + 1], &long] {
        let command = sealed_request(bytes);
        let id = command.id;
        ledger.accept(command).await.unwrap();
        assert_eq!(ledger.sealed_input(id).await.unwrap().as_deref(), Some(bytes));
        let end = settlement(id, Fence(5), Outcome::Completed);
        assert!(!ledger.settle(end).await.unwrap(), "another has claimed it");
        assert!(ledger.sealed_input(id).await.unwrap().is_some());
        assert!(ledger.settle(settlement(id, Fence(0), Outcome::Completed)).await.unwrap());
        assert_eq!(ledger.sealed_input(id).await.unwrap(), None);
    }
    let unsealed = new_accept_command("look at this");
    let id = unsealed.id;
    ledger.accept(unsealed).await.unwrap();
    assert_eq!(ledger.sealed_input(id).await.unwrap(), None);
}

pub(crate) async fn the_sealed_input_of_a_turn_replaces_the_previous_one(ledger: AnyLedger) {
    for (sealed, stores_raw_input) in [(Some(vec![3; 9]), false), (None, true)] {
        let (id, fence) = execution_awaiting_input(&ledger).await;
        let first = AnswerCommand {
            sealed_input: Some(vec![1; 100_000]),
            ..new_answer_command(id, fence, "***")
        };
        assert!(ledger.record_answer(first).await.unwrap());
        assert_eq!(ledger.sealed_input(id).await.unwrap().unwrap().len(), 100_000);
        // An answer that comes too late changes nothing.
        let late = AnswerCommand {
            sealed_input: sealed.clone(),
            stores_raw_input,
            ..new_answer_command(id, fence, "late")
        };
        assert!(!ledger.record_answer(late).await.unwrap());
        assert_eq!(ledger.sealed_input(id).await.unwrap().unwrap().len(), 100_000);
        let (id, fence) = execution_awaiting_input(&ledger).await;
        let next = AnswerCommand {
            sealed_input: sealed.clone(),
            stores_raw_input,
            ..new_answer_command(id, fence, "next")
        };
        assert!(ledger.record_answer(next).await.unwrap());
        assert_eq!(ledger.sealed_input(id).await.unwrap(), sealed);
    }
}

pub(super) async fn failed_execution(
    ledger: &AnyLedger,
    keeps_sealed_input: bool,
) -> AcceptCommand {
    let command = sealed_request(&[9; 100]);
    ledger.accept(command.clone()).await.unwrap();
    let end = settlement(command.id, Fence(0), Outcome::Failed);
    assert!(ledger.settle(Settlement { keeps_sealed_input, ..end }).await.unwrap());
    command
}

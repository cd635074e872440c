//! Conformance tests of accepted requests.

use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::execution::record::{ExecutionFilter, ExecutionRecord, RequestedInput};
use algonius_actors::model::execution::request::DedupKeys;
use algonius_actors::model::execution::{AttemptId, ExecutionState, Fence, Outcome};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::ports::ledger::{AcceptCommand, AcceptResult, ClaimResult};
use tokio::task::JoinSet;
use uuid::Uuid;

use ExecutionState::Idle;

use super::{
    AnyLedger, accept_execution, at_second, input_range, load_record, message_keys,
    new_accept_command, new_claim_command, settlement,
};

pub(crate) async fn an_accepted_request_is_read_back_unchanged(ledger: AnyLedger) {
    let command = new_accept_command("look at this");
    assert_eq!(ledger.accept(command.clone()).await.unwrap(), AcceptResult::Created);
    let expected = ExecutionRecord {
        id: command.id,
        agent: command.agent,
        owner: command.owner,
        message_id: command.message_id,
        context: command.context,
        trigger: command.trigger,
        trace: command.trace,
        access: command.access,
        state: Idle,
        outcome: None,
        failure: None,
        attempt_id: AttemptId::FIRST,
        fence: Fence(0),
        requested_input: RequestedInput::default(),
        params: command.params,
        overrides: command.overrides,
        stores_raw_input: true,
        latest_deferral: None,
        spent: Charge::default(),
        accepted_at: at_second(0),
        started_at: None,
        changed_at: at_second(0),
        ended_at: None,
        pid: None,
        exit_code: None,
        last_event_number: 1,
    };
    assert_eq!(load_record(&ledger, command.id).await, expected);
    assert_eq!(ledger.text(command.id, input_range("look at this")).await.unwrap(), "look at this");
    assert_eq!(ledger.execution(ExecutionId::generate()).await.unwrap(), None);
}

pub(crate) async fn an_equal_key_is_a_duplicate_or_a_conflict(ledger: AnyLedger) {
    let first = new_accept_command("look at this");
    let duplicate = AcceptCommand { id: ExecutionId::generate(), ..first.clone() };
    let different_digest = AcceptCommand { content_digest: [8; 32], ..duplicate.clone() };
    let other_owner = AcceptCommand { owner: PrincipalId(Uuid::max()), ..duplicate.clone() };
    let other_agent = AgentId::new("writer").unwrap();
    let other_agent =
        AcceptCommand { id: ExecutionId::generate(), agent: other_agent, ..duplicate.clone() };
    assert_eq!(ledger.accept(first.clone()).await.unwrap(), AcceptResult::Created);
    assert_eq!(ledger.accept(duplicate.clone()).await.unwrap(), AcceptResult::Duplicate(first.id));
    assert_eq!(ledger.accept(different_digest).await.unwrap(), AcceptResult::Conflict);
    let repeated_message =
        ledger.find_cached_by_key(first.owner, &first.agent, first.keys.message_key).await;
    assert!(repeated_message.is_none_or(|known| known == (first.id, first.content_digest)));
    assert_eq!(
        ledger.find_cached_by_key(other_owner.owner, &first.agent, first.keys.message_key).await,
        None
    );
    assert_eq!(
        ledger.find_cached_by_key(first.owner, &other_agent.agent, first.keys.message_key).await,
        None
    );
    assert_eq!(ledger.execution(duplicate.id).await.unwrap(), None);
    assert_eq!(ledger.accept(other_owner).await.unwrap(), AcceptResult::Created);
    assert_eq!(ledger.accept(other_agent).await.unwrap(), AcceptResult::Created);
}

pub(crate) async fn one_of_100_equal_requests_is_new(ledger: AnyLedger) {
    let first = new_accept_command("look at this");
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let (ledger, command) =
            (ledger.clone(), AcceptCommand { id: ExecutionId::generate(), ..first.clone() });
        tasks.spawn(async move { (command.id, ledger.accept(command).await.unwrap()) });
    }
    let acceptances = tasks.join_all().await;
    let created_ids: Vec<_> = acceptances
        .iter()
        .filter(|(_, answer)| *answer == AcceptResult::Created)
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(created_ids.len(), 1);
    let duplicates =
        acceptances.iter().filter(|(_, answer)| *answer == AcceptResult::Duplicate(created_ids[0]));
    assert_eq!(duplicates.count(), 99);
    assert_eq!(ledger.executions(ExecutionFilter::default()).await.unwrap().len(), 1);
}

/// Returns a request whose message key and idempotency key consist of these bytes.
fn request_with_keys(message_key_byte: u8, idempotency_key_byte: u8) -> AcceptCommand {
    let keys = DedupKeys {
        message_key: [message_key_byte; 32],
        idempotency_key: Some([idempotency_key_byte; 32]),
    };
    AcceptCommand { keys, ..new_accept_command("look at this") }
}

pub(crate) async fn an_idempotency_key_identifies_a_request(ledger: AnyLedger) {
    let first = request_with_keys(1, 1);
    let without_idempotency_key =
        AcceptCommand { keys: message_keys([1; 32]), ..new_accept_command("look at this") };
    let other = request_with_keys(2, 2);
    for (command, expected) in [
        (first.clone(), AcceptResult::Created),
        (request_with_keys(1, 1), AcceptResult::Duplicate(first.id)),
        (request_with_keys(3, 1), AcceptResult::Duplicate(first.id)),
        (without_idempotency_key, AcceptResult::Duplicate(first.id)),
        (request_with_keys(1, 3), AcceptResult::Duplicate(first.id)),
        (
            AcceptCommand { content_digest: [8; 32], ..request_with_keys(4, 1) },
            AcceptResult::Conflict,
        ),
        (other.clone(), AcceptResult::Created),
        (request_with_keys(1, 2), AcceptResult::Conflict),
    ] {
        let keys = command.keys;
        assert_eq!(ledger.accept(command).await.unwrap(), expected, "{keys:?}");
    }
    let all = ledger.executions(ExecutionFilter::default()).await.unwrap();
    assert_eq!(all.iter().map(|record| record.id).collect::<Vec<_>>(), [other.id, first.id]);
}

pub(crate) async fn one_of_100_requests_with_one_idempotency_key_is_new(ledger: AnyLedger) {
    let mut tasks = JoinSet::new();
    for message in 0..100 {
        let ledger = ledger.clone();
        tasks.spawn(async move { ledger.accept(request_with_keys(message, 1)).await.unwrap() });
    }
    let created =
        tasks.join_all().await.into_iter().filter(|answer| *answer == AcceptResult::Created);
    assert_eq!(created.count(), 1);
    assert_eq!(ledger.executions(ExecutionFilter::default()).await.unwrap().len(), 1);
}

/// Returns a request whose content has this key, accepted at this time, that accepts results of the last minute.
fn request_with_coalescing_key(key: u8, at: i64) -> AcceptCommand {
    let coalescing_key = Some(([key; 32], at_second(at - 60)));
    AcceptCommand {
        coalescing_key_and_since: coalescing_key,
        at: at_second(at),
        ..new_accept_command("look at this")
    }
}

pub(crate) async fn an_equal_request_is_found_while_its_result_can_be_shared(ledger: AnyLedger) {
    let accept = async |command: &AcceptCommand| ledger.accept(command.clone()).await.unwrap();
    let first = request_with_coalescing_key(1, 0);
    assert_eq!(accept(&first).await, AcceptResult::Created);
    assert_eq!(accept(&request_with_coalescing_key(2, 1)).await, AcceptResult::Created);
    assert_eq!(accept(&new_accept_command("look at this")).await, AcceptResult::Created);
    assert_eq!(
        accept(&request_with_coalescing_key(1, 30)).await,
        AcceptResult::CreatedWithEquivalent(first.id)
    );
    // A coalesced execution never becomes a source for later ones, so the window ends with that of the first
    // request.
    assert_eq!(
        accept(&request_with_coalescing_key(1, 59)).await,
        AcceptResult::CreatedWithEquivalent(first.id)
    );
    let next = request_with_coalescing_key(1, 60);
    assert_eq!(accept(&next).await, AcceptResult::Created);

    // A completed execution precedes a running one; a failed one does not count.
    let ClaimResult::Granted(fence) =
        ledger.claim(new_claim_command(first.id, None)).await.unwrap()
    else {
        panic!("a free slot was refused");
    };
    let end = |outcome| settlement(first.id, fence, outcome);
    assert!(ledger.settle(end(Outcome::Completed)).await.unwrap());
    assert_eq!(
        accept(&request_with_coalescing_key(1, 59)).await,
        AcceptResult::CreatedWithEquivalent(first.id)
    );
    let ClaimResult::Granted(fence) = ledger.claim(new_claim_command(next.id, None)).await.unwrap()
    else {
        panic!("a free slot was refused");
    };
    assert!(ledger.settle(settlement(next.id, fence, Outcome::Failed)).await.unwrap());
    assert_eq!(accept(&request_with_coalescing_key(1, 61)).await, AcceptResult::Created);

    // A clock that was set back must not extend the window by hours.
    assert_eq!(accept(&request_with_coalescing_key(1, -7200)).await, AcceptResult::Created);
}

pub(crate) async fn a_request_that_cannot_be_stored_fails_alone(ledger: AnyLedger) {
    let existing_id = accept_execution(&ledger).await;
    let mut tasks = JoinSet::new();
    for number in 0..50 {
        let (ledger, mut command) = (ledger.clone(), new_accept_command("look at this"));
        command.id = if number == 25 { existing_id } else { command.id };
        tasks.spawn(async move { ledger.accept(command).await.is_ok() });
    }
    let stored = tasks.join_all().await.into_iter().filter(|stored| *stored).count();
    assert_eq!(stored, 49);
    assert_eq!(ledger.executions(ExecutionFilter::default()).await.unwrap().len(), 50);
}

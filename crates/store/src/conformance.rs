//! Conformance tests of the ledger, for any engine. Each test gets a fresh ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use algonius_actors::model::agent::Access;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{EventKind, TextChannel, TextRange};
use algonius_actors::model::execution::message_details::{
    MessageDetails, PartMetadata, StoredContent,
};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::request::{DedupKeys, Overrides, Trigger};
use algonius_actors::model::execution::{AttemptId, ExecutionState, Fence, Outcome, StateChange};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::ports::history::History;
use algonius_actors::ports::ledger::{
    AcceptCommand, AcceptResult, ClaimCommand, ClaimResult, Ledger, Settlement, WriteBatch,
};
use chrono::{DateTime, Utc};
use serde_json::Map;
use uuid::Uuid;

use ExecutionState::{Failed, Idle, Running, Starting};

pub(super) mod accepting;
pub(super) mod answering;
pub(super) mod claiming;
pub(super) mod interactions;
pub(super) mod notes;
pub(super) mod paging;
pub(super) mod push_targets;
pub(super) mod reading;
pub(super) mod recording;
pub(super) mod retention;
pub(super) mod schedules;
pub(super) mod sealing;

pub(super) type AnyLedger = Arc<dyn Ledger>;
pub(super) type AnyHistory = Arc<dyn History>;

/// Instantiates all tests for a ledger that `$open` returns, with a guard that must live as long.
macro_rules! conformance {
    ($open:path) => {
        conformance! { $open:
            accepting {
                an_accepted_request_is_read_back_unchanged
                an_equal_key_is_a_duplicate_or_a_conflict
                one_of_100_equal_requests_is_new
                a_request_that_cannot_be_stored_fails_alone
                an_idempotency_key_identifies_a_request
                one_of_100_requests_with_one_idempotency_key_is_new
                an_equal_request_is_found_while_its_result_can_be_shared
            }
            claiming {
                fifty_concurrent_claims_keep_the_limit
                one_of_many_claims_of_an_execution_is_granted
                only_executions_that_may_start_are_claimed
                an_old_fence_changes_nothing
                a_claim_with_an_old_fence_is_refused
                overlapping_workspaces_are_claimed_once
                a_workspace_is_free_unless_its_claimant_runs
                one_of_50_claims_of_one_workspace_is_granted
                messages_of_one_conversation_are_claimed_in_order
            }
            sealing {
                a_sealed_input_is_read_back_and_erased_with_the_end
                the_sealed_input_of_a_turn_replaces_the_previous_one
            }
            answering {
                an_answer_is_read_back_unchanged
                one_of_many_answers_is_accepted
                an_answer_without_an_open_question_changes_nothing
                a_message_answers_only_one_question
                the_next_claim_begins_the_answered_turn
                an_accepted_message_is_found_by_its_caller_and_agent
                an_idempotency_key_identifies_an_answer
            }
            paging {
                the_latest_status_comes_first
                pages_visit_each_unchanged_execution_once
                an_execution_changed_while_paging_moves_to_the_front
                a_page_respects_its_limit_and_counts_all_matches
                pages_contain_only_matching_executions
                a_page_can_start_at_a_time
                each_execution_has_one_public_state
            }
            recording {
                the_row_follows_its_events
                only_the_first_of_two_settlements_counts
                only_the_cleanup_is_recorded_after_the_end
                repeated_polls_see_every_change
                text_is_stored_with_any_events_of_its_batch
                an_ended_execution_is_not_claimed_again
                an_execution_that_never_ran_is_settled_with_its_reason
                two_writers_leave_no_gap_in_the_event_numbers
            }
            reading {
                text_ranges_are_exact_to_the_byte
                a_chunk_without_its_predecessor_is_not_stored
                long_input_is_read_back_in_full_and_in_part
                executions_are_listed_newest_first_in_pages
                executions_are_filtered_by_state_owner_and_agent
                history_is_filtered_by_each_filter
                pages_of_history_lose_and_repeat_no_execution
                seeded_tokens_are_replaced_and_their_principals_kept
            }
        }
    };
    ($open:path: $($group:ident { $($test:ident)* })*) => {
        $($(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $test() {
            let (ledger, _guard) = $open().await;
            crate::conformance::$group::$test(ledger).await;
        })*)*
    };
}
pub(super) use conformance;

pub(super) fn at_second(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

pub(super) fn default_agent_id() -> AgentId {
    AgentId::new("reviewer").unwrap()
}

/// Returns a request with a key of its own.
pub(crate) fn new_accept_command(input: &str) -> AcceptCommand {
    let id = ExecutionId::generate();
    let mut key = [0; 32];
    key[..16].copy_from_slice(id.0.as_bytes());
    AcceptCommand {
        id,
        agent: default_agent_id(),
        owner: PrincipalId(Uuid::nil()),
        message_id: MessageId("message-1".to_owned()),
        keys: message_keys(key),
        content_digest: [7; 32],
        coalescing_key_and_since: None,
        context: ContextId("context-1".to_owned()),
        trigger: Trigger::Api,
        trace: None,
        access: Access::ReadWrite,
        input_text: input.to_owned(),
        content: message_content(input_range(input), "main"),
        params: BTreeMap::from([("branch".to_owned(), "main".to_owned())]),
        overrides: caller_overrides("main"),
        stores_raw_input: true,
        sealed_input: None,
        at: at_second(0),
    }
}

/// Returns a message of one text, with a branch in its metadata.
pub(super) fn message_content(text: TextRange, branch: &str) -> StoredContent {
    let metadata = Map::from_iter([("branch".to_owned(), branch.into())]);
    let part_metadata = vec![PartMetadata { part: 0, metadata: metadata.clone() }];
    let details = MessageDetails { metadata, part_metadata, ..MessageDetails::default() };
    StoredContent { parts: vec![StoredPart::text(text)], details: Some(Box::new(details)) }
}

/// Returns a directory and a variable as overrides of a caller.
pub(super) fn caller_overrides(branch: &str) -> Overrides {
    let env = BTreeMap::from([("BRANCH".to_owned(), branch.to_owned())]);
    Overrides { working_dir: Some(format!("/srv/{branch}")), env }
}

/// Returns only the key of a message.
pub(super) const fn message_keys(message_key: [u8; 32]) -> DedupKeys {
    DedupKeys { message_key, idempotency_key: None }
}

/// Returns the range of the input of a request.
pub(crate) fn input_range(input: &str) -> TextRange {
    TextRange {
        attempt_id: AttemptId::FIRST,
        channel: TextChannel::Input,
        from: 0,
        to: input.len() as u64,
    }
}

pub(crate) async fn accept_execution(ledger: &AnyLedger) -> ExecutionId {
    let request = new_accept_command("look at this");
    let id = request.id;
    assert_eq!(ledger.accept(request).await.unwrap(), AcceptResult::Created);
    id
}

pub(super) fn state_change(from: ExecutionState, to: ExecutionState, at: i64) -> StateChange {
    StateChange::new((from, to), AttemptId::FIRST, at_second(at), "because".to_owned())
}

pub(super) fn new_claim_command(id: ExecutionId, max_running: Option<u32>) -> ClaimCommand {
    let (fence, state_change) = (Fence(0), state_change(Idle, Starting, 1));
    ClaimCommand {
        id,
        agent: default_agent_id(),
        max_running,
        workspace: None,
        runs_turns_in_order: false,
        fence,
        state_change,
    }
}

pub(super) async fn accept_and_claim(ledger: &AnyLedger) -> (ExecutionId, Fence) {
    let id = accept_execution(ledger).await;
    let ClaimResult::Granted(fence) = ledger.claim(new_claim_command(id, None)).await.unwrap()
    else {
        panic!("a free slot was refused");
    };
    (id, fence)
}

/// Returns an execution that was claimed again after a failed attempt, with the fence of the first claim.
pub(super) async fn reclaimed_execution(ledger: &AnyLedger) -> (ExecutionId, Fence) {
    let (id, fence) = accept_and_claim(ledger).await;
    let failed = EventKind::StateChanged(state_change(Starting, Failed, 3));
    let events =
        [EventKind::ProcessStarted { pid: 4711 }, failed].map(|event| (at_second(3), event));
    assert!(ledger.append_events(id, fence, events.into()).await.unwrap());
    let second_claim = ClaimCommand {
        fence,
        state_change: state_change(Failed, Starting, 4),
        ..new_claim_command(id, None)
    };
    assert_eq!(ledger.claim(second_claim).await.unwrap(), ClaimResult::Granted(Fence(2)));
    (id, fence)
}

pub(super) fn settlement(id: ExecutionId, fence: Fence, outcome: Outcome) -> Settlement {
    Settlement {
        id,
        fence,
        attempt_id: AttemptId::FIRST,
        outcome,
        failure: None,
        exit_code: Some(0),
        batch: WriteBatch::from_transitions([state_change(Running, outcome.state(), 9)]),
        keeps_sealed_input: false,
        at: at_second(9),
    }
}

pub(super) async fn load_record(ledger: &AnyLedger, id: ExecutionId) -> ExecutionRecord {
    ledger.execution(id).await.unwrap().unwrap()
}

pub(super) async fn event_numbers(ledger: &AnyLedger, id: ExecutionId) -> Vec<u64> {
    ledger.events(id, 0).await.unwrap().iter().map(|event| event.number).collect()
}

pub(super) fn warning_event(message: &str) -> (DateTime<Utc>, EventKind) {
    (at_second(2), EventKind::Warning { message: message.to_owned() })
}

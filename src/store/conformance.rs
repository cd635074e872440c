//! What every ledger does, whatever its engine. Each story gets a fresh ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use algonius_actors::model::agent::Access;
use algonius_actors::model::content::Piece;
use algonius_actors::model::event::{Channel, Fact, Span};
use algonius_actors::model::execution::{Fence, Move, Outcome, Stamp, State};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::model::record::Record;
use algonius_actors::model::request::{Keys, Overrides, Trigger};
use algonius_actors::ports::history::History;
use algonius_actors::ports::ledger::{
    Accept, Acceptance, Claim, ClaimOrder, Ledger, Lines, Settlement,
};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use State::{Failed, Idle, Running, Starting};

pub(super) mod accepting;
pub(super) mod answering;
pub(super) mod booking;
pub(super) mod claiming;
pub(super) mod keeping;
pub(super) mod paging;
pub(super) mod reading;
pub(super) mod recording;
pub(super) mod telling;

pub(super) type AnyLedger = Arc<dyn Ledger>;
pub(super) type AnyHistory = Arc<dyn History>;

/// Tells every story to a ledger that `$open` gives, with what must live as long.
macro_rules! conformance {
    ($open:path) => {
        conformance! { $open:
            accepting {
                an_accepted_request_is_read_back_as_it_was_given
                the_same_key_is_a_twin_or_a_conflict
                of_100_equal_requests_one_is_fresh
                a_request_that_cannot_be_stored_fails_alone
                a_name_given_by_the_caller_is_a_key_too
                of_100_requests_of_one_name_one_is_fresh
                an_equal_request_is_found_while_it_may_give_its_result
            }
            claiming {
                claims_of_50_at_once_keep_the_limit
                one_of_many_claims_of_an_execution_is_granted
                only_what_may_start_is_claimed
                an_old_fence_changes_nothing
                a_claim_with_an_old_fence_is_gone
                workspaces_that_overlap_are_claimed_by_one
                a_workspace_is_free_when_its_holder_does_not_run
                of_50_claims_of_one_workspace_at_once_one_is_granted
                messages_of_one_conversation_go_one_after_the_other
            }
            answering {
                an_answer_is_read_back_as_it_was_given
                of_many_answers_one_is_taken
                an_answer_without_an_open_question_changes_nothing
                a_message_answers_one_question_only
                the_next_claim_begins_the_turn_that_was_answered
                what_was_taken_is_found_by_its_caller_and_agent
                an_answer_is_known_by_the_name_that_its_caller_gave_it
            }
            paging {
                the_latest_status_comes_first
                pages_visit_each_that_rests_exactly_once
                what_changed_meanwhile_is_listed_by_its_time
                a_page_has_at_most_what_was_asked_and_counts_all
                pages_hold_only_what_fits
                pages_begin_at_a_time
                each_execution_is_in_one_public_state
            }
            recording {
                the_row_follows_its_facts
                of_two_settlements_one_counts
                after_the_end_only_the_cleanup_is_recorded
                who_looks_again_and_again_sees_each_change
                text_is_kept_with_whatever_comes_with_it
                what_has_ended_is_not_claimed_again
                what_never_ran_is_settled_with_its_reason
                two_recorders_leave_no_gap_in_the_numbers
            }
            reading {
                every_range_of_a_text_is_cut_to_the_byte
                a_chunk_without_the_one_before_it_is_not_taken
                long_input_is_read_back_whole_and_in_part
                executions_are_listed_newest_first_in_pages
                executions_are_listed_by_what_they_are
                history_is_narrowed_by_each_of_its_filters
                pages_of_history_lose_and_double_nothing
                seeded_tokens_are_replaced_and_their_principals_kept
            }
        }
    };
    ($open:path: $($group:ident { $($story:ident)* })*) => {
        $($(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $story() {
            let (ledger, _kept) = $open().await;
            crate::store::conformance::$group::$story(ledger).await;
        })*)*
    };
}
pub(super) use conformance;

pub(super) fn second(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

pub(super) fn agent() -> AgentId {
    AgentId::new("reviewer").unwrap()
}

/// A request under a key of its own.
pub(in crate::store) fn request(input: &str) -> Accept {
    let id = ExecutionId::fresh();
    let mut key = [0; 32];
    key[..16].copy_from_slice(id.0.as_bytes());
    Accept {
        id,
        agent: agent(),
        owner: PrincipalId(Uuid::nil()),
        message: MessageId("message-1".to_owned()),
        keys: keys(key),
        digest: [7; 32],
        content: None,
        context: ContextId("context-1".to_owned()),
        trigger: Trigger::Api,
        trace: None,
        access: Access::ReadWrite,
        input: input.to_owned(),
        pieces: vec![Piece::text(said(input))],
        params: BTreeMap::from([("branch".to_owned(), "main".to_owned())]),
        overrides: chosen("main"),
        replayable: true,
        at: second(0),
    }
}

/// A folder and a variable, as a caller may choose them.
pub(super) fn chosen(branch: &str) -> Overrides {
    let env = BTreeMap::from([("BRANCH".to_owned(), branch.to_owned())]);
    Overrides { working_dir: Some(format!("/srv/{branch}")), env }
}

/// The key of a message, and no other.
pub(super) const fn keys(message: [u8; 32]) -> Keys {
    Keys { message, named: None }
}

/// Where the input of a request stands.
pub(in crate::store) fn said(input: &str) -> Span {
    Span { stamp: Stamp::FIRST, channel: Channel::Input, from: 0, to: input.len() as u64 }
}

pub(in crate::store) async fn accepted(ledger: &AnyLedger) -> ExecutionId {
    let request = request("look at this");
    let id = request.id;
    assert_eq!(ledger.accept(request).await.unwrap(), Acceptance::Fresh);
    id
}

pub(super) fn moved(from: State, to: State, at: i64) -> Move {
    Move { from, to, stamp: Stamp::FIRST, at: second(at), reason: "because".to_owned() }
}

pub(super) fn order(id: ExecutionId, limit: Option<u32>) -> ClaimOrder {
    let (fence, moved) = (Fence(0), moved(Idle, Starting, 1));
    ClaimOrder { id, agent: agent(), limit, workspace: None, in_turn: false, fence, moved }
}

pub(super) async fn claimed(ledger: &AnyLedger) -> (ExecutionId, Fence) {
    let id = accepted(ledger).await;
    let Claim::Granted(fence) = ledger.claim(order(id, None)).await.unwrap() else {
        panic!("a free slot was refused");
    };
    (id, fence)
}

/// Claimed a second time, after a failed attempt. Answers with the fence of the first.
pub(super) async fn retried(ledger: &AnyLedger) -> (ExecutionId, Fence) {
    let (id, fence) = claimed(ledger).await;
    let failed = Fact::Moved(moved(Starting, Failed, 3));
    let facts = [Fact::Spawned { pid: 4711 }, failed].map(|fact| (second(3), fact));
    assert!(ledger.record(id, fence, facts.into()).await.unwrap());
    let again = ClaimOrder { fence, moved: moved(Failed, Starting, 4), ..order(id, None) };
    assert_eq!(ledger.claim(again).await.unwrap(), Claim::Granted(Fence(2)));
    (id, fence)
}

pub(super) fn settlement(id: ExecutionId, fence: Fence, outcome: Outcome) -> Settlement {
    Settlement {
        id,
        fence,
        stamp: Stamp::FIRST,
        outcome,
        failure: None,
        exit_code: Some(0),
        lines: Lines::of_moves([moved(Running, outcome.state(), 9)]),
        at: second(9),
    }
}

pub(super) async fn record(ledger: &AnyLedger, id: ExecutionId) -> Record {
    ledger.execution(id).await.unwrap().unwrap()
}

pub(super) async fn numbers(ledger: &AnyLedger, id: ExecutionId) -> Vec<u64> {
    ledger.events(id, 0).await.unwrap().iter().map(|event| event.number).collect()
}

pub(super) fn warned(message: &str) -> (DateTime<Utc>, Fact) {
    (second(2), Fact::Warned { message: message.to_owned() })
}

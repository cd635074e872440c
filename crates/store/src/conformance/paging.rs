//! Conformance tests of pages: executions in the order of the time of their status.

use std::collections::BTreeSet;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::{ExecutionPage, ExecutionPageQuery, PublicState};
use algonius_actors::model::execution::{ExecutionState, Fence, Outcome};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, PrincipalId};
use algonius_actors::ports::ledger::{AcceptCommand, Settlement, WriteBatch};
use chrono::TimeDelta;
use uuid::Uuid;

use ExecutionState::{Cleanup, Completed, Failed, Starting};

use super::answering::{execution_awaiting_auth, execution_awaiting_input, new_answer_command};
use super::{
    AnyLedger, accept_and_claim, accept_execution, at_second, default_agent_id, load_record,
    new_accept_command, settlement, state_change,
};

/// Returns a query for all executions of the agent on one page.
pub(crate) fn all_executions_query() -> ExecutionPageQuery {
    ExecutionPageQuery {
        owner: None,
        agent: default_agent_id(),
        context: None,
        public_state: None,
        changed_since: None,
        after: None,
        limit: 10_000,
    }
}

async fn page_ids_and_total(
    ledger: &AnyLedger,
    query: ExecutionPageQuery,
) -> (Vec<ExecutionId>, u64) {
    let ExecutionPage { records, total } = ledger.execution_page(query).await.unwrap();
    (records.iter().map(|row| row.id).collect(), total)
}

async fn accept_at(ledger: &AnyLedger, at: i64) -> ExecutionId {
    let command = AcceptCommand { at: at_second(at), ..new_accept_command("look at this") };
    ledger.accept(command.clone()).await.unwrap();
    command.id
}

async fn complete_at(ledger: &AnyLedger, id: ExecutionId, at: i64) {
    let end = settlement(id, Fence(0), Outcome::Completed);
    let state_changes = vec![state_change(Starting, Completed, at)];
    assert!(
        ledger
            .settle(Settlement {
                at: at_second(at),
                batch: WriteBatch::from_transitions(state_changes),
                ..end
            })
            .await
            .unwrap()
    );
}

/// Of equal times, the later id comes first.
pub(crate) async fn the_latest_status_comes_first(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for at in [20, 40, 20, 30] {
        ids.push(accept_at(&ledger, at).await);
    }
    assert_eq!(
        page_ids_and_total(&ledger, all_executions_query()).await,
        (vec![ids[1], ids[3], ids[2], ids[0]], 4)
    );
    complete_at(&ledger, ids[3], 50).await;
    complete_at(&ledger, ids[0], 45).await;
    let expected = vec![ids[3], ids[0], ids[1], ids[2]];
    assert_eq!(page_ids_and_total(&ledger, all_executions_query()).await, (expected.clone(), 4));

    // The clean-up is not a change of the status.
    let cleanup =
        vec![(at_second(60), EventKind::StateChanged(state_change(Completed, Cleanup, 60)))];
    assert!(ledger.append_events(ids[0], Fence(0), cleanup).await.unwrap());
    assert_eq!(page_ids_and_total(&ledger, all_executions_query()).await, (expected, 4));
}

/// During the iteration, executions behind the reader change, and new ones are accepted.
pub(crate) async fn pages_visit_each_unchanged_execution_once(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for number in 0..23 {
        ids.push(accept_at(&ledger, 20 + number / 4).await);
    }
    let (mut seen, mut after, mut accepted_count) = (Vec::new(), None, 0);
    loop {
        let query = ExecutionPageQuery { after, limit: 5, ..all_executions_query() };
        let ExecutionPage { records, total } = ledger.execution_page(query).await.unwrap();
        assert_eq!(total, 23 + accepted_count);
        let Some(last) = records.last() else {
            break;
        };
        after = Some((last.status_changed_at(), last.id));
        seen.extend(records.iter().map(|row| row.id));
        complete_at(&ledger, records[0].id, 50).await;
        // The last execution of the page is the cursor itself: it may change too.
        if accepted_count % 2 == 0 {
            complete_at(&ledger, last.id, 50).await;
        }
        accept_at(&ledger, 60).await;
        accepted_count += 1;
    }
    ids.reverse();
    assert_eq!(seen, ids);
}

/// An execution that changes before the reader reaches it moves before the first page and is found from there.
pub(crate) async fn an_execution_changed_while_paging_moves_to_the_front(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for at in 20..26 {
        ids.push(accept_at(&ledger, at).await);
    }
    let first = ledger
        .execution_page(ExecutionPageQuery { limit: 3, ..all_executions_query() })
        .await
        .unwrap();
    complete_at(&ledger, ids[0], 50).await;
    let after = first.records.last().map(|row| (row.status_changed_at(), row.id));
    assert_eq!(
        page_ids_and_total(&ledger, ExecutionPageQuery { after, ..all_executions_query() }).await,
        (vec![ids[2], ids[1]], 6)
    );
    let changed_since_query =
        ExecutionPageQuery { changed_since: Some(at_second(26)), ..all_executions_query() };
    assert_eq!(page_ids_and_total(&ledger, changed_since_query).await, (vec![ids[0]], 1));
}

pub(crate) async fn a_page_respects_its_limit_and_counts_all_matches(ledger: AnyLedger) {
    assert_eq!(
        ledger.execution_page(all_executions_query()).await.unwrap(),
        ExecutionPage::default()
    );
    for at in 20..25 {
        accept_at(&ledger, at).await;
    }
    for (limit, length) in [(0, 0), (1, 1), (4, 4), (5, 5), (6, 5)] {
        let (ids, total) =
            page_ids_and_total(&ledger, ExecutionPageQuery { limit, ..all_executions_query() })
                .await;
        assert_eq!((ids.len(), total), (length, 5));
    }
    let after = Some((at_second(20), ExecutionId(Uuid::nil())));
    assert_eq!(
        page_ids_and_total(&ledger, ExecutionPageQuery { after, ..all_executions_query() }).await,
        (Vec::new(), 5)
    );
}

pub(crate) async fn pages_contain_only_matching_executions(ledger: AnyLedger) {
    let default_request = new_accept_command("look at this");
    let other_owner =
        AcceptCommand { owner: PrincipalId(Uuid::max()), ..new_accept_command("look at this") };
    let second_context = ContextId("context-2".to_owned());
    let other_context =
        AcceptCommand { context: second_context.clone(), ..new_accept_command("look at this") };
    let both = AcceptCommand {
        owner: other_owner.owner,
        context: second_context.clone(),
        ..new_accept_command("look at this")
    };
    let writer = AgentId::new("writer").unwrap();
    let other_agent = AcceptCommand { agent: writer.clone(), ..new_accept_command("look at this") };
    let ids = [&default_request, &other_owner, &other_context, &both, &other_agent]
        .map(|command| command.id);
    for command in [default_request, other_owner.clone(), other_context, both, other_agent] {
        ledger.accept(command).await.unwrap();
    }
    let (owner, context) = (Some(other_owner.owner), Some(second_context));
    let of_owner = ExecutionPageQuery { owner, ..all_executions_query() };
    let in_context = ExecutionPageQuery { context, ..all_executions_query() };
    let of_both = ExecutionPageQuery { owner, ..in_context.clone() };
    for (query, expected) in [
        (all_executions_query(), vec![ids[3], ids[2], ids[1], ids[0]]),
        (ExecutionPageQuery { agent: writer, ..all_executions_query() }, vec![ids[4]]),
        (of_owner.clone(), vec![ids[3], ids[1]]),
        (in_context, vec![ids[3], ids[2]]),
        (of_both, vec![ids[3]]),
        (ExecutionPageQuery { public_state: Some(PublicState::Working), ..of_owner }, vec![]),
    ] {
        let total = expected.len() as u64;
        assert_eq!(page_ids_and_total(&ledger, query).await, (expected, total));
    }
}

/// A time between two microseconds is later than the first of them.
pub(crate) async fn a_page_can_start_at_a_time(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for at in [20, 30] {
        ids.push(accept_at(&ledger, at).await);
    }
    for (since, expected) in [
        (at_second(20) - TimeDelta::nanoseconds(1), vec![ids[1], ids[0]]),
        (at_second(20), vec![ids[1], ids[0]]),
        (at_second(20) + TimeDelta::nanoseconds(1), vec![ids[1]]),
        (at_second(30), vec![ids[1]]),
        (at_second(31), vec![]),
    ] {
        let total = expected.len() as u64;
        let query = ExecutionPageQuery { changed_since: Some(since), ..all_executions_query() };
        assert_eq!(page_ids_and_total(&ledger, query).await, (expected, total), "{since}");
    }
}

pub(crate) async fn each_execution_has_one_public_state(ledger: AnyLedger) {
    let (answered, fence) = execution_awaiting_input(&ledger).await;
    assert!(
        ledger.record_answer(new_answer_command(answered, fence, "the left one")).await.unwrap()
    );
    let (failed, _) = accept_and_claim(&ledger).await;
    let events = vec![(at_second(3), EventKind::StateChanged(state_change(Starting, Failed, 3)))];
    assert!(ledger.append_events(failed, fence, events).await.unwrap());
    let ends = [
        (Outcome::Completed, None),
        (Outcome::Cancelled, None),
        (Outcome::Timeout, Some(Code::Timeout)),
        (Outcome::Failed, Some(Code::Exit)),
        (Outcome::Failed, Some(Code::Rejected)),
        (Outcome::Failed, Some(Code::QueueTimeout)),
    ];
    let mut ended = Vec::new();
    for (outcome, code) in ends {
        let (id, _) = accept_and_claim(&ledger).await;
        let failure = code.map(|code| Failure::new(code, "it went wrong"));
        let end = Settlement { failure, ..settlement(id, fence, outcome) };
        assert!(ledger.settle(end).await.unwrap());
        ended.push(id);
    }
    for (public_state, expected) in [
        (PublicState::Submitted, vec![accept_execution(&ledger).await]),
        (PublicState::Working, vec![answered, failed, accept_and_claim(&ledger).await.0]),
        (PublicState::InputRequired, vec![execution_awaiting_input(&ledger).await.0]),
        (PublicState::AuthRequired, vec![execution_awaiting_auth(&ledger).await]),
        (PublicState::Completed, vec![ended[0]]),
        (PublicState::Canceled, vec![ended[1]]),
        (PublicState::Failed, vec![ended[2], ended[3]]),
        (PublicState::Rejected, vec![ended[4], ended[5]]),
    ] {
        let query =
            ExecutionPageQuery { public_state: Some(public_state), ..all_executions_query() };
        let (ids, total) = page_ids_and_total(&ledger, query).await;
        assert_eq!(total, expected.len() as u64);
        assert_eq!(
            BTreeSet::from_iter(ids),
            BTreeSet::from_iter(expected.clone()),
            "{public_state:?}"
        );
        for id in expected {
            assert_eq!(load_record(&ledger, id).await.public_state(), public_state);
        }
    }
}

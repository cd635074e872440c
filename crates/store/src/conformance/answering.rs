//! Conformance tests of requests for input and their answers.

use std::collections::BTreeMap;

use algonius_actors::model::execution::event::{Event, EventKind, TextChannel, TextRange};
use algonius_actors::model::execution::{
    AttemptId, ExecutionState, Fence, Interruption, Outcome, StateChange,
};
use algonius_actors::model::id::{AgentId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::ports::ledger::{
    AcceptCommand, AnswerCommand, ClaimCommand, ClaimResult, Settlement, WriteBatch,
};
use tokio::task::JoinSet;
use uuid::Uuid;

use ExecutionState::{Running, Starting, Waiting};

use super::{
    AnyLedger, accept_and_claim, accept_execution, at_second, caller_overrides, default_agent_id,
    load_record, message_content, message_keys, new_accept_command, new_claim_command,
    state_change,
};
use super::{event_numbers, settlement, warning_event};

/// Turn after the first.
const NEXT_TURN: AttemptId = AttemptId::FIRST.next_turn();

/// Runs an execution up to its request for input.
pub(crate) async fn execution_awaiting_input(ledger: &AnyLedger) -> (ExecutionId, Fence) {
    let (id, fence) = accept_and_claim(ledger).await;
    request_input(ledger, id, fence, AttemptId::FIRST).await;
    (id, fence)
}

/// Returns an execution whose agent needs the caller to authenticate.
pub(crate) async fn execution_awaiting_auth(ledger: &AnyLedger) -> ExecutionId {
    let (id, fence) = accept_and_claim(ledger).await;
    let auth_required =
        StateChange::waiting_for(AttemptId::FIRST, at_second(3), Interruption::AuthRequired);
    let events = [state_change(Starting, Running, 2), auth_required]
        .map(|change| (at_second(3), EventKind::StateChanged(change)));
    assert!(ledger.append_events(id, fence, events.into()).await.unwrap());
    let row = load_record(ledger, id).await;
    assert_eq!(
        (row.state, row.requested_input.latest_required_input),
        (Waiting, Some(Interruption::AuthRequired))
    );
    id
}

async fn request_input(ledger: &AnyLedger, id: ExecutionId, fence: Fence, attempt_id: AttemptId) {
    let change = |from, to, at| {
        EventKind::StateChanged(StateChange { attempt_id, ..state_change(from, to, at) })
    };
    let events = [change(Starting, Running, 2), change(Running, Waiting, 3)]
        .map(|event| (at_second(3), event));
    assert!(ledger.append_events(id, fence, events.into()).await.unwrap());
}

/// Returns an answer with a key of its own.
pub(crate) fn new_answer_command(id: ExecutionId, fence: Fence, input: &str) -> AnswerCommand {
    let mut key = [1; 32];
    key[..16].copy_from_slice(Uuid::now_v7().as_bytes());
    AnswerCommand {
        id,
        agent: default_agent_id(),
        owner: PrincipalId(Uuid::nil()),
        fence,
        next_attempt_id: NEXT_TURN,
        message_id: MessageId("message-2".to_owned()),
        keys: message_keys(key),
        content_digest: [9; 32],
        input_text: input.to_owned(),
        content: message_content(answer_range(input), "next"),
        params: BTreeMap::from([("branch".to_owned(), "next".to_owned())]),
        overrides: caller_overrides("next"),
        stores_raw_input: false,
        sealed_input: Some(vec![7; 100_000]),
        at: at_second(5),
    }
}

fn answer_range(input: &str) -> TextRange {
    TextRange {
        attempt_id: NEXT_TURN,
        channel: TextChannel::Input,
        from: 0,
        to: input.len() as u64,
    }
}

async fn find_by_key(ledger: &AnyLedger, key: [u8; 32]) -> Option<(ExecutionId, [u8; 32])> {
    ledger.find_by_key(PrincipalId(Uuid::nil()), &default_agent_id(), key).await.unwrap()
}

pub(crate) async fn an_answer_is_read_back_unchanged(ledger: AnyLedger) {
    let (id, fence) = execution_awaiting_input(&ledger).await;
    let before = load_record(&ledger, id).await;
    let command = new_answer_command(id, fence, "the left one");
    assert!(ledger.record_answer(command.clone()).await.unwrap());

    let after = load_record(&ledger, id).await;
    assert_eq!(
        (after.params, after.stores_raw_input, after.requested_input.has_pending_turn),
        (command.params, false, true)
    );
    assert_eq!(after.overrides, command.overrides);
    assert_eq!((after.state, after.fence, after.attempt_id), (Waiting, fence, before.attempt_id));
    assert_eq!(
        (after.changed_at, after.last_event_number),
        (at_second(5), before.last_event_number + 1)
    );
    let event_kind = EventKind::caller_message(command.message_id.0, command.content);
    let event = Event { number: after.last_event_number, at: at_second(5), data: event_kind };
    assert_eq!(ledger.events(id, before.last_event_number).await.unwrap(), [event]);
    assert_eq!(ledger.text(id, answer_range("the left one")).await.unwrap(), "the left one");
    let first_input_range =
        TextRange { attempt_id: AttemptId::FIRST, ..answer_range("look at this") };
    assert_eq!(ledger.text(id, first_input_range).await.unwrap(), "look at this");
}

pub(crate) async fn one_of_many_answers_is_accepted(ledger: AnyLedger) {
    let (id, fence) = execution_awaiting_input(&ledger).await;
    let before = load_record(&ledger, id).await.last_event_number;
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let (ledger, command) =
            (ledger.clone(), new_answer_command(id, fence, &format!("answer {number}")));
        tasks.spawn(async move { (ledger.record_answer(command.clone()).await.unwrap(), command) });
    }
    let answers = tasks.join_all().await;
    for (was_accepted, command) in &answers {
        let expected = was_accepted.then_some((id, command.content_digest));
        assert_eq!(find_by_key(&ledger, command.keys.message_key).await, expected);
    }
    let mut winners =
        answers.into_iter().filter(|(was_accepted, _)| *was_accepted).map(|(_, command)| command);
    let (winner, second_winner) = (winners.next().unwrap(), winners.next());
    assert!(second_winner.is_none(), "{second_winner:?}");
    assert_eq!(ledger.text(id, answer_range(&winner.input_text)).await.unwrap(), winner.input_text);
    assert_eq!(event_numbers(&ledger, id).await, (1..=before + 1).collect::<Vec<_>>());
}

/// An answer that no execution waits for leaves no trace: its message can be sent again.
pub(crate) async fn an_answer_without_an_open_question_changes_nothing(ledger: AnyLedger) {
    let queued = accept_execution(&ledger).await;
    let (starting, fence) = accept_and_claim(&ledger).await;
    let (answered, _) = execution_awaiting_input(&ledger).await;
    assert!(
        ledger.record_answer(new_answer_command(answered, fence, "the left one")).await.unwrap()
    );
    let (ended, _) = execution_awaiting_input(&ledger).await;
    assert!(ledger.settle(settlement(ended, fence, Outcome::Cancelled)).await.unwrap());
    // Only the outcome is invalid here.
    let (timed_out, _) = execution_awaiting_input(&ledger).await;
    let end = settlement(timed_out, fence, Outcome::Timeout);
    let end = Settlement { batch: WriteBatch::default(), ..end };
    assert!(ledger.settle(end).await.unwrap());
    let (open, _) = execution_awaiting_input(&ledger).await;

    for (id, fence) in [
        (queued, Fence(0)),
        (starting, fence),
        (answered, fence),
        (ended, fence),
        (timed_out, fence),
        (open, Fence(0)),
        (open, Fence(2)),
    ] {
        let before = (load_record(&ledger, id).await, ledger.events(id, 0).await.unwrap());
        let late = new_answer_command(id, fence, "or the right one, as it is longer");
        assert!(!ledger.record_answer(late.clone()).await.unwrap());
        assert_eq!(find_by_key(&ledger, late.keys.message_key).await, None);
        assert_eq!((load_record(&ledger, id).await, ledger.events(id, 0).await.unwrap()), before);
        let text = ledger.text(id, answer_range(&late.input_text)).await.unwrap();
        assert_eq!(text, if id == answered { "the left one" } else { "" });
    }
    assert!(
        !ledger
            .record_answer(new_answer_command(ExecutionId::generate(), fence, "anyone?"))
            .await
            .unwrap()
    );
    assert!(ledger.record_answer(new_answer_command(open, fence, "the left one")).await.unwrap());
}

pub(crate) async fn a_message_answers_only_one_question(ledger: AnyLedger) {
    let [(one, fence), (two, _)] =
        [execution_awaiting_input(&ledger).await, execution_awaiting_input(&ledger).await];
    let command = new_answer_command(one, fence, "the left one");
    assert!(ledger.record_answer(command.clone()).await.unwrap());
    let repeated = AnswerCommand { id: two, content_digest: [8; 32], ..command.clone() };
    assert!(!ledger.record_answer(repeated.clone()).await.unwrap());
    assert_eq!(
        find_by_key(&ledger, command.keys.message_key).await,
        Some((one, command.content_digest))
    );
    assert!(!load_record(&ledger, two).await.requested_input.has_pending_turn);
    assert!(
        ledger
            .record_answer(AnswerCommand { keys: message_keys([2; 32]), ..repeated })
            .await
            .unwrap()
    );
}

/// Runs a second turn with a second request for input: each request is answered once.
pub(crate) async fn the_next_claim_begins_the_answered_turn(ledger: AnyLedger) {
    let (id, fence) = execution_awaiting_input(&ledger).await;
    let first = new_answer_command(id, fence, "the left one");
    assert!(ledger.record_answer(first.clone()).await.unwrap());
    assert!(ledger.append_events(id, fence, vec![warning_event("slow")]).await.unwrap());
    assert!(load_record(&ledger, id).await.requested_input.has_pending_turn);
    let next_turn_start =
        StateChange { attempt_id: NEXT_TURN, ..state_change(Waiting, Starting, 6) };
    let next_claim =
        ClaimCommand { fence, state_change: next_turn_start, ..new_claim_command(id, None) };
    assert_eq!(ledger.claim(next_claim).await.unwrap(), ClaimResult::Granted(Fence(2)));
    let row = load_record(&ledger, id).await;
    assert_eq!(
        (row.requested_input.has_pending_turn, row.state, row.attempt_id),
        (false, Starting, NEXT_TURN)
    );

    request_input(&ledger, id, Fence(2), NEXT_TURN).await;
    let late = AnswerCommand { fence, ..new_answer_command(id, fence, "late") };
    assert!(!ledger.record_answer(late).await.unwrap());
    let third_turn = NEXT_TURN.next_turn();
    let second_answer = AnswerCommand {
        next_attempt_id: third_turn,
        ..new_answer_command(id, Fence(2), "and then right")
    };
    assert!(ledger.record_answer(second_answer.clone()).await.unwrap());
    assert_eq!(
        find_by_key(&ledger, first.keys.message_key).await,
        Some((id, first.content_digest))
    );
    assert_eq!(
        find_by_key(&ledger, second_answer.keys.message_key).await,
        Some((id, second_answer.content_digest))
    );
    let third_range = TextRange { attempt_id: third_turn, ..answer_range("and then right") };
    assert_eq!(ledger.text(id, third_range).await.unwrap(), "and then right");
}

pub(crate) async fn an_accepted_message_is_found_by_its_caller_and_agent(ledger: AnyLedger) {
    let request_command = new_accept_command("look at this");
    ledger.accept(request_command.clone()).await.unwrap();
    assert_eq!(
        find_by_key(&ledger, request_command.keys.message_key).await,
        Some((request_command.id, request_command.content_digest))
    );
    let other = AcceptCommand {
        id: ExecutionId::generate(),
        content_digest: [6; 32],
        ..request_command.clone()
    };
    let other_owner_command = AcceptCommand { owner: PrincipalId(Uuid::max()), ..other.clone() };
    ledger.accept(other_owner_command.clone()).await.unwrap();
    let found = ledger
        .find_by_key(
            other_owner_command.owner,
            &default_agent_id(),
            request_command.keys.message_key,
        )
        .await
        .unwrap();
    assert_eq!(found, Some((other_owner_command.id, [6; 32])));
    assert_eq!(
        find_by_key(&ledger, request_command.keys.message_key).await,
        Some((request_command.id, request_command.content_digest))
    );

    let (id, fence) = execution_awaiting_input(&ledger).await;
    let answer_command = new_answer_command(id, fence, "the left one");
    assert!(ledger.record_answer(answer_command.clone()).await.unwrap());
    assert_eq!(
        find_by_key(&ledger, answer_command.keys.message_key).await,
        Some((id, answer_command.content_digest))
    );
    let writer = AgentId::new("writer").unwrap();
    for key in [request_command.keys.message_key, answer_command.keys.message_key] {
        assert_eq!(ledger.find_by_key(request_command.owner, &writer, key).await.unwrap(), None);
    }
    assert_eq!(
        ledger
            .find_by_key(
                other_owner_command.owner,
                &default_agent_id(),
                answer_command.keys.message_key
            )
            .await
            .unwrap(),
        None
    );
    assert_eq!(find_by_key(&ledger, [3; 32]).await, None);
}

pub(crate) async fn an_idempotency_key_identifies_an_answer(ledger: AnyLedger) {
    let (id, fence) = execution_awaiting_input(&ledger).await;
    let mut command = new_answer_command(id, fence, "the left one");
    command.keys.idempotency_key = Some([3; 32]);
    assert!(ledger.record_answer(command.clone()).await.unwrap());
    for key in command.keys.iter() {
        assert_eq!(find_by_key(&ledger, key).await, Some((id, command.content_digest)));
    }
}

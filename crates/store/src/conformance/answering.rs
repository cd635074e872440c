//! Conformance tests of requests for input and their answers.

use std::collections::BTreeMap;

use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{
    Event, EventKind, MessageRole, TextChannel, TextRange,
};
use algonius_actors::model::execution::{
    AttemptId, Fence, Interruption, Outcome, State, StateChange,
};
use algonius_actors::model::id::{AgentId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::ports::ledger::{
    AcceptCommand, ClaimCommand, ClaimResult, ResumeCommand, Settlement, WriteBatch,
};
use tokio::task::JoinSet;
use uuid::Uuid;

use State::{Running, Starting, Waiting};

use super::{
    AnyLedger, accepted, agent, caller_overrides, claim_command, claimed, keys, moved, record,
    request, second,
};
use super::{numbers, settlement, warning};

/// Turn after the first.
const NEXT_TURN: AttemptId = AttemptId::FIRST.next_turn();

/// Runs an execution up to its request for input.
pub(crate) async fn asked(ledger: &AnyLedger) -> (ExecutionId, Fence) {
    let (id, fence) = claimed(ledger).await;
    ask(ledger, id, fence, AttemptId::FIRST).await;
    (id, fence)
}

/// Returns an execution whose agent needs the caller to authenticate.
pub(crate) async fn needs_auth(ledger: &AnyLedger) -> ExecutionId {
    let (id, fence) = claimed(ledger).await;
    let needs = StateChange::interrupted(AttemptId::FIRST, second(3), Interruption::AuthRequired);
    let facts = [moved(Starting, Running, 2), needs]
        .map(|moved| (second(3), EventKind::StateChanged(moved)));
    assert!(ledger.record(id, fence, facts.into()).await.unwrap());
    let read = record(ledger, id).await;
    assert_eq!(
        (read.state, read.requested.interruption),
        (Waiting, Some(Interruption::AuthRequired))
    );
    id
}

async fn ask(ledger: &AnyLedger, id: ExecutionId, fence: Fence, attempt_id: AttemptId) {
    let to =
        |from, to, at| EventKind::StateChanged(StateChange { attempt_id, ..moved(from, to, at) });
    let facts = [to(Starting, Running, 2), to(Running, Waiting, 3)].map(|fact| (second(3), fact));
    assert!(ledger.record(id, fence, facts.into()).await.unwrap());
}

/// Returns an answer with a key of its own.
pub(crate) fn answer(id: ExecutionId, fence: Fence, input: &str) -> ResumeCommand {
    let mut key = [1; 32];
    key[..16].copy_from_slice(Uuid::now_v7().as_bytes());
    ResumeCommand {
        id,
        agent: agent(),
        owner: PrincipalId(Uuid::nil()),
        fence,
        attempt_id: NEXT_TURN,
        message: MessageId("message-2".to_owned()),
        keys: keys(key),
        digest: [9; 32],
        input: input.to_owned(),
        pieces: vec![StoredPart::text(span(input))],
        params: BTreeMap::from([("branch".to_owned(), "next".to_owned())]),
        overrides: caller_overrides("next"),
        replayable: false,
        sealed: Some(vec![7; 100_000]),
        at: second(5),
    }
}

fn span(input: &str) -> TextRange {
    TextRange {
        attempt_id: NEXT_TURN,
        channel: TextChannel::Input,
        from: 0,
        to: input.len() as u64,
    }
}

async fn taken(ledger: &AnyLedger, key: [u8; 32]) -> Option<(ExecutionId, [u8; 32])> {
    ledger.find_by_key(PrincipalId(Uuid::nil()), &agent(), key).await.unwrap()
}

pub(crate) async fn an_answer_is_read_back_unchanged(ledger: AnyLedger) {
    let (id, fence) = asked(&ledger).await;
    let before = record(&ledger, id).await;
    let given = answer(id, fence, "the left one");
    assert!(ledger.resume(given.clone()).await.unwrap());

    let after = record(&ledger, id).await;
    assert_eq!(
        (after.params, after.replayable, after.requested.answered),
        (given.params, false, true)
    );
    assert_eq!(after.overrides, given.overrides);
    assert_eq!((after.state, after.fence, after.attempt_id), (Waiting, fence, before.attempt_id));
    assert_eq!((after.changed_at, after.last_event), (second(5), before.last_event + 1));
    let (message, pieces) = (given.message.0, given.pieces);
    let fact = EventKind::Message { speaker: MessageRole::User, message, pieces };
    let event = Event { number: after.last_event, at: second(5), data: fact };
    assert_eq!(ledger.events(id, before.last_event).await.unwrap(), [event]);
    assert_eq!(ledger.text(id, span("the left one")).await.unwrap(), "the left one");
    let first = TextRange { attempt_id: AttemptId::FIRST, ..span("look at this") };
    assert_eq!(ledger.text(id, first).await.unwrap(), "look at this");
}

pub(crate) async fn one_of_many_answers_is_accepted(ledger: AnyLedger) {
    let (id, fence) = asked(&ledger).await;
    let before = record(&ledger, id).await.last_event;
    let mut all = JoinSet::new();
    for number in 0..20 {
        let (ledger, given) = (ledger.clone(), answer(id, fence, &format!("answer {number}")));
        all.spawn(async move { (ledger.resume(given.clone()).await.unwrap(), given) });
    }
    let answers = all.join_all().await;
    for (was_taken, given) in &answers {
        let expected = was_taken.then_some((id, given.digest));
        assert_eq!(taken(&ledger, given.keys.message).await, expected);
    }
    let mut won = answers.into_iter().filter(|(was_taken, _)| *was_taken).map(|(_, given)| given);
    let (one, none) = (won.next().unwrap(), won.next());
    assert!(none.is_none(), "{none:?}");
    assert_eq!(ledger.text(id, span(&one.input)).await.unwrap(), one.input);
    assert_eq!(numbers(&ledger, id).await, (1..=before + 1).collect::<Vec<_>>());
}

/// An answer that no execution waits for leaves no trace: its message can be sent again.
pub(crate) async fn an_answer_without_an_open_question_changes_nothing(ledger: AnyLedger) {
    let queued = accepted(&ledger).await;
    let (starting, fence) = claimed(&ledger).await;
    let (answered, _) = asked(&ledger).await;
    assert!(ledger.resume(answer(answered, fence, "the left one")).await.unwrap());
    let (ended, _) = asked(&ledger).await;
    assert!(ledger.settle(settlement(ended, fence, Outcome::Cancelled)).await.unwrap());
    // Only the outcome is invalid here.
    let (over, _) = asked(&ledger).await;
    let end = settlement(over, fence, Outcome::Timeout);
    let end = Settlement { lines: WriteBatch::default(), ..end };
    assert!(ledger.settle(end).await.unwrap());
    let (open, _) = asked(&ledger).await;

    for (id, fence) in [
        (queued, Fence(0)),
        (starting, fence),
        (answered, fence),
        (ended, fence),
        (over, fence),
        (open, Fence(0)),
        (open, Fence(2)),
    ] {
        let before = (record(&ledger, id).await, ledger.events(id, 0).await.unwrap());
        let late = answer(id, fence, "or the right one, as it is longer");
        assert!(!ledger.resume(late.clone()).await.unwrap());
        assert_eq!(taken(&ledger, late.keys.message).await, None);
        assert_eq!((record(&ledger, id).await, ledger.events(id, 0).await.unwrap()), before);
        let said = ledger.text(id, span(&late.input)).await.unwrap();
        assert_eq!(said, if id == answered { "the left one" } else { "" });
    }
    assert!(!ledger.resume(answer(ExecutionId::fresh(), fence, "anyone?")).await.unwrap());
    assert!(ledger.resume(answer(open, fence, "the left one")).await.unwrap());
}

pub(crate) async fn a_message_answers_only_one_question(ledger: AnyLedger) {
    let [(one, fence), (two, _)] = [asked(&ledger).await, asked(&ledger).await];
    let given = answer(one, fence, "the left one");
    assert!(ledger.resume(given.clone()).await.unwrap());
    let again = ResumeCommand { id: two, digest: [8; 32], ..given.clone() };
    assert!(!ledger.resume(again.clone()).await.unwrap());
    assert_eq!(taken(&ledger, given.keys.message).await, Some((one, given.digest)));
    assert!(!record(&ledger, two).await.requested.answered);
    assert!(ledger.resume(ResumeCommand { keys: keys([2; 32]), ..again }).await.unwrap());
}

/// Runs a second turn with a second request for input: each request is answered once.
pub(crate) async fn the_next_claim_begins_the_answered_turn(ledger: AnyLedger) {
    let (id, fence) = asked(&ledger).await;
    let first = answer(id, fence, "the left one");
    assert!(ledger.resume(first.clone()).await.unwrap());
    assert!(ledger.record(id, fence, vec![warning("slow")]).await.unwrap());
    assert!(record(&ledger, id).await.requested.answered);
    let next = StateChange { attempt_id: NEXT_TURN, ..moved(Waiting, Starting, 6) };
    let next = ClaimCommand { fence, moved: next, ..claim_command(id, None) };
    assert_eq!(ledger.claim(next).await.unwrap(), ClaimResult::Granted(Fence(2)));
    let row = record(&ledger, id).await;
    assert_eq!((row.requested.answered, row.state, row.attempt_id), (false, Starting, NEXT_TURN));

    ask(&ledger, id, Fence(2), NEXT_TURN).await;
    let late = ResumeCommand { fence, ..answer(id, fence, "late") };
    assert!(!ledger.resume(late).await.unwrap());
    let third = NEXT_TURN.next_turn();
    let second_one = ResumeCommand { attempt_id: third, ..answer(id, Fence(2), "and then right") };
    assert!(ledger.resume(second_one.clone()).await.unwrap());
    assert_eq!(taken(&ledger, first.keys.message).await, Some((id, first.digest)));
    assert_eq!(taken(&ledger, second_one.keys.message).await, Some((id, second_one.digest)));
    let said = TextRange { attempt_id: third, ..span("and then right") };
    assert_eq!(ledger.text(id, said).await.unwrap(), "and then right");
}

pub(crate) async fn an_accepted_message_is_found_by_its_caller_and_agent(ledger: AnyLedger) {
    let given = request("look at this");
    ledger.accept(given.clone()).await.unwrap();
    assert_eq!(taken(&ledger, given.keys.message).await, Some((given.id, given.digest)));
    let other = AcceptCommand { id: ExecutionId::fresh(), digest: [6; 32], ..given.clone() };
    let theirs = AcceptCommand { owner: PrincipalId(Uuid::max()), ..other.clone() };
    ledger.accept(theirs.clone()).await.unwrap();
    let found = ledger.find_by_key(theirs.owner, &agent(), given.keys.message).await.unwrap();
    assert_eq!(found, Some((theirs.id, [6; 32])));
    assert_eq!(taken(&ledger, given.keys.message).await, Some((given.id, given.digest)));

    let (id, fence) = asked(&ledger).await;
    let said = answer(id, fence, "the left one");
    assert!(ledger.resume(said.clone()).await.unwrap());
    assert_eq!(taken(&ledger, said.keys.message).await, Some((id, said.digest)));
    let writer = AgentId::new("writer").unwrap();
    for key in [given.keys.message, said.keys.message] {
        assert_eq!(ledger.find_by_key(given.owner, &writer, key).await.unwrap(), None);
    }
    assert_eq!(ledger.find_by_key(theirs.owner, &agent(), said.keys.message).await.unwrap(), None);
    assert_eq!(taken(&ledger, [3; 32]).await, None);
}

pub(crate) async fn an_idempotency_key_identifies_an_answer(ledger: AnyLedger) {
    let (id, fence) = asked(&ledger).await;
    let mut given = answer(id, fence, "the left one");
    given.keys.named = Some([3; 32]);
    assert!(ledger.resume(given.clone()).await.unwrap());
    for key in given.keys.each() {
        assert_eq!(taken(&ledger, key).await, Some((id, given.digest)));
    }
}

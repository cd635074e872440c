//! Conformance tests of open interactions: their place, their claim and their lists.

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::{ExecutionPageQuery, PublicState};
use algonius_actors::model::execution::{AttemptId, Fence, Outcome};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionFilter, InteractionId, InteractionKind,
    InteractionRequestKey, InteractionState,
};
use algonius_actors::ports::interactions::{CloseOutcome, OpenOutcome};
use uuid::Uuid;

use super::{InteractionPorts, answered, closed, filter, question, said, unanswered};
use crate::conformance::State::{Failed, Running, Starting};
use crate::conformance::paging::all;
use crate::conformance::{accepted, claimed, moved, record, retried, second, settlement};

pub(crate) async fn an_open_interaction_is_read_back_unchanged(ports: InteractionPorts) {
    let (id, fence) = claimed(&ports.ledger).await;
    let asked = ports.opened(question(id, "1", 5), fence).await;
    assert_eq!(ports.one(asked.id).await, asked);
    assert_eq!(ports.interactions.interactions(filter(id)).await.unwrap(), vec![asked.clone()]);
    assert_eq!(record(&ports.ledger, id).await.changed_at, second(5));
    let opened = EventKind::InteractionOpened {
        interaction: asked.id,
        question: InteractionKind::ToolPermission,
        message: asked.question.message.clone(),
        tool: Some("Bash".to_owned()),
        due_at: second(305),
    };
    assert_eq!(ports.reported(id).await, [opened]);
    // A starting execution shows work; a running one shows the question.
    let query = ExecutionPageQuery { shown: Some(PublicState::InputRequired), ..all() };
    assert_eq!(ports.shown(id).await, (1, PublicState::Working));
    assert_eq!(ports.ledger.page(query.clone()).await.unwrap().total, 0);
    let run = EventKind::StateChanged(moved(Starting, Running, 6));
    assert!(ports.ledger.record(id, fence, vec![(second(6), run)]).await.unwrap());
    assert_eq!(ports.shown(id).await, (1, PublicState::InputRequired));
    let page = ports.ledger.page(query.clone()).await.unwrap();
    assert_eq!(
        (page.total, page.records[0].id, page.records[0].requested.interactions),
        (1, id, 1)
    );
    let two = ports.opened(question(id, "2", 7), fence).await;
    assert_eq!(ports.shown(id).await, (2, PublicState::InputRequired));
    let end = answered(AnswerValue::Allow, 8);
    assert_eq!(
        ports.close(asked.id, &end).await,
        CloseOutcome::Closed(Box::new(closed(&asked, &end)))
    );
    assert_eq!(ports.shown(id).await, (1, PublicState::InputRequired));
    ports.close(two.id, &answered(AnswerValue::Allow, 9)).await;
    assert_eq!(ports.shown(id).await, (0, PublicState::Working));
    assert_eq!(record(&ports.ledger, id).await.changed_at, second(9));
    assert_eq!(ports.ledger.page(query).await.unwrap().total, 0);
    assert_eq!(ports.one(asked.id).await, closed(&asked, &end));
}

pub(crate) async fn a_repeated_question_finds_the_first_interaction(ports: InteractionPorts) {
    let (asked, fence) = ports.asked().await;
    let id = asked.place.execution;
    let again = || question(id, "1", 7);
    let known = async || match ports.interactions.open(again(), fence).await.unwrap() {
        OpenOutcome::Existing(known) => *known,
        other => panic!("{other:?}"),
    };
    assert_eq!(known().await, asked);
    assert_eq!(ports.shown(id).await.0, 1);
    let end = answered(said("the secret"), 8);
    let shown = answered(said("***"), 8);
    ports.interactions.close(asked.id, end.clone(), shown.clone()).await.unwrap();
    assert_eq!(known().await, closed(&asked, &end), "an answer without delivery is raw");
    ports.interactions.delivered(asked.id, second(9)).await.unwrap();
    let delivered = Interaction { delivered_at: Some(second(9)), ..closed(&asked, &shown) };
    assert_eq!(known().await, delivered);
    assert_eq!(ports.reported(id).await.len(), 2);
    // Another request, another attempt or another execution is another place.
    let retry = AttemptId { turn: 1, attempt: 2 };
    let other = question(id, "1", 9);
    let place = InteractionRequestKey { attempt: retry, ..other.place.clone() };
    ports.opened(Interaction { place, ..other }, fence).await;
    ports.opened(question(id, "01", 9), fence).await;
    ports.asked().await;
}

pub(crate) async fn an_invalid_claim_opens_no_interaction(ports: InteractionPorts) {
    let gone = async |id: ExecutionId, fence| {
        let before = ports.ledger.execution(id).await.unwrap();
        let opening = ports.interactions.open(question(id, "1", 5), fence).await.unwrap();
        assert_eq!(opening, OpenOutcome::Gone);
        assert_eq!(ports.listed(filter(id)).await, []);
        assert_eq!(ports.ledger.execution(id).await.unwrap(), before);
    };
    gone(ExecutionId::fresh(), Fence(0)).await;
    gone(accepted(&ports.ledger).await, Fence(0)).await;
    let (id, old) = retried(&ports.ledger).await;
    gone(id, old).await;
    let (id, fence) = ports.running().await;
    gone(id, Fence(fence.0 + 1)).await;
    assert!(ports.ledger.settle(settlement(id, fence, Outcome::Completed)).await.unwrap());
    gone(id, fence).await;
    // The clean-up after the end, and a failed attempt that waits for the next one.
    let (id, fence) = ports.running().await;
    let failed = EventKind::StateChanged(moved(Running, Failed, 3));
    assert!(ports.ledger.record(id, fence, vec![(second(3), failed)]).await.unwrap());
    gone(id, fence).await;
}

pub(crate) async fn interactions_are_filtered_and_paged(ports: InteractionPorts) {
    let (one, fence) = ports.running().await;
    let (other, other_fence) = ports.running().await;
    let mut ids = Vec::new();
    for number in 0..6_u32 {
        let (id, fence) = if number < 4 { (one, fence) } else { (other, other_fence) };
        let mut asked = question(id, &number.to_string(), 5);
        // The ids decide about the order, not the times.
        asked.id = InteractionId(Uuid::from_u128(u128::from(number) + 1));
        asked.asked_at = second(50 - i64::from(number));
        asked.owner.principal = PrincipalId(Uuid::from_u128(u128::from(number % 2)));
        asked.owner.agent = AgentId::new(format!("agent-{}", number % 3)).unwrap();
        ids.push(ports.opened(asked, fence).await.id);
    }
    ports.close(ids[1], &answered(AnswerValue::Allow, 60)).await;
    ports.close(ids[4], &unanswered(InteractionState::Expired, AnswerSource::Timeout, 60)).await;
    let agent = |name: &str| AgentId::new(name).unwrap();
    let all = InteractionFilter::default();
    let in_state = |state| InteractionFilter { state: Some(state), ..all.clone() };
    let of = |owner| InteractionFilter {
        owner: Some(PrincipalId(Uuid::from_u128(owner))),
        ..all.clone()
    };
    let among =
        |agents: &[AgentId]| InteractionFilter { agents: Some(agents.to_vec()), ..all.clone() };
    for (filter, expected) in [
        (all.clone(), vec![5, 4, 3, 2, 1, 0]),
        (InteractionFilter { id: Some(ids[2]), ..all.clone() }, vec![2]),
        (InteractionFilter { id: Some(InteractionId::fresh()), ..all.clone() }, vec![]),
        (InteractionFilter { id: Some(ids[2]), ..of(1) }, vec![]),
        (filter(one), vec![3, 2, 1, 0]),
        (of(1), vec![5, 3, 1]),
        (among(&[agent("agent-0"), agent("agent-2")]), vec![5, 3, 2, 0]),
        (among(&[]), vec![]),
        (in_state(InteractionState::Open), vec![5, 3, 2, 0]),
        (in_state(InteractionState::Answered), vec![1]),
        (in_state(InteractionState::Expired), vec![4]),
        (in_state(InteractionState::Lost), vec![]),
        (InteractionFilter { state: Some(InteractionState::Open), ..filter(one) }, vec![3, 2, 0]),
        (InteractionFilter { before: Some(ids[3]), ..all.clone() }, vec![2, 1, 0]),
        (InteractionFilter { limit: 2, ..of(0) }, vec![4, 2]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|index| ids[index]).collect();
        assert_eq!(ports.listed(filter.clone()).await, expected, "{filter:?}");
    }
    let (mut paged, mut before) = (Vec::new(), None);
    loop {
        let page = ports.listed(InteractionFilter { before, limit: 4, ..all.clone() }).await;
        let Some(last) = page.last() else { break };
        before = Some(*last);
        paged.extend(page);
    }
    assert_eq!(paged, ids.iter().rev().copied().collect::<Vec<_>>());
}

//! Conformance tests of open interactions: their place, their claim and their lists.

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::{ExecutionPageQuery, PublicState};
use algonius_actors::model::execution::{AttemptId, Fence, Outcome};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionFilter, InteractionId,
    InteractionRequestKey, InteractionState, QuestionKind,
};
use algonius_actors::ports::interaction_store::{CloseInteractionOutcome, OpenInteractionOutcome};
use uuid::Uuid;

use super::{
    InteractionPorts, answered_end, end_without_answer, filter_by_execution, interaction_with_end,
    permission_request, text_answer,
};
use crate::conformance::ExecutionState::{Failed, Running, Starting};
use crate::conformance::paging::all_executions_query;
use crate::conformance::{
    accept_and_claim, accept_execution, at_second, load_record, reclaimed_execution, settlement,
    state_change,
};

pub(crate) async fn an_open_interaction_is_read_back_unchanged(ports: InteractionPorts) {
    let (id, fence) = accept_and_claim(&ports.ledger).await;
    let interaction = ports.open(permission_request(id, "1", 5), fence).await;
    assert_eq!(ports.load(interaction.id).await, interaction);
    assert_eq!(
        ports.interactions.interactions(filter_by_execution(id)).await.unwrap(),
        vec![interaction.clone()]
    );
    assert_eq!(load_record(&ports.ledger, id).await.changed_at, at_second(5));
    let opened = EventKind::InteractionOpened {
        interaction: interaction.id,
        question: QuestionKind::ToolPermission,
        message: interaction.question.message.clone(),
        tool: Some("Bash".to_owned()),
        due_at: at_second(305),
    };
    assert_eq!(ports.interaction_events(id).await, [opened]);
    // A starting execution shows work; a running one shows the question.
    let query = ExecutionPageQuery {
        public_state: Some(PublicState::InputRequired),
        ..all_executions_query()
    };
    assert_eq!(ports.open_count_and_state(id).await, (1, PublicState::Working));
    assert_eq!(ports.ledger.execution_page(query.clone()).await.unwrap().total, 0);
    let running_event = EventKind::StateChanged(state_change(Starting, Running, 6));
    assert!(
        ports.ledger.append_events(id, fence, vec![(at_second(6), running_event)]).await.unwrap()
    );
    assert_eq!(ports.open_count_and_state(id).await, (1, PublicState::InputRequired));
    let page = ports.ledger.execution_page(query.clone()).await.unwrap();
    assert_eq!(
        (page.total, page.records[0].id, page.records[0].requested_input.open_interaction_count),
        (1, id, 1)
    );
    let two = ports.open(permission_request(id, "2", 7), fence).await;
    assert_eq!(ports.open_count_and_state(id).await, (2, PublicState::InputRequired));
    let end = answered_end(AnswerValue::Allow, 8);
    assert_eq!(
        ports.close(interaction.id, &end).await,
        CloseInteractionOutcome::Closed(Box::new(interaction_with_end(&interaction, &end)))
    );
    assert_eq!(ports.open_count_and_state(id).await, (1, PublicState::InputRequired));
    ports.close(two.id, &answered_end(AnswerValue::Allow, 9)).await;
    assert_eq!(ports.open_count_and_state(id).await, (0, PublicState::Working));
    assert_eq!(load_record(&ports.ledger, id).await.changed_at, at_second(9));
    assert_eq!(ports.ledger.execution_page(query).await.unwrap().total, 0);
    assert_eq!(ports.load(interaction.id).await, interaction_with_end(&interaction, &end));
}

pub(crate) async fn a_repeated_question_finds_the_first_interaction(ports: InteractionPorts) {
    let (interaction, fence) = ports.create_open_interaction().await;
    let id = interaction.request_key.execution;
    let repeated_question = || permission_request(id, "1", 7);
    let open_repeated =
        async || match ports.interactions.open(repeated_question(), fence).await.unwrap() {
            OpenInteractionOutcome::Existing(known) => *known,
            other => panic!("{other:?}"),
        };
    assert_eq!(open_repeated().await, interaction);
    assert_eq!(ports.open_count_and_state(id).await.0, 1);
    let end = answered_end(text_answer("the secret"), 8);
    let redacted_end = answered_end(text_answer("***"), 8);
    ports.interactions.close(interaction.id, end.clone(), redacted_end.clone()).await.unwrap();
    assert_eq!(
        open_repeated().await,
        interaction_with_end(&interaction, &end),
        "an answer without delivery is raw"
    );
    ports.interactions.record_answer_delivery(interaction.id, at_second(9)).await.unwrap();
    let delivered = Interaction {
        delivered_at: Some(at_second(9)),
        ..interaction_with_end(&interaction, &redacted_end)
    };
    assert_eq!(open_repeated().await, delivered);
    let found = ports.interactions.find_by_request_key(&interaction.request_key).await;
    assert_eq!(found.unwrap(), Some(delivered));
    assert_eq!(ports.interaction_events(id).await.len(), 2);
    // Another request, another attempt or another execution is another place.
    let retry = AttemptId { turn: 1, attempt: 2 };
    let other = permission_request(id, "1", 9);
    let request_key = InteractionRequestKey { attempt_id: retry, ..other.request_key.clone() };
    let found = ports.interactions.find_by_request_key(&request_key).await;
    assert_eq!(found.unwrap(), None);
    ports.open(Interaction { request_key, ..other }, fence).await;
    ports.open(permission_request(id, "01", 9), fence).await;
    ports.create_open_interaction().await;
}

pub(crate) async fn an_invalid_claim_opens_no_interaction(ports: InteractionPorts) {
    let assert_refused = async |id: ExecutionId, fence| {
        let before = ports.ledger.execution(id).await.unwrap();
        let opening = ports.interactions.open(permission_request(id, "1", 5), fence).await.unwrap();
        assert_eq!(opening, OpenInteractionOutcome::Superseded);
        assert_eq!(ports.list_ids(filter_by_execution(id)).await, []);
        assert_eq!(ports.ledger.execution(id).await.unwrap(), before);
    };
    assert_refused(ExecutionId::generate(), Fence(0)).await;
    assert_refused(accept_execution(&ports.ledger).await, Fence(0)).await;
    let (id, old_fence) = reclaimed_execution(&ports.ledger).await;
    assert_refused(id, old_fence).await;
    let (id, fence) = ports.running_execution().await;
    assert_refused(id, Fence(fence.0 + 1)).await;
    assert!(ports.ledger.settle(settlement(id, fence, Outcome::Completed)).await.unwrap());
    assert_refused(id, fence).await;
    // The clean-up after the end, and a failed attempt that waits for the next one.
    let (id, fence) = ports.running_execution().await;
    let failed = EventKind::StateChanged(state_change(Running, Failed, 3));
    assert!(ports.ledger.append_events(id, fence, vec![(at_second(3), failed)]).await.unwrap());
    assert_refused(id, fence).await;
}

pub(crate) async fn interactions_are_filtered_and_paged(ports: InteractionPorts) {
    let (one, fence) = ports.running_execution().await;
    let (other, other_fence) = ports.running_execution().await;
    let mut ids = Vec::new();
    for number in 0..6_u32 {
        let (id, fence) = if number < 4 { (one, fence) } else { (other, other_fence) };
        let mut interaction = permission_request(id, &number.to_string(), 5);
        // The ids decide about the order, not the times.
        interaction.id = InteractionId(Uuid::from_u128(u128::from(number) + 1));
        interaction.opened_at = at_second(50 - i64::from(number));
        interaction.origin.owner = PrincipalId(Uuid::from_u128(u128::from(number % 2)));
        interaction.origin.agent = AgentId::new(format!("agent-{}", number % 3)).unwrap();
        ids.push(ports.open(interaction, fence).await.id);
    }
    ports.close(ids[1], &answered_end(AnswerValue::Allow, 60)).await;
    ports
        .close(ids[4], &end_without_answer(InteractionState::Expired, AnswerSource::Timeout, 60))
        .await;
    let agent = |name: &str| AgentId::new(name).unwrap();
    let all = InteractionFilter::default();
    let in_state = |state| InteractionFilter { state: Some(state), ..all.clone() };
    let of_owner = |owner| InteractionFilter {
        owner: Some(PrincipalId(Uuid::from_u128(owner))),
        ..all.clone()
    };
    let of_agents =
        |agents: &[AgentId]| InteractionFilter { agents: Some(agents.to_vec()), ..all.clone() };
    for (filter, expected) in [
        (all.clone(), vec![5, 4, 3, 2, 1, 0]),
        (InteractionFilter { id: Some(ids[2]), ..all.clone() }, vec![2]),
        (InteractionFilter { id: Some(InteractionId::generate()), ..all.clone() }, vec![]),
        (InteractionFilter { id: Some(ids[2]), ..of_owner(1) }, vec![]),
        (filter_by_execution(one), vec![3, 2, 1, 0]),
        (of_owner(1), vec![5, 3, 1]),
        (of_agents(&[agent("agent-0"), agent("agent-2")]), vec![5, 3, 2, 0]),
        (of_agents(&[]), vec![]),
        (in_state(InteractionState::Open), vec![5, 3, 2, 0]),
        (in_state(InteractionState::Answered), vec![1]),
        (in_state(InteractionState::Expired), vec![4]),
        (in_state(InteractionState::Lost), vec![]),
        (
            InteractionFilter { state: Some(InteractionState::Open), ..filter_by_execution(one) },
            vec![3, 2, 0],
        ),
        (InteractionFilter { before_id: Some(ids[3]), ..all.clone() }, vec![2, 1, 0]),
        (InteractionFilter { limit: 2, ..of_owner(0) }, vec![4, 2]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|index| ids[index]).collect();
        assert_eq!(ports.list_ids(filter.clone()).await, expected, "{filter:?}");
    }
    let (mut paged, mut before) = (Vec::new(), None);
    loop {
        let page =
            ports.list_ids(InteractionFilter { before_id: before, limit: 4, ..all.clone() }).await;
        let Some(last) = page.last() else { break };
        before = Some(*last);
        paged.extend(page);
    }
    assert_eq!(paged, ids.iter().rev().copied().collect::<Vec<_>>());
}

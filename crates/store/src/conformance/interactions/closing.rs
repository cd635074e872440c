//! Conformance tests of the end of interactions: one end each, and no raw answer after it.

use std::sync::Arc;

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::PublicState;
use algonius_actors::model::execution::{AttemptId, Fence, Outcome, StateChange};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionAnswer, InteractionEnd, InteractionId,
    InteractionRequestKey, InteractionState,
};
use algonius_actors::model::permission::PermissionVerdict;
use algonius_actors::ports::interaction_store::CloseInteractionOutcome;
use algonius_actors::ports::ledger::{ClaimCommand, ClaimResult, Settlement, WriteBatch};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    InteractionPorts, answered_end, closed_event, end_without_answer, filter_by_execution,
    interaction_with_end, permission_request, principal_source, text_answer,
};
use crate::conformance::ExecutionState::{Failed, Running, Starting};
use crate::conformance::{
    at_second, event_numbers, load_record, new_claim_command, settlement, state_change,
};

pub(crate) async fn one_of_many_ends_closes_an_interaction(ports: InteractionPorts) {
    let ports = Arc::new(ports);
    for round in 0..10 {
        let (interaction, _) = ports.create_open_interaction().await;
        let mut tasks = JoinSet::new();
        for number in 0..40 {
            let ports = Arc::clone(&ports);
            let (state, by, answer) = match number % 4 {
                0 => (InteractionState::Expired, AnswerSource::Timeout, None),
                1 => (InteractionState::Withdrawn, AnswerSource::Agent, None),
                2 => (InteractionState::Answered, principal_source(), Some(AnswerValue::Allow)),
                _ => {
                    let reason = Some(format!("reason {number}"));
                    (
                        InteractionState::Answered,
                        principal_source(),
                        Some(AnswerValue::Deny { reason }),
                    )
                }
            };
            let end = InteractionEnd {
                answer: InteractionAnswer { value: answer, by },
                ..end_without_answer(state, AnswerSource::Agent, 6)
            };
            tasks.spawn(async move { ports.close(interaction.id, &end).await });
        }
        let (mut closed, mut already_closed) = (Vec::new(), Vec::new());
        for closing in tasks.join_all().await {
            match closing {
                CloseInteractionOutcome::Closed(interaction) => closed.push(interaction),
                CloseInteractionOutcome::AlreadyClosed(interaction) => {
                    already_closed.push(interaction);
                }
                CloseInteractionOutcome::Unknown => {
                    panic!("round {round}: the interaction is unknown")
                }
            }
        }
        assert_eq!((closed.len(), already_closed.len()), (1, 39), "round {round}");
        assert!(already_closed.iter().all(|other| *other == closed[0]), "round {round}");
        assert_eq!(ports.load(interaction.id).await, *closed[0]);
        let id = interaction.request_key.execution;
        let end = closed[0].end.as_ref().unwrap();
        assert_eq!(ports.interaction_events(id).await[1..], [closed_event(interaction.id, end)]);
        assert_eq!(ports.load_decisions(id).await.len(), 1);
        assert_eq!(ports.open_count_and_state(id).await, (0, PublicState::Working));
    }
}

pub(crate) async fn an_end_without_an_interaction_changes_nothing(ports: InteractionPorts) {
    let (interaction, _) = ports.create_open_interaction().await;
    let (unknown, end) = (InteractionId::generate(), answered_end(AnswerValue::Allow, 6));
    assert_eq!(ports.close(unknown, &end).await, CloseInteractionOutcome::Unknown);
    ports.interactions.record_answer_delivery(unknown, at_second(6)).await.unwrap();
    assert_eq!(ports.interactions.interaction(unknown).await.unwrap(), None);
    // An interaction is neither delivered while it is open, nor closed as open.
    ports.interactions.record_answer_delivery(interaction.id, at_second(6)).await.unwrap();
    let end_in_open_state = end_without_answer(InteractionState::Open, AnswerSource::Agent, 6);
    assert!(
        ports
            .interactions
            .close(interaction.id, end_in_open_state.clone(), end_in_open_state)
            .await
            .is_err()
    );
    assert_eq!(ports.load(interaction.id).await, interaction);
    assert_eq!(
        ports.open_count_and_state(interaction.request_key.execution).await,
        (1, PublicState::InputRequired)
    );
    assert_eq!(ports.load_decisions(interaction.request_key.execution).await, []);
}

pub(crate) async fn a_raw_answer_is_erased_with_its_delivery(ports: InteractionPorts) {
    let form = |value: &str| AnswerValue::Form { values: json!({ "token": value }) };
    let denied = |reason: &str| AnswerValue::Deny { reason: Some(reason.to_owned()) };
    for (raw_answer, redacted_answer) in [
        (text_answer("my key is hunter2"), text_answer("my key is ***")),
        (form("hunter2"), form("***")),
        (denied("hunter2"), denied("***")),
        (text_answer("nothing to hide"), text_answer("nothing to hide")),
    ] {
        let (interaction, _) = ports.create_open_interaction().await;
        let (end, redacted_end) = (answered_end(raw_answer, 6), answered_end(redacted_answer, 6));
        let closing = ports
            .interactions
            .close(interaction.id, end.clone(), redacted_end.clone())
            .await
            .unwrap();
        let (raw_interaction, redacted_interaction) = (
            interaction_with_end(&interaction, &end),
            interaction_with_end(&interaction, &redacted_end),
        );
        assert_eq!(closing, CloseInteractionOutcome::Closed(Box::new(raw_interaction.clone())));
        assert_eq!(ports.load(interaction.id).await, raw_interaction);
        let late = answered_end(AnswerValue::Allow, 7);
        assert_eq!(
            ports.close(interaction.id, &late).await,
            CloseInteractionOutcome::AlreadyClosed(Box::new(raw_interaction))
        );
        let list_interactions = async || {
            ports
                .interactions
                .interactions(filter_by_execution(interaction.request_key.execution))
                .await
        };
        assert_eq!(list_interactions().await.unwrap(), vec![redacted_interaction.clone()]);
        for at in [8, 9] {
            ports.interactions.record_answer_delivery(interaction.id, at_second(at)).await.unwrap();
            let delivered =
                Interaction { delivered_at: Some(at_second(8)), ..redacted_interaction.clone() };
            assert_eq!(ports.load(interaction.id).await, delivered, "the first delivery counts");
            assert_eq!(list_interactions().await.unwrap(), [delivered]);
        }
    }
}

pub(crate) async fn a_raw_answer_is_erased_with_its_attempt(ports: InteractionPorts) {
    let (end, redacted_end) =
        (answered_end(text_answer("hunter2"), 6), answered_end(text_answer("***"), 6));
    for is_settled in [true, false] {
        let (interaction, fence) = ports.create_open_interaction().await;
        let id = interaction.request_key.execution;
        ports.interactions.close(interaction.id, end.clone(), redacted_end.clone()).await.unwrap();
        let failed = EventKind::StateChanged(state_change(Running, Failed, 7));
        assert!(ports.ledger.append_events(id, fence, vec![(at_second(7), failed)]).await.unwrap());
        assert_eq!(ports.load(interaction.id).await, interaction_with_end(&interaction, &end));
        if is_settled {
            let batch = WriteBatch::default();
            let failed_settlement = Settlement { batch, ..settlement(id, fence, Outcome::Failed) };
            assert!(ports.ledger.settle(failed_settlement).await.unwrap());
        } else {
            claim_next_attempt(&ports, id, fence, 2).await;
        }
        assert_eq!(
            ports.load(interaction.id).await,
            interaction_with_end(&interaction, &redacted_end)
        );
    }
}

pub(crate) async fn a_settlement_closes_open_interactions(ports: InteractionPorts) {
    for outcome in Outcome::ALL.iter().copied() {
        let (interaction, fence) = ports.create_open_interaction().await;
        let id = interaction.request_key.execution;
        let second_interaction = ports.open(permission_request(id, "2", 6), fence).await;
        let end = if outcome == Outcome::Failed {
            end_without_answer(InteractionState::Lost, AnswerSource::ProcessEnd, 9)
        } else {
            end_without_answer(InteractionState::Withdrawn, AnswerSource::Cancel, 9)
        };
        let refused = settlement(id, Fence(fence.0 + 1), outcome);
        assert!(!ports.ledger.settle(refused).await.unwrap());
        assert_eq!(ports.open_count_and_state(id).await.0, 2);
        assert!(ports.ledger.settle(settlement(id, fence, outcome)).await.unwrap());
        for one in [&interaction, &second_interaction] {
            assert_eq!(ports.load(one.id).await, interaction_with_end(one, &end));
        }
        let ends = [closed_event(interaction.id, &end), closed_event(second_interaction.id, &end)];
        assert_eq!(ports.interaction_events(id).await[2..], ends);
        let events = ports.ledger.events(id, 0).await.unwrap();
        let last = EventKind::StateChanged(state_change(Running, outcome.state(), 9));
        assert_eq!(events.last().unwrap().data, last, "the end is the last event");
        assert_eq!(event_numbers(&ports.ledger, id).await, (1..=8).collect::<Vec<_>>());
        let row = load_record(&ports.ledger, id).await;
        assert_eq!(
            (row.requested_input.open_interaction_count, row.outcome, row.last_event_number),
            (0, Some(outcome), 8)
        );
        let decisions = ports.load_decisions(id).await;
        let waits: Vec<_> = decisions.iter().map(|it| (it.verdict, it.waited_ms)).collect();
        assert_eq!(waits, [(PermissionVerdict::Deny, 4000), (PermissionVerdict::Deny, 3000)]);
        // Nothing follows the end.
        let late = ports.close(interaction.id, &answered_end(AnswerValue::Allow, 10)).await;
        assert_eq!(
            late,
            CloseInteractionOutcome::AlreadyClosed(Box::new(interaction_with_end(
                &interaction,
                &end
            )))
        );
        assert_eq!(load_record(&ports.ledger, id).await, row);
        assert_eq!(ports.load_decisions(id).await, decisions);
    }
}

pub(crate) async fn the_next_claim_closes_earlier_interactions(ports: InteractionPorts) {
    let (interaction, fence) = ports.create_open_interaction().await;
    let id = interaction.request_key.execution;
    let answer = answered_end(AnswerValue::Allow, 6);
    let closed_interaction = ports.open(permission_request(id, "2", 6), fence).await;
    ports.close(closed_interaction.id, &answer).await;
    let failed = EventKind::StateChanged(state_change(Running, Failed, 7));
    assert!(ports.ledger.append_events(id, fence, vec![(at_second(7), failed)]).await.unwrap());
    assert_eq!(ports.open_count_and_state(id).await, (1, PublicState::Working));
    claim_next_attempt(&ports, id, fence, 2).await;
    let lost_end = end_without_answer(InteractionState::Lost, AnswerSource::ProcessEnd, 8);
    assert_eq!(ports.load(interaction.id).await, interaction_with_end(&interaction, &lost_end));
    assert_eq!(
        ports.load(closed_interaction.id).await,
        interaction_with_end(&closed_interaction, &answer)
    );
    assert_eq!(ports.open_count_and_state(id).await, (0, PublicState::Working));
    assert_eq!(
        ports.interaction_events(id).await.last(),
        Some(&closed_event(interaction.id, &lost_end))
    );
    let events = ports.ledger.events(id, 0).await.unwrap();
    let is_start = |event: &EventKind| matches!(event, EventKind::StateChanged(change) if change.to == Starting);
    assert!(
        is_start(&events.last().unwrap().data),
        "the claim follows the ends of the attempt before"
    );
    assert_eq!(event_numbers(&ports.ledger, id).await, (1..=9).collect::<Vec<_>>());
    // The question of the new attempt is another one, and stays open.
    let other = permission_request(id, "1", 9);
    let request_key = InteractionRequestKey {
        attempt_id: AttemptId { turn: 1, attempt: 2 },
        ..other.request_key.clone()
    };
    let next = ports.open(Interaction { request_key, ..other }, Fence(fence.0 + 1)).await;
    assert_eq!(ports.load(next.id).await, next);
    // A claim that is refused closes nothing.
    let refused =
        ports.ledger.claim(ClaimCommand { fence, ..new_claim_command(id, None) }).await.unwrap();
    assert_eq!(refused, ClaimResult::Superseded);
    assert_eq!(ports.load(next.id).await, next);
}

pub(crate) async fn a_claim_keeps_the_interactions_of_its_attempt(ports: InteractionPorts) {
    let (interaction, fence) = ports.create_open_interaction().await;
    let id = interaction.request_key.execution;
    let other = permission_request(id, "1", 6);
    let attempt = AttemptId { turn: 1, attempt: 2 };
    let request_key = InteractionRequestKey { attempt_id: attempt, ..other.request_key.clone() };
    let current_interaction = ports.open(Interaction { request_key, ..other }, fence).await;
    let failed = EventKind::StateChanged(state_change(Running, Failed, 7));
    assert!(ports.ledger.append_events(id, fence, vec![(at_second(7), failed)]).await.unwrap());
    claim_next_attempt(&ports, id, fence, 2).await;
    assert_eq!(ports.load(current_interaction.id).await, current_interaction);
    assert_eq!(ports.load(interaction.id).await.state, InteractionState::Lost);
    assert_eq!(ports.open_count_and_state(id).await.0, 1);
}

/// Claims another attempt of a failed one.
async fn claim_next_attempt(ports: &InteractionPorts, id: ExecutionId, fence: Fence, attempt: u32) {
    let attempt_id = AttemptId { turn: 1, attempt };
    let state_change =
        StateChange::new((Failed, Starting), attempt_id, at_second(8), "because".to_owned());
    let claim = ports
        .ledger
        .claim(ClaimCommand { fence, state_change, ..new_claim_command(id, None) })
        .await
        .unwrap();
    assert_eq!(claim, ClaimResult::Granted(Fence(fence.0 + 1)));
}

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
use algonius_actors::ports::interactions::CloseOutcome;
use algonius_actors::ports::ledger::{ClaimCommand, ClaimResult, Settlement, WriteBatch};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    InteractionPorts, answer_text, answered, by_ann, closed, closed_event, filter, question,
    unanswered,
};
use crate::conformance::State::{Failed, Running, Starting};
use crate::conformance::{claim_command, moved, numbers, record, second, settlement};

pub(crate) async fn one_of_many_ends_closes_an_interaction(ports: InteractionPorts) {
    let ports = Arc::new(ports);
    for round in 0..10 {
        let (interaction, _) = ports.open_interaction().await;
        let mut racing = JoinSet::new();
        for number in 0..40 {
            let ports = Arc::clone(&ports);
            let (state, by, answer) = match number % 4 {
                0 => (InteractionState::Expired, AnswerSource::Timeout, None),
                1 => (InteractionState::Withdrawn, AnswerSource::Agent, None),
                2 => (InteractionState::Answered, by_ann(), Some(AnswerValue::Allow)),
                _ => {
                    let reason = Some(format!("reason {number}"));
                    (InteractionState::Answered, by_ann(), Some(AnswerValue::Deny { reason }))
                }
            };
            let end = InteractionEnd {
                answer: InteractionAnswer { value: answer, by },
                ..unanswered(state, AnswerSource::Agent, 6)
            };
            racing.spawn(async move { ports.close(interaction.id, &end).await });
        }
        let (mut won, mut lost) = (Vec::new(), Vec::new());
        for closing in racing.join_all().await {
            match closing {
                CloseOutcome::Closed(interaction) => won.push(interaction),
                CloseOutcome::AlreadyClosed(interaction) => lost.push(interaction),
                CloseOutcome::Unknown => panic!("round {round}: the interaction is unknown"),
            }
        }
        assert_eq!((won.len(), lost.len()), (1, 39), "round {round}");
        assert!(lost.iter().all(|other| *other == won[0]), "round {round}");
        assert_eq!(ports.load(interaction.id).await, *won[0]);
        let id = interaction.request_key.execution;
        let end = won[0].closed.as_ref().unwrap();
        assert_eq!(ports.reported(id).await[1..], [closed_event(interaction.id, end)]);
        assert_eq!(ports.decided(id).await.len(), 1);
        assert_eq!(ports.open_count_and_state(id).await, (0, PublicState::Working));
    }
}

pub(crate) async fn an_end_without_an_interaction_changes_nothing(ports: InteractionPorts) {
    let (interaction, _) = ports.open_interaction().await;
    let (unknown, end) = (InteractionId::fresh(), answered(AnswerValue::Allow, 6));
    assert_eq!(ports.close(unknown, &end).await, CloseOutcome::Unknown);
    ports.interactions.delivered(unknown, second(6)).await.unwrap();
    assert_eq!(ports.interactions.interaction(unknown).await.unwrap(), None);
    // An interaction is neither delivered while it is open, nor closed as open.
    ports.interactions.delivered(interaction.id, second(6)).await.unwrap();
    let none = unanswered(InteractionState::Open, AnswerSource::Agent, 6);
    assert!(ports.interactions.close(interaction.id, none.clone(), none).await.is_err());
    assert_eq!(ports.load(interaction.id).await, interaction);
    assert_eq!(
        ports.open_count_and_state(interaction.request_key.execution).await,
        (1, PublicState::InputRequired)
    );
    assert_eq!(ports.decided(interaction.request_key.execution).await, []);
}

pub(crate) async fn a_raw_answer_is_erased_with_its_delivery(ports: InteractionPorts) {
    let form = |value: &str| AnswerValue::Form { values: json!({ "token": value }) };
    let denied = |reason: &str| AnswerValue::Deny { reason: Some(reason.to_owned()) };
    for (raw_answer, redacted_answer) in [
        (answer_text("my key is hunter2"), answer_text("my key is ***")),
        (form("hunter2"), form("***")),
        (denied("hunter2"), denied("***")),
        (answer_text("nothing to hide"), answer_text("nothing to hide")),
    ] {
        let (interaction, _) = ports.open_interaction().await;
        let (end, redacted_end) = (answered(raw_answer, 6), answered(redacted_answer, 6));
        let closing = ports
            .interactions
            .close(interaction.id, end.clone(), redacted_end.clone())
            .await
            .unwrap();
        let (raw, redacted) = (closed(&interaction, &end), closed(&interaction, &redacted_end));
        assert_eq!(closing, CloseOutcome::Closed(Box::new(raw.clone())));
        assert_eq!(ports.load(interaction.id).await, raw);
        let late = answered(AnswerValue::Allow, 7);
        assert_eq!(
            ports.close(interaction.id, &late).await,
            CloseOutcome::AlreadyClosed(Box::new(raw))
        );
        let listed = async || {
            ports.interactions.interactions(filter(interaction.request_key.execution)).await
        };
        assert_eq!(listed().await.unwrap(), vec![redacted.clone()]);
        for at in [8, 9] {
            ports.interactions.delivered(interaction.id, second(at)).await.unwrap();
            let delivered = Interaction { delivered_at: Some(second(8)), ..redacted.clone() };
            assert_eq!(ports.load(interaction.id).await, delivered, "the first delivery counts");
            assert_eq!(listed().await.unwrap(), [delivered]);
        }
    }
}

pub(crate) async fn a_raw_answer_is_erased_with_its_attempt(ports: InteractionPorts) {
    let (end, redacted_end) =
        (answered(answer_text("hunter2"), 6), answered(answer_text("***"), 6));
    for is_settled in [true, false] {
        let (interaction, fence) = ports.open_interaction().await;
        let id = interaction.request_key.execution;
        ports.interactions.close(interaction.id, end.clone(), redacted_end.clone()).await.unwrap();
        let failed = EventKind::StateChanged(moved(Running, Failed, 7));
        assert!(ports.ledger.record(id, fence, vec![(second(7), failed)]).await.unwrap());
        assert_eq!(ports.load(interaction.id).await, closed(&interaction, &end));
        if is_settled {
            let lines = WriteBatch::default();
            let end = Settlement { lines, ..settlement(id, fence, Outcome::Failed) };
            assert!(ports.ledger.settle(end).await.unwrap());
        } else {
            next_claim(&ports, id, fence, 2).await;
        }
        assert_eq!(ports.load(interaction.id).await, closed(&interaction, &redacted_end));
    }
}

pub(crate) async fn a_settlement_closes_open_interactions(ports: InteractionPorts) {
    for outcome in Outcome::ALL.iter().copied() {
        let (interaction, fence) = ports.open_interaction().await;
        let id = interaction.request_key.execution;
        let second_one = ports.opened(question(id, "2", 6), fence).await;
        let end = if outcome == Outcome::Failed {
            unanswered(InteractionState::Lost, AnswerSource::ProcessEnd, 9)
        } else {
            unanswered(InteractionState::Withdrawn, AnswerSource::Cancel, 9)
        };
        let refused = settlement(id, Fence(fence.0 + 1), outcome);
        assert!(!ports.ledger.settle(refused).await.unwrap());
        assert_eq!(ports.open_count_and_state(id).await.0, 2);
        assert!(ports.ledger.settle(settlement(id, fence, outcome)).await.unwrap());
        for one in [&interaction, &second_one] {
            assert_eq!(ports.load(one.id).await, closed(one, &end));
        }
        let ends = [closed_event(interaction.id, &end), closed_event(second_one.id, &end)];
        assert_eq!(ports.reported(id).await[2..], ends);
        let events = ports.ledger.events(id, 0).await.unwrap();
        let last = EventKind::StateChanged(moved(Running, outcome.state(), 9));
        assert_eq!(events.last().unwrap().data, last, "the end is the last event");
        assert_eq!(numbers(&ports.ledger, id).await, (1..=8).collect::<Vec<_>>());
        let row = record(&ports.ledger, id).await;
        assert_eq!(
            (row.requested.interactions, row.outcome, row.last_event),
            (0, Some(outcome), 8)
        );
        let decisions = ports.decided(id).await;
        let waits: Vec<_> = decisions.iter().map(|it| (it.verdict, it.waited_ms)).collect();
        assert_eq!(waits, [(PermissionVerdict::Deny, 4000), (PermissionVerdict::Deny, 3000)]);
        // Nothing follows the end.
        let late = ports.close(interaction.id, &answered(AnswerValue::Allow, 10)).await;
        assert_eq!(late, CloseOutcome::AlreadyClosed(Box::new(closed(&interaction, &end))));
        assert_eq!(record(&ports.ledger, id).await, row);
        assert_eq!(ports.decided(id).await, decisions);
    }
}

pub(crate) async fn the_next_claim_closes_earlier_interactions(ports: InteractionPorts) {
    let (interaction, fence) = ports.open_interaction().await;
    let id = interaction.request_key.execution;
    let answer = answered(AnswerValue::Allow, 6);
    let done = ports.opened(question(id, "2", 6), fence).await;
    ports.close(done.id, &answer).await;
    let failed = EventKind::StateChanged(moved(Running, Failed, 7));
    assert!(ports.ledger.record(id, fence, vec![(second(7), failed)]).await.unwrap());
    assert_eq!(ports.open_count_and_state(id).await, (1, PublicState::Working));
    next_claim(&ports, id, fence, 2).await;
    let lost = unanswered(InteractionState::Lost, AnswerSource::ProcessEnd, 8);
    assert_eq!(ports.load(interaction.id).await, closed(&interaction, &lost));
    assert_eq!(ports.load(done.id).await, closed(&done, &answer));
    assert_eq!(ports.open_count_and_state(id).await, (0, PublicState::Working));
    assert_eq!(ports.reported(id).await.last(), Some(&closed_event(interaction.id, &lost)));
    let events = ports.ledger.events(id, 0).await.unwrap();
    let is_start =
        |event: &EventKind| matches!(event, EventKind::StateChanged(moved) if moved.to == Starting);
    assert!(
        is_start(&events.last().unwrap().data),
        "the claim follows the ends of the attempt before"
    );
    assert_eq!(numbers(&ports.ledger, id).await, (1..=9).collect::<Vec<_>>());
    // The question of the new attempt is another one, and stays open.
    let other = question(id, "1", 9);
    let place = InteractionRequestKey {
        attempt: AttemptId { turn: 1, attempt: 2 },
        ..other.request_key.clone()
    };
    let next = ports.opened(Interaction { request_key: place, ..other }, Fence(fence.0 + 1)).await;
    assert_eq!(ports.load(next.id).await, next);
    // A claim that is refused closes nothing.
    let refused =
        ports.ledger.claim(ClaimCommand { fence, ..claim_command(id, None) }).await.unwrap();
    assert_eq!(refused, ClaimResult::Superseded);
    assert_eq!(ports.load(next.id).await, next);
}

pub(crate) async fn a_claim_keeps_the_interactions_of_its_attempt(ports: InteractionPorts) {
    let (interaction, fence) = ports.open_interaction().await;
    let id = interaction.request_key.execution;
    let other = question(id, "1", 6);
    let attempt = AttemptId { turn: 1, attempt: 2 };
    let place = InteractionRequestKey { attempt, ..other.request_key.clone() };
    let current = ports.opened(Interaction { request_key: place, ..other }, fence).await;
    let failed = EventKind::StateChanged(moved(Running, Failed, 7));
    assert!(ports.ledger.record(id, fence, vec![(second(7), failed)]).await.unwrap());
    next_claim(&ports, id, fence, 2).await;
    assert_eq!(ports.load(current.id).await, current);
    assert_eq!(ports.load(interaction.id).await.state, InteractionState::Lost);
    assert_eq!(ports.open_count_and_state(id).await.0, 1);
}

/// Claims another attempt of a failed one.
async fn next_claim(ports: &InteractionPorts, id: ExecutionId, fence: Fence, attempt: u32) {
    let attempt_id = AttemptId { turn: 1, attempt };
    let moved = StateChange::new((Failed, Starting), attempt_id, second(8), "because".to_owned());
    let claim =
        ports.ledger.claim(ClaimCommand { fence, moved, ..claim_command(id, None) }).await.unwrap();
    assert_eq!(claim, ClaimResult::Granted(Fence(fence.0 + 1)));
}

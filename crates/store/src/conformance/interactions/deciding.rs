//! Conformance tests of permission decisions.

use algonius_actors::model::execution::{AttemptId, Outcome};
use algonius_actors::model::host::storage_stats::DeletionOutcome;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{
    AnswerSource, AnswerValue, InteractionFilter, InteractionState, QuestionKind,
};
use algonius_actors::model::permission::{DecisionFilter, PermissionDecision, PermissionVerdict};
use algonius_actors::ports::interaction_store::CloseInteractionOutcome;
use uuid::Uuid;

use super::{
    InteractionPorts, answered_end, end_without_answer, permission_request, principal_source,
    text_answer,
};
use crate::conformance::ExecutionState::Completed;
use crate::conformance::{at_second, default_agent_id, load_record, settlement};

pub(crate) async fn each_end_of_a_permission_question_is_a_decision(ports: InteractionPorts) {
    let deny = AnswerValue::Deny { reason: Some("not now".to_owned()) };
    let answered_with = |value| answered_end(value, 9);
    let without_answer = |state, by| end_without_answer(state, by, 9);
    let (allowed, denied) = (Some(PermissionVerdict::Allow), Some(PermissionVerdict::Deny));
    for (end, verdict) in [
        (answered_with(AnswerValue::Allow), allowed),
        (answered_with(deny), denied),
        (without_answer(InteractionState::Expired, AnswerSource::Timeout), denied),
        (without_answer(InteractionState::Withdrawn, AnswerSource::Agent), denied),
        (without_answer(InteractionState::Lost, AnswerSource::ProcessEnd), denied),
        (answered_with(AnswerValue::Decline), None),
        (answered_with(text_answer("why?")), None),
    ] {
        for kind in QuestionKind::ALL.iter().copied() {
            let (id, fence) = ports.running_execution().await;
            let mut interaction = permission_request(id, "1", 5);
            interaction.question.kind = kind;
            let interaction = ports.open(interaction, fence).await;
            ports.close(interaction.id, &end).await;
            let expected =
                verdict.filter(|_| kind.is_permission()).map(|verdict| PermissionDecision {
                    at: at_second(9),
                    agent: default_agent_id(),
                    owner: PrincipalId(Uuid::nil()),
                    execution: id,
                    attempt_id: AttemptId::FIRST,
                    interaction: Some(interaction.id),
                    tool: "Bash".to_owned(),
                    tool_call_digest: "d1".to_owned(),
                    verdict,
                    source: end.answer.by.clone(),
                    waited_ms: 4000,
                });
            assert_eq!(
                ports.load_decisions(id).await,
                Vec::from_iter(expected),
                "{kind:?} {end:?}"
            );
        }
    }
    // An end before its question comes from a clock that was set back.
    let (interaction, _) = ports.create_open_interaction().await;
    ports.close(interaction.id, &answered_end(AnswerValue::Allow, 0)).await;
    assert_eq!(ports.load_decisions(interaction.request_key.execution).await[0].waited_ms, 0);
}

pub(crate) async fn decisions_are_listed_by_number(ports: InteractionPorts) {
    let (interaction, _) = ports.create_open_interaction().await;
    let by_rule = |number: u128| PermissionDecision {
        at: at_second(5),
        agent: AgentId::new(format!("agent-{}", number % 2)).unwrap(),
        owner: PrincipalId(Uuid::from_u128(9)),
        // No execution exists for this id: a decision outlives its execution.
        execution: ExecutionId(Uuid::from_u128(number)),
        attempt_id: AttemptId { turn: 2, attempt: 3 },
        interaction: None,
        tool: "Edit".to_owned(),
        tool_call_digest: format!("d{number}"),
        verdict: PermissionVerdict::Deny,
        source: AnswerSource::Rule { rule: "rules[1]".to_owned() },
        waited_ms: 0,
    };
    let rule_decisions: Vec<_> = (1..=5).map(by_rule).collect();
    for decision in &rule_decisions[..4] {
        ports.interactions.record_decision(decision.clone()).await.unwrap();
    }
    ports.close(interaction.id, &answered_end(AnswerValue::Allow, 6)).await;
    ports.interactions.record_decision(rule_decisions[4].clone()).await.unwrap();
    let list_decisions = async |filter| ports.interactions.decisions(filter).await.unwrap();
    let numbered_decisions = list_decisions(DecisionFilter::default()).await;
    assert_eq!(
        numbered_decisions.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    let (_, answered) = &numbered_decisions[4];
    assert_eq!(
        (answered.interaction, &answered.source),
        (Some(interaction.id), &principal_source())
    );
    let rows = [0, 1, 2, 3, 5].map(|index: usize| numbered_decisions[index].1.clone());
    assert_eq!(rows[..], rule_decisions);
    let decisions_at = |indexes: &[usize]| {
        indexes.iter().map(|index| numbered_decisions[*index].clone()).collect::<Vec<_>>()
    };
    let odd_agent = Some(AgentId::new("agent-1").unwrap());
    let page = DecisionFilter { after: 2, limit: 3, ..DecisionFilter::default() };
    assert_eq!(list_decisions(page).await, decisions_at(&[2, 3, 4]));
    let filter = DecisionFilter { agent: odd_agent.clone(), ..DecisionFilter::default() };
    assert_eq!(list_decisions(filter.clone()).await, decisions_at(&[0, 2, 5]));
    assert_eq!(
        list_decisions(DecisionFilter { after: 1, limit: 1, ..filter }).await,
        decisions_at(&[2])
    );
    let execution = Some(interaction.request_key.execution);
    let filter = DecisionFilter { execution, ..DecisionFilter::default() };
    assert_eq!(list_decisions(filter.clone()).await, decisions_at(&[4]));
    assert_eq!(list_decisions(DecisionFilter { agent: odd_agent, ..filter }).await, []);
}

pub(crate) async fn a_removed_execution_leaves_its_decisions(ports: InteractionPorts) {
    let (interaction, fence) = ports.create_open_interaction().await;
    let (other, _) = ports.create_open_interaction().await;
    let id = interaction.request_key.execution;
    assert!(ports.ledger.settle(settlement(id, fence, Outcome::Completed)).await.unwrap());
    let decisions = ports.load_decisions(id).await;
    assert_eq!(decisions.len(), 1);
    assert_eq!(load_record(&ports.ledger, id).await.state, Completed);
    assert_eq!(ports.history.remove(id).await.unwrap(), DeletionOutcome::Removed);
    assert_eq!(ports.interactions.interaction(interaction.id).await.unwrap(), None);
    assert_eq!(ports.list_ids(InteractionFilter::default()).await, [other.id]);
    let late = answered_end(AnswerValue::Allow, 10);
    assert_eq!(ports.close(interaction.id, &late).await, CloseInteractionOutcome::Unknown);
    assert_eq!(ports.load_decisions(id).await, decisions);
}

//! Conformance tests of interactions: each is opened once, closed once, and reported by events without a gap.

pub(crate) mod closing;
pub(crate) mod deciding;
pub(crate) mod opening;
pub(crate) mod propagating;
pub(crate) mod reporting;

use std::sync::Arc;

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::PublicState;
use algonius_actors::model::execution::{AttemptId, Fence};
use algonius_actors::model::id::{ContextId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{
    AnswerSource, AnswerValue, ApproverRules, Interaction, InteractionAnswer, InteractionEnd,
    InteractionFilter, InteractionId, InteractionOrigin, InteractionRequestKey, InteractionState,
    OptionKind, Question, QuestionKind, QuestionOption, ToolCallSubject, WireId,
};
use algonius_actors::model::permission::{DecisionFilter, PermissionDecision};
use algonius_actors::ports::interaction_store::{
    CloseInteractionOutcome, InteractionStore, OpenInteractionOutcome,
};
use serde_json::json;
use uuid::Uuid;

use super::ExecutionState::{Running, Starting};
use super::{
    AnyHistory, AnyLedger, accept_and_claim, at_second, default_agent_id, load_record, state_change,
};

pub(crate) type AnyInteractions = Arc<dyn InteractionStore>;

/// Ports of one store.
pub(crate) struct InteractionPorts {
    pub(crate) ledger: AnyLedger,
    pub(crate) history: AnyHistory,
    pub(crate) interactions: AnyInteractions,
}

/// Instantiates all tests for the ports that `$open` returns, with a guard that must live as long.
macro_rules! interactions_conformance {
    ($open:path) => {
        interactions_conformance! { $open:
            opening {
                an_open_interaction_is_read_back_unchanged
                a_repeated_question_finds_the_first_interaction
                an_invalid_claim_opens_no_interaction
                interactions_are_filtered_and_paged
            }
            closing {
                one_of_many_ends_closes_an_interaction
                an_end_without_an_interaction_changes_nothing
                a_raw_answer_is_erased_with_its_delivery
                a_raw_answer_is_erased_with_its_attempt
                a_settlement_closes_open_interactions
                the_next_claim_closes_earlier_interactions
                a_claim_keeps_the_interactions_of_its_attempt
            }
            reporting {
                events_about_interactions_leave_no_gap
                repeated_polls_see_each_interaction
            }
            propagating {
                a_question_of_a_member_is_one_of_its_runs
                questions_are_listed_with_each_run_and_team
                a_run_that_has_ended_gets_no_question
            }
            deciding {
                each_end_of_a_permission_question_is_a_decision
                decisions_are_listed_by_number
                a_removed_execution_leaves_its_decisions
            }
        }
    };
    ($open:path: $($group:ident { $($test:ident)* })*) => {
        $($(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $test() {
            let (ports, _guard) = $open().await;
            crate::conformance::interactions::$group::$test(ports).await;
        })*)*
    };
}
pub(crate) use interactions_conformance;

/// Returns a permission request of an execution.
pub(crate) fn permission_request(id: ExecutionId, wire_id: &str, at: i64) -> Interaction {
    let option =
        |id: &str, kind| QuestionOption { id: id.to_owned(), name: id.to_uppercase(), kind };
    let subject = ToolCallSubject {
        id: "call-1".to_owned(),
        tool: "Bash".to_owned(),
        kind: Some("execute".to_owned()),
        command: Some("git push".to_owned()),
        args: json!({ "command": "git push" }),
        ..ToolCallSubject::default()
    };
    Interaction {
        id: InteractionId::generate(),
        request_key: InteractionRequestKey {
            execution: id,
            attempt_id: AttemptId::FIRST,
            wire_id: WireId(wire_id.to_owned()),
        },
        origin: InteractionOrigin {
            owner: PrincipalId(Uuid::nil()),
            agent: default_agent_id(),
            context: ContextId("context-1".to_owned()),
            teams: Vec::new(),
        },
        question: Question {
            kind: QuestionKind::ToolPermission,
            message: "May I run `git push`?".to_owned(),
            options: vec![
                option("yes", OptionKind::AllowOnce),
                option("no", OptionKind::RejectOnce),
            ],
            subject: Some(subject),
            schema: None,
        },
        approver_rules: ApproverRules { approvers: vec!["ann".to_owned()], four_eyes: true },
        tool_call_digest: "d1".to_owned(),
        opened_at: at_second(at),
        due_at: at_second(at + 300),
        state: InteractionState::Open,
        end: None,
        delivered_at: None,
    }
}

fn principal_source() -> AnswerSource {
    AnswerSource::Principal { name: "ann".to_owned(), channel: "api".to_owned(), message: None }
}

/// Returns the end by an answer.
pub(crate) fn answered_end(value: AnswerValue, at: i64) -> InteractionEnd {
    let answer = InteractionAnswer { value: Some(value), by: principal_source() };
    InteractionEnd { state: InteractionState::Answered, answer, at: at_second(at) }
}

pub(crate) fn text_answer(text: &str) -> AnswerValue {
    AnswerValue::Text { text: text.to_owned() }
}

fn end_without_answer(state: InteractionState, by: AnswerSource, at: i64) -> InteractionEnd {
    InteractionEnd { state, answer: InteractionAnswer { value: None, by }, at: at_second(at) }
}

fn interaction_with_end(interaction: &Interaction, end: &InteractionEnd) -> Interaction {
    Interaction { state: end.state, end: Some(end.clone()), ..interaction.clone() }
}

fn filter_by_execution(execution: ExecutionId) -> InteractionFilter {
    InteractionFilter { execution: Some(execution), ..InteractionFilter::default() }
}

impl InteractionPorts {
    /// Returns a running execution and its fence.
    pub(crate) async fn running_execution(&self) -> (ExecutionId, Fence) {
        let (id, fence) = accept_and_claim(&self.ledger).await;
        let running_event = EventKind::StateChanged(state_change(Starting, Running, 2));
        assert!(
            self.ledger
                .append_events(id, fence, vec![(at_second(2), running_event)])
                .await
                .unwrap()
        );
        (id, fence)
    }

    pub(crate) async fn open(&self, interaction: Interaction, fence: Fence) -> Interaction {
        let opening = self.interactions.open(interaction.clone(), fence).await.unwrap();
        assert_eq!(opening, OpenInteractionOutcome::New);
        interaction
    }

    /// Returns an open interaction of a running execution.
    async fn create_open_interaction(&self) -> (Interaction, Fence) {
        let (id, fence) = self.running_execution().await;
        (self.open(permission_request(id, "1", 5), fence).await, fence)
    }

    async fn close(&self, id: InteractionId, end: &InteractionEnd) -> CloseInteractionOutcome {
        self.interactions.close(id, end.clone(), end.clone()).await.unwrap()
    }

    async fn load(&self, id: InteractionId) -> Interaction {
        self.interactions.interaction(id).await.unwrap().unwrap()
    }

    async fn list_ids(&self, filter: InteractionFilter) -> Vec<InteractionId> {
        let found = self.interactions.interactions(filter).await.unwrap();
        found.iter().map(|interaction| interaction.id).collect()
    }

    async fn load_decisions(&self, execution: ExecutionId) -> Vec<PermissionDecision> {
        let filter = DecisionFilter { execution: Some(execution), ..DecisionFilter::default() };
        let found = self.interactions.decisions(filter).await.unwrap();
        found.into_iter().map(|(_, decision)| decision).collect()
    }

    /// Returns the number of open interactions and the public state.
    async fn open_count_and_state(&self, id: ExecutionId) -> (u32, PublicState) {
        let record = load_record(&self.ledger, id).await;
        (record.requested_input.open_interaction_count, record.public_state())
    }

    /// Returns the events about interactions, without the other ones.
    async fn interaction_events(&self, id: ExecutionId) -> Vec<EventKind> {
        let events = self.ledger.events(id, 0).await.unwrap().into_iter().map(|event| event.data);
        let is_interaction_event = |event: &EventKind| {
            matches!(
                event,
                EventKind::InteractionOpened { .. } | EventKind::InteractionClosed { .. }
            )
        };
        events.filter(is_interaction_event).collect()
    }
}

fn closed_event(id: InteractionId, end: &InteractionEnd) -> EventKind {
    EventKind::InteractionClosed {
        interaction: id,
        state: end.state,
        answer: end.answer.value.as_ref().map(|value| value.kind_name().to_owned()),
        by: end.answer.by.clone(),
    }
}

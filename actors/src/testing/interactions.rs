//! Questions of scripted work.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::TestTree;
use super::fixtures::caller;
use super::recorded_work::RecordedWork;
use crate::api::CallerAnswer;
use crate::driver::report::Reporter;
use crate::model::code::Code;
use crate::model::id::ExecutionId;
use crate::model::interaction::{
    AnswerSource, AnswerValue, InteractionAnswer, InteractionEnd, InteractionId, InteractionState,
    OptionKind, Question, QuestionKind, QuestionOption, ToolCallSubject, WireId,
};
use crate::ports::clock::Clock;
use crate::ports::interaction_store::{CloseInteractionOutcome, InteractionStore};

/// Answers a question as the caller of the environment, which is an administrator.
///
/// # Errors
/// Returns the code of the refusal.
pub async fn answer_question(
    tree: &TestTree,
    id: InteractionId,
    value: AnswerValue,
) -> Result<(), Code> {
    let caller_answer = CallerAnswer { value, digest: None, channel: "test", message_id: None };
    let result = tree.api.interactions.answer(&caller(), id, caller_answer).await;
    result.map(drop).map_err(|failure| failure.code)
}

/// Records an answer in the ledger without the service, as a service does that is killed before it sends the answer.
///
/// # Panics
/// Panics if the ledger does not record the answer.
pub async fn record_answer_without_service(tree: &TestTree, id: InteractionId, value: AnswerValue) {
    let source =
        AnswerSource::Principal { name: caller().name, channel: "test".to_owned(), message: None };
    let answer = InteractionAnswer { value: Some(value), by: source };
    let end = InteractionEnd { state: InteractionState::Answered, answer, at: tree.clock.now() };
    let result = tree.ledger.close(id, end.clone(), end).await;
    assert!(matches!(result, Ok(CloseInteractionOutcome::Closed(_))), "{result:?}");
}

/// Returns the question for permission to run a command.
pub(super) fn permission_question(command: &str) -> Question {
    let option = |id: &str, kind| QuestionOption { id: id.to_owned(), name: id.to_owned(), kind };
    Question {
        kind: QuestionKind::ToolPermission,
        message: format!("run `{command}`?"),
        options: vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)],
        subject: Some(ToolCallSubject {
            id: "call".to_owned(),
            tool: "shell".to_owned(),
            kind: Some("execute".to_owned()),
            command: Some(command.to_owned()),
            args: serde_json::json!({"command": command}),
            ..ToolCallSubject::default()
        }),
        schema: None,
    }
}

/// Side of the scripted work that asks. What it has delivered survives the work, as a journal of standard input does.
pub(super) struct QuestionExchange {
    pub(super) execution: ExecutionId,
    pub(super) answer_receiver: mpsc::UnboundedReceiver<(WireId, Option<AnswerValue>)>,
    pub(super) recorded_work: Arc<watch::Sender<RecordedWork>>,
}

impl QuestionExchange {
    /// Sends all questions at once, and returns when all are answered. Answers that earlier work has read are reported
    /// again, as the replay of a journal reports them.
    pub(super) async fn send_and_await_answers(
        &mut self,
        questions: &[(WireId, Question)],
        reporter: &Reporter,
    ) {
        let mut unanswered = Vec::new();
        for (wire_id, question) in questions {
            if self.is_answer_delivered(wire_id) {
                reporter.report_answer_delivery(wire_id.clone());
                continue;
            }
            reporter.report_question(wire_id.clone(), question.clone());
            unanswered.push(wire_id.clone());
        }
        while !unanswered.is_empty() {
            let Some((wire_id, answer)) = self.answer_receiver.recv().await else { return };
            let answer_kind = answer.as_ref().map_or("cancelled", |answer| answer.kind_name());
            let delivered_answer =
                format!("{}{answer_kind}", self.delivered_answer_prefix(&wire_id));
            self.recorded_work.send_modify(|work| work.delivered_answers.push(delivered_answer));
            reporter.report_answer_delivery(wire_id.clone());
            unanswered.retain(|unanswered_id| *unanswered_id != wire_id);
        }
    }

    fn is_answer_delivered(&self, wire_id: &WireId) -> bool {
        let prefix = self.delivered_answer_prefix(wire_id);
        self.recorded_work
            .borrow()
            .delivered_answers
            .iter()
            .any(|answer| answer.starts_with(&prefix))
    }

    fn delivered_answer_prefix(&self, wire_id: &WireId) -> String {
        format!("{} {}:", self.execution, wire_id.0)
    }
}

//! Questions of scripted work.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::World;
use super::parts::caller;
use super::stage::StageState;
use crate::api::CallerAnswer;
use crate::model::code::Code;
use crate::model::id::ExecutionId;
use crate::model::interaction::{
    AnswerSource, AnswerValue, ClosedBy, InteractionAnswer, InteractionId, InteractionKind,
    InteractionState, OptionKind, Question, QuestionOption, ToolCallSubject, WireId,
};
use crate::ports::clock::Clock;
use crate::ports::interactions::{Closing, Interactions};
use crate::report::Reporter;

/// Answers a question as the caller of the environment, which is an administrator.
///
/// # Errors
/// Returns the code of the refusal.
pub async fn answer_question(
    world: &World,
    id: InteractionId,
    value: AnswerValue,
) -> Result<(), Code> {
    let given = CallerAnswer { value, digest: None, channel: "test", message: None };
    let answered = world.api.approvals.answer(&caller(), id, given).await;
    answered.map(drop).map_err(|failure| failure.code)
}

/// Records an answer in the ledger without the service, as a service does that is killed before it sends the answer.
///
/// # Panics
/// Panics if the ledger does not record the answer.
pub async fn answer_while_stopped(world: &World, id: InteractionId, value: AnswerValue) {
    let by =
        AnswerSource::Principal { name: caller().name, channel: "test".to_owned(), message: None };
    let answer = InteractionAnswer { value: Some(value), by };
    let end = ClosedBy { state: InteractionState::Answered, answer, at: world.clock.now() };
    let closed = world.ledger.close(id, end.clone(), end).await;
    assert!(matches!(closed, Ok(Closing::Closed(_))), "{closed:?}");
}

/// Returns the question for permission to run a command.
pub(super) fn permission(command: &str) -> Question {
    let option = |id: &str, kind| QuestionOption { id: id.to_owned(), name: id.to_owned(), kind };
    Question {
        kind: InteractionKind::ToolPermission,
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
pub(super) struct Asking {
    pub(super) of: ExecutionId,
    pub(super) answered: mpsc::UnboundedReceiver<(WireId, Option<AnswerValue>)>,
    pub(super) stage: Arc<watch::Sender<StageState>>,
}

impl Asking {
    /// Asks all questions at once, and returns when all are answered.
    pub(super) async fn ask_all(&mut self, questions: &[(WireId, Question)], report: &Reporter) {
        let mut open = Vec::new();
        for (wire, question) in questions {
            if !self.is_delivered(wire) {
                report.questioned(wire.clone(), question.clone());
                open.push(wire.clone());
            }
        }
        while !open.is_empty() {
            let Some((wire, answer)) = self.answered.recv().await else { return };
            let word = answer.as_ref().map_or("cancelled", |answer| answer.word());
            let delivered = format!("{}{word}", self.prefix(&wire));
            self.stage.send_modify(|stage| stage.answers.push(delivered));
            report.delivered(wire.clone());
            open.retain(|one| *one != wire);
        }
    }

    fn is_delivered(&self, wire: &WireId) -> bool {
        let prefix = self.prefix(wire);
        self.stage.borrow().answers.iter().any(|answer| answer.starts_with(&prefix))
    }

    fn prefix(&self, wire: &WireId) -> String {
        format!("{} {}:", self.of, wire.0)
    }
}

//! Question of a paused task, which a person at the terminal answers.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::published_interaction::PublishedInteraction;
use super::typed_lines::TypedLines;
use crate::cli::client::ServiceClient;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;

/// Interval between two readings of a task whose question is on the screen.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Question that waits for a person.
pub(super) struct PendingQuestion {
    text: String,
    /// Interaction of the question; `None` for a question that a message with a text answers.
    interaction: Option<PublishedInteraction>,
}

/// Task that waits for the answer.
pub(super) struct PausedExecution<'t> {
    pub(super) client: &'t ServiceClient,
    pub(super) agent: &'t str,
    pub(super) id: &'t str,
}

/// End of a prompt.
pub(super) enum PromptResult {
    /// The person answered; these are the parameters of the message.
    Answered(Value),
    /// The question was closed by somebody else or by its timeout.
    Closed,
    /// The person gave no answer.
    Abandoned,
}

impl PendingQuestion {
    /// Returns the question of a task or event in this state with this message; `None` in a state without a question.
    pub(super) fn from_status(event: &Value, state: &str, message: String) -> Option<Self> {
        match state {
            "input-required" => {
                let interaction = PublishedInteraction::list_from_status(event).into_iter().next();
                let text = interaction.as_ref().map_or(message, PublishedInteraction::text);
                Some(Self { text, interaction })
            }
            "auth-required" => Some(Self {
                text: format!("{message}\n(authenticate, then answer to continue)"),
                interaction: None,
            }),
            _ => None,
        }
    }

    /// Shows the question until a line answers it, or until it is closed in another way.
    pub(super) async fn ask(
        &self,
        task: &PausedExecution<'_>,
        typed_lines: &mut TypedLines,
        out: &CliOutput,
    ) -> Result<PromptResult, CliError> {
        typed_lines.discard();
        out.print_note(self.text.trim_end());
        loop {
            out.print_stderr("> ");
            let line = tokio::select! {
                line = typed_lines.next() => line,
                () = self.wait_until_closed(task) => {
                    out.print_note("\nthe question is no longer open");
                    return Ok(PromptResult::Closed);
                }
            };
            let line = match line {
                Some(Ok(line)) => line,
                Some(Err(source)) => return Err(CliError::Input { source }),
                None => return Ok(PromptResult::Abandoned),
            };
            let Some(interaction) = &self.interaction else {
                return Ok(PromptResult::Answered(message_params(task.id, &line, None)));
            };
            match interaction.answer_metadata(&line) {
                Some(metadata) => {
                    let params = message_params(task.id, &line, Some(metadata));
                    return Ok(PromptResult::Answered(params));
                }
                None => out.print_note(&format!("answer: {}", interaction.expected_answer())),
            }
        }
    }

    /// Waits until the interaction is no longer open. Every other question is open until it is answered here.
    async fn wait_until_closed(&self, task: &PausedExecution<'_>) {
        let Some(interaction) = &self.interaction else { return std::future::pending().await };
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            // A service that cannot be reached may come back, and the question outlives its restart.
            let params = json!({"id": task.id});
            let Ok(current) = task.client.call_rpc(task.agent, "tasks/get", params).await else {
                continue;
            };
            if PublishedInteraction::list_from_status(&current)
                .iter()
                .all(|open| open.id != interaction.id)
            {
                return;
            }
        }
    }
}

/// Returns the parameters of a message with an answer to this task.
fn message_params(task_id: &str, text: &str, metadata: Option<Value>) -> Value {
    let mut message = json!({
        "kind": "message",
        "role": "user",
        "messageId": Uuid::new_v4().to_string(),
        "taskId": task_id,
        "parts": [{"kind": "text", "text": text}],
    });
    if let (Some(metadata), Some(message)) = (metadata, message.as_object_mut()) {
        message.insert("metadata".to_owned(), metadata);
    }
    json!({"message": message})
}

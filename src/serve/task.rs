//! An execution as an A2A task: one machine inside, total mappings to the words outside.

use algonius_actors::door::Gateway;
use algonius_actors::model::code::Code;
use algonius_actors::model::event::Fact;
use algonius_actors::model::execution::{Outcome, State};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::record::Record;
use serde_json::Value;

use crate::wire::a2a::v1::{
    Artifact, History, Message, Metadata, Part, Role, Task, TaskState, TaskStatus,
};
use crate::wire::problem;

/// The task's state for where an execution is and how it ended.
#[must_use]
pub fn state(record: &Record) -> TaskState {
    match (record.outcome, record.state) {
        (Some(Outcome::Completed), _) => TaskState::Completed,
        (Some(Outcome::Cancelled), _) => TaskState::Canceled,
        (Some(Outcome::Timeout), _) => TaskState::Failed,
        (Some(Outcome::Failed), _) if was_never_begun(record) => TaskState::Rejected,
        (Some(Outcome::Failed), _) => TaskState::Failed,
        (None, State::Idle) => TaskState::Submitted,
        (None, State::Waiting) => TaskState::InputRequired,
        // Failed without an outcome waits for a retry: callers see work, not attempts.
        (
            None,
            State::Starting
            | State::Running
            | State::Completed
            | State::Failed
            | State::Timeout
            | State::Cancelled
            | State::Cleanup,
        ) => TaskState::Working,
    }
}

fn was_never_begun(record: &Record) -> bool {
    record.failure.as_ref().is_some_and(|failure| failure.code == Code::QueueTimeout)
}

/// The whole task, with the texts that the ledger holds.
///
/// # Errors
/// When the ledger could not be read.
pub async fn task(gateway: &Gateway, record: &Record, history: History) -> Result<Task, Failure> {
    let messages = match history {
        History::Last(0) => Vec::new(),
        History::All | History::Last(_) => vec![asked(gateway, record).await?],
    };
    Ok(Task {
        id: record.id.to_string(),
        context_id: record.context.0.clone(),
        status: TaskStatus {
            state: state(record),
            message: record.failure.as_ref().map(|failure| told(record, failure)),
            timestamp: record.ended_at.unwrap_or(record.changed_at),
        },
        artifacts: artifacts(gateway, record).await?,
        history: messages,
        metadata: Metadata::new(),
    })
}

/// What the caller said, as it is stored: redacted.
async fn asked(gateway: &Gateway, record: &Record) -> Result<Message, Failure> {
    let text = gateway.text(record, record.input).await?;
    Ok(message(record, record.message.0.clone(), Role::User, text))
}

/// What the service says about a failure.
fn told(record: &Record, failure: &Failure) -> Message {
    let id = format!("{}-failure", record.id);
    let mut message = message(record, id, Role::Agent, failure.message.clone());
    if let Value::Object(details) = problem::details(failure) {
        message.metadata = details;
    }
    message
}

fn message(record: &Record, message_id: String, role: Role, text: String) -> Message {
    Message {
        message_id,
        context_id: Some(record.context.0.clone()),
        task_id: Some(record.id.to_string()),
        role,
        parts: vec![Part::text(text)],
        metadata: Metadata::new(),
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}

/// What the successful attempt made. What failed attempts left is in the history of events only.
async fn artifacts(gateway: &Gateway, record: &Record) -> Result<Vec<Artifact>, Failure> {
    let mut artifacts = Vec::new();
    if record.outcome != Some(Outcome::Completed) {
        return Ok(artifacts);
    }
    for event in gateway.events(record, 0).await? {
        match event.fact {
            Fact::Artifact { id, name, text } if text.stamp == record.stamp => {
                let text = gateway.text(record, text).await?;
                let parts = vec![Part::text(text)];
                artifacts.push(Artifact {
                    artifact_id: id,
                    name: Some(name),
                    description: None,
                    parts,
                    metadata: Metadata::new(),
                    extensions: Vec::new(),
                });
            }
            _ => {}
        }
    }
    Ok(artifacts)
}

//! Ids of messages and artifacts that have none from the program.

use algonius_actors::driver::AttemptWork;

/// Generator of ids.
pub(super) struct OutputIdGenerator {
    attempt_prefix: String,
    message_count: usize,
    artifact_count: usize,
    latest_artifact_id: Option<String>,
}

impl OutputIdGenerator {
    /// Returns the generator for an attempt.
    pub(super) fn for_attempt(AttemptWork { execution, attempt_id, .. }: &AttemptWork) -> Self {
        let attempt_prefix = format!("{execution}-{}-{}", attempt_id.turn, attempt_id.attempt);
        Self { attempt_prefix, message_count: 0, artifact_count: 0, latest_artifact_id: None }
    }

    /// Returns the id of the next message.
    pub(super) fn next_message_id(&mut self) -> String {
        self.message_count += 1;
        format!("{}-{}", self.attempt_prefix, self.message_count)
    }

    /// Returns the id of an artifact. An append without an id continues the latest artifact.
    pub(super) fn assign_artifact_id(
        &mut self,
        reported_id: Option<String>,
        append: bool,
    ) -> String {
        let continued_id = if append { self.latest_artifact_id.take() } else { None };
        let id = reported_id.filter(|id| !id.is_empty()).or(continued_id).unwrap_or_else(|| {
            self.artifact_count += 1;
            format!("artifact-{}", self.artifact_count)
        });
        self.latest_artifact_id = Some(id.clone());
        id
    }
}

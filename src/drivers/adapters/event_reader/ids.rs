//! Ids of messages and artifacts that have none from the program.

use algonius_actors::driver::Work;

/// Generator of ids.
pub(super) struct EventIds {
    attempt: String,
    messages: usize,
    artifacts: usize,
    latest: Option<String>,
}

impl EventIds {
    /// Returns the generator for an attempt.
    pub(super) fn of(Work { execution, attempt_id, .. }: &Work) -> Self {
        let attempt = format!("{execution}-{}-{}", attempt_id.turn, attempt_id.attempt);
        Self { attempt, messages: 0, artifacts: 0, latest: None }
    }

    /// Returns the id of the next message.
    pub(super) fn message(&mut self) -> String {
        self.messages += 1;
        format!("{}-{}", self.attempt, self.messages)
    }

    /// Returns the id of an artifact. An append without an id continues the latest artifact.
    pub(super) fn artifact(&mut self, named: Option<String>, append: bool) -> String {
        let known = if append { self.latest.take() } else { None };
        let id = named.filter(|id| !id.is_empty()).or(known).unwrap_or_else(|| {
            self.artifacts += 1;
            format!("artifact-{}", self.artifacts)
        });
        self.latest = Some(id.clone());
        id
    }
}

//! Redaction state: every secret that this process instance of the service has known.
//!
//! An execution that started before a secret was replaced may contain the old one, so secrets are only ever added while
//! the service runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use algonius_actors::services::RedactorHandle;
use algonius_redact::RedactionConfig;
use algonius_redact::Redactor;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Known secrets, and their redactor.
pub(crate) struct RedactionState {
    secrets: BTreeSet<String>,
    redaction_config: RedactionConfig,
    redactor: watch::Sender<Arc<Redactor>>,
}

impl RedactionState {
    pub(crate) fn new(
        secrets: impl IntoIterator<Item = String>,
        redaction: RedactionConfig,
    ) -> Self {
        let secrets: BTreeSet<_> = secrets.into_iter().collect();
        let redactor = watch::Sender::new(Arc::new(build_redactor(&secrets, &redaction)));
        Self { secrets, redaction_config: redaction, redactor }
    }

    /// Returns a handle to the redactor in force.
    pub(crate) fn redactor_handle(&self) -> RedactorHandle {
        RedactorHandle::new(self.redactor.subscribe())
    }

    /// Adds secrets, and replaces the redaction settings. Every text that is read from then on is redacted with them.
    pub(super) async fn add_secrets_and_set_config(
        &mut self,
        secrets: impl IntoIterator<Item = String>,
        redaction: &RedactionConfig,
    ) {
        let known_count = self.secrets.len();
        self.secrets.extend(secrets);
        if self.secrets.len() == known_count && self.redaction_config == *redaction {
            return; // Building a redactor is expensive.
        }
        self.redaction_config = redaction.clone();
        // The construction is CPU-bound, and would delay the other tasks of this thread.
        let (secrets, redaction) = (self.secrets.clone(), redaction.clone());
        match spawn_blocking(move || build_redactor(&secrets, &redaction)).await {
            Ok(redactor) => _ = self.redactor.send_replace(Arc::new(redactor)),
            Err(error) => tracing::error!(%error, "failed to rebuild redactor"),
        }
    }

    /// Adds one secret.
    pub(super) async fn add_secret(&mut self, secret: String) {
        let redaction = self.redaction_config.clone();
        self.add_secrets_and_set_config([secret], &redaction).await;
    }
}

fn build_redactor(secrets: &BTreeSet<String>, redaction: &RedactionConfig) -> Redactor {
    Redactor::new(secrets.iter().cloned()).with_configuration(redaction.clone())
}

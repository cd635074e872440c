//! What is masked: every secret that was ever told to this life of the service.
//!
//! What an execution knows that began before a secret was replaced is masked as long as the service
//! lives: so secrets are only ever added.

use std::collections::BTreeSet;
use std::sync::Arc;

use algonius_actors::decide::redact::Redactor;
use algonius_actors::kit::Masking;
use algonius_actors::model::redaction::Redaction;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// The secrets, and the redactor that knows them.
pub(crate) struct Masks {
    secrets: BTreeSet<String>,
    redaction: Redaction,
    redactor: watch::Sender<Arc<Redactor>>,
}

impl Masks {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>, redaction: Redaction) -> Self {
        let secrets: BTreeSet<_> = secrets.into_iter().collect();
        let redactor = watch::Sender::new(Arc::new(made(&secrets, &redaction)));
        Self { secrets, redaction, redactor }
    }

    /// The redactor that is in force.
    pub(crate) fn masking(&self) -> Masking {
        Masking::of(self.redactor.subscribe())
    }

    /// Masks these too, and what this says instead of what was said before. Whoever reads a text from
    /// here on has it masked like this.
    pub(super) async fn extend(
        &mut self,
        secrets: impl IntoIterator<Item = String>,
        redaction: &Redaction,
    ) {
        let known = self.secrets.len();
        self.secrets.extend(secrets);
        if self.secrets.len() == known && self.redaction == *redaction {
            return; // To make a redactor takes its time.
        }
        self.redaction = redaction.clone();
        let (secrets, redaction) = (self.secrets.clone(), redaction.clone());
        match spawn_blocking(move || made(&secrets, &redaction)).await {
            Ok(redactor) => _ = self.redactor.send_replace(Arc::new(redactor)),
            Err(error) => tracing::error!(%error, "the redactor could not be made anew"),
        }
    }

    /// Masks one more.
    pub(super) async fn add(&mut self, secret: String) {
        let redaction = self.redaction.clone();
        self.extend([secret], &redaction).await;
    }
}

fn made(secrets: &BTreeSet<String>, redaction: &Redaction) -> Redactor {
    Redactor::new(secrets.iter().cloned()).with(redaction.clone())
}

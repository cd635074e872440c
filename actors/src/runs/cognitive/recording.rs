//! Records of a run: its steps, its usage and its answer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Number, Value};
use tokio::time::sleep;

use super::restoring::StoredRun;
use crate::decide::runs::steps::{RunStep, StepRun};
use crate::driver::report::{Reporter, StepTextEnd};
use crate::model::execution::content::{Content, Part};
use crate::model::execution::event::{ANSWER_ARTIFACT_ID, EventKind, TextChannel};
use crate::model::observation::telemetry_events::TokenCounts;
use crate::ports::ledger::LedgerError;

/// Pause before records that the ledger refused are written again.
const LEDGER_PAUSE: Duration = Duration::from_secs(1);

/// Counters of a run since its start. A resumed run continues them, so that no usage is charged twice.
#[derive(Debug, Clone, Default)]
struct RunUsage(BTreeMap<String, Number>);

impl RunUsage {
    /// Adds a reply, and returns the event that reports the totals.
    fn add_reply(&mut self, tokens: Option<TokenCounts>) -> EventKind {
        // Each reply counts as a turn, so no event equals an earlier one, whose usage is recorded.
        self.add("turns", 1);
        if let Some(TokenCounts { input, output }) = tokens {
            self.add("input_tokens", input);
            self.add("output_tokens", output);
        }
        EventKind::UsageReported { counters: self.0.clone(), cumulative: true }
    }

    fn add(&mut self, name: &str, count: u64) {
        let total = self.0.get(name).and_then(Number::as_u64).unwrap_or_default();
        self.0.insert(name.to_owned(), Number::from(total.saturating_add(count)));
    }
}

/// Recorder of one attempt at a run.
pub(super) struct RunRecorder<'r> {
    pub(super) reporter: &'r Reporter,
    text_end: StepTextEnd,
    usage: RunUsage,
}

impl<'r> RunRecorder<'r> {
    /// Creates the recorder that continues what is stored.
    pub(super) fn new(reporter: &'r Reporter, stored: &StoredRun) -> Self {
        let usage = match &stored.usage {
            Some(EventKind::UsageReported { counters, .. }) => RunUsage(counters.clone()),
            _ => RunUsage::default(),
        };
        Self { reporter, text_end: stored.text_end, usage }
    }

    /// Records the steps of a reply together with the usage of the reply. Returns false if another actor has the run
    /// now.
    pub(super) async fn record_reply(
        &mut self,
        run: &mut StepRun,
        steps: Vec<RunStep>,
        tokens: Option<TokenCounts>,
    ) -> bool {
        let usage = self.usage.add_reply(tokens);
        self.record(run, steps, Some(usage)).await
    }

    /// Records the step that ends a call. Returns false if another actor has the run now.
    pub(super) async fn record_end(&mut self, run: &mut StepRun, step: RunStep) -> bool {
        self.record(run, vec![step], None).await
    }

    /// Records steps. A write that fails is repeated: nothing may follow from a step that is not recorded.
    async fn record(
        &mut self,
        run: &mut StepRun,
        steps: Vec<RunStep>,
        usage: Option<EventKind>,
    ) -> bool {
        for RunStep { row, text } in &steps {
            self.reporter.add_step(&mut self.text_end, row.clone(), text);
        }
        let is_valid = self.commit(usage).await;
        if is_valid {
            run.apply(steps);
        }
        is_valid
    }

    /// Commits what is pending. Returns false if another actor has the run now.
    pub(super) async fn commit(&self, usage: Option<EventKind>) -> bool {
        loop {
            match self.reporter.commit(usage.clone()).await {
                Ok(is_valid) => return is_valid,
                Err(error) => {
                    tracing::error!(%error, "step not recorded, trying again");
                    sleep(LEDGER_PAUSE).await;
                }
            }
        }
    }

    /// Records the answer. A JSON object or list is also a data part.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub(super) async fn record_answer(&self, answer: &str) -> Result<(), LedgerError> {
        let data = serde_json::from_str(answer)
            .ok()
            .filter(|data: &Value| data.is_object() || data.is_array());
        let data = data.map(|data| Part {
            content: Content::Data(data),
            filename: None,
            media_type: Some("application/json".to_owned()),
        });
        let parts: Vec<_> = [Some(Part::text(answer)), data].into_iter().flatten().collect();
        let mut output_writer = self.reporter.open_output(TextChannel::Parts);
        // After a crash the same text is written again, and what is stored of it stays.
        let pieces = output_writer.store_content(&parts).await?;
        output_writer.close().await?;
        let (id, name) = (ANSWER_ARTIFACT_ID.to_owned(), Some(ANSWER_ARTIFACT_ID.to_owned()));
        let description = None;
        let (append, last) = (false, true);
        self.reporter.record_later(EventKind::Artifact {
            id,
            name,
            description,
            pieces,
            append,
            last,
        });
        self.reporter.publish_answer(answer);
        Ok(())
    }
}

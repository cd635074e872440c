//! Records of a run: its steps, its usage and its answer.

use std::mem;

use serde_json::{Number, Value};
use tokio::time::sleep;

use super::stored_run::StoredCognitiveRun;
use crate::decide::runs::cognitive::{CognitiveRun, RunStep};
use crate::driver::report::{Reporter, StepTextEnd, UsageCounters, report_ledger_wait};
use crate::model::execution::content::{Content, Part};
use crate::model::observation::telemetry_events::TokenCounts;
use crate::runs::attempt::{LEDGER_RETRY_PAUSE, RunExit, RunStopReceiver};

/// Counters of a run since its start. A resumed run continues them, so that no usage is charged twice.
#[derive(Debug, Clone, Default)]
struct RunUsage(UsageCounters);

impl RunUsage {
    /// Adds a reply.
    fn add_reply(&mut self, tokens: Option<TokenCounts>) {
        // Each reply counts as a turn, so no event equals an earlier one, whose usage is recorded.
        self.add("turns", 1);
        if let Some(TokenCounts { input, output }) = tokens {
            self.add("input_tokens", input);
            self.add("output_tokens", output);
        }
    }

    fn add(&mut self, name: &str, count: u64) {
        let total = self.0.get(name).and_then(Number::as_u64).unwrap_or_default();
        self.0.insert(name.to_owned(), Number::from(total.saturating_add(count)));
    }
}

/// Recorder of one attempt at a run.
pub(super) struct RunRecorder<'r> {
    pub(super) reporter: &'r Reporter,
    step_text_end: StepTextEnd,
    usage: RunUsage,
}

impl<'r> RunRecorder<'r> {
    /// Creates the recorder that continues what is stored.
    pub(super) fn new(reporter: &'r Reporter, stored_run: &StoredCognitiveRun) -> Self {
        let usage = RunUsage(stored_run.attempt_usage.clone());
        Self { reporter, step_text_end: stored_run.step_text_end, usage }
    }

    /// Records the steps of a reply together with the usage of the reply.
    ///
    /// # Errors
    /// Returns the end of the attempt if the steps are not recorded.
    pub(super) async fn record_reply(
        &mut self,
        run: &mut CognitiveRun,
        steps: Vec<RunStep>,
        tokens: Option<TokenCounts>,
        stop: &mut RunStopReceiver,
    ) -> Result<(), RunExit> {
        self.usage.add_reply(tokens);
        self.reporter.record_usage_later(self.usage.0.clone());
        self.record_steps(run, steps, stop).await
    }

    /// Records the step that ends a call.
    ///
    /// # Errors
    /// Returns the end of the attempt if the step is not recorded.
    pub(super) async fn record_call_end(
        &mut self,
        run: &mut CognitiveRun,
        step: RunStep,
        stop: &mut RunStopReceiver,
    ) -> Result<(), RunExit> {
        self.record_steps(run, vec![step], stop).await
    }

    async fn record_steps(
        &mut self,
        run: &mut CognitiveRun,
        steps: Vec<RunStep>,
        stop: &mut RunStopReceiver,
    ) -> Result<(), RunExit> {
        for RunStep { record, text } in &steps {
            self.reporter.record_step_later(&mut self.step_text_end, record.clone(), text);
        }
        self.commit(stop).await?;
        run.apply(steps);
        Ok(())
    }

    /// Commits the pending records. A write that fails is repeated: nothing may follow from a step that is not
    /// recorded. If the run has to stop, they are written with its end. A drain does not suspend the run here: a call
    /// that is recorded and not sent would have an unknown outcome after the next start.
    ///
    /// # Errors
    /// Returns the end of the attempt if another actor has the run now, or if the run has to stop while the ledger
    /// fails.
    pub(super) async fn commit(&self, stop: &mut RunStopReceiver) -> Result<(), RunExit> {
        let mut awaits_ledger = false;
        loop {
            let error = match self.reporter.flush_unless_superseded().await {
                Ok(true) => break,
                Ok(false) => return Err(RunExit::Superseded),
                Err(error) => error,
            };
            tracing::error!(%error, "recording a step failed, retrying");
            if !mem::replace(&mut awaits_ledger, true) {
                report_ledger_wait(self.reporter, true);
            }
            tokio::select! {
                () = sleep(LEDGER_RETRY_PAUSE) => {}
                () = stop.wait() => return Err(RunExit::Stopped),
            }
        }
        if awaits_ledger {
            report_ledger_wait(self.reporter, false);
        }
        Ok(())
    }

    /// Records the answer together with the end of the attempt. A JSON object or list is also a data part.
    pub(super) fn record_answer(&self, answer: &str) {
        let data: Option<Value> = serde_json::from_str(answer).ok();
        let data = data.filter(|data| data.is_object() || data.is_array()).map(|data| Part {
            content: Content::Data(data),
            filename: None,
            media_type: Some("application/json".to_owned()),
        });
        let parts: Vec<_> = [Some(Part::text(answer)), data].into_iter().flatten().collect();
        self.reporter.record_answer_later(&parts);
        self.reporter.publish_raw_answer(answer);
    }
}

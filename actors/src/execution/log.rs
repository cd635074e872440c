//! What the log says of an execution: ids and numbers, and sentences without secrets.

use super::ExecutionData;
use crate::model::execution::Outcome;
use crate::model::failure::Failure;

impl ExecutionData {
    /// One line for each end. What it took is counted from the first attempt of this life, in
    /// microseconds however short it was; what never began took nothing.
    pub(super) fn log_end(&self, outcome: Outcome, failure: Option<&Failure>) {
        let code = failure.map(|failure| failure.code.as_str());
        let why = failure.map(|failure| self.kit.redactor.now().redact(&failure.message));
        let took = self.claiming.took();
        let duration_us = took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        tracing::info!(
            execution = %self.id,
            agent = %self.spec.id,
            %outcome,
            code,
            why = why.as_deref(),
            duration_us,
            "ended"
        );
    }
}

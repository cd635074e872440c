//! Raw inputs: sealed before they are stored, and opened when an execution continues or is retried.

use std::sync::Arc;
use std::time::Duration;

use algonius_redact::Redactor;

use crate::decide::output::seal_encoding::{
    decode_input, decode_schedule_texts, encode_input, encode_schedule_texts,
};
use crate::model::execution::Outcome;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::Input;
use crate::model::id::ExecutionId;
use crate::model::schedule::ScheduleSpec;
use crate::ports::sealer::{KeylessSealer, SealError, SealedRowId, Sealer};

/// Sealer of inputs, and the time for which the input of a failed execution is stored. Clones are cheap.
#[derive(Clone)]
pub struct InputSealer {
    sealer: Arc<dyn Sealer>,
    retry_window: Duration,
}

impl InputSealer {
    /// Creates the service with this sealer. The input of an execution that failed can be retried within
    /// `retry_window`.
    #[must_use]
    pub const fn new(sealer: Arc<dyn Sealer>, retry_window: Duration) -> Self {
        Self { sealer, retry_window }
    }

    /// Creates the service without a key: an input that redaction changes is lost with the process.
    #[must_use]
    pub fn without_key() -> Self {
        Self::new(Arc::new(KeylessSealer), Duration::ZERO)
    }

    /// Returns the time within which the input of a failed execution can be retried.
    #[must_use]
    pub const fn retry_window(&self) -> Duration {
        self.retry_window
    }

    /// Returns true if the input stays sealed for a retry after this outcome. A completed execution needs no retry, and
    /// the input of a cancelled one may have been sent by mistake.
    pub(crate) const fn keeps_input_after(&self, outcome: Outcome) -> bool {
        matches!(outcome, Outcome::Failed | Outcome::Timeout) && !self.retry_window.is_zero()
    }

    /// Seals the input of an execution.
    pub(crate) fn seal(&self, id: ExecutionId, input: &Input) -> Option<Vec<u8>> {
        let sealed = self.sealer.seal(SealedRowId::Execution(id), &encode_input(input));
        sealed.inspect_err(|error| tracing::debug!(execution = %id, %error, "not sealed")).ok()
    }

    /// Seals the texts of a schedule.
    pub(crate) fn seal_schedule(&self, spec: &ScheduleSpec) -> Option<Vec<u8>> {
        let sealed =
            self.sealer.seal(SealedRowId::Schedule(&spec.id), &encode_schedule_texts(spec));
        sealed.inspect_err(|error| tracing::error!(schedule = %spec.id, %error, "not sealed")).ok()
    }

    pub(crate) fn unseal_schedule(
        &self,
        redacted_spec: &ScheduleSpec,
        sealed: &[u8],
    ) -> Result<ScheduleSpec, SealError> {
        let unsealed_bytes =
            self.sealer.unseal(SealedRowId::Schedule(&redacted_spec.id), sealed)?;
        decode_schedule_texts(&unsealed_bytes, redacted_spec.clone()).ok_or(SealError::Damaged)
    }

    pub(crate) fn unseal(
        &self,
        record: &ExecutionRecord,
        sealed: &[u8],
    ) -> Result<Input, SealError> {
        let unsealed_bytes = self.sealer.unseal(SealedRowId::Execution(record.id), sealed)?;
        decode_input(&unsealed_bytes, record.overrides.clone()).ok_or(SealError::Damaged)
    }
}

/// Returns a schedule with redacted texts, and true if redaction changed them.
pub(crate) fn redact_schedule(redactor: &Redactor, spec: &ScheduleSpec) -> (ScheduleSpec, bool) {
    let redact = |text: &str| redactor.redact(text).into_owned();
    let params = spec.params.iter().map(|(name, value)| (name.clone(), redact(value))).collect();
    let (name, input) = (redact(&spec.name), redact(&spec.input));
    let redacted_spec = ScheduleSpec { name, input, params, ..spec.clone() };
    let is_changed = redacted_spec != *spec;
    (redacted_spec, is_changed)
}

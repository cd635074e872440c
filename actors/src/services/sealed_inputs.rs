//! Sealed inputs of schedules and executions: their stored form, and their raw form with the key.

use crate::decide::recovery::InputLoss;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::Input;
use crate::model::schedule::{Schedule, ScheduleOrigin, TextSealing};
use crate::ports::ledger::LedgerError;
use crate::ports::sealer::SealError;
use crate::services::Services;
use crate::services::input_sealer::redact_schedule;

impl Services {
    /// Returns the stored form of schedules: redacted, with the raw texts sealed if redaction changed them.
    pub(crate) fn seal_schedules(&self, schedules: &[Schedule]) -> Vec<Schedule> {
        let redactor = self.redactor.current();
        let to_stored_form = |schedule: &Schedule| {
            if schedule.has_sealed_texts() {
                return schedule.clone();
            }
            let (spec, is_changed) = redact_schedule(&redactor, &schedule.spec);
            let seal =
                || self.input_sealer.seal_schedule(&schedule.spec).unwrap_or_else(|| vec![0]);
            let text_sealing =
                if is_changed { TextSealing::Sealed(seal().into()) } else { TextSealing::Unsealed };
            Schedule { spec, text_sealing, ..schedule.clone() }
        };
        schedules.iter().map(to_stored_form).collect()
    }

    /// Returns a stored schedule with its raw texts; the texts stay sealed if no key opens them.
    pub(crate) fn unseal_schedule(&self, schedule: Schedule) -> Schedule {
        let TextSealing::Sealed(sealed) = &schedule.text_sealing else {
            return Schedule { text_sealing: TextSealing::Unsealed, ..schedule };
        };
        match self.input_sealer.unseal_schedule(&schedule.spec, sealed) {
            Ok(spec) => Schedule { spec, text_sealing: TextSealing::Unsealed, ..schedule },
            Err(error) => {
                // The configuration has the raw texts of its own schedules.
                if schedule.origin == ScheduleOrigin::Api {
                    let id = &schedule.spec.id;
                    tracing::error!(schedule = %id, %error, "occurrences refused until the input is given again");
                }
                schedule
            }
        }
    }
}

/// Opens the raw input of the latest turn of an execution whose stored input is redacted.
pub(crate) async fn unseal_input(
    services: &Services,
    record: &ExecutionRecord,
) -> Result<Result<Input, InputLoss>, LedgerError> {
    let Some(sealed) = services.ledger.sealed_input(record.id).await? else {
        return Ok(Err(InputLoss::NotStored));
    };
    Ok(services.input_sealer.unseal(record, &sealed).map_err(|error| {
        tracing::warn!(execution = %record.id, %error, "its sealed input cannot be read");
        match error {
            SealError::KeyMissing => InputLoss::KeyMissing,
            SealError::Damaged => InputLoss::Damaged,
        }
    }))
}

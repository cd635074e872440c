//! Facts of a run as the ledger has them.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::decide::runs::cognitive::{CognitiveRun, RunStep};
use crate::driver::report::StepTextEnd;
use crate::model::agent::cognitive::CognitiveSpec;
use crate::model::execution::event::{Event, EventKind};
use crate::model::execution::step::StepPlan;
use crate::model::execution::{AttemptId, ExecutionState};
use crate::model::id::ExecutionId;
use crate::ports::ledger::{Ledger, LedgerError};

/// Facts of a run as the ledger has them.
pub(super) struct StoredCognitiveRun {
    /// Run; `None` if no plan is recorded.
    pub(super) run: Option<CognitiveRun>,
    /// End of the stored text of the attempt.
    pub(super) step_text_end: StepTextEnd,
    /// True if redaction changed the text of a step, so that the conversation would differ from the earlier one.
    pub(super) has_redacted_step: bool,
    /// Usage of the latest attempt so far, by the names of its counters.
    pub(super) attempt_usage: BTreeMap<String, Number>,
}

/// Reads the facts of a run. The usage is that of the latest attempt, whose events are charged by their totals.
pub(super) async fn read_stored_run(
    ledger: &dyn Ledger,
    (execution, attempt_id): (ExecutionId, AttemptId),
    spec: &CognitiveSpec,
) -> Result<StoredCognitiveRun, LedgerError> {
    let mut stored_run = StoredCognitiveRun {
        run: None,
        step_text_end: StepTextEnd::default(),
        has_redacted_step: false,
        attempt_usage: BTreeMap::new(),
    };
    let mut plan: Option<StepPlan> = None;
    let mut steps = Vec::new();
    for Event { data, .. } in ledger.events(execution, 0).await? {
        match data {
            EventKind::StepsPlanned { plan: recorded } => plan = Some(recorded),
            EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
                stored_run.attempt_usage.clear();
            }
            EventKind::UsageReported { counters, .. } => stored_run.attempt_usage = counters,
            EventKind::RunStep { row: mut record, text } => {
                stored_run.has_redacted_step |= text.redacted > 0;
                let range = text.text;
                let text = ledger.text(execution, range).await?;
                if range.attempt_id == attempt_id {
                    stored_run.step_text_end.advance_past(&text);
                }
                // The tool may have changed since: its present definition must permit the repetition too.
                record.idempotent &= record
                    .tool
                    .as_ref()
                    .and_then(|tool| spec.tool(tool))
                    .is_some_and(|tool| tool.idempotent);
                steps.push(RunStep { record, text });
            }
            _ => {}
        }
    }
    stored_run.run = plan.map(|plan| CognitiveRun::restore(plan, steps));
    Ok(stored_run)
}

//! Warnings of a hop, which the run of the team repeats: the caller of the team sees only the task of the run.

use std::collections::BTreeMap;

use crate::driver::report::StoredOutputReader;
use crate::model::execution::ExecutionState;
use crate::model::execution::event::{EventKind, TextChannel};
use crate::ports::ledger::LedgerError;

/// Greatest number of warnings of one hop that the run repeats.
const MAX_HOP_WARNINGS: usize = 10;

/// Losses of the output of a hop.
#[derive(Default)]
struct OutputLosses {
    /// Bytes of messages and artifacts that the driver did not store.
    unstored_bytes: u64,
    /// Missing bytes of each artifact, and of all messages.
    missing_bytes: BTreeMap<Option<String>, u64>,
}

/// Returns the warnings of the last attempt of a hop, with the name of its step, and a warning with the number of bytes
/// that its output has lost.
pub(super) async fn hop_warnings(
    source: &StoredOutputReader,
    step: &str,
) -> Result<Vec<String>, LedgerError> {
    let mut warnings = Vec::new();
    let mut losses = OutputLosses::default();
    let mut is_team_run = false;
    for event in source.last_attempt_events().await? {
        match event {
            // Warnings of an attempt that was retried no longer apply.
            EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
                (warnings, losses) = (Vec::new(), OutputLosses::default());
            }
            EventKind::Warning { message } => warnings.push(message),
            EventKind::Planned { .. } => is_team_run = true,
            event => losses.add(event),
        }
    }
    let omitted_count = warnings.len().saturating_sub(MAX_HOP_WARNINGS);
    warnings.drain(..omitted_count);
    if omitted_count > 0 {
        let omission =
            format!("{omitted_count} earlier warnings are only in the events of its execution");
        warnings.insert(0, omission);
    }
    // The warnings of a team have the losses of its own steps.
    if let Some(lost_bytes) = losses.total().filter(|_| !is_team_run) {
        warnings.push(format!("{lost_bytes} bytes of its messages and artifacts were not stored"));
    }
    Ok(warnings.into_iter().map(|warning| format!("step `{step}`: {warning}")).collect())
}

impl OutputLosses {
    fn add(&mut self, event: EventKind) {
        let (id, pieces, append) = match event {
            EventKind::OutputTruncated { channel: TextChannel::Parts, dropped } => {
                self.unstored_bytes += dropped;
                return;
            }
            EventKind::Artifact { id, pieces, append, .. } => (Some(id), pieces, append),
            EventKind::Message { pieces, .. } => (None, pieces, true),
            _ => return,
        };
        let missing_bytes = self.missing_bytes.entry(id).or_default();
        let before = if append { *missing_bytes } else { 0 };
        *missing_bytes = before + pieces.iter().map(|piece| piece.dropped).sum::<u64>();
    }

    /// Returns the number of lost bytes. Both kinds of events may state the same bytes.
    fn total(&self) -> Option<u64> {
        let missing_bytes = self.missing_bytes.values().sum::<u64>();
        Some(missing_bytes.max(self.unstored_bytes)).filter(|total| *total > 0)
    }
}

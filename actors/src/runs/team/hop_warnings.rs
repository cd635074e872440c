//! Warnings of a hop, which the run of the team repeats: the caller of the team sees only the task of the run.

use crate::driver::report::StoredOutputReader;
use crate::model::execution::ExecutionState;
use crate::model::execution::event::{EventKind, TextChannel};
use crate::ports::ledger::LedgerError;

/// Greatest number of warnings of one hop that the run repeats.
const MAX_HOP_WARNINGS: usize = 10;

/// Returns the warnings of the last attempt of a hop, with the name of its step, and the number of bytes that its
/// output has lost.
pub(super) async fn hop_warnings(
    source: &StoredOutputReader,
    step: &str,
) -> Result<Vec<String>, LedgerError> {
    let mut warnings = Vec::new();
    let mut lost_bytes = 0;
    for event in source.last_attempt_events().await? {
        match event {
            // Warnings of an attempt that was retried no longer apply.
            EventKind::StateChanged(change) if change.to == ExecutionState::Starting => {
                (warnings, lost_bytes) = (Vec::new(), 0);
            }
            EventKind::Warning { message } => warnings.push(message),
            EventKind::OutputTruncated { channel: TextChannel::Parts, dropped } => {
                lost_bytes += dropped;
            }
            EventKind::Message { pieces, .. } | EventKind::Artifact { pieces, .. } => {
                lost_bytes += pieces.iter().map(|piece| piece.dropped).sum::<u64>();
            }
            _ => {}
        }
    }
    let omitted_count = warnings.len().saturating_sub(MAX_HOP_WARNINGS);
    warnings.drain(..omitted_count);
    if omitted_count > 0 {
        warnings.insert(0, format!("{omitted_count} earlier warnings are only in its execution"));
    }
    if lost_bytes > 0 {
        warnings
            .push(format!("{lost_bytes} bytes of its output are missing, because it is too long"));
    }
    Ok(warnings.into_iter().map(|warning| format!("step `{step}`: {warning}")).collect())
}

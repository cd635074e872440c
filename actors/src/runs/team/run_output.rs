//! Output of a run: the answers of its hops.

use std::sync::Arc;

use crate::decide::runs::team::Hop;
use crate::driver::report::{OutputWriter, Reporter, StoredOutputReader};
use crate::model::execution::content::StoredPart;
use crate::model::execution::event::{EventKind, TextChannel};
use crate::model::id::ExecutionId;
use crate::ports::ledger::{Ledger, LedgerError};

/// Output of one run, which is copied from the executions of its hops.
pub(super) struct RunOutput<'r> {
    /// Execution of the run.
    pub(super) execution: ExecutionId,
    pub(super) ledger: &'r Arc<dyn Ledger>,
    pub(super) reporter: &'r Reporter,
    /// True if a part of the output may have been written before.
    pub(super) may_have_output: bool,
}

impl RunOutput<'_> {
    /// Copies the answer of the last hop.
    pub(super) async fn copy_final_answer(&self, hop: &Hop) -> Result<(), LedgerError> {
        let Some(execution) = hop.execution else { return Ok(()) };
        let mut output_writer = self.open_empty_output().await?;
        let source = StoredOutputReader::new(execution, Arc::clone(self.ledger));
        let mut copied_events = Vec::new();
        for (index, event) in source.answer_events().await?.into_iter().enumerate() {
            let copy = match event {
                EventKind::Message { speaker, pieces, .. } => {
                    let message_id = format!("{}-{}", self.execution, index + 1);
                    let copied_parts = source.copy_parts(&pieces, &mut output_writer).await?;
                    EventKind::message(speaker, message_id, copied_parts)
                }
                EventKind::Artifact { id, name, description, pieces, append, last } => {
                    let copied_parts = source.copy_parts(&pieces, &mut output_writer).await?;
                    EventKind::Artifact {
                        id,
                        name,
                        description,
                        pieces: copied_parts,
                        append,
                        last,
                    }
                }
                _ => continue,
            };
            copied_events.push(copy);
        }
        output_writer.close().await?;
        // Only now: after a failure all of it is copied again.
        copied_events.into_iter().for_each(|copy| self.reporter.record_later(copy));
        Ok(())
    }

    /// Copies the answer of each hop that has one as an artifact, so that paid work is not lost.
    pub(super) async fn copy_answers_as_artifacts(&self, hops: &[Hop]) -> Result<(), LedgerError> {
        let mut output_writer = self.open_empty_output().await?;
        let mut copied_events = Vec::new();
        for hop in hops.iter().filter(|hop| hop.has_succeeded()) {
            let Some(execution) = hop.execution else { continue };
            let source = StoredOutputReader::new(execution, Arc::clone(self.ledger));
            let copied_parts = copy_all_parts(&source, &mut output_writer).await?;
            if copied_parts.is_empty() {
                continue;
            }
            let id = format!("hop-{}-{}", hop.number, hop.agent);
            let (name, description) = (Some(id.clone()), None);
            let (append, last) = (false, true);
            copied_events.push(EventKind::Artifact {
                id,
                name,
                description,
                pieces: copied_parts,
                append,
                last,
            });
        }
        output_writer.close().await?;
        copied_events.into_iter().for_each(|copy| self.reporter.record_later(copy));
        Ok(())
    }

    /// Opens the output. A repeated action writes it again from the start.
    async fn open_empty_output(&self) -> Result<OutputWriter, LedgerError> {
        if self.may_have_output {
            self.reporter.delete_output().await?;
        }
        Ok(self.reporter.open_output(TextChannel::Parts))
    }
}

async fn copy_all_parts(
    source: &StoredOutputReader,
    output_writer: &mut OutputWriter,
) -> Result<Vec<StoredPart>, LedgerError> {
    let mut copied_parts = Vec::new();
    for event in source.answer_events().await? {
        if let EventKind::Message { pieces, .. } | EventKind::Artifact { pieces, .. } = event {
            copied_parts.extend(source.copy_parts(&pieces, output_writer).await?);
        }
    }
    Ok(copied_parts)
}

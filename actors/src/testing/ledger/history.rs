//! In-memory history: uses the same rows as the ledger.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::MemoryLedger;
use super::rows::MemoryExecutionRow;
use crate::model::execution::AttemptId;
use crate::model::execution::event::{Event, TextRange};
use crate::model::host::storage_stats::{DeletionOutcome, RetentionBatchSelector, StorageStats};
use crate::model::id::{ExecutionId, PrincipalId};
use crate::ports::history::{History, TextSlice};
use crate::ports::ledger::{Ledger, LedgerError};
use crate::testing::fault_injection::LedgerCallKind;

#[async_trait]
impl History for MemoryLedger {
    async fn next_events(
        &self,
        id: ExecutionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, LedgerError> {
        let mut events = self.events(id, after).await?;
        events.truncate(limit as usize);
        Ok(events)
    }

    async fn text_ranges(&self, id: ExecutionId) -> Result<Vec<TextRange>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        let mut text_ranges: BTreeMap<(AttemptId, &str), TextRange> = BTreeMap::new();
        for chunk in rows.executions.get(&id).iter().flat_map(|row| &row.chunks) {
            let to = chunk.offset + chunk.text.len() as u64;
            let full_range =
                TextRange { attempt_id: chunk.attempt_id, channel: chunk.channel, from: 0, to };
            let text_range =
                text_ranges.entry((chunk.attempt_id, chunk.channel.as_str())).or_insert(full_range);
            text_range.to = text_range.to.max(to);
        }
        Ok(text_ranges.into_values().collect())
    }

    async fn text_slice(
        &self,
        id: ExecutionId,
        range: TextRange,
    ) -> Result<TextSlice, LedgerError> {
        let full_text = self.text(id, TextRange { from: 0, to: u64::MAX, ..range }).await?;
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(full_text.len());
        let from = (index(range.from)..full_text.len()).find(|at| full_text.is_char_boundary(*at));
        let from = from.unwrap_or(full_text.len());
        let to =
            (0..=index(range.to)).rev().find(|at| full_text.is_char_boundary(*at)).unwrap_or(0);
        let text = full_text.get(from..to).unwrap_or_default().to_owned();
        Ok(TextSlice { start_offset: from as u64, text })
    }

    async fn principal_names(&self) -> Result<BTreeMap<PrincipalId, String>, LedgerError> {
        let tokens = self.tokens().await?.into_iter();
        Ok(tokens.map(|token| (token.principal, token.principal_name)).collect())
    }

    async fn storage_stats(&self) -> Result<StorageStats, LedgerError> {
        self.inject_fault(LedgerCallKind::List).await?;
        let rows = self.rows.lock().await;
        let records = || rows.executions.values().map(|row| &row.record);
        let ended = records().filter(|record| record.outcome.is_some()).count() as u64;
        let oldest = records().next().map(|record| record.accepted_at);
        let executions = rows.executions.len() as u64;
        Ok(StorageStats { executions, ended, oldest, ..StorageStats::default() })
    }

    async fn remove(&self, id: ExecutionId) -> Result<DeletionOutcome, LedgerError> {
        self.inject_fault(LedgerCallKind::Settle).await?;
        let mut rows = self.rows.lock().await;
        let outcome = rows.executions.get(&id).map(|row| row.record.outcome);
        Ok(match outcome {
            None => DeletionOutcome::Unknown,
            Some(None) => DeletionOutcome::NotEnded,
            Some(Some(_)) if rows.is_hop_of_unfinished_run(id) => DeletionOutcome::NotEnded,
            Some(Some(_)) => {
                rows.remove_execution(id);
                DeletionOutcome::Removed
            }
        })
    }

    async fn remove_batch(&self, batch: RetentionBatchSelector) -> Result<u64, LedgerError> {
        self.inject_fault(LedgerCallKind::Settle).await?;
        let mut rows = self.rows.lock().await;
        let fits = |at| {
            batch.from.is_none_or(|from| at >= from)
                && batch.before.is_none_or(|before| at < before)
        };
        let records = rows.executions.values().map(|row| &row.record);
        let ended = records.filter_map(|record| Some((record.ended_at?, record.id)));
        let mut ended: Vec<_> = ended.filter(|(at, _)| fits(*at)).collect();
        ended.retain(|(_, id)| !rows.is_hop_of_unfinished_run(*id));
        ended.sort_unstable();
        ended.truncate(batch.limit as usize);
        for (_, id) in &ended {
            rows.remove_execution(*id);
        }
        Ok(ended.len() as u64)
    }

    async fn erase_sealed_inputs(&self, before: DateTime<Utc>) -> Result<u64, LedgerError> {
        self.inject_fault(LedgerCallKind::Settle).await?;
        let mut rows = self.rows.lock().await;
        let has_ended_before =
            |row: &&mut MemoryExecutionRow| row.record.ended_at.is_some_and(|at| at < before);
        let ended_rows = rows.executions.values_mut().filter(has_ended_before);
        Ok(ended_rows.filter_map(|row| row.sealed_input.take()).count() as u64)
    }

    async fn release_free_pages(&self) -> Result<u64, LedgerError> {
        self.inject_fault(LedgerCallKind::Settle).await?;
        Ok(0)
    }
}

//! Ledger of these tests: it records the writes of a driver, and has no other function.

use std::collections::BTreeMap;

use algonius_actors::model::access::principal::{NewToken, Token};
use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::execution::event::{Event, TextChunk, TextRange};
use algonius_actors::model::execution::record::{
    ExecutionFilter, ExecutionPage, ExecutionPageQuery, ExecutionRecord,
};
use algonius_actors::model::execution::{AttemptId, Fence};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::ports::ledger::{
    AcceptCommand, AcceptResult, AnswerCommand, ClaimCommand, ClaimResult, Ledger, LedgerError,
    Settlement, WriteBatch,
};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

use super::fixture::{RecordedEntry, RecordingLedger, unavailable_error};

#[async_trait]
impl Ledger for RecordingLedger {
    async fn accept(&self, _: AcceptCommand) -> Result<AcceptResult, LedgerError> {
        Err(unavailable_error())
    }

    async fn record_answer(&self, _: AnswerCommand) -> Result<bool, LedgerError> {
        Err(unavailable_error())
    }

    async fn sealed_input(&self, _: ExecutionId) -> Result<Option<Vec<u8>>, LedgerError> {
        Err(unavailable_error())
    }

    async fn find_by_key(
        &self,
        _: PrincipalId,
        _: &AgentId,
        _: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        Err(unavailable_error())
    }

    async fn claim(&self, _: ClaimCommand) -> Result<ClaimResult, LedgerError> {
        Err(unavailable_error())
    }

    async fn append_batch(
        &self,
        _: ExecutionId,
        _: Fence,
        batch: WriteBatch,
    ) -> Result<bool, LedgerError> {
        for chunk in batch.chunks {
            self.record(RecordedEntry::Chunk(chunk))?;
        }
        for (_, event) in batch.events {
            self.record(RecordedEntry::Event(event))?;
        }
        Ok(true)
    }

    async fn append_chunk(&self, _: ExecutionId, chunk: TextChunk) -> Result<(), LedgerError> {
        self.record(RecordedEntry::Chunk(chunk))
    }

    async fn delete_output(&self, _: ExecutionId, _: AttemptId) -> Result<(), LedgerError> {
        Err(unavailable_error())
    }

    async fn settle(&self, _: Settlement) -> Result<bool, LedgerError> {
        Err(unavailable_error())
    }

    async fn execution(&self, _: ExecutionId) -> Result<Option<ExecutionRecord>, LedgerError> {
        Err(unavailable_error())
    }

    async fn executions(&self, _: ExecutionFilter) -> Result<Vec<ExecutionRecord>, LedgerError> {
        Err(unavailable_error())
    }

    async fn execution_page(&self, _: ExecutionPageQuery) -> Result<ExecutionPage, LedgerError> {
        Err(unavailable_error())
    }

    async fn events(&self, _: ExecutionId, _: u64) -> Result<Vec<Event>, LedgerError> {
        Err(unavailable_error())
    }

    async fn text(&self, _: ExecutionId, _: TextRange) -> Result<String, LedgerError> {
        Err(unavailable_error())
    }

    async fn spent_on_day(&self, _: &AgentId, _: NaiveDate) -> Result<Charge, LedgerError> {
        Err(unavailable_error())
    }

    async fn spent_by_all_agents(
        &self,
        _: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        Err(unavailable_error())
    }

    async fn replace_configured_tokens(
        &self,
        _: Vec<NewToken>,
        _: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        Err(unavailable_error())
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        Err(unavailable_error())
    }
}

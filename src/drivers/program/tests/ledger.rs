//! Ledger of these tests: it records the writes of a driver, and has no other function.

use std::collections::BTreeMap;

use algonius_actors::model::access::principal::{Token, TokenSeed};
use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::execution::event::{Chunk, Event, TextRange};
use algonius_actors::model::execution::record::{
    ExecutionFilter, ExecutionPage, ExecutionPageQuery, Record,
};
use algonius_actors::model::execution::{AttemptId, Fence};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::ports::ledger::{
    AcceptCommand, Acceptance, ClaimCommand, ClaimResult, Ledger, LedgerError, ResumeCommand,
    Settlement, WriteBatch,
};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

use super::fixture::{Entry, EntryRecorder, unavailable};

#[async_trait]
impl Ledger for EntryRecorder {
    async fn accept(&self, _: AcceptCommand) -> Result<Acceptance, LedgerError> {
        Err(unavailable())
    }

    async fn resume(&self, _: ResumeCommand) -> Result<bool, LedgerError> {
        Err(unavailable())
    }

    async fn sealed_input(&self, _: ExecutionId) -> Result<Option<Vec<u8>>, LedgerError> {
        Err(unavailable())
    }

    async fn find_by_key(
        &self,
        _: PrincipalId,
        _: &AgentId,
        _: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        Err(unavailable())
    }

    async fn claim(&self, _: ClaimCommand) -> Result<ClaimResult, LedgerError> {
        Err(unavailable())
    }

    async fn write(
        &self,
        _: ExecutionId,
        _: Fence,
        lines: WriteBatch,
    ) -> Result<bool, LedgerError> {
        for chunk in lines.chunks {
            self.record(Entry::Chunk(chunk))?;
        }
        for (_, event) in lines.events {
            self.record(Entry::Event(event))?;
        }
        Ok(true)
    }

    async fn append(&self, _: ExecutionId, chunk: Chunk) -> Result<(), LedgerError> {
        self.record(Entry::Chunk(chunk))
    }

    async fn delete_output(&self, _: ExecutionId, _: AttemptId) -> Result<(), LedgerError> {
        Err(unavailable())
    }

    async fn settle(&self, _: Settlement) -> Result<bool, LedgerError> {
        Err(unavailable())
    }

    async fn execution(&self, _: ExecutionId) -> Result<Option<Record>, LedgerError> {
        Err(unavailable())
    }

    async fn executions(&self, _: ExecutionFilter) -> Result<Vec<Record>, LedgerError> {
        Err(unavailable())
    }

    async fn page(&self, _: ExecutionPageQuery) -> Result<ExecutionPage, LedgerError> {
        Err(unavailable())
    }

    async fn events(&self, _: ExecutionId, _: u64) -> Result<Vec<Event>, LedgerError> {
        Err(unavailable())
    }

    async fn text(&self, _: ExecutionId, _: TextRange) -> Result<String, LedgerError> {
        Err(unavailable())
    }

    async fn spent(&self, _: &AgentId, _: NaiveDate) -> Result<Charge, LedgerError> {
        Err(unavailable())
    }

    async fn spent_by_all(
        &self,
        _: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        Err(unavailable())
    }

    async fn replace_seeded_tokens(
        &self,
        _: Vec<TokenSeed>,
        _: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        Err(unavailable())
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        Err(unavailable())
    }
}

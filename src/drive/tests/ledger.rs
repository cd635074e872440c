//! The ledger of these tests: it hears what a driver writes, and has nothing else to say.

use std::collections::BTreeMap;

use algonius_actors::model::budget::Charge;
use algonius_actors::model::event::{Chunk, Event, Span};
use algonius_actors::model::execution::{Fence, Stamp};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::principal::{Token, TokenSeed};
use algonius_actors::model::record::{Filter, Page, PageQuery, Record};
use algonius_actors::ports::ledger::{
    Accept, Acceptance, Claim, ClaimOrder, Ledger, LedgerError, Lines, Resume, Settlement,
};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

use super::world::{Entry, Listener, unavailable};

#[async_trait]
impl Ledger for Listener {
    async fn accept(&self, _: Accept) -> Result<Acceptance, LedgerError> {
        Err(unavailable())
    }

    async fn resume(&self, _: Resume) -> Result<bool, LedgerError> {
        Err(unavailable())
    }

    async fn taken(
        &self,
        _: PrincipalId,
        _: &AgentId,
        _: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        Err(unavailable())
    }

    async fn claim(&self, _: ClaimOrder) -> Result<Claim, LedgerError> {
        Err(unavailable())
    }

    async fn write(&self, _: ExecutionId, _: Fence, lines: Lines) -> Result<bool, LedgerError> {
        for chunk in lines.chunks {
            self.hear(Entry::Chunk(chunk))?;
        }
        for (_, fact) in lines.facts {
            self.hear(Entry::Fact(fact))?;
        }
        Ok(true)
    }

    async fn append(&self, _: ExecutionId, chunk: Chunk) -> Result<(), LedgerError> {
        self.hear(Entry::Chunk(chunk))
    }

    async fn unwrite(&self, _: ExecutionId, _: Stamp) -> Result<(), LedgerError> {
        Err(unavailable())
    }

    async fn settle(&self, _: Settlement) -> Result<bool, LedgerError> {
        Err(unavailable())
    }

    async fn execution(&self, _: ExecutionId) -> Result<Option<Record>, LedgerError> {
        Err(unavailable())
    }

    async fn executions(&self, _: Filter) -> Result<Vec<Record>, LedgerError> {
        Err(unavailable())
    }

    async fn page(&self, _: PageQuery) -> Result<Page, LedgerError> {
        Err(unavailable())
    }

    async fn events(&self, _: ExecutionId, _: u64) -> Result<Vec<Event>, LedgerError> {
        Err(unavailable())
    }

    async fn text(&self, _: ExecutionId, _: Span) -> Result<String, LedgerError> {
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

    async fn seed(&self, _: Vec<TokenSeed>, _: DateTime<Utc>) -> Result<(), LedgerError> {
        Err(unavailable())
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        Err(unavailable())
    }
}

//! The store in virtual time: while it works, no time passes.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use algonius_actors::model::access::principal::{Token, TokenSeed};
use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::execution::event::{Chunk, Event, TextRange};
use algonius_actors::model::execution::record::{Filter, Page, PageQuery, Record};
use algonius_actors::model::execution::{AttemptId, Fence};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};
use algonius_actors::model::schedule::Schedule;
use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceEnding, OccurrenceQuery};
use algonius_actors::ports::ledger::{
    Accept, Acceptance, Claim, ClaimOrder, Ledger, LedgerError, Resume, Settlement, WriteBatch,
};
use algonius_actors::ports::schedule_store::{Advance, ScheduleStore, Settled};
use algonius_store::Store;
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

/// A store whose work takes no virtual time.
#[derive(Clone)]
pub(crate) struct Held(pub(crate) Arc<Store>);

/// Does a work while virtual time stands still, which it does as long as a thread is blocked.
pub(crate) async fn held<T>(work: impl Future<Output = T>) -> T {
    let (done, waits) = mpsc::channel::<()>();
    let blocked = tokio::task::spawn_blocking(move || _ = waits.recv());
    let answer = work.await;
    drop(done);
    blocked.await.unwrap();
    answer
}

#[async_trait]
impl Ledger for Held {
    async fn accept(&self, accept: Accept) -> Result<Acceptance, LedgerError> {
        held(Ledger::accept(&*self.0, accept)).await
    }

    async fn resume(&self, resume: Resume) -> Result<bool, LedgerError> {
        held(Ledger::resume(&*self.0, resume)).await
    }

    async fn sealed_input(&self, id: ExecutionId) -> Result<Option<Vec<u8>>, LedgerError> {
        self.0.sealed_input(id).await
    }

    async fn taken(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        held(Ledger::taken(&*self.0, owner, agent, key)).await
    }

    async fn claim(&self, order: ClaimOrder) -> Result<Claim, LedgerError> {
        held(Ledger::claim(&*self.0, order)).await
    }

    async fn write(
        &self,
        id: ExecutionId,
        fence: Fence,
        lines: WriteBatch,
    ) -> Result<bool, LedgerError> {
        held(Ledger::write(&*self.0, id, fence, lines)).await
    }

    async fn append(&self, id: ExecutionId, chunk: Chunk) -> Result<(), LedgerError> {
        held(Ledger::append(&*self.0, id, chunk)).await
    }

    async fn unwrite(&self, id: ExecutionId, stamp: AttemptId) -> Result<(), LedgerError> {
        held(Ledger::unwrite(&*self.0, id, stamp)).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError> {
        held(Ledger::settle(&*self.0, settlement)).await
    }

    async fn execution(&self, id: ExecutionId) -> Result<Option<Record>, LedgerError> {
        held(Ledger::execution(&*self.0, id)).await
    }

    async fn executions(&self, filter: Filter) -> Result<Vec<Record>, LedgerError> {
        held(Ledger::executions(&*self.0, filter)).await
    }

    async fn page(&self, query: PageQuery) -> Result<Page, LedgerError> {
        held(Ledger::page(&*self.0, query)).await
    }

    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError> {
        held(Ledger::events(&*self.0, id, after)).await
    }

    async fn text(&self, id: ExecutionId, span: TextRange) -> Result<String, LedgerError> {
        held(Ledger::text(&*self.0, id, span)).await
    }

    async fn spent(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError> {
        held(Ledger::spent(&*self.0, agent, day)).await
    }

    async fn spent_by_all(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        held(Ledger::spent_by_all(&*self.0, days)).await
    }

    async fn seed(&self, tokens: Vec<TokenSeed>, at: DateTime<Utc>) -> Result<(), LedgerError> {
        held(Ledger::seed(&*self.0, tokens, at)).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        held(Ledger::tokens(&*self.0)).await
    }
}

#[async_trait]
impl ScheduleStore for Held {
    async fn schedules(&self) -> Result<Vec<Schedule>, LedgerError> {
        held(ScheduleStore::schedules(&*self.0)).await
    }

    async fn put(&self, schedules: Vec<Schedule>) -> Result<(), LedgerError> {
        held(ScheduleStore::put(&*self.0, schedules)).await
    }

    async fn remove(&self, ids: Vec<ScheduleId>) -> Result<(), LedgerError> {
        held(ScheduleStore::remove(&*self.0, ids)).await
    }

    async fn advance(&self, advances: Vec<Advance>) -> Result<Vec<Vec<Occurrence>>, LedgerError> {
        held(ScheduleStore::advance(&*self.0, advances)).await
    }

    async fn settle(&self, settled: Vec<Settled>) -> Result<(), LedgerError> {
        held(ScheduleStore::settle(&*self.0, settled)).await
    }

    async fn end(
        &self,
        schedule: &ScheduleId,
        planned: DateTime<Utc>,
        ending: OccurrenceEnding,
    ) -> Result<(), LedgerError> {
        held(ScheduleStore::end(&*self.0, schedule, planned, ending)).await
    }

    async fn open(&self) -> Result<Vec<Occurrence>, LedgerError> {
        held(ScheduleStore::open(&*self.0)).await
    }

    async fn occurrences(&self, query: OccurrenceQuery) -> Result<Vec<Occurrence>, LedgerError> {
        held(ScheduleStore::occurrences(&*self.0, query)).await
    }

    async fn tally(
        &self,
        schedule: &ScheduleId,
        since: DateTime<Utc>,
    ) -> Result<Vec<Occurrence>, LedgerError> {
        held(ScheduleStore::tally(&*self.0, schedule, since)).await
    }

    async fn forget(&self, before: DateTime<Utc>, limit: u32) -> Result<u64, LedgerError> {
        held(ScheduleStore::forget(&*self.0, before, limit)).await
    }
}

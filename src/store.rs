//! The ledger on SQLite: one data directory, one daemon, one writer, a few readers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::budget::Charge;
use algonius_actors::model::event::{Chunk, Event, Span};
use algonius_actors::model::execution::{Fence, Stamp};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::principal::{Token, TokenSeed};
use algonius_actors::model::push::{PushTarget, Standing};
use algonius_actors::model::record::{Filter, Page, PageQuery, Record};
use algonius_actors::ports::ledger::{
    Accept, Acceptance, Claim, ClaimOrder, Ledger, LedgerError, Lines, Resume, Settlement,
};
use algonius_actors::ports::outbox::{Due, Outbox, Placing};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use uuid::Uuid;

use directory::{Directory, Lock};
use fault::ledger_error;
use folding::Folding;
use principals::Seeds;
use push::{Forget, Note, Place};
use recent::{Part, Recent};
use record::Written;
use seal::{Purpose, Seal};
use sql::Readers;
use text::{Append, Unwrite};
use writer::{Others, Writer};

pub use fault::StoreError;
pub use tokens::Known;

mod accept;
mod claim;
mod column;
mod directory;
mod events;
mod fault;
mod folding;
mod head;
mod history;
mod keys;
mod listing;
mod occurrences;
mod page;
mod principals;
mod push;
mod recent;
mod record;
mod records;
mod resume;
mod retention;
mod schedules;
mod seal;
mod sessions;
mod settle;
mod spending;
mod sql;
mod sqlite;
mod steps;
mod text;
mod timebook;
mod tokens;
mod whole;
mod writer;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Any crash of this program; a loss of power may take the latest commits.
    #[default]
    Process,
    /// A loss of power too. Every commit waits for the disk.
    Power,
}

/// Who this data directory is. Made when it is first opened, and kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// A random id.
    pub id: Uuid,
    /// Keys the digests by which equal requests are found. Secret.
    pub key: [u8; 32],
}

impl fmt::Debug for Instance {
    /// Shows the id only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.id)
    }
}

/// The ledger of one data directory.
///
/// The directory stays locked until [`Store::close`] has returned; after a mere drop, until what
/// was ordered is committed.
#[derive(Debug)]
pub struct Store {
    database: PathBuf,
    instance: Instance,
    seal: Seal,
    sessions: Seal,
    readers: Readers,
    recent: Arc<Recent>,
    writer: Writer,
}

impl Store {
    /// Opens the ledger in a data directory, and makes what is missing.
    ///
    /// # Errors
    /// When another daemon uses the directory, when it cannot be written, or when the database is
    /// damaged or of a later release.
    pub async fn open(data_dir: &Path, durability: Durability) -> Result<Self, StoreError> {
        let Directory { database, lock } = directory::open(data_dir)?;
        let opened = Self::open_file(&database, durability, lock).await;
        opened.map_err(|error| error.of(&database))
    }

    async fn open_file(
        database: &Path,
        durability: Durability,
        lock: Lock,
    ) -> Result<Self, StoreError> {
        whole::check(database)?;
        let mut connection = sqlite::writer(database, durability)?;
        let instance = sqlite::instance(&mut connection).await?;
        let readers = sqlite::readers(database)?;
        let folding = Folding::begin(&mut connection, database)?;
        let recent = Arc::<Recent>::default();
        let others = Others { readers: readers.clone(), recent: Arc::clone(&recent), folding };
        let writer = Writer::spawn(connection, others, lock);
        let writer = writer.map_err(|error| StoreError::Database { source: Box::new(error) })?;
        let seal = |purpose| Seal::new(&instance.key, purpose);
        let (seal, sessions) = (seal(Purpose::PushTargets), seal(Purpose::Sessions));
        let database = database.to_owned();
        Ok(Self { database, instance, seal, sessions, readers, recent, writer })
    }

    /// Who this data directory is.
    #[must_use]
    pub fn instance(&self) -> Instance {
        self.instance
    }

    /// Commits what was ordered, brings the database file up to date and unlocks the directory.
    /// Calls that come later are answered with [`LedgerError::Unavailable`].
    pub async fn close(&self) {
        self.writer.close().await;
    }
}

#[async_trait]
impl Ledger for Store {
    async fn accept(&self, accept: Accept) -> Result<Acceptance, LedgerError> {
        let sent = (accept.owner, accept.agent.clone(), accept.keys.message);
        let digest = accept.digest;
        let acceptance = self.writer.order(accept).await?;
        if let Acceptance::Twin(id) = acceptance {
            self.recent.came_again(sent, (id, digest)).await;
        }
        Ok(acceptance)
    }

    async fn again(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Option<(ExecutionId, [u8; 32])> {
        self.recent.twin(&(owner, agent.clone(), key)).await
    }

    async fn resume(&self, resume: Resume) -> Result<bool, LedgerError> {
        self.writer.order(resume).await
    }

    async fn taken(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        keys::taken(&self.readers, owner, agent, key).await.map_err(ledger_error)
    }

    async fn claim(&self, order: ClaimOrder) -> Result<Claim, LedgerError> {
        self.writer.order(order).await
    }

    async fn write(
        &self,
        id: ExecutionId,
        fence: Fence,
        lines: Lines,
    ) -> Result<bool, LedgerError> {
        self.writer.order(Written { id, fence, lines }).await
    }

    async fn append(&self, id: ExecutionId, chunk: Chunk) -> Result<(), LedgerError> {
        self.writer.order(Append { id, chunk }).await
    }

    async fn unwrite(&self, id: ExecutionId, stamp: Stamp) -> Result<(), LedgerError> {
        self.writer.order(Unwrite { id, stamp }).await
    }

    async fn spent(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError> {
        spending::read(&self.readers, agent, day).await.map_err(ledger_error)
    }

    async fn spent_by_all(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        spending::read_all(&self.readers, days).await.map_err(ledger_error)
    }

    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError> {
        self.writer.order(settlement).await
    }

    async fn execution(&self, id: ExecutionId) -> Result<Option<Record>, LedgerError> {
        let reading = || records::one(&self.readers, id);
        self.recent.ask((id, Part::Record), reading).await.map_err(ledger_error)
    }

    async fn executions(&self, filter: Filter) -> Result<Vec<Record>, LedgerError> {
        records::many(&self.readers, filter).await.map_err(ledger_error)
    }

    async fn page(&self, query: PageQuery) -> Result<Page, LedgerError> {
        page::read(&self.readers, &query).await.map_err(ledger_error)
    }

    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError> {
        let reading = || events::after(&self.readers, id, after);
        let read = match after {
            0 => self.recent.ask((id, Part::Events), reading).await,
            _ => Box::pin(reading()).await,
        };
        read.map_err(ledger_error)
    }

    async fn text(&self, id: ExecutionId, span: Span) -> Result<String, LedgerError> {
        let reading = || text::range(&self.readers, id, span);
        self.recent.ask((id, Part::Text(span)), reading).await.map_err(ledger_error)
    }

    async fn seed(&self, tokens: Vec<TokenSeed>, at: DateTime<Utc>) -> Result<(), LedgerError> {
        self.writer.order(Seeds { tokens, at }).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        principals::tokens(&self.readers).await.map_err(ledger_error)
    }
}

#[async_trait]
impl Outbox for Store {
    async fn set(
        &self,
        target: PushTarget,
        known: u64,
        limit: u32,
    ) -> Result<Placing, LedgerError> {
        let sealed = push::seal(&self.seal, &target).map_err(ledger_error)?;
        self.writer.order(Place { target, sealed, known, limit }).await
    }

    async fn get(&self, id: ExecutionId, target: &str) -> Result<Option<PushTarget>, LedgerError> {
        push::one(&self.readers, &self.seal, id, target).await.map_err(ledger_error)
    }

    async fn list(&self, id: ExecutionId) -> Result<Vec<PushTarget>, LedgerError> {
        push::all(&self.readers, &self.seal, id).await.map_err(ledger_error)
    }

    async fn delete(&self, id: ExecutionId, target: &str) -> Result<bool, LedgerError> {
        self.writer.order(Forget { id, target: target.to_owned() }).await
    }

    async fn due(
        &self,
        now: DateTime<Utc>,
        patience: TimeDelta,
        share: u32,
    ) -> Result<Due, LedgerError> {
        push::due(&self.readers, now, patience, share).await.map_err(ledger_error)
    }

    async fn note(&self, registration: Uuid, standing: Standing) -> Result<bool, LedgerError> {
        self.writer.order(Note { registration, standing }).await
    }
}

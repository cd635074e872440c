//! Ledger on SQLite: one data directory, one daemon, one writer and a few readers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::access::principal::{NewToken, Token};
use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::execution::event::{Event, TextChunk, TextRange};
use algonius_actors::model::execution::record::{
    ExecutionFilter, ExecutionPage, ExecutionPageQuery, ExecutionRecord,
};
use algonius_actors::model::execution::{AttemptId, Fence};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::push::{DeliveryProgress, PushTarget};
use algonius_actors::ports::ledger::{
    AcceptCommand, AcceptResult, AnswerCommand, ClaimCommand, ClaimResult, Ledger, LedgerError,
    Settlement, WriteBatch,
};
use algonius_actors::ports::push_target_store::{DueTargets, PushTargetStore, RegistrationResult};
use algonius_actors::ports::sealer::Sealer;
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use uuid::Uuid;

use access::principals::{self, ReplaceConfiguredTokens};
use engine::checkpoint::Checkpointer;
use engine::directory::{self, DataDirectory, DirectoryLock, FileId};
use engine::encryption::{KeyPurpose, StoreCipher};
use engine::error::ledger_error;
use engine::integrity;
use engine::read_cache::{CachePart, ReadCache};
use engine::sql::ReaderPool;
use engine::writer::{LedgerWriter, WriterDependencies};
use ledger::append_batch::AppendBatch;
use ledger::interactions::AnswerSeal;
use ledger::text_chunks::{self, AppendChunk, DeleteOutput};
use ledger::{budget_usage, events, request_keys, sealed_inputs};
use push::{DeleteTarget, RecordDelivery, RegisterTarget};
use queries::{page, records};

pub use access::tokens::StoredToken;
pub use engine::error::StoreError;

mod access;
#[cfg(test)]
mod conformance;
mod engine;
mod ledger;
mod maintenance;
mod notes;
mod push;
mod queries;
mod schedules;
mod schema;
pub mod seal;
mod sessions;
mod sqlite;
#[cfg(test)]
mod tests;

/// Kind of crash that a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Any crash of this program; a power failure may lose the latest commits.
    #[default]
    ProcessCrash,
    /// A power failure too. Every commit waits for the disk.
    PowerFailure,
}

/// Identity of a data directory. It is created at the first opening and stays the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InstanceIdentity {
    /// Random id.
    pub id: Uuid,
    /// Secret key of the digests by which equal requests are found.
    pub key: [u8; 32],
}

impl fmt::Debug for InstanceIdentity {
    /// Shows only the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.id)
    }
}

/// Ledger of one data directory.
///
/// The directory stays locked until [`Store::close`] has returned; after a drop without close, until all queued
/// changes are committed.
#[derive(Debug)]
pub struct Store {
    database: PathBuf,
    /// Identity of the database when it was opened.
    file_id: FileId,
    instance: InstanceIdentity,
    push_cipher: StoreCipher,
    session_cipher: StoreCipher,
    answer_seal: AnswerSeal,
    readers: ReaderPool,
    read_cache: Arc<ReadCache>,
    writer: LedgerWriter,
}

impl Store {
    /// Opens the ledger in a data directory and creates missing files.
    ///
    /// # Errors
    /// Fails if another daemon uses the directory for two seconds, if it is not writable, or if the database is damaged
    /// or belongs to a later release.
    pub async fn open(data_dir: &Path, durability: Durability) -> Result<Self, StoreError> {
        let DataDirectory { database, lock } = directory::open(data_dir).await?;
        let opened = Self::open_file(&database, durability, lock).await;
        opened.map_err(|error| error.classify_damage(&database))
    }

    async fn open_file(
        database: &Path,
        durability: Durability,
        lock: DirectoryLock,
    ) -> Result<Self, StoreError> {
        integrity::check_file_length(database)?;
        let mut connection = sqlite::open_writer(database, durability)?;
        let instance = sqlite::load_or_create_instance(&mut connection).await?;
        let readers = sqlite::open_readers(database)?;
        let checkpointer = Checkpointer::start(&mut connection, database)?;
        let read_cache = Arc::<ReadCache>::default();
        let dependencies = WriterDependencies {
            readers: readers.clone(),
            read_cache: Arc::clone(&read_cache),
            checkpointer,
        };
        let writer = LedgerWriter::spawn(connection, dependencies, lock);
        let writer = writer.map_err(|error| StoreError::Database { source: Box::new(error) })?;
        let file_id = FileId::read(database)
            .map_err(|source| StoreError::Database { source: Box::new(source) })?;
        let cipher = |purpose| StoreCipher::new(&instance.key, purpose);
        let database = database.to_owned();
        Ok(Self {
            database,
            file_id,
            instance,
            push_cipher: cipher(KeyPurpose::PushTargets),
            session_cipher: cipher(KeyPurpose::Sessions),
            answer_seal: AnswerSeal::new(cipher(KeyPurpose::EarlierAnswers)),
            readers,
            read_cache,
            writer,
        })
    }

    /// Returns true if the database is still the file that was opened. Changes of a file that was removed are lost when
    /// the ledger is closed. May block.
    #[must_use]
    pub fn is_database_in_place(&self) -> bool {
        FileId::read(&self.database).is_ok_and(|found| found == self.file_id)
    }

    /// Returns the identity of this data directory.
    #[must_use]
    pub fn instance(&self) -> InstanceIdentity {
        self.instance
    }

    /// Sets the sealer of raw answers. Without one, the ledger stores no answer that redaction changes.
    pub fn set_answer_sealer(&self, sealer: Arc<dyn Sealer>) {
        self.answer_seal.set_sealer(sealer);
    }

    /// Commits the queued changes, checkpoints the log into the database file and unlocks the directory. Later calls
    /// fail with [`LedgerError::Unavailable`].
    pub async fn close(&self) {
        self.writer.close().await;
    }
}

#[async_trait]
impl Ledger for Store {
    async fn accept(&self, command: AcceptCommand) -> Result<AcceptResult, LedgerError> {
        let message_key = (command.owner, command.agent.clone(), command.keys.message_key);
        let digest = command.content_digest;
        let acceptance = self.writer.submit(command).await?;
        if let AcceptResult::Duplicate(id) = acceptance {
            self.read_cache.record_original_request(message_key, (id, digest)).await;
        }
        Ok(acceptance)
    }

    async fn find_cached_by_key(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Option<(ExecutionId, [u8; 32])> {
        self.read_cache.find_original_request(&(owner, agent.clone(), key)).await
    }

    async fn record_answer(&self, command: AnswerCommand) -> Result<bool, LedgerError> {
        self.writer.submit(command).await
    }

    async fn find_by_key(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Result<Option<(ExecutionId, [u8; 32])>, LedgerError> {
        request_keys::find(&self.readers, owner, agent, key).await.map_err(ledger_error)
    }

    async fn claim(&self, command: ClaimCommand) -> Result<ClaimResult, LedgerError> {
        self.writer.submit(command).await
    }

    async fn append_batch(
        &self,
        id: ExecutionId,
        fence: Fence,
        batch: WriteBatch,
    ) -> Result<bool, LedgerError> {
        self.writer.submit(AppendBatch { id, fence, batch }).await
    }

    async fn append_chunk(&self, id: ExecutionId, chunk: TextChunk) -> Result<(), LedgerError> {
        self.writer.submit(AppendChunk { id, chunk }).await
    }

    async fn delete_output(
        &self,
        id: ExecutionId,
        attempt_id: AttemptId,
    ) -> Result<(), LedgerError> {
        self.writer.submit(DeleteOutput { id, attempt_id }).await
    }

    async fn spent_on_day(&self, agent: &AgentId, day: NaiveDate) -> Result<Charge, LedgerError> {
        budget_usage::read(&self.readers, agent, day).await.map_err(ledger_error)
    }

    async fn spent_by_all_agents(
        &self,
        days: &[NaiveDate],
    ) -> Result<BTreeMap<(AgentId, NaiveDate), Charge>, LedgerError> {
        budget_usage::read_all(&self.readers, days).await.map_err(ledger_error)
    }

    async fn settle(&self, settlement: Settlement) -> Result<bool, LedgerError> {
        self.writer.submit(settlement).await
    }

    async fn execution(&self, id: ExecutionId) -> Result<Option<ExecutionRecord>, LedgerError> {
        let reading = || records::load(&self.readers, id);
        self.read_cache.read_through((id, CachePart::Record), reading).await.map_err(ledger_error)
    }

    async fn sealed_input(&self, id: ExecutionId) -> Result<Option<Vec<u8>>, LedgerError> {
        sealed_inputs::read(&self.readers, id).await.map_err(ledger_error)
    }

    async fn executions(
        &self,
        filter: ExecutionFilter,
    ) -> Result<Vec<ExecutionRecord>, LedgerError> {
        records::list(&self.readers, filter).await.map_err(ledger_error)
    }

    async fn execution_page(
        &self,
        query: ExecutionPageQuery,
    ) -> Result<ExecutionPage, LedgerError> {
        page::read(&self.readers, &query).await.map_err(ledger_error)
    }

    async fn events(&self, id: ExecutionId, after: u64) -> Result<Vec<Event>, LedgerError> {
        let reading = || events::read_after(&self.readers, id, after);
        let read = match after {
            0 => self.read_cache.read_through((id, CachePart::Events), reading).await,
            _ => Box::pin(reading()).await,
        };
        read.map_err(ledger_error)
    }

    async fn text(&self, id: ExecutionId, range: TextRange) -> Result<String, LedgerError> {
        let reading = || text_chunks::read_range_lossy(&self.readers, id, range);
        self.read_cache
            .read_through((id, CachePart::Text(range)), reading)
            .await
            .map_err(ledger_error)
    }

    async fn replace_configured_tokens(
        &self,
        tokens: Vec<NewToken>,
        at: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        self.writer.submit(ReplaceConfiguredTokens { tokens, at }).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, LedgerError> {
        principals::load_tokens(&self.readers).await.map_err(ledger_error)
    }
}

#[async_trait]
impl PushTargetStore for Store {
    async fn register(
        &self,
        target: PushTarget,
        last_omitted_event: u64,
        max_targets: u32,
    ) -> Result<RegistrationResult, LedgerError> {
        let sealed = push::seal(&self.push_cipher, &target).map_err(ledger_error)?;
        self.writer.submit(RegisterTarget { target, sealed, last_omitted_event, max_targets }).await
    }

    async fn get(
        &self,
        id: ExecutionId,
        target_id: &str,
    ) -> Result<Option<PushTarget>, LedgerError> {
        push::load(&self.readers, &self.push_cipher, id, target_id).await.map_err(ledger_error)
    }

    async fn list(&self, id: ExecutionId) -> Result<Vec<PushTarget>, LedgerError> {
        push::list(&self.readers, &self.push_cipher, id).await.map_err(ledger_error)
    }

    async fn delete(&self, id: ExecutionId, target_id: &str) -> Result<bool, LedgerError> {
        self.writer.submit(DeleteTarget { execution: id, target_id: target_id.to_owned() }).await
    }

    async fn due_targets(
        &self,
        now: DateTime<Utc>,
        clock_tolerance: TimeDelta,
        max_per_owner: u32,
    ) -> Result<DueTargets, LedgerError> {
        push::list_due(&self.readers, now, clock_tolerance, max_per_owner)
            .await
            .map_err(ledger_error)
    }

    async fn record_progress(
        &self,
        registration: Uuid,
        progress: DeliveryProgress,
    ) -> Result<bool, LedgerError> {
        self.writer.submit(RecordDelivery { registration, progress }).await
    }
}

//! Tests of the SQLite store: files, locks, reopening, a full disk.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::access::principal::{NewToken, Right, Scope};
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::{TextChannel, TextChunk, TextRange};
use algonius_actors::model::execution::record::ExecutionFilter;
use algonius_actors::ports::ledger::{AcceptResult, Ledger, LedgerError};
use algonius_actors::testing::ScriptedSealer;
use async_trait::async_trait;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::conformance::answering::{execution_awaiting_input, new_answer_command};
use super::conformance::notes::{AnyNotes, notes_conformance};
use super::conformance::push_targets::{AnyPushTargetStore, push_target_conformance};
use super::conformance::retention::history_conformance;
use super::conformance::schedules::{AnyScheduleStore, schedule_store_conformance};
use super::conformance::{
    AnyHistory, AnyLedger, accept_execution, at_second, conformance, input_range,
    new_accept_command,
};
use super::engine::sql::{self, DatabaseConnection};
use super::engine::writer::WriteCommand;
use super::{Durability, Store};

mod interactions;
mod lock;
mod public_state;
mod query_plans;
mod retention;
mod sessions;
mod upgrade;

conformance!(open_ledger);
history_conformance!(open_history);
notes_conformance!(open_notes);
push_target_conformance!(open_push_target_store);
schedule_store_conformance!(open_schedule_store);

async fn open_ledger() -> (AnyLedger, TempDir) {
    let folder = TempDir::new().unwrap();
    (Arc::new(open_store(folder.path()).await), folder)
}

async fn open_history() -> (AnyLedger, AnyHistory, TempDir) {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    (store.clone(), store, folder)
}

async fn open_push_target_store() -> (AnyLedger, AnyPushTargetStore, TempDir) {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    (store.clone(), store, folder)
}

async fn open_notes() -> (AnyNotes, TempDir) {
    let folder = TempDir::new().unwrap();
    (Arc::new(open_store(folder.path()).await), folder)
}

async fn open_schedule_store() -> (AnyScheduleStore, TempDir) {
    let folder = TempDir::new().unwrap();
    (Arc::new(open_store(folder.path()).await), folder)
}

async fn open_store(folder: &Path) -> Store {
    let store = Store::open(&folder.join("data"), Durability::ProcessCrash).await.unwrap();
    store.set_answer_sealer(Arc::new(ScriptedSealer::default()));
    store
}

fn permission_bits(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Statement on the writer's own connection that returns a number.
struct NumberStatement(String);

#[async_trait]
impl WriteCommand for NumberStatement {
    type WriteOutput = i64;

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<i64> {
        sql::statement(self.0.clone()).fetch_scalar(connection).await
    }
}

async fn run_pragma(store: &Store, text: &str) -> i64 {
    store.writer.submit(NumberStatement(format!("PRAGMA {text}"))).await.unwrap()
}

#[tokio::test]
async fn committed_data_is_present_after_reopening() {
    let folder = TempDir::new().unwrap();
    let first = Arc::new(open_store(folder.path()).await);
    let id = accept_execution(&(first.clone() as AnyLedger)).await;
    let before = (first.instance(), first.execution(id).await.unwrap());
    first.close().await;

    let reopened = open_store(folder.path()).await;
    assert_eq!((reopened.instance(), reopened.execution(id).await.unwrap()), before);
    assert_ne!(reopened.instance().key, [0; 32]);
}

#[tokio::test]
async fn an_answer_is_present_after_reopening() {
    let folder = TempDir::new().unwrap();
    let first = Arc::new(open_store(folder.path()).await);
    let (id, fence) = execution_awaiting_input(&(first.clone() as AnyLedger)).await;
    let command = new_answer_command(id, fence, "the left one");
    assert!(first.record_answer(command.clone()).await.unwrap());
    let before = (first.execution(id).await.unwrap(), first.events(id, 0).await.unwrap());
    first.close().await;

    let reopened = open_store(folder.path()).await;
    let after = (reopened.execution(id).await.unwrap(), reopened.events(id, 0).await.unwrap());
    assert_eq!(after, before);
    let found = reopened
        .find_by_key(command.owner, &command.agent, command.keys.message_key)
        .await
        .unwrap();
    assert_eq!(found, Some((id, command.content_digest)));
    let range = command.content.parts[0].text;
    assert_eq!(reopened.text(id, range).await.unwrap(), "the left one");
    assert!(!reopened.record_answer(new_answer_command(id, fence, "again")).await.unwrap());
}

#[tokio::test]
async fn two_directories_are_two_instances() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let [one, other] = [open_store(folders[0].path()).await, open_store(folders[1].path()).await];
    assert_ne!(one.instance().id, other.instance().id);
    assert_ne!(one.instance().key, other.instance().key);
}

#[tokio::test]
async fn the_directory_and_its_files_are_private() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let store = Arc::new(open_store(folder.path()).await);
    accept_execution(&(store.clone() as AnyLedger)).await;
    assert_eq!(permission_bits(&data), 0o700);
    for name in ["lock", "ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        assert_eq!((name, permission_bits(&data.join(name))), (name, 0o600));
    }
    store.close().await;
    fs::set_permissions(data.join("ledger.db"), Permissions::from_mode(0o644)).unwrap();
    open_store(folder.path()).await;
    assert_eq!(permission_bits(&data.join("ledger.db")), 0o600);
}

#[tokio::test]
async fn sqlite_has_the_documented_settings() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    assert_eq!(run_pragma(&store, "synchronous").await, 1);
    assert_eq!(run_pragma(&store, "auto_vacuum").await, 2);
    assert_eq!(run_pragma(&store, "foreign_keys").await, 1);
    store.close().await;
    let remaining_files: Vec<_> = fs::read_dir(folder.path().join("data"))
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(remaining_files.len(), 2, "the write-ahead log is folded in: {remaining_files:?}");
    let power_failure_store =
        Store::open(&folder.path().join("data"), Durability::PowerFailure).await.unwrap();
    assert_eq!(run_pragma(&power_failure_store, "synchronous").await, 2);
}

#[tokio::test]
async fn a_full_disk_is_reported_and_recovered_from() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ledger: AnyLedger = store.clone();
    let small_id = accept_execution(&ledger).await;
    let pages = run_pragma(&store, "page_count").await;
    run_pragma(&store, &format!("max_page_count = {}", pages + 4)).await;

    let big = new_accept_command(&"x".repeat(300_000));
    for _ in 0..3 {
        let refused = ledger.accept(big.clone()).await.unwrap_err();
        assert!(matches!(&refused, LedgerError::Unavailable { cause } if cause.contains("full")));
    }
    let listed = ledger.executions(ExecutionFilter::default()).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.id).collect::<Vec<_>>(), [small_id]);

    run_pragma(&store, "max_page_count = 100000").await;
    assert_eq!(ledger.accept(big).await.unwrap(), AcceptResult::Created);
}

/// Change that the database refuses only at the commit: a chunk without an execution.
struct OrphanChunk;

#[async_trait]
impl WriteCommand for OrphanChunk {
    type WriteOutput = ();

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        sql::statement("PRAGMA defer_foreign_keys = ON").execute(&mut *connection).await?;
        sql::statement("INSERT INTO chunks VALUES (x'00', 1, 1, 'input', 0, 0, 'lost')")
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// Change that signals its start and waits for a permit.
#[derive(Clone)]
struct BlockedWrite {
    started: Arc<Semaphore>,
    proceed: Arc<Semaphore>,
}

#[async_trait]
impl WriteCommand for BlockedWrite {
    type WriteOutput = ();

    async fn apply(&self, _: &mut DatabaseConnection) -> sql::Result<()> {
        self.started.add_permits(1);
        _ = self.proceed.acquire().await.unwrap();
        Ok(())
    }
}

#[tokio::test]
async fn a_failed_commit_loses_its_batch_only() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    let (one, two) = (new_accept_command("look at this"), new_accept_command("and at this"));
    let blocked =
        BlockedWrite { started: Arc::new(Semaphore::new(0)), proceed: Arc::new(Semaphore::new(0)) };
    let blocked_submission = store.writer.submit(blocked.clone());
    // While this change is held, three others queue up for one batch: each is queued at its first poll.
    let batch = async {
        _ = blocked.started.acquire().await.unwrap();
        tokio::join!(
            store.accept(one.clone()),
            store.writer.submit(OrphanChunk),
            store.accept(two),
            async { blocked.proceed.add_permits(1) },
        )
    };
    let (blocked_result, (first, lost, last, ())) = tokio::join!(blocked_submission, batch);
    blocked_result.unwrap();
    for refused in [first.map(drop), lost, last.map(drop)] {
        assert!(matches!(refused, Err(LedgerError::Unavailable { .. })), "{refused:?}");
    }
    assert_eq!(store.executions(ExecutionFilter::default()).await.unwrap(), []);
    assert_eq!(store.accept(one).await.unwrap(), AcceptResult::Created);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn closing_under_load_keeps_acknowledged_writes() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let (accepted_sender, mut accepted_receiver) = tokio::sync::mpsc::channel(1);
    let mut callers = JoinSet::new();
    for _ in 0..20 {
        let (store, accepted_sender) = (store.clone(), accepted_sender.clone());
        callers.spawn(async move {
            let mut accepted_count = 0;
            while store.accept(new_accept_command("look at this")).await.is_ok() {
                accepted_count += 1;
                _ = accepted_sender.try_send(());
            }
            accepted_count
        });
    }
    accepted_receiver.recv().await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), store.close()).await.unwrap();
    let accepted_count: usize = callers.join_all().await.into_iter().sum();
    let reopened = open_store(folder.path()).await;
    assert_eq!(
        reopened.executions(ExecutionFilter::default()).await.unwrap().len(),
        accepted_count
    );
}

/// Both futures are polled before either is answered.
#[tokio::test(flavor = "current_thread")]
async fn closing_commits_queued_writes() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    let (answer, ()) =
        tokio::join!(store.accept(new_accept_command("look at this")), store.close());
    assert_eq!(answer.unwrap(), AcceptResult::Created);
}

#[tokio::test]
async fn a_closed_store_reports_that_it_is_closed() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ledger: AnyLedger = store.clone();
    let id = accept_execution(&ledger).await;
    store.close().await;
    store.close().await;
    let chunk = TextChunk {
        attempt_id: AttemptId::FIRST,
        channel: TextChannel::Stdout,
        number: 0,
        offset: 0,
        text: "late".to_owned(),
    };
    let append_error = ledger.append_chunk(id, chunk).await.unwrap_err();
    assert!(matches!(append_error, LedgerError::Unavailable { .. }));
    let read_error = ledger.execution(id).await.unwrap_err();
    assert!(matches!(read_error, LedgerError::Unavailable { .. }));
}

#[tokio::test]
async fn a_long_log_is_checkpointed_while_the_store_is_open() {
    const LONG_TEXT_BYTES: usize = 5_000_000;
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    let length = || std::fs::metadata(&store.database).unwrap().len();
    assert!(length() < LONG_TEXT_BYTES as u64);
    store.accept(new_accept_command(&"x".repeat(LONG_TEXT_BYTES))).await.unwrap();
    let wait_for_checkpoint = async {
        while length() < LONG_TEXT_BYTES as u64 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait_for_checkpoint).await.unwrap();
}

#[tokio::test]
async fn a_damaged_row_and_a_missing_chunk_are_unreadable() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ledger: AnyLedger = store.clone();
    let command = new_accept_command(&"x".repeat(150_000));
    ledger.accept(command.clone()).await.unwrap();
    let range = input_range(&command.input_text);
    let damage = "DELETE FROM chunks WHERE number = 1 RETURNING number";
    store.writer.submit(NumberStatement(damage.to_owned())).await.unwrap();
    for from in [0, 70_000] {
        let text_error = ledger.text(command.id, TextRange { from, ..range }).await.unwrap_err();
        assert!(matches!(text_error, LedgerError::Unreadable { .. }), "{text_error}");
    }
    let damage = "UPDATE executions SET state = 'asleep' RETURNING fence";
    store.writer.submit(NumberStatement(damage.to_owned())).await.unwrap();
    let row_error = ledger.execution(command.id).await.unwrap_err();
    assert!(matches!(row_error, LedgerError::Unreadable { .. }), "{row_error}");
}

#[tokio::test]
async fn a_token_that_is_not_seeded_is_kept() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    let scope = Scope { rights: vec![Right::Read], agents: None };
    let configured_token =
        NewToken { name: "ann".to_owned(), hash: [1; 32], scope, expires_at: None };
    store.replace_configured_tokens(vec![configured_token], at_second(0)).await.unwrap();
    let unseed_statement = "UPDATE tokens SET seeded = 0 RETURNING seeded";
    store.writer.submit(NumberStatement(unseed_statement.to_owned())).await.unwrap();
    store.replace_configured_tokens(Vec::new(), at_second(1)).await.unwrap();
    assert_eq!(store.tokens().await.unwrap().len(), 1);
}

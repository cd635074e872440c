//! Retention tests with ten thousand executions: the required ones stay, and the file shrinks.

use algonius_actors::model::execution::{Fence, Outcome};
use algonius_actors::model::host::storage_stats::{
    DeletionOutcome, RetentionBatchSelector, StorageStats,
};
use algonius_actors::ports::history::History;
use algonius_actors::ports::push_target_store::PushTargetStore;
use chrono::TimeDelta;
use tokio::time::Instant;

use super::*;
use crate::conformance::push_targets::push_target;
use crate::conformance::settlement;

/// Copies the one execution until the number is reached, each with an event and a text of its own; one ends in each
/// second.
const COPY_EXECUTIONS: &str = "
    INSERT INTO executions
        (id, agent, owner, message, request_key, digest, context, origin, access, params, turn,
         attempt, fence, replayable, accepted_at, last_event, started_at, state, outcome,
         answered, changed_at, ended_at)
    SELECT CAST(printf('%016d', value) AS BLOB), agent, owner, message, randomblob(32), digest,
        context, origin, access, params, turn, attempt, fence, replayable,
        accepted_at + value * 1000000, last_event, started_at, 'idle', 'completed', 0, changed_at,
        accepted_at + value * 1000000
    FROM executions, generate WHERE outcome IS NULL";

struct CopyExecutions(u32);

#[async_trait]
impl WriteCommand for CopyExecutions {
    type WriteOutput = ();

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let statement = format!(
            "WITH RECURSIVE generate (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM generate \
             WHERE value < {}) {COPY_EXECUTIONS}",
            self.0
        );
        sql::statement(statement).execute(&mut *connection).await?;
        for copy in [
            "INSERT INTO events SELECT id, 1, 1, 1, 0, 'warning', '{\"kind\":\"warning\",\"message\":\"x\"}'
                FROM executions WHERE outcome IS NOT NULL",
            "INSERT INTO chunks SELECT id, 1, 1, 'stdout', 0, 0, hex(randomblob(1000))
                FROM executions WHERE outcome IS NOT NULL",
        ] {
            sql::statement(copy).execute(&mut *connection).await?;
        }
        Ok(())
    }
}

/// Returns a store with one running execution and this number of ended ones.
async fn store_with_executions(folder: &Path, count: u32) -> Arc<Store> {
    let store = Arc::new(open_store(folder).await);
    accept_execution(&(store.clone() as AnyLedger)).await;
    store.writer.submit(CopyExecutions(count)).await.unwrap();
    store
}

/// Runs retention batches while the limit is exceeded; returns the number of removed executions and the duration of
/// the longest batch.
async fn run_retention(
    store: &Store,
    exceeds_limit: impl Fn(&StorageStats) -> bool,
) -> (u64, Duration) {
    let (mut removed, mut longest) = (0, Duration::ZERO);
    while exceeds_limit(&store.storage_stats().await.unwrap()) {
        let started_at = Instant::now();
        let removed_in_batch = store.remove_batch(ANY_AGE_BATCH).await.unwrap();
        longest = longest.max(started_at.elapsed());
        removed += removed_in_batch;
        if removed_in_batch == 0 {
            break;
        }
    }
    while store.release_free_pages().await.unwrap() > 0 {}
    (removed, longest)
}

const ANY_AGE_BATCH: RetentionBatchSelector =
    RetentionBatchSelector { from: None, before: None, limit: 50 };

#[tokio::test]
async fn of_10000_executions_the_newest_1000_stay() {
    let folder = TempDir::new().unwrap();
    let store = store_with_executions(folder.path(), 10_000).await;
    let before = store.storage_stats().await.unwrap();
    assert_eq!((before.executions, before.ended), (10_001, 10_000));
    let (removed, longest) = run_retention(&store, |stats| stats.executions > 1001).await;
    println!("{removed} removed; the longest turn took {longest:?}");
    assert_eq!(removed, 9000);
    let left = store.executions(ExecutionFilter::default()).await.unwrap();
    let seconds: Vec<_> =
        left.iter().filter_map(|it| it.ended_at).map(|at| at - at_second(0)).collect();
    let expected: Vec<_> = (9001..=10_000).rev().map(TimeDelta::seconds).collect();
    // Of ten thousand executions the promised ones remain, and the file shrinks
    assert_eq!(seconds, expected);
    let after = store.storage_stats().await.unwrap();
    assert!(after.bytes * 4 < before.bytes, "{before:?} became {after:?}");
    store.close().await;
    let file_bytes = fs::metadata(folder.path().join("data/ledger.db")).unwrap().len();
    assert_eq!(file_bytes, after.bytes);
    let reopened = open_store(folder.path()).await;
    let foreign_key_check = "SELECT count(*) FROM pragma_foreign_key_check".to_owned();
    assert_eq!(reopened.writer.submit(NumberStatement(foreign_key_check)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_sweep_by_size_removes_little_more_than_needed() {
    let folder = TempDir::new().unwrap();
    let store = store_with_executions(folder.path(), 2000).await;
    let StorageStats { executions, .. } = store.storage_stats().await.unwrap();
    let max_used = store.storage_stats().await.unwrap().used_bytes() / 2;
    run_retention(&store, |stats| stats.used_bytes() > max_used).await;
    let after = store.storage_stats().await.unwrap();
    assert!(after.used_bytes() <= max_used && after.executions > executions / 3, "{after:?}");
}

/// An execution with very long texts is a batch of its own.
#[tokio::test]
async fn a_batch_removes_fewer_large_executions() {
    let folder = TempDir::new().unwrap();
    let store = store_with_executions(folder.path(), 4).await;
    let long_text_statement = "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE \
                value < 300) INSERT INTO chunks SELECT id, 1, 1, 'stderr', value, value, 'x' \
                FROM executions, n RETURNING number";
    store.writer.submit(NumberStatement(long_text_statement.to_owned())).await.unwrap();
    for left in [3, 2, 1, 0] {
        assert_eq!(store.remove_batch(ANY_AGE_BATCH).await.unwrap(), 1);
        assert_eq!(store.storage_stats().await.unwrap().ended, left);
    }
}

#[tokio::test]
async fn executions_with_pending_pushes_are_not_removed() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let id = accept_execution(&(store.clone() as AnyLedger)).await;
    store.register(push_target(id, "one"), 0, 5).await.unwrap();
    assert!(store.settle(settlement(id, Fence(0), Outcome::Completed)).await.unwrap());
    // Retention keeps an execution while a push notification about it is pending
    assert_eq!(store.remove_batch(ANY_AGE_BATCH).await.unwrap(), 0);
    store.delete(id, "one").await.unwrap();
    assert_eq!(store.remove_batch(ANY_AGE_BATCH).await.unwrap(), 1);
    assert_eq!(store.remove(id).await.unwrap(), DeletionOutcome::Unknown);
}

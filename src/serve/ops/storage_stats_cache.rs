//! Cache of the ledger's storage statistics for `/status`: a small ledger is counted each time, a large one only
//! after the validity of the previous count.

use std::time::Duration;

use algonius_actors::api::Api;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::storage_stats::StorageStats;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Number of executions up to which the ledger is counted each time.
const MAX_UNCACHED_EXECUTIONS: u64 = 10_000;

/// Last count and its time. Only one count runs at a time.
#[derive(Default)]
pub struct StorageStatsCache(Mutex<Option<(Instant, StorageStats)>>);

impl StorageStatsCache {
    /// Returns the storage statistics of the ledger, possibly from the cache.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub async fn storage_stats(&self, api: &Api) -> Result<StorageStats, Failure> {
        // Held during the count, so that concurrent requests wait for one count instead of starting their own.
        let mut cached = self.0.lock().await;
        if let Some((counted_at, stats)) = *cached
            && counted_at.elapsed() < validity_period(stats.executions)
        {
            return Ok(stats);
        }
        let stats = api.reader.storage_stats().await?;
        *cached = Some((Instant::now(), stats));
        Ok(stats)
    }
}

/// Returns the validity of a count: one microsecond for each execution, which is many times the duration of the
/// count.
fn validity_period(executions: u64) -> Duration {
    if executions <= MAX_UNCACHED_EXECUTIONS {
        Duration::ZERO
    } else {
        Duration::from_micros(executions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_statistics_are_cached_by_the_number_of_executions() {
        let validities = [0, MAX_UNCACHED_EXECUTIONS, MAX_UNCACHED_EXECUTIONS + 1, 1_000_000]
            .map(|count| validity_period(count).as_millis());
        assert_eq!(validities, [0, 0, 10, 1_000]);
    }
}

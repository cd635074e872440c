//! Scan of all processes by label, cached for a moment for all readers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::proc::{is_ours, pids};
use super::process_label::{ProcessLabel, label_of};

/// Greatest age of a cached scan. A scan of every process is expensive, and each attempt with limits requests one per
/// second.
const MAX_SCAN_AGE: Duration = Duration::from_millis(500);

type ProcessesByLabel = Arc<HashMap<ProcessLabel, Vec<i32>>>;

/// Latest scan of this user's processes by label.
#[derive(Debug, Default)]
pub(crate) struct ProcessScanner {
    latest: Mutex<Option<(Instant, ProcessesByLabel)>>,
}

impl ProcessScanner {
    /// Returns the processes that carry a label.
    pub(crate) async fn of(&self, label: ProcessLabel) -> Vec<i32> {
        self.take().await.get(&label).cloned().unwrap_or_default()
    }

    async fn take(&self) -> ProcessesByLabel {
        // Callers that arrive during a scan wait for its result.
        let mut latest = self.latest.lock().await;
        if let Some((_, found)) = latest.as_ref().filter(|(at, _)| at.elapsed() < MAX_SCAN_AGE) {
            return Arc::clone(found);
        }
        // Taken before the scan: the result is as old as its start.
        let at = Instant::now();
        // Tokio treats `/proc` as files, and a process under memory pressure answers slowly.
        let found = tokio::task::spawn_blocking(scan).await.unwrap_or_default();
        Arc::clone(&latest.insert((at, Arc::new(found))).1)
    }
}

fn scan() -> HashMap<ProcessLabel, Vec<i32>> {
    let mut found: HashMap<ProcessLabel, Vec<i32>> = HashMap::new();
    for pid in pids().into_iter().filter(|pid| is_ours(*pid)) {
        if let Some(label) = label_of(pid) {
            found.entry(label).or_default().push(pid);
        }
    }
    found
}

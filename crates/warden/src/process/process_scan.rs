//! Scan of all processes by label, cached for a moment for all readers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::process_label::{ProcessLabel, label_of};
use super::procfs::{list_pids, runs_as_same_user};

/// Greatest age of a cached scan. A scan of every process is expensive, and each attempt with limits requests one per
/// second.
const MAX_SCAN_AGE: Duration = Duration::from_millis(500);

type ProcessesByLabel = Arc<HashMap<ProcessLabel, Vec<i32>>>;

/// Latest scan of this user's processes by label.
#[derive(Debug, Default)]
pub(crate) struct ProcessScanner {
    cached_scan: Mutex<Option<(Instant, ProcessesByLabel)>>,
}

impl ProcessScanner {
    /// Returns the processes that carry a label.
    pub(crate) async fn pids_with_label(&self, label: ProcessLabel) -> Vec<i32> {
        self.latest_scan().await.get(&label).cloned().unwrap_or_default()
    }

    async fn latest_scan(&self) -> ProcessesByLabel {
        // Callers that arrive during a scan wait for its result.
        let mut cached_scan = self.cached_scan.lock().await;
        if let Some((_, pids_by_label)) =
            cached_scan.as_ref().filter(|(scanned_at, _)| scanned_at.elapsed() < MAX_SCAN_AGE)
        {
            return Arc::clone(pids_by_label);
        }
        // Taken before the scan: the result is as old as its start.
        let scanned_at = Instant::now();
        // Tokio treats `/proc` as files, and a process under memory pressure answers slowly.
        let pids_by_label = tokio::task::spawn_blocking(scan_processes).await.unwrap_or_default();
        Arc::clone(&cached_scan.insert((scanned_at, Arc::new(pids_by_label))).1)
    }
}

fn scan_processes() -> HashMap<ProcessLabel, Vec<i32>> {
    let mut pids_by_label: HashMap<ProcessLabel, Vec<i32>> = HashMap::new();
    for pid in list_pids().into_iter().filter(|pid| runs_as_same_user(*pid)) {
        if let Some(label) = label_of(pid) {
            pids_by_label.entry(label).or_default().push(pid);
        }
    }
    pids_by_label
}

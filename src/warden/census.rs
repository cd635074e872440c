//! Which processes carry which label: one look at all of them serves everybody for a moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::label::{Label, label_of};
use super::proc::{is_ours, pids};

/// How old an answer may be. To look at every process of a machine is dear, and each attempt with
/// limits asks every second.
const FRESH: Duration = Duration::from_millis(500);

type Found = Arc<HashMap<Label, Vec<i32>>>;

/// The processes of this user by their labels, as they were last looked at.
#[derive(Debug, Default)]
pub(super) struct Census {
    latest: Mutex<Option<(Instant, Found)>>,
}

impl Census {
    /// The processes that carry a label.
    pub(super) async fn of(&self, label: Label) -> Vec<i32> {
        self.take().await.get(&label).cloned().unwrap_or_default()
    }

    async fn take(&self) -> Found {
        // Who comes while another looks waits for what that one sees.
        let mut latest = self.latest.lock().await;
        if let Some((_, found)) = latest.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Arc::clone(found);
        }
        // Before the look: what is seen is as old as its beginning.
        let at = Instant::now();
        // `/proc` is files to the runtime, and a process under memory pressure answers slowly.
        let found = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        Arc::clone(&latest.insert((at, Arc::new(found))).1)
    }
}

fn look() -> HashMap<Label, Vec<i32>> {
    let mut found: HashMap<Label, Vec<i32>> = HashMap::new();
    for pid in pids().into_iter().filter(|pid| is_ours(*pid)) {
        if let Some(label) = label_of(pid) {
            found.entry(label).or_default().push(pid);
        }
    }
    found
}

//! Checkpointer: moves the write-ahead log into the database beside the writer, so that the wait for the disk does
//! not delay a commit.

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::sql::{self, AccessMode, BUSY_TIMEOUT, CheckpointMode, DatabaseConnection};

/// Number of log pages from which a checkpoint is worthwhile.
const CHECKPOINT_PAGES: u32 = 1000;

/// Number of log pages from which the writer itself runs the checkpoint: the log restarts only after a complete
/// checkpoint, which never happens beside a writer without pauses.
const BLOCKING_CHECKPOINT_PAGES: u32 = 4 * CHECKPOINT_PAGES;

/// Task that runs checkpoints until the database is closed.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    task: JoinHandle<()>,
    stop_sender: oneshot::Sender<()>,
}

impl Checkpointer {
    /// Starts the checkpoints of the log that this connection writes. Requires a Tokio runtime.
    pub(crate) fn start(connection: &mut DatabaseConnection, database: &Path) -> sql::Result<Self> {
        // One place is enough: a checkpoint moves everything that was committed before it.
        let (request_sender, requests) = mpsc::channel(1);
        let mut policy = CheckpointPolicy::default();
        connection.set_checkpoint_policy(move |pages| {
            let mode = policy.choose_mode(pages);
            if mode == CheckpointMode::Background {
                _ = request_sender.try_send(()); // One that waits does for both.
            }
            mode
        })?;
        let (stop_sender, stop_receiver) = oneshot::channel();
        let task = tokio::spawn(run_checkpoints(requests, stop_receiver, database.to_owned()));
        Ok(Self { task, stop_sender })
    }

    /// Stops the checkpoints. Returns when no checkpoint holds the database open.
    pub(crate) async fn stop(self) {
        drop(self.stop_sender);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "WAL checkpoint failed");
        }
    }
}

/// Decision about the next checkpoint, by the length of the log.
#[derive(Default)]
struct CheckpointPolicy {
    /// Number of pages at the last request for a checkpoint, since the log restarted.
    pages_at_request: u32,
}

impl CheckpointPolicy {
    fn choose_mode(&mut self, pages: u32) -> CheckpointMode {
        // Fewer pages than before mean that SQLite restarted the log from its beginning.
        self.pages_at_request =
            if pages < self.pages_at_request { 0 } else { self.pages_at_request };
        if pages >= BLOCKING_CHECKPOINT_PAGES {
            return CheckpointMode::Blocking;
        }
        if pages - self.pages_at_request < CHECKPOINT_PAGES {
            return CheckpointMode::Skip;
        }
        self.pages_at_request = pages;
        CheckpointMode::Background
    }
}

async fn run_checkpoints(
    mut requests: mpsc::Receiver<()>,
    mut stop_receiver: oneshot::Receiver<()>,
    database: PathBuf,
) {
    loop {
        tokio::select! {
            // The end of the store comes first, so that no new checkpoint starts while it closes.
            biased;
            _ = &mut stop_receiver => return,
            request = requests.recv() => if request.is_none() { return },
        }
        let database = database.clone();
        // Pages that this checkpoint leaves in the log are checkpointed later, at the latest by the writer.
        match spawn_blocking(move || checkpoint(&database)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "WAL checkpoint failed; the next one continues");
            }
            Err(error) => tracing::error!(%error, "WAL checkpoint failed"),
        }
    }
}

/// Runs a passive checkpoint of the write-ahead log, which never waits for other connections.
fn checkpoint(database: &Path) -> sql::Result<()> {
    // A connection of its own, because a checkpoint on the connection of the writer would block its commits.
    let mut connection = DatabaseConnection::open(database, AccessMode::ReadWrite, BUSY_TIMEOUT)?;
    connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)")?;
    connection.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkpoint_mode_follows_the_length_of_the_log() {
        let mut policy = CheckpointPolicy::default();
        let mut mode_after = |pages| policy.choose_mode(pages);
        let page_counts = [3, 999, 1001, 1002, 2000, 2001, 4, 999, 1000, 3999, 4000, 4001, 2];
        let expected = "--B--B--BBNN-";
        let modes: String = page_counts
            .into_iter()
            .map(|pages| match mode_after(pages) {
                CheckpointMode::Skip => '-',
                CheckpointMode::Background => 'B',
                CheckpointMode::Blocking => 'N',
            })
            .collect();
        assert_eq!(modes, expected);
    }
}

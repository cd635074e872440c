//! Folds the write-ahead log into the database, beside the writer: the disk is waited for there, and no
//! commit waits with it.

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::sql::{self, Connection, Fold};
use super::sqlite;

/// So many pages of the log are worth folding.
const MANY: u32 = 1000;

/// From so many pages on the writer folds what is left of them itself: the log begins anew only when all of
/// it is folded, and that is never so beside a writer that does not pause.
const TOO_MANY: u32 = 4 * MANY;

/// Folding, until the database is closed.
#[derive(Debug)]
pub(super) struct Folding {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Folding {
    /// Begins to fold what this connection writes. Needs a tokio runtime around it.
    pub(super) fn begin(writer: &mut Connection, database: &Path) -> sql::Result<Self> {
        let (want, wanted) = mpsc::channel(1);
        let mut threshold = Threshold::default();
        writer.after_commits(move |pages| {
            let fold = threshold.passed(pages);
            if fold == Fold::Beside {
                _ = want.try_send(()); // One that waits does for both.
            }
            fold
        })?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(fold_when(wanted, stopped, database.to_owned()));
        Ok(Self { task, stop })
    }

    /// Folds no more. Returns when nothing of it holds the database open.
    pub(super) async fn end(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "folding of the ledger's log failed");
        }
    }
}

/// Decides by the length of the log when it is folded.
#[derive(Default)]
struct Threshold {
    /// The pages at which it was asked for last, since the log has begun anew.
    asked: u32,
}

impl Threshold {
    fn passed(&mut self, pages: u32) -> Fold {
        self.asked = if pages < self.asked { 0 } else { self.asked };
        if pages >= TOO_MANY {
            return Fold::Now;
        }
        if pages - self.asked < MANY {
            return Fold::Later;
        }
        self.asked = pages;
        Fold::Beside
    }
}

async fn fold_when(
    mut wanted: mpsc::Receiver<()>,
    mut stopped: oneshot::Receiver<()>,
    database: PathBuf,
) {
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => return,
            want = wanted.recv() => if want.is_none() { return },
        }
        let database = database.clone();
        // What is not folded now is folded later, at the latest by the writer.
        match spawn_blocking(move || sqlite::fold(&database)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the ledger's log was not folded"),
            Err(error) => tracing::error!(%error, "folding of the ledger's log failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_folded_at_every_thousand_pages_and_by_the_writer_from_four_thousand_on() {
        let mut threshold = Threshold::default();
        let mut at = |pages| threshold.passed(pages);
        let lengths = [3, 999, 1001, 1002, 2000, 2001, 4, 999, 1000, 3999, 4000, 4001, 2];
        let expected = "--B--B--BBNN-";
        let told: String = lengths
            .into_iter()
            .map(|pages| match at(pages) {
                Fold::Later => '-',
                Fold::Beside => 'B',
                Fold::Now => 'N',
            })
            .collect();
        assert_eq!(told, expected);
    }
}

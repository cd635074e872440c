//! Certificates that can be replaced while the service runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_rustls::rustls::ServerConfig;

use super::{TlsError, TlsKeyPair};

/// Interval between two checks of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Server configuration for new connections. Cheap to clone.
#[derive(Clone)]
pub struct Certificates(watch::Receiver<Arc<ServerConfig>>);

impl Certificates {
    /// Reads a pair and watches its files: new connections use the new pair after the files have changed. While the
    /// files contain no valid pair, new connections use the last valid one.
    ///
    /// # Errors
    /// Fails if the files cannot be used for TLS.
    pub fn open(pair: TlsKeyPair) -> Result<Self, TlsError> {
        let detector = ChangeDetector::new(file_stamps(&pair));
        let (sender, receiver) = watch::channel(pair.read()?);
        tokio::spawn(async move {
            tokio::select! {
                () = renew(pair, detector, &sender) => {}
                () = sender.closed() => {} // Nobody serves any more.
            }
        });
        Ok(Self(receiver))
    }

    /// Returns the server configuration for the next connection.
    #[must_use]
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.borrow())
    }
}

async fn renew(
    pair: TlsKeyPair,
    mut detector: ChangeDetector,
    current: &watch::Sender<Arc<ServerConfig>>,
) {
    loop {
        // Polling instead of notifications: links into a mounted secret cause no notification.
        tokio::time::sleep(POLL_INTERVAL).await;
        let files = pair.clone();
        let Ok(stamps) = spawn_blocking(move || file_stamps(&files)).await else { continue };
        if !detector.detect_change(stamps) {
            continue;
        }
        let files = pair.clone();
        let Ok(read) = spawn_blocking(move || files.read()).await else { continue };
        match read {
            Ok(next) => {
                current.send_replace(next);
                tracing::info!(cert = %pair.cert.display(), "certificate reloaded");
            }
            Err(error) => tracing::error!(%error, "failed to reload certificate"),
        }
    }
}

/// Properties by which a change of a file is detected: inode, length, and the times of modification and status
/// change.
type FileStamps = [Option<[i128; 4]>; 2];

fn file_stamps(pair: &TlsKeyPair) -> FileStamps {
    let stamps_of = |file: &Path| {
        let metadata = fs::metadata(file).ok()?;
        let at = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let (modified, status_changed) = (
            at(metadata.mtime(), metadata.mtime_nsec()),
            at(metadata.ctime(), metadata.ctime_nsec()),
        );
        Some([metadata.ino().into(), metadata.size().into(), modified, status_changed])
    };
    [stamps_of(&pair.cert), stamps_of(&pair.key)]
}

/// Change detector that waits until the files are stable: key and certificate are seldom written at the same moment.
struct ChangeDetector {
    read: FileStamps,
    last: FileStamps,
}

impl ChangeDetector {
    const fn new(read: FileStamps) -> Self {
        Self { read, last: read }
    }

    /// Returns true if there is a stable new version, which then counts as read.
    fn detect_change(&mut self, current: FileStamps) -> bool {
        let is_stable = current == self.last;
        self.last = current;
        let is_another = is_stable && current != self.read;
        if is_another {
            self.read = current;
        }
        is_another
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangeDetector, FileStamps};

    #[test]
    fn changed_certificate_files_are_read_once_they_are_stable() {
        let file_stamps =
            |cert, key| -> FileStamps { [cert, key].map(|it: Option<i128>| it.map(|n| [n; 4])) };
        let mut detector = ChangeDetector::new(file_stamps(Some(1), Some(1)));
        let mut detections = |steps: &[(Option<i128>, Option<i128>)]| -> Vec<bool> {
            steps
                .iter()
                .map(|(cert, key)| detector.detect_change(file_stamps(*cert, *key)))
                .collect()
        };
        assert_eq!(detections(&[(Some(1), Some(1)), (Some(1), Some(1))]), [false, false]);
        let both = [(Some(2), Some(1)), (Some(2), Some(2)), (Some(2), Some(2)), (Some(2), Some(2))];
        assert_eq!(detections(&both), [false, false, true, false], "half a pair is not read");
        let removed = [(None, Some(2)), (None, Some(2)), (None, Some(2))];
        assert_eq!(detections(&removed), [false, true, false], "what is gone is told once");
        let restored = [(Some(2), Some(2)), (Some(2), Some(2))];
        assert_eq!(detections(&restored), [false, true]);
    }
}

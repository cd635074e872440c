//! Certificates that can be replaced while the service runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_rustls::rustls::ServerConfig;

use super::{CertificateFiles, TlsError};

/// Interval between two checks of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Server configuration for new connections. Cheap to clone.
#[derive(Clone)]
pub struct WatchedTlsConfig(watch::Receiver<Arc<ServerConfig>>);

impl WatchedTlsConfig {
    /// Reads a pair and watches its files: new connections use the new pair after the files have changed. While the
    /// files contain no valid pair, new connections use the last valid one.
    ///
    /// # Errors
    /// Fails if the files cannot be used for TLS.
    pub fn read_and_watch(files: CertificateFiles) -> Result<Self, TlsError> {
        let detector = ChangeDetector::new(file_fingerprints(&files));
        let (sender, receiver) = watch::channel(files.read_server_config()?);
        tokio::spawn(async move {
            tokio::select! {
                () = watch_files(files, detector, &sender) => {}
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

async fn watch_files(
    files: CertificateFiles,
    mut detector: ChangeDetector,
    config_sender: &watch::Sender<Arc<ServerConfig>>,
) {
    loop {
        // Polling instead of notifications: links into a mounted secret cause no notification.
        tokio::time::sleep(POLL_INTERVAL).await;
        let files_copy = files.clone();
        let Ok(fingerprints) = spawn_blocking(move || file_fingerprints(&files_copy)).await else {
            continue;
        };
        if !detector.detect_stable_change(fingerprints) {
            continue;
        }
        let files_copy = files.clone();
        let Ok(result) = spawn_blocking(move || files_copy.read_server_config()).await else {
            continue;
        };
        match result {
            Ok(new_config) => {
                config_sender.send_replace(new_config);
                tracing::info!(cert = %files.cert_file.display(), "certificate reloaded");
            }
            Err(error) => tracing::error!(%error, "failed to reload certificate"),
        }
    }
}

/// Properties by which a change of a file is detected: inode, length, and the times of modification and status
/// change.
type FileFingerprints = [Option<[i128; 4]>; 2];

fn file_fingerprints(files: &CertificateFiles) -> FileFingerprints {
    let fingerprint_of = |file: &Path| {
        let metadata = fs::metadata(file).ok()?;
        let nanoseconds =
            |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let (modified, status_changed) = (
            nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        );
        Some([metadata.ino().into(), metadata.size().into(), modified, status_changed])
    };
    [fingerprint_of(&files.cert_file), fingerprint_of(&files.key_file)]
}

/// Change detector that waits until the files are stable: key and certificate are seldom written at the same moment.
struct ChangeDetector {
    loaded_fingerprints: FileFingerprints,
    last_fingerprints: FileFingerprints,
}

impl ChangeDetector {
    const fn new(initial_fingerprints: FileFingerprints) -> Self {
        Self { loaded_fingerprints: initial_fingerprints, last_fingerprints: initial_fingerprints }
    }

    /// Returns true if there is a stable new version, which then counts as read.
    fn detect_stable_change(&mut self, current: FileFingerprints) -> bool {
        let is_stable = current == self.last_fingerprints;
        self.last_fingerprints = current;
        let is_new = is_stable && current != self.loaded_fingerprints;
        if is_new {
            self.loaded_fingerprints = current;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangeDetector, FileFingerprints};

    #[test]
    fn changed_certificate_files_are_read_once_they_are_stable() {
        let file_fingerprints = |cert, key| -> FileFingerprints {
            [cert, key].map(|it: Option<i128>| it.map(|n| [n; 4]))
        };
        let mut detector = ChangeDetector::new(file_fingerprints(Some(1), Some(1)));
        let mut detections = |steps: &[(Option<i128>, Option<i128>)]| -> Vec<bool> {
            steps
                .iter()
                .map(|(cert, key)| detector.detect_stable_change(file_fingerprints(*cert, *key)))
                .collect()
        };
        assert_eq!(detections(&[(Some(1), Some(1)), (Some(1), Some(1))]), [false, false]);
        let replaced_pair =
            [(Some(2), Some(1)), (Some(2), Some(2)), (Some(2), Some(2)), (Some(2), Some(2))];
        assert_eq!(
            detections(&replaced_pair),
            [false, false, true, false],
            "half a pair is not read"
        );
        let removed = [(None, Some(2)), (None, Some(2)), (None, Some(2))];
        assert_eq!(detections(&removed), [false, true, false], "what is gone is told once");
        let restored = [(Some(2), Some(2)), (Some(2), Some(2))];
        assert_eq!(detections(&restored), [false, true]);
    }
}

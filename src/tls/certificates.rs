//! Certificates that are replaced while the service runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_rustls::rustls::ServerConfig;

use super::{Pair, TlsError};

/// From one look at the files to the next.
const LOOK: Duration = Duration::from_secs(1);

/// What new connections are served with. Cheap to clone.
#[derive(Clone)]
pub struct Certificates(watch::Receiver<Arc<ServerConfig>>);

impl Certificates {
    /// Reads a pair and keeps an eye on its files: when they have become another pair, new
    /// connections get that one. As long as they are none, all get the last one.
    ///
    /// # Errors
    /// When the files do not do for TLS.
    pub fn open(pair: Pair) -> Result<Self, TlsError> {
        let eye = Eye::new(stamp(&pair));
        let (sender, receiver) = watch::channel(pair.read()?);
        tokio::spawn(async move {
            tokio::select! {
                () = renew(pair, eye, &sender) => {}
                () = sender.closed() => {} // Nobody serves any more.
            }
        });
        Ok(Self(receiver))
    }

    /// What the next connection is served with.
    #[must_use]
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.borrow())
    }
}

async fn renew(pair: Pair, mut eye: Eye, current: &watch::Sender<Arc<ServerConfig>>) {
    loop {
        // Files tell nobody that they have changed: not when they are links into a mounted secret.
        tokio::time::sleep(LOOK).await;
        let files = pair.clone();
        let Ok(now) = spawn_blocking(move || stamp(&files)).await else { continue };
        if !eye.sees_another(now) {
            continue;
        }
        let files = pair.clone();
        let Ok(read) = spawn_blocking(move || files.read()).await else { continue };
        match read {
            Ok(next) => {
                current.send_replace(next);
                tracing::info!(cert = %pair.cert.display(), "the certificate was replaced");
            }
            Err(error) => tracing::error!(%error, "the certificate was not replaced"),
        }
    }
}

/// By what a change of a file is told: its inode, its length, and when it was written and moved.
type Stamp = [Option<[i128; 4]>; 2];

fn stamp(pair: &Pair) -> Stamp {
    let one = |file: &Path| {
        let data = fs::metadata(file).ok()?;
        let at = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let (written, moved) =
            (at(data.mtime(), data.mtime_nsec()), at(data.ctime(), data.ctime_nsec()));
        Some([data.ino().into(), data.size().into(), written, moved])
    };
    [one(&pair.cert), one(&pair.key)]
}

/// Tells when files have changed and rest again: the two are seldom written at one moment.
struct Eye {
    read: Stamp,
    last: Stamp,
}

impl Eye {
    const fn new(read: Stamp) -> Self {
        Self { read, last: read }
    }

    /// Whether there is something to read, which then counts as read.
    fn sees_another(&mut self, now: Stamp) -> bool {
        let rests = now == self.last;
        self.last = now;
        let is_another = rests && now != self.read;
        if is_another {
            self.read = now;
        }
        is_another
    }
}

#[cfg(test)]
mod tests {
    use super::{Eye, Stamp};

    #[test]
    fn files_are_read_once_when_they_have_changed_and_rest() {
        let stamp = |cert, key| -> Stamp { [cert, key].map(|it: Option<i128>| it.map(|n| [n; 4])) };
        let mut eye = Eye::new(stamp(Some(1), Some(1)));
        let mut looks = |steps: &[(Option<i128>, Option<i128>)]| -> Vec<bool> {
            steps.iter().map(|(cert, key)| eye.sees_another(stamp(*cert, *key))).collect()
        };
        assert_eq!(looks(&[(Some(1), Some(1)), (Some(1), Some(1))]), [false, false]);
        let both = [(Some(2), Some(1)), (Some(2), Some(2)), (Some(2), Some(2)), (Some(2), Some(2))];
        assert_eq!(looks(&both), [false, false, true, false], "half a pair is not read");
        let gone = [(None, Some(2)), (None, Some(2)), (None, Some(2))];
        assert_eq!(looks(&gone), [false, true, false], "what is gone is told once");
        let back = [(Some(2), Some(2)), (Some(2), Some(2))];
        assert_eq!(looks(&back), [false, true]);
    }
}

//! Search for sockets through which programs start outside of sandboxes, with a time limit: a folder of another user or
//! on another machine may hang.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::sockets::EscapeSocketLocations;

/// Time limit of a search, and of the wait for earlier ones.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Greatest number of searches at the same time, also of those that hang.
const MAX_SEARCHES: usize = 4;

/// Search that remembers its last result.
#[derive(Debug)]
pub struct EscapeSocketSearch {
    locations: Arc<EscapeSocketLocations>,
    permits: Arc<Semaphore>,
    last_result: watch::Sender<Vec<PathBuf>>,
}

impl EscapeSocketSearch {
    /// Returns a search in these places, in which these sockets were found before.
    #[must_use]
    pub fn new(locations: EscapeSocketLocations, found: Vec<PathBuf>) -> Self {
        let permits = Arc::new(Semaphore::new(MAX_SEARCHES));
        Self { locations: Arc::new(locations), permits, last_result: watch::Sender::new(found) }
    }

    /// Returns the sockets that exist now; if the search takes too long, those that it found before.
    pub async fn find(&self) -> Vec<PathBuf> {
        match timeout(SEARCH_TIMEOUT, self.search()).await {
            Ok(Some(sockets)) => {
                self.last_result.send_replace(sockets.clone());
                sockets
            }
            Ok(None) | Err(_) => {
                tracing::warn!("the search for sockets took too long");
                self.last_result.borrow().clone()
            }
        }
    }

    async fn search(&self) -> Option<Vec<PathBuf>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        let locations = Arc::clone(&self.locations);
        let search = spawn_blocking(move || {
            let _permit = permit; // Until the search has ended, also if nobody waits for it any more.
            locations.find_reachable()
        });
        search.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_of_searches_finds_the_same() {
        let search =
            Arc::new(EscapeSocketSearch::new(EscapeSocketLocations::default(), vec!["/a".into()]));
        let searches = (0..100).map(|_| {
            let search = Arc::clone(&search);
            tokio::spawn(async move { search.find().await })
        });
        for found in searches.collect::<Vec<_>>() {
            assert_eq!(found.await.unwrap(), Vec::<PathBuf>::new());
        }
    }

    /// Searches that hang hold all permits.
    #[tokio::test(start_paused = true)]
    async fn a_search_that_hangs_returns_the_last_result() {
        let found = vec![PathBuf::from("/run/user/1/bus")];
        let search = EscapeSocketSearch::new(EscapeSocketLocations::default(), found.clone());
        let _held = search.permits.acquire_many(4).await.unwrap();
        assert_eq!(search.find().await, found);
    }
}

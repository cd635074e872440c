//! Counter of the followers of a running execution.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counter of the followers of one execution. The writer of the output checks here whether the output has a reader at
/// present: output of an execution without followers is written in large pieces, which costs less. Clones are cheap and
/// belong to the same execution.
#[derive(Clone, Default)]
pub struct Followers(Arc<FollowerCount>);

#[derive(Default)]
struct FollowerCount {
    count: AtomicUsize,
    first_joined: Notify,
}

impl Followers {
    /// Adds a follower; dropping the guard removes it.
    #[must_use]
    pub fn join(&self) -> FollowerGuard {
        if self.0.count.fetch_add(1, Ordering::AcqRel) == 0 {
            self.0.first_joined.notify_waiters();
        }
        FollowerGuard(self.clone())
    }

    /// Returns the number of followers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::Acquire)
    }

    /// Returns true if there is a follower.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.count() > 0
    }

    /// Waits until there is a follower.
    pub async fn wait_for_first(&self) {
        loop {
            // Registered before the count is read, so that a follower that joins in between is not missed.
            let mut notified = std::pin::pin!(self.0.first_joined.notified());
            notified.as_mut().enable();
            if self.has_any() {
                return;
            }
            notified.await;
        }
    }
}

impl fmt::Debug for Followers {
    /// Writes the number of followers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Followers({})", self.count())
    }
}

impl PartialEq for Followers {
    /// Compares by identity: both values are equal if they belong to the same execution.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Followers {}

/// Guard of one follower. Dropping the guard removes the follower.
#[derive(Debug)]
pub struct FollowerGuard(Followers);

impl Drop for FollowerGuard {
    fn drop(&mut self) {
        self.0.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_followers_ends_with_the_first_follower() {
        let followers = Followers::default();
        let limit = Duration::from_secs(9);
        assert!(timeout(limit, followers.wait_for_first()).await.is_err());
        let (waiter, other) = (followers.clone(), followers.clone());
        let waiting = tokio::spawn(async move { waiter.wait_for_first().await });
        tokio::task::yield_now().await;
        let (first_guard, second_guard) = (other.join(), other.join());
        timeout(limit, waiting).await.expect("in time").expect("woken");
        drop(first_guard);
        assert!(followers.has_any());
        drop(second_guard);
        assert!(!followers.has_any());
    }
}

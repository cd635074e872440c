//! Decides when text that a program has written is released to the followers of its execution.
//!
//! Text is written to the ledger in large pieces, which is cheap and late. While there is a follower, ready
//! text is released after [`MAX_RELEASE_DELAY`], and urgent text at once, at most once in [`MIN_URGENT_INTERVAL`].
//! Without followers there is no timer: the task that reads the pipe also
//! waits for the first follower, which costs nothing.

use std::time::Duration;

use algonius_actors::model::execution::followers::Followers;
use tokio::time::{Instant, sleep_until};

/// Longest time for which text waits for more text, so that a program that writes line by line does not cause one
/// commit per line.
const MAX_RELEASE_DELAY: Duration = Duration::from_millis(50);

/// Shortest time between two releases of urgent text, so that a model that writes fast does not cause one commit per
/// piece.
const MIN_URGENT_INTERVAL: Duration = Duration::from_millis(20);

/// Release schedule of one reader.
pub(in crate::drivers) struct ReleaseTimer {
    followers: Followers,
    /// True if something was read since the last release.
    has_unreleased_text: bool,
    /// True if urgent text was read since the last release.
    has_urgent_text: bool,
    /// Time of the last release of urgent text.
    urgent_released_at: Option<Instant>,
    /// Time of the next release; set once there is a follower.
    due_at: Option<Instant>,
}

impl ReleaseTimer {
    /// Creates the timer of a reader that has read nothing so far.
    pub(in crate::drivers) const fn new(followers: Followers) -> Self {
        let (has_unreleased, has_urgent) = (false, false);
        Self {
            followers,
            has_unreleased_text: has_unreleased,
            has_urgent_text: has_urgent,
            urgent_released_at: None,
            due_at: None,
        }
    }

    /// Records that text was read.
    pub(in crate::drivers) fn mark_read(&mut self) {
        self.has_unreleased_text = true;
        // The first read sets the time: a program that writes all the time must not put its release off.
        if self.due_at.is_none() && self.followers.has_any() {
            self.due_at = Some(Instant::now() + MAX_RELEASE_DELAY);
        }
    }

    /// Records that the text that was read does not wait for more text.
    pub(in crate::drivers) fn mark_urgent(&mut self) {
        self.has_urgent_text = true;
        if let Some(due_at) = &mut self.due_at {
            let now = Instant::now();
            let next =
                self.urgent_released_at.map_or(now, |last| now.max(last + MIN_URGENT_INTERVAL));
            *due_at = next.min(*due_at);
        }
    }

    /// Returns true if the text that was read is due for release. `bytes_unless_due` are those of the last wait, or
    /// `None` if the wait ended because the time had come. Checked after each read, because
    /// [`ReleaseTimer::wait_until_due`] never returns for a program that writes without a pause.
    pub(in crate::drivers) fn must_release(&self, bytes_unless_due: Option<&[u8]>) -> bool {
        bytes_unless_due.is_none() || self.is_due()
    }

    /// Returns true if text was read and its time has come.
    pub(in crate::drivers) fn is_due(&self) -> bool {
        self.due_at.is_some_and(|due| due <= Instant::now())
    }

    /// Returns when a release is due. Text from before the first follower is released at once.
    pub(in crate::drivers) async fn wait_until_due(&self) {
        match self.due_at {
            Some(due) => sleep_until(due).await,
            None if self.has_unreleased_text => self.followers.wait_for_first().await,
            None => std::future::pending().await,
        }
    }

    /// Records that the safe part of the text was released.
    pub(in crate::drivers) fn mark_released(&mut self) {
        if self.has_urgent_text {
            self.urgent_released_at = Some(Instant::now());
        }
        (self.has_unreleased_text, self.has_urgent_text, self.due_at) = (false, false, None);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const WAIT_TIMEOUT: Duration = Duration::from_secs(9);

    #[tokio::test(start_paused = true)]
    async fn without_followers_no_release_is_due() {
        let mut release_timer = ReleaseTimer::new(Followers::default());
        assert!(timeout(WAIT_TIMEOUT, release_timer.wait_until_due()).await.is_err());
        release_timer.mark_read();
        assert!(timeout(WAIT_TIMEOUT, release_timer.wait_until_due()).await.is_err());
        assert!(!release_timer.must_release(Some(b"x")));
    }

    #[tokio::test(start_paused = true)]
    async fn output_for_a_follower_is_released_after_a_delay() {
        let followers = Followers::default();
        let mut release_timer = ReleaseTimer::new(followers.clone());
        let one = followers.join();
        assert!(
            timeout(WAIT_TIMEOUT, release_timer.wait_until_due()).await.is_err(),
            "there is nothing to release"
        );
        release_timer.mark_read();
        tokio::time::advance(MAX_RELEASE_DELAY / 2).await;
        release_timer.mark_read();
        assert!(!release_timer.must_release(Some(b"x")));
        timeout(MAX_RELEASE_DELAY, release_timer.wait_until_due())
            .await
            .expect("the first read counts");
        assert!(release_timer.must_release(Some(b"x")));
        release_timer.mark_released();
        assert!(!release_timer.must_release(Some(b"x")));
        drop(one);
        release_timer.mark_read();
        assert!(
            timeout(WAIT_TIMEOUT, release_timer.wait_until_due()).await.is_err(),
            "nobody follows any more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn urgent_output_is_released_at_once_or_after_an_interval() {
        let followers = Followers::default();
        let _one = followers.join();
        let mut release_timer = ReleaseTimer::new(followers);
        release_timer.mark_read();
        release_timer.mark_released();
        release_timer.mark_read();
        release_timer.mark_urgent();
        assert!(release_timer.must_release(Some(b"x")), "the first piece");
        release_timer.mark_released();
        tokio::time::advance(MIN_URGENT_INTERVAL / 2).await;
        release_timer.mark_read();
        release_timer.mark_urgent();
        assert!(!release_timer.must_release(Some(b"x")), "too soon after the first piece");
        timeout(MIN_URGENT_INTERVAL, release_timer.wait_until_due()).await.expect("its time");
        assert!(release_timer.must_release(Some(b"x")));
        release_timer.mark_released();
        tokio::time::advance(MIN_URGENT_INTERVAL).await;
        release_timer.mark_read();
        release_timer.mark_urgent();
        assert!(release_timer.must_release(Some(b"x")), "after a pause");
    }

    #[tokio::test(start_paused = true)]
    async fn pending_output_is_released_to_the_first_follower() {
        let followers = Followers::default();
        let mut release_timer = ReleaseTimer::new(followers.clone());
        release_timer.mark_read();
        let join_later = async {
            tokio::time::sleep(WAIT_TIMEOUT).await; // Passes at once: the clock is paused.
            followers.join()
        };
        let (_one, ()) = tokio::join!(join_later, release_timer.wait_until_due());
    }
}

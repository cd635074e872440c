//! Waits: each has a deadline, and none waits by sleeping for a guessed time.

use std::time::Duration;

/// Time limit of each step of a test, also on a busy machine.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(45);

/// Returns the result of work that must end within the deadline.
pub(crate) async fn within_deadline<T>(subject: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(WAIT_TIMEOUT, work).await {
        Ok(result) => result,
        Err(_elapsed) => panic!("{subject} did not happen in {WAIT_TIMEOUT:?}"),
    }
}

/// Polls until there is a result, and returns it.
pub(crate) async fn poll_until<T>(subject: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    within_deadline(subject, async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            if let Some(result) = poll().await {
                return result;
            }
        }
    })
    .await
}

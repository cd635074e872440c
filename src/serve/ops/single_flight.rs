//! Single flight: a request that arrives during a computation waits for the next one, and all waiting requests share
//! its result. No request receives a result that is older than the request.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// Latest result and the start of its computation, for the requests that wait.
pub struct SingleFlight<T> {
    last_result: Mutex<Option<(Instant, T)>>,
    /// Reference held by each request.
    waiter_counter: Arc<()>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self { last_result: Mutex::default(), waiter_counter: Arc::default() }
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Returns the result of a computation that starts after this call.
    pub async fn run_shared(&self, computation: impl Future<Output = T>) -> T {
        let (requested_at, waiter_guard) = (Instant::now(), Arc::clone(&self.waiter_counter));
        let mut last = self.last_result.lock().await;
        let result = match &*last {
            // The lock queues in order, so the one before may have started after this request arrived.
            Some((started_at, result)) if *started_at > requested_at => result.clone(),
            _ => {
                let started_at = Instant::now();
                let result = computation.await;
                *last = Some((started_at, result.clone()));
                result
            }
        };
        // Two: the one of this structure and the own one of this request.
        if Arc::strong_count(&self.waiter_counter) == 2 {
            *last = None; // Nobody else waits: it takes no room.
        }
        drop(waiter_guard);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;

    /// Counts a computation of ten milliseconds and returns the count.
    async fn compute(count: &Cell<u32>) -> u32 {
        count.set(count.get() + 1);
        sleep(Duration::from_millis(10)).await;
        count.get()
    }

    async fn share_after(millis: u64, flight: &SingleFlight<u32>, count: &Cell<u32>) -> u32 {
        sleep(Duration::from_millis(millis)).await;
        flight.run_shared(compute(count)).await
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_the_next_computation() {
        let (flight, count) = (SingleFlight::default(), Cell::new(0));
        let result_after = |after| share_after(after, &flight, &count);
        assert_eq!(
            join_all([result_after(0), result_after(3), result_after(5), result_after(9)]).await,
            [1, 2, 2, 2]
        );
        assert_eq!((result_after(0).await, result_after(0).await), (3, 4));
        assert!(flight.last_result.lock().await.is_none());
    }
}

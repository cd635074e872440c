//! A look at the whole that is shared: who asks while somebody looks waits for the next look, and all who
//! wait share it. Nobody is shown anything older than the question.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// What was seen last, and since when it was looked at; kept for those who wait.
pub struct Looks<T> {
    last: Mutex<Option<(Instant, T)>>,
    /// Held by each who asks.
    asking: Arc<()>,
}

impl<T> Default for Looks<T> {
    fn default() -> Self {
        Self { last: Mutex::default(), asking: Arc::default() }
    }
}

impl<T: Clone> Looks<T> {
    /// What is seen by a look that begins after this call.
    pub async fn share(&self, look: impl Future<Output = T>) -> T {
        let (asked, asking) = (Instant::now(), Arc::clone(&self.asking));
        let mut last = self.last.lock().await;
        let seen = match &*last {
            Some((begun, seen)) if *begun > asked => seen.clone(),
            _ => {
                let begun = Instant::now();
                let seen = look.await;
                *last = Some((begun, seen.clone()));
                seen
            }
        };
        if Arc::strong_count(&self.asking) == 2 {
            *last = None; // Nobody else waits: it takes no room.
        }
        drop(asking);
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;

    /// A look that takes ten milliseconds; answers the how many-th it is.
    async fn look(count: &Cell<u32>) -> u32 {
        count.set(count.get() + 1);
        sleep(Duration::from_millis(10)).await;
        count.get()
    }

    async fn ask_after(millis: u64, looks: &Looks<u32>, count: &Cell<u32>) -> u32 {
        sleep(Duration::from_millis(millis)).await;
        looks.share(look(count)).await
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_come_while_one_looks_share_the_next_look() {
        let (looks, count) = (Looks::default(), Cell::new(0));
        let ask = |after| ask_after(after, &looks, &count);
        assert_eq!(join_all([ask(0), ask(3), ask(5), ask(9)]).await, [1, 2, 2, 2]);
        assert_eq!((ask(0).await, ask(0).await), (3, 4));
        assert!(looks.last.lock().await.is_none());
    }
}

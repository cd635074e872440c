//! Rings when a task panics: the one who waits for what it would have said hears nothing else.

/// Rings when it is dropped by a panic.
struct Alarm<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Alarm<F> {
    fn drop(&mut self) {
        if let Some(ring) = self.0.take().filter(|_| std::thread::panicking()) {
            ring();
        }
    }
}

/// Does a task; when it panics, `ring` is called on the way.
pub(crate) async fn alarmed(task: impl Future<Output = ()>, ring: impl FnOnce()) {
    let _alarm = Alarm(Some(ring));
    task.await;
}

#[cfg(test)]
mod tests {
    use super::alarmed;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[tokio::test]
    async fn a_panic_rings_and_an_end_or_an_abort_does_not() {
        for (panics, aborted) in [(true, false), (false, false), (false, true)] {
            let rung = Arc::new(AtomicBool::new(false));
            let bell = Arc::clone(&rung);
            let task = tokio::spawn(alarmed(
                async move {
                    tokio::task::yield_now().await;
                    assert!(!panics, "the task panics");
                },
                move || bell.store(true, Ordering::SeqCst),
            ));
            if aborted {
                task.abort();
            }
            assert_eq!(task.await.is_ok(), !panics && !aborted);
            assert_eq!(rung.load(Ordering::SeqCst), panics);
        }
    }
}

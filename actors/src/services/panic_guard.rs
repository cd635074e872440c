//! Notification of a panic in a task: otherwise the receiver of its result would wait forever.

/// Guard that calls its function when a panic drops it.
struct PanicGuard<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for PanicGuard<F> {
    fn drop(&mut self) {
        if let Some(on_panic) = self.0.take().filter(|_| std::thread::panicking()) {
            on_panic();
        }
    }
}

/// Runs a task; calls `on_panic` if the task panics.
pub(crate) async fn run_with_panic_guard(task: impl Future<Output = ()>, on_panic: impl FnOnce()) {
    let _guard = PanicGuard(Some(on_panic));
    task.await;
}

#[cfg(test)]
mod tests {
    use super::run_with_panic_guard;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[tokio::test]
    async fn the_guard_reports_a_panic_but_no_end_and_no_abort() {
        for (panics, aborted) in [(true, false), (false, false), (false, true)] {
            let called = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&called);
            let task = tokio::spawn(run_with_panic_guard(
                async move {
                    tokio::task::yield_now().await;
                    assert!(!panics, "the task panics");
                },
                move || flag.store(true, Ordering::SeqCst),
            ));
            if aborted {
                task.abort();
            }
            assert_eq!(task.await.is_ok(), !panics && !aborted);
            assert_eq!(called.load(Ordering::SeqCst), panics);
        }
    }
}

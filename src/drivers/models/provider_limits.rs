//! Limits of providers: calls that are open at the same time, and calls that start within a minute.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::model_provider::ModelProvider;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

const MINUTE: Duration = Duration::from_secs(60);

/// Limits of all providers. Cheap to clone.
///
/// An entry is never removed: their number is that of the different limits in all versions of the configuration.
#[derive(Clone, Default)]
pub(super) struct LimitRegistry(Arc<Mutex<HashMap<LimitKey, Arc<ProviderLimits>>>>);

/// Provider with its limits. A reload that changes neither retains the state of the limits.
#[derive(PartialEq, Eq, Hash)]
struct LimitKey {
    name: String,
    max_concurrent: NonZeroU32,
    requests_per_minute: NonZeroU32,
}

/// Limits of one provider, and the calls that count towards them.
pub(super) struct ProviderLimits {
    open_calls: Semaphore,
    requests_per_minute: usize,
    /// Start times within the last minute, the earliest first.
    recent_starts: Mutex<VecDeque<Instant>>,
}

impl LimitRegistry {
    /// Returns the limits of a provider.
    pub(super) async fn find_or_create(&self, provider: &ModelProvider) -> Arc<ProviderLimits> {
        let key = LimitKey {
            name: provider.name.clone(),
            max_concurrent: provider.max_concurrent,
            requests_per_minute: provider.requests_per_minute,
        };
        let mut registry = self.0.lock().await;
        Arc::clone(registry.entry(key).or_insert_with(|| Arc::new(ProviderLimits::new(provider))))
    }
}

impl ProviderLimits {
    fn new(provider: &ModelProvider) -> Self {
        let to_usize = |limit: NonZeroU32| usize::try_from(limit.get()).unwrap_or(usize::MAX);
        let max_concurrent = to_usize(provider.max_concurrent).min(Semaphore::MAX_PERMITS);
        Self {
            open_calls: Semaphore::new(max_concurrent),
            requests_per_minute: to_usize(provider.requests_per_minute),
            recent_starts: Mutex::default(),
        }
    }

    /// Waits until a call may start, and counts it. The call is open until the permit is dropped. A dropped future
    /// counts no call.
    pub(super) async fn acquire(&self) -> Option<SemaphorePermit<'_>> {
        // `None` only if the semaphore were closed, which no code does.
        let permit = self.open_calls.acquire().await.ok();
        // Further calls wait for the lock in the order of their arrival.
        let mut starts = self.recent_starts.lock().await;
        loop {
            let now = Instant::now();
            while starts.front().is_some_and(|start| now.duration_since(*start) >= MINUTE) {
                starts.pop_front();
            }
            match starts.front() {
                Some(earliest) if starts.len() >= self.requests_per_minute => {
                    sleep_until(*earliest + MINUTE).await;
                }
                _ => {
                    starts.push_back(now);
                    return permit;
                }
            }
        }
    }
}

//! Accounts for the memory that holds the output of programs, with one limit for all programs together.
//!
//! Above the limit the service stops reading the pipe of a program until memory is free again; the program blocks when
//! its pipe is full. Two rules keep programs from waiting for ever. Each program has a guaranteed share, so that a
//! short answer never waits for a long one. And one program at a time may exceed the limit until it has ended: programs
//! that wait for each other's memory would otherwise all wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Guaranteed share of each program in bytes.
const GUARANTEED_SHARE_BYTES: u64 = 256 << 10;

/// Number of long texts that may be in the heap of the service at one time, to be judged.
const MAX_LONG_TEXTS: usize = 2;

/// Value of `over_limit_account` while no account may exceed the limit.
const NO_ACCOUNT: u64 = 0;

/// Memory for the output of all programs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OutputMemory(Arc<SharedMemoryPool>);

#[derive(Debug)]
struct SharedMemoryPool {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    /// Number of the account that may exceed the limit.
    over_limit_account: AtomicU64,
    /// Number of the latest account.
    latest_account_number: AtomicU64,
    /// Number of readers that wait for room.
    waiting_readers: AtomicUsize,
    /// Notifies when memory was returned.
    memory_freed: Notify,
    /// Permits to read a long text as a whole.
    long_text_permits: Arc<Semaphore>,
}

/// Usage of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputMemoryUsage {
    /// Limit for all programs together in bytes.
    pub limit_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Number of output streams that are not read for lack of room.
    pub waiting_streams: usize,
}

/// Account of one program. Dropping the last clone returns its memory.
#[derive(Debug, Clone)]
pub struct MemoryAccount(Arc<MemoryAccountState>);

#[derive(Debug)]
struct MemoryAccountState {
    memory: OutputMemory,
    number: u64,
    used_bytes: AtomicU64,
    waiting_readers: AtomicUsize,
    /// Notifies when a reader starts to wait.
    blocked_reader_notify: Notify,
    /// True if the program has ended: its pipes then contain little more.
    has_program_ended: AtomicBool,
}

impl OutputMemory {
    /// Returns a memory with this limit in bytes.
    #[must_use]
    pub fn with_limit(limit_bytes: u64) -> Self {
        Self(Arc::new(SharedMemoryPool {
            limit_bytes,
            used_bytes: AtomicU64::new(0),
            over_limit_account: AtomicU64::new(NO_ACCOUNT),
            latest_account_number: AtomicU64::new(NO_ACCOUNT),
            waiting_readers: AtomicUsize::new(0),
            memory_freed: Notify::new(),
            long_text_permits: Arc::new(Semaphore::new(MAX_LONG_TEXTS)),
        }))
    }

    /// Returns an empty account.
    #[must_use]
    pub fn new_account(&self) -> MemoryAccount {
        let number = self.0.latest_account_number.fetch_add(1, Ordering::Relaxed) + 1;
        let (used_bytes, waiting_readers, has_program_ended) = Default::default();
        let (memory, blocked_reader_notify) = (self.clone(), Notify::new());
        MemoryAccount(Arc::new(MemoryAccountState {
            memory,
            number,
            used_bytes,
            waiting_readers,
            blocked_reader_notify,
            has_program_ended,
        }))
    }

    /// Returns the current usage.
    #[must_use]
    pub fn usage(&self) -> OutputMemoryUsage {
        let SharedMemoryPool { limit_bytes: limit, used_bytes: used, waiting_readers, .. } =
            &*self.0;
        OutputMemoryUsage {
            limit_bytes: *limit,
            used_bytes: used.load(Ordering::Relaxed),
            waiting_streams: waiting_readers.load(Ordering::Relaxed),
        }
    }
}

impl MemoryAccount {
    /// Charges `bytes` more to the account.
    pub fn charge(&self, bytes: u64) {
        self.0.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.memory.0.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns an empty account of the same memory.
    #[must_use]
    pub fn new_sibling_account(&self) -> Self {
        self.0.memory.new_account()
    }

    /// Waits for the permit to have a long text in memory as a whole. Dropping the permit releases it; `None` means no
    /// limit.
    pub async fn acquire_long_text_permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.0.memory.0.long_text_permits).acquire_owned().await.ok()
    }

    /// Returns true if the account may take more now. The caller takes a small piece before it checks again.
    #[must_use]
    pub fn try_acquire_growth(&self) -> bool {
        let MemoryAccountState {
            memory,
            number,
            used_bytes: own_used,
            has_program_ended: has_ended,
            ..
        } = &*self.0;
        let SharedMemoryPool { limit_bytes: limit, used_bytes: used, over_limit_account, .. } =
            &*memory.0;
        if own_used.load(Ordering::Relaxed) < GUARANTEED_SHARE_BYTES {
            return true;
        }
        if used.load(Ordering::Relaxed) < *limit || has_ended.load(Ordering::Relaxed) {
            return true;
        }
        let exchange_result = over_limit_account.compare_exchange(
            NO_ACCOUNT,
            *number,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        exchange_result.is_ok() || exchange_result == Err(*number)
    }

    /// Returns when the account may take more.
    pub async fn wait_for_memory(self) {
        let _waiting = WaitingReader::register(&self);
        let freed = &self.0.memory.0.memory_freed;
        loop {
            // Registered before the check, so that no freed memory goes unnoticed in between.
            let mut notified = std::pin::pin!(freed.notified());
            notified.as_mut().enable();
            if self.try_acquire_growth() {
                return;
            }
            notified.await;
        }
    }

    /// Returns when a reader waits for room in this account.
    pub async fn wait_for_blocked_reader(&self) {
        let mut notified = std::pin::pin!(self.0.blocked_reader_notify.notified());
        notified.as_mut().enable();
        if self.0.waiting_readers.load(Ordering::Relaxed) == 0 {
            notified.await;
        }
    }

    /// Records that the program has ended. The rest in its pipes is read in any case.
    pub fn mark_program_ended(&self) {
        self.0.has_program_ended.store(true, Ordering::Relaxed);
        self.0.memory.0.memory_freed.notify_waiters();
    }
}

/// Counts a waiting reader until it is dropped.
struct WaitingReader<'a>(&'a MemoryAccount);

impl<'a> WaitingReader<'a> {
    fn register(account: &'a MemoryAccount) -> Self {
        account.0.waiting_readers.fetch_add(1, Ordering::Relaxed);
        account.0.memory.0.waiting_readers.fetch_add(1, Ordering::Relaxed);
        account.0.blocked_reader_notify.notify_waiters();
        Self(account)
    }
}

impl Drop for WaitingReader<'_> {
    fn drop(&mut self) {
        let MemoryAccountState { memory, waiting_readers, .. } = &*self.0.0;
        waiting_readers.fetch_sub(1, Ordering::Relaxed);
        memory.0.waiting_readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for MemoryAccountState {
    fn drop(&mut self) {
        let SharedMemoryPool { used_bytes: used, over_limit_account, memory_freed: freed, .. } =
            &*self.memory.0;
        used.fetch_sub(*self.used_bytes.get_mut(), Ordering::Relaxed);
        // Only the account that may exceed the limit gives that permission back.
        _ = over_limit_account.compare_exchange(
            self.number,
            NO_ACCOUNT,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const WAIT_TIMEOUT: Duration = Duration::from_secs(9);

    const LIMIT: u64 = 10 * GUARANTEED_SHARE_BYTES;

    #[tokio::test(start_paused = true)]
    async fn one_program_continues_over_the_memory_limit() {
        let memory = OutputMemory::with_limit(LIMIT);
        let [one, two, three] = [(); 3].map(|()| memory.new_account());
        one.charge(6 * GUARANTEED_SHARE_BYTES);
        two.charge(3 * GUARANTEED_SHARE_BYTES);
        three.charge(GUARANTEED_SHARE_BYTES);
        assert!(two.try_acquire_growth(), "one program must get to its end");
        assert!(
            two.try_acquire_growth() && !one.try_acquire_growth() && !three.try_acquire_growth()
        );
        let waiter = tokio::spawn(three.clone().wait_for_memory());
        assert!(timeout(WAIT_TIMEOUT, one.clone().wait_for_memory()).await.is_err());
        timeout(WAIT_TIMEOUT, three.wait_for_blocked_reader()).await.expect("the third waits");
        assert!(timeout(WAIT_TIMEOUT, two.wait_for_blocked_reader()).await.is_err());
        assert_eq!(
            memory.usage(),
            OutputMemoryUsage { limit_bytes: LIMIT, used_bytes: LIMIT, waiting_streams: 1 }
        );
        drop(two);
        timeout(WAIT_TIMEOUT, waiter).await.expect("memory is free again").expect("no panic");
        assert_eq!(
            memory.usage(),
            OutputMemoryUsage {
                limit_bytes: LIMIT,
                used_bytes: 7 * GUARANTEED_SHARE_BYTES,
                waiting_streams: 0
            }
        );
    }

    #[test]
    fn a_short_output_never_waits_for_memory() {
        let memory = OutputMemory::with_limit(LIMIT);
        let [long, other, short] = [(); 3].map(|()| memory.new_account());
        long.charge(2 * LIMIT);
        other.charge(GUARANTEED_SHARE_BYTES);
        short.charge(GUARANTEED_SHARE_BYTES - 1);
        assert!(
            long.try_acquire_growth() && !other.try_acquire_growth() && short.try_acquire_growth()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn output_of_an_ended_program_is_read_in_any_case() {
        let memory = OutputMemory::with_limit(LIMIT);
        let [one, two] = [(); 2].map(|()| memory.new_account());
        one.charge(LIMIT);
        two.charge(GUARANTEED_SHARE_BYTES);
        assert!(one.try_acquire_growth() && !two.try_acquire_growth());
        let waiter = tokio::spawn(two.clone().wait_for_memory());
        tokio::task::yield_now().await;
        two.mark_program_ended();
        timeout(WAIT_TIMEOUT, waiter).await.expect("the program has ended").expect("no panic");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_long_texts_read_at_once_is_bounded() {
        let account = OutputMemory::with_limit(LIMIT).new_account();
        let mut permits = Vec::new();
        for _ in 0..MAX_LONG_TEXTS {
            permits.push(account.acquire_long_text_permit().await);
        }
        assert!(
            timeout(WAIT_TIMEOUT, account.new_sibling_account().acquire_long_text_permit())
                .await
                .is_err()
        );
        permits.pop();
        assert!(
            timeout(WAIT_TIMEOUT, account.acquire_long_text_permit())
                .await
                .is_ok_and(|permit| permit.is_some())
        );
    }

    #[test]
    fn all_memory_is_free_after_the_last_clone() {
        let memory = OutputMemory::with_limit(LIMIT);
        let one = memory.new_account();
        one.charge(7);
        let other = one.clone();
        drop(one);
        assert_eq!(memory.usage().used_bytes, 7);
        drop(other);
        assert_eq!(memory.usage().used_bytes, 0);
    }
}

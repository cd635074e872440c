//! Read cache: repeated reads of an unchanged execution are answered from memory.
//!
//! The cache holds only items that were requested twice, because most items are read once. The writer invalidates an
//! entry before it reports the change of the execution, so that no caller reads data that it knows to be outdated.

mod cached_value;

use std::collections::{HashMap, VecDeque};

use algonius_actors::model::execution::event::TextRange;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use tokio::sync::Mutex;

use super::sql;
use cached_value::{Cacheable, CachedValue};

/// Maximum number of executions with a cached or once requested item.
const MAX_CACHED_EXECUTIONS: usize = 1024;

/// Maximum number of cached parts of one execution.
const MAX_PARTS_PER_EXECUTION: usize = 16;

/// Approximate maximum size of a cached part, in bytes.
const MAX_PART_BYTES: usize = 64 << 10;

/// Approximate maximum size of the cache, in bytes.
const MAX_CACHE_BYTES: usize = 2 << 20;

/// Executions that a change may affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invalidation {
    /// No execution.
    Nothing,
    /// One execution.
    One(ExecutionId),
    /// Any execution.
    Any,
}

/// Part of the data of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachePart {
    /// Row of the execution.
    Record,
    /// All events of the execution.
    Events,
    /// Range of a text.
    Text(TextRange),
}

/// Key of a message: its sender, its agent and the key of the request.
pub(crate) type MessageKey = (PrincipalId, AgentId, [u8; 32]);

/// Execution of a message, and the digest of its request.
pub(crate) type OriginalRequest = (ExecutionId, [u8; 32]);

/// Cache of recent reads.
#[derive(Debug, Default)]
pub(crate) struct ReadCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    entries: HashMap<ExecutionId, CacheEntry>,
    /// Insertion order of the entries; may contain entries that were removed since.
    insertion_order: VecDeque<(ExecutionId, u64)>,
    /// Total size of the cache, in bytes.
    bytes: usize,
    /// Number of the last entry.
    last_entry_number: u64,
    /// Duplicate messages. This data does not change until the executions are removed.
    original_requests: HashMap<MessageKey, OriginalRequest>,
}

/// Cached data of one execution since its last change.
#[derive(Debug)]
struct CacheEntry {
    /// Unique number of the entry; a removed entry does not release its number.
    number: u64,
    /// Requested parts; a part is cached from the second request on.
    parts: Vec<(CachePart, Option<CachedValue>)>,
    bytes: usize,
}

/// Result of a lookup in the cache.
enum CacheLookup {
    /// Cached part.
    Hit(CachedValue),
    /// Part that was requested before under this entry and is not cached yet.
    SecondMiss(u64),
    /// Part that was not requested before.
    FirstMiss,
}

impl ReadCache {
    /// Returns a part from the cache, or reads it. The read has a separate box, because most frequent requests need
    /// none.
    pub(crate) async fn read_through<T: Cacheable, R: Future<Output = sql::Result<T>>>(
        &self,
        (id, part): (ExecutionId, CachePart),
        read: impl FnOnce() -> R,
    ) -> sql::Result<T> {
        let entry_number = match self.0.lock().await.lookup(id, part) {
            CacheLookup::Hit(cached_value) => match T::from_cached(cached_value) {
                Some(value) => return Ok(value),
                None => None,
            },
            CacheLookup::SecondMiss(number) => Some(number),
            CacheLookup::FirstMiss => None,
        };
        // Without the lock: a slow read must not delay the reads of other executions.
        let value = Box::pin(read()).await?;
        if let Some(number) = entry_number
            && let Some(cached_value) = value.to_cached()
        {
            self.0.lock().await.insert_if_current((id, number), part, cached_value);
        }
        Ok(value)
    }

    /// Returns the known execution of a duplicate message.
    pub(crate) async fn find_original_request(
        &self,
        message_key: &MessageKey,
    ) -> Option<OriginalRequest> {
        self.0.lock().await.original_requests.get(message_key).copied()
    }

    /// Records a duplicate message.
    pub(crate) async fn record_original_request(
        &self,
        message_key: MessageKey,
        original_request: OriginalRequest,
    ) {
        let original_requests = &mut self.0.lock().await.original_requests;
        // The map is only a shortcut, because the ledger knows every message. Clearing it is cheaper than an order of
        // age.
        if original_requests.len() >= MAX_CACHED_EXECUTIONS {
            original_requests.clear();
        }
        original_requests.insert(message_key, original_request);
    }

    /// Invalidates the data of these executions.
    pub(crate) async fn invalidate(&self, invalidations: impl IntoIterator<Item = Invalidation>) {
        let mut state = self.0.lock().await;
        invalidations.into_iter().for_each(|invalidation| state.invalidate(invalidation));
    }
}

impl CacheState {
    fn lookup(&mut self, id: ExecutionId, part: CachePart) -> CacheLookup {
        let Some(entry) = self.entries.get_mut(&id) else {
            self.add_entry(id, part);
            return CacheLookup::FirstMiss;
        };
        match entry.parts.iter().find(|(known, _)| *known == part) {
            Some((_, Some(cached_value))) => return CacheLookup::Hit(cached_value.clone()),
            Some((_, None)) => return CacheLookup::SecondMiss(entry.number),
            None => {}
        }
        if entry.parts.len() < MAX_PARTS_PER_EXECUTION {
            entry.parts.push((part, None));
        }
        CacheLookup::FirstMiss
    }

    fn add_entry(&mut self, id: ExecutionId, part: CachePart) {
        self.last_entry_number += 1;
        let entry =
            CacheEntry { number: self.last_entry_number, parts: vec![(part, None)], bytes: 0 };
        self.entries.insert(id, entry);
        self.insertion_order.push_back((id, self.last_entry_number));
        if self.insertion_order.len() > MAX_CACHED_EXECUTIONS {
            self.evict_oldest();
        }
    }

    /// Caches a part, if its execution has not changed since the request.
    fn insert_if_current(
        &mut self,
        (id, number): (ExecutionId, u64),
        part: CachePart,
        cached_value: CachedValue,
    ) {
        let size = cached_value.size();
        // A change during the read has removed the entry, and a later request may have created another one.
        let entry = self.entries.get_mut(&id).filter(|entry| entry.number == number);
        let Some(entry) = entry.filter(|_| size <= MAX_PART_BYTES) else { return };
        let slot = entry.parts.iter_mut().find(|(known, _)| *known == part);
        if let Some((_, slot @ None)) = slot {
            *slot = Some(cached_value);
            entry.bytes += size;
            self.bytes += size;
        }
        while self.bytes > MAX_CACHE_BYTES && !self.insertion_order.is_empty() {
            self.evict_oldest();
        }
    }

    fn evict_oldest(&mut self) {
        let Some((id, number)) = self.insertion_order.pop_front() else { return };
        if self.entries.get(&id).is_some_and(|entry| entry.number == number) {
            self.invalidate(Invalidation::One(id));
        }
    }

    fn invalidate(&mut self, invalidation: Invalidation) {
        match invalidation {
            Invalidation::Nothing => {}
            Invalidation::One(id) => {
                // `insertion_order` keeps its entry; its number shows later that it is outdated.
                self.bytes -= self.entries.remove(&id).map_or(0, |entry| entry.bytes);
            }
            Invalidation::Any => {
                self.entries.clear();
                self.insertion_order.clear();
                self.original_requests.clear();
                self.bytes = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::execution::event::{Event, EventKind};
    use chrono::DateTime;

    use super::*;

    const ALL_EVENTS: CachePart = CachePart::Events;

    fn text(length: usize) -> CachedValue {
        CachedValue::Text("x".repeat(length))
    }

    /// Requests texts of a length; returns the number of actual reads.
    async fn request_and_count_reads(
        read_cache: &ReadCache,
        id: ExecutionId,
        length: usize,
        times: usize,
    ) -> usize {
        let mut read_count = 0;
        for _ in 0..times {
            let reading = async {
                read_count += 1;
                Ok("x".repeat(length))
            };
            assert_eq!(
                read_cache.read_through((id, ALL_EVENTS), || reading).await.unwrap().len(),
                length
            );
        }
        read_count
    }

    #[tokio::test]
    async fn a_second_read_fills_the_cache_until_it_is_invalidated() {
        let (read_cache, changed, unchanged) =
            (ReadCache::default(), ExecutionId::generate(), ExecutionId::generate());
        assert_eq!(request_and_count_reads(&read_cache, changed, 7, 9).await, 2);
        assert_eq!(request_and_count_reads(&read_cache, unchanged, 7, 9).await, 2);
        read_cache.invalidate([Invalidation::Nothing, Invalidation::One(changed)]).await;
        assert_eq!(request_and_count_reads(&read_cache, changed, 8, 9).await, 2);
        assert_eq!(request_and_count_reads(&read_cache, unchanged, 7, 9).await, 0);
        read_cache.invalidate([Invalidation::Any]).await;
        assert_eq!(request_and_count_reads(&read_cache, unchanged, 9, 9).await, 2);
        let large = ExecutionId::generate();
        assert_eq!(request_and_count_reads(&read_cache, large, MAX_PART_BYTES + 1, 9).await, 9);
    }

    /// A read that was overtaken by a change must not cache its outdated result.
    #[tokio::test]
    async fn a_value_changed_while_it_was_read_is_not_cached() {
        let (read_cache, id) = (ReadCache::default(), ExecutionId::generate());
        request_and_count_reads(&read_cache, id, 7, 1).await;
        let reading = async {
            read_cache.invalidate([Invalidation::One(id)]).await;
            request_and_count_reads(&read_cache, id, 8, 1).await;
            Ok("old".to_owned())
        };
        read_cache.read_through((id, ALL_EVENTS), || reading).await.unwrap();
        assert_eq!(request_and_count_reads(&read_cache, id, 8, 3).await, 1);
    }

    /// The size limit also applies to very long messages of an agent.
    #[test]
    fn a_large_value_is_not_cached() {
        for (length, is_cached) in [(MAX_PART_BYTES / 2, true), (MAX_PART_BYTES, false)] {
            let (mut state, id) = (CacheState::default(), ExecutionId::generate());
            state.lookup(id, ALL_EVENTS);
            let event_kind = EventKind::Warning { message: "x".repeat(length) };
            let event = Event { number: 1, at: DateTime::UNIX_EPOCH, data: event_kind };
            state.insert_if_current(
                (id, state.last_entry_number),
                ALL_EVENTS,
                CachedValue::Events(vec![event]),
            );
            assert_eq!(
                matches!(state.lookup(id, ALL_EVENTS), CacheLookup::Hit(_)),
                is_cached,
                "{length}"
            );
        }
    }

    #[test]
    fn the_cache_is_bounded_and_evicts_the_oldest() {
        let mut state = CacheState::default();
        let ids: Vec<_> =
            (0..MAX_CACHED_EXECUTIONS + 10).map(|_| ExecutionId::generate()).collect();
        for id in &ids {
            state.lookup(*id, ALL_EVENTS);
        }
        assert_eq!(
            (state.entries.len(), state.insertion_order.len()),
            (MAX_CACHED_EXECUTIONS, MAX_CACHED_EXECUTIONS)
        );
        assert!(matches!(state.lookup(ids[10], ALL_EVENTS), CacheLookup::SecondMiss(_)));
        for id in &ids[10..] {
            let CacheLookup::SecondMiss(number) = state.lookup(*id, ALL_EVENTS) else {
                panic!("it was asked for")
            };
            state.insert_if_current((*id, number), ALL_EVENTS, text(MAX_PART_BYTES));
            assert!(state.bytes <= MAX_CACHE_BYTES);
        }
        let cached_count = MAX_CACHE_BYTES / MAX_PART_BYTES;
        assert_eq!(
            (state.entries.len(), state.bytes),
            (cached_count, cached_count * MAX_PART_BYTES)
        );
        assert!(matches!(
            state.lookup(ids[MAX_CACHED_EXECUTIONS + 9], ALL_EVENTS),
            CacheLookup::Hit(_)
        ));
        state.invalidate(Invalidation::Any);
        assert_eq!((state.entries.len(), state.insertion_order.len(), state.bytes), (0, 0, 0));
    }
}

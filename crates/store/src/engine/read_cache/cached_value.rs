//! Cached values of all kinds.

use std::collections::BTreeMap;

use algonius_actors::model::execution::event::Event;
use algonius_actors::model::execution::record::ExecutionRecord;

/// Assumed size of a record without the fields that its caller chose, in bytes.
const BASE_RECORD_BYTES: usize = 1 << 10;

/// Cached value.
#[derive(Debug, Clone)]
pub(crate) enum CachedValue {
    /// Row of an execution.
    Record(Box<ExecutionRecord>),
    /// Events of an execution.
    Events(Vec<Event>),
    /// Text of an execution.
    Text(String),
}

/// Type that the cache can hold.
pub(crate) trait Cacheable: Sized + Clone + Sync {
    /// Converts the value into a cached value; returns `None` for an absent value.
    fn to_cached(&self) -> Option<CachedValue>;
    /// Converts a cached value back.
    fn from_cached(cached_value: CachedValue) -> Option<Self>;
}

impl Cacheable for Option<ExecutionRecord> {
    fn to_cached(&self) -> Option<CachedValue> {
        self.clone().map(Box::new).map(CachedValue::Record)
    }

    fn from_cached(cached_value: CachedValue) -> Option<Self> {
        let CachedValue::Record(record) = cached_value else { return None };
        Some(Some(*record))
    }
}

impl Cacheable for Vec<Event> {
    fn to_cached(&self) -> Option<CachedValue> {
        Some(CachedValue::Events(self.clone()))
    }

    fn from_cached(cached_value: CachedValue) -> Option<Self> {
        let CachedValue::Events(events) = cached_value else { return None };
        Some(events)
    }
}

impl Cacheable for String {
    fn to_cached(&self) -> Option<CachedValue> {
        Some(CachedValue::Text(self.clone()))
    }

    fn from_cached(cached_value: CachedValue) -> Option<Self> {
        let CachedValue::Text(text) = cached_value else { return None };
        Some(text)
    }
}

impl CachedValue {
    /// Returns the approximate size, in bytes.
    pub(in crate::engine::read_cache) fn size(&self) -> usize {
        match self {
            // Fields that a caller chose may be long.
            Self::Record(record) => {
                BASE_RECORD_BYTES
                    + total_length(&record.params)
                    + total_length(&record.overrides.env)
            }
            Self::Events(events) => {
                let serialized = events.iter().map(|event| serde_json::to_string(&event.data));
                serialized
                    .map(|text| text.map_or(0, |text| BASE_RECORD_BYTES / 2 + text.len()))
                    .sum()
            }
            Self::Text(text) => text.len(),
        }
    }
}

fn total_length(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(key, value)| key.len() + value.len()).sum()
}

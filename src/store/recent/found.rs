//! The kinds of what is kept, as one.

use std::collections::BTreeMap;

use algonius_actors::model::event::Event;
use algonius_actors::model::record::Record;

/// Bytes of a record without what its caller chose.
const USUAL: usize = 1 << 10;

/// What was read.
#[derive(Debug, Clone)]
pub(in crate::store) enum Found {
    /// A row.
    Record(Box<Record>),
    /// Events.
    Events(Vec<Event>),
    /// Text.
    Text(String),
}

/// What can be kept.
pub(in crate::store) trait Kept: Sized + Clone + Sync {
    /// As one of all kinds; `None` for what is not there.
    fn put(&self) -> Option<Found>;
    /// Out of all kinds.
    fn take(found: Found) -> Option<Self>;
}

impl Kept for Option<Record> {
    fn put(&self) -> Option<Found> {
        self.clone().map(Box::new).map(Found::Record)
    }

    fn take(found: Found) -> Option<Self> {
        let Found::Record(record) = found else { return None };
        Some(Some(*record))
    }
}

impl Kept for Vec<Event> {
    fn put(&self) -> Option<Found> {
        Some(Found::Events(self.clone()))
    }

    fn take(found: Found) -> Option<Self> {
        let Found::Events(events) = found else { return None };
        Some(events)
    }
}

impl Kept for String {
    fn put(&self) -> Option<Found> {
        Some(Found::Text(self.clone()))
    }

    fn take(found: Found) -> Option<Self> {
        let Found::Text(text) = found else { return None };
        Some(text)
    }
}

impl Found {
    /// How large it is, about.
    pub(super) fn size(&self) -> usize {
        match self {
            // What a caller chose may be long.
            Self::Record(record) => {
                USUAL + lengths(&record.params) + lengths(&record.overrides.env)
            }
            Self::Events(events) => {
                let told = events.iter().map(|event| serde_json::to_string(&event.fact));
                told.map(|text| text.map_or(0, |text| USUAL / 2 + text.len())).sum()
            }
            Self::Text(text) => text.len(),
        }
    }
}

fn lengths(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(name, text)| name.len() + text.len()).sum()
}

//! Filter for events of an attempt that is replayed from its start.
//!
//! A driver that resumes held work reads all of its output again. The resulting events are the same, except for the
//! points at which growing text was split; so known events are omitted, and of partly known text the rest is reported.

use std::sync::Arc;

use tokio::sync::watch;

use crate::decide::budget::add_usage;
use crate::model::agent::budget::Charge;
use crate::model::execution::content::StoredPart;
use crate::model::execution::event::{EventKind, TextChannel, TextRange};

/// Events that are already recorded. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ReplayFilter(Arc<watch::Sender<RecordedEvents>>);

#[derive(Debug, Default)]
struct RecordedEvents {
    left: Vec<EventKind>,
    /// Offset up to which the partial answer was already shown, in bytes.
    shown: u64,
}

impl ReplayFilter {
    /// Creates the filter from recorded events.
    #[must_use]
    pub fn new(facts: Vec<EventKind>) -> Self {
        let shown = facts.iter().filter_map(grown).map(|span| span.to).max().unwrap_or_default();
        Self(Arc::new(watch::Sender::new(RecordedEvents { left: facts, shown })))
    }

    /// Returns the usage that the agent had reported.
    pub(super) fn counted(&self) -> Charge {
        let facts = self.0.borrow();
        facts.left.iter().fold(Charge::default(), |counted, fact| match fact {
            EventKind::UsageReported { counters: numbers, cumulative } => {
                add_usage(counted, Charge::counted(numbers), *cumulative).0
            }
            _ => counted,
        })
    }

    /// Returns the new part of an event; `None` if all of it is known.
    pub(super) fn filter(&self, fact: EventKind) -> Option<EventKind> {
        let is_known = self.0.send_if_modified(|facts| {
            let place = facts.left.iter().position(|known| *known == fact);
            place.map(|place| facts.left.swap_remove(place)).is_some()
        });
        if is_known { None } else { self.remainder(fact) }
    }

    fn remainder(&self, mut fact: EventKind) -> Option<EventKind> {
        let shown = self.0.borrow().shown;
        let (Some(span), EventKind::Artifact { pieces, append, last, .. }) =
            (grown(&fact), &mut fact)
        else {
            return Some(fact);
        };
        if shown > span.from {
            *pieces = vec![StoredPart::text(TextRange { from: shown.min(span.to), ..span })];
            *append = true;
            if span.to <= shown && !*last {
                return None;
            }
        }
        Some(fact)
    }
}

/// Returns the range of a partial answer in an event.
fn grown(fact: &EventKind) -> Option<TextRange> {
    let EventKind::Artifact { pieces, .. } = fact else { return None };
    let [piece] = pieces.as_slice() else { return None };
    (piece.text.channel == TextChannel::Answer).then_some(piece.text)
}

#[cfg(test)]
mod tests {
    use super::ReplayFilter;
    use crate::model::execution::AttemptId;
    use crate::model::execution::content::StoredPart;
    use crate::model::execution::event::{EventKind, TextChannel, TextRange};

    fn span(from: u64, to: u64) -> TextRange {
        TextRange { attempt_id: AttemptId::FIRST, channel: TextChannel::Answer, from, to }
    }

    fn grown(from: u64, to: u64, append: bool, last: bool) -> EventKind {
        let pieces = vec![StoredPart::text(span(from, to))];
        let id = "answer".to_owned();
        EventKind::Artifact { id, name: None, description: None, pieces, append, last }
    }

    fn warned(message: &str) -> EventKind {
        EventKind::Warning { message: message.to_owned() }
    }

    #[test]
    fn each_replayed_event_is_filtered_exactly_once() {
        let known =
            ReplayFilter::new(vec![warned("a"), EventKind::ProcessStarted { pid: 7 }, warned("a")]);
        assert_eq!(known.filter(EventKind::ProcessStarted { pid: 7 }), None);
        assert_eq!(known.filter(warned("a")), None);
        assert_eq!(known.filter(warned("a")), None);
        assert_eq!(known.filter(warned("a")), Some(warned("a")));
        assert_eq!(known.filter(warned("b")), Some(warned("b")));
    }

    #[test]
    fn a_replayed_answer_reports_only_its_new_part() {
        let recorded = || vec![grown(0, 10, false, false), grown(10, 30, true, false)];
        for cuts in [&[30, 50][..], &[5, 25, 50], &[10, 30, 50], &[50]] {
            let known = ReplayFilter::new(recorded());
            let mut from = 0;
            let mut shown = 30;
            for to in cuts {
                if let Some(fact) = known.filter(grown(from, *to, from > 0, false)) {
                    assert_eq!(fact, grown(shown, *to, true, false), "{cuts:?}");
                    shown = *to;
                }
                from = *to;
            }
            assert_eq!(shown, 50, "{cuts:?}");
            assert_eq!(known.filter(grown(50, 60, true, true)), Some(grown(50, 60, true, true)));
        }
    }

    #[test]
    fn a_replayed_answer_without_its_end_gets_it() {
        let known = ReplayFilter::new(vec![grown(0, 30, false, false)]);
        assert_eq!(known.filter(grown(0, 30, false, true)), Some(grown(30, 30, true, true)));
        assert_eq!(
            ReplayFilter::default().filter(grown(0, 9, false, true)),
            Some(grown(0, 9, false, true))
        );
    }
}

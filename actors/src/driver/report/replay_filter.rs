//! Filter for events of an attempt that is replayed from its start.
//!
//! A driver that resumes held work reads all of its output again. The resulting events are the same, except for the
//! points at which growing text was split; so known events are omitted, and of partly known text the rest is reported.

use std::sync::Arc;

use tokio::sync::watch;

use crate::decide::budget::total_and_increment;
use crate::model::agent::budget::Charge;
use crate::model::execution::content::StoredPart;
use crate::model::execution::event::{EventKind, TextChannel, TextRange};

/// Events that are already recorded. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ReplayFilter(Arc<watch::Sender<RecordedEvents>>);

#[derive(Debug, Default)]
struct RecordedEvents {
    unmatched_events: Vec<EventKind>,
    /// Offset up to which the partial answer was already shown, in bytes.
    answer_end: u64,
}

impl ReplayFilter {
    /// Creates the filter from recorded events.
    #[must_use]
    pub fn new(events: Vec<EventKind>) -> Self {
        let answer_end =
            events.iter().filter_map(answer_range).map(|span| span.to).max().unwrap_or_default();
        Self(Arc::new(watch::Sender::new(RecordedEvents { unmatched_events: events, answer_end })))
    }

    /// Returns the usage that the agent had reported.
    pub(super) fn recorded_usage(&self) -> Charge {
        let recorded = self.0.borrow();
        recorded.unmatched_events.iter().fold(Charge::default(), |usage, event| match event {
            EventKind::UsageReported { counters, cumulative } => {
                total_and_increment(usage, Charge::from_counters(counters), *cumulative).0
            }
            _ => usage,
        })
    }

    /// Returns the new part of an event; `None` if all of it is known.
    pub(super) fn filter(&self, event: EventKind) -> Option<EventKind> {
        let is_known = self.0.send_if_modified(|recorded| {
            let index = recorded.unmatched_events.iter().position(|known| *known == event);
            index.map(|index| recorded.unmatched_events.swap_remove(index)).is_some()
        });
        if is_known { None } else { self.trim_recorded_answer(event) }
    }

    fn trim_recorded_answer(&self, mut event: EventKind) -> Option<EventKind> {
        let answer_end = self.0.borrow().answer_end;
        let (Some(range), EventKind::Artifact { pieces, append, last, .. }) =
            (answer_range(&event), &mut event)
        else {
            return Some(event);
        };
        if answer_end > range.from {
            *pieces = vec![StoredPart::text(TextRange { from: answer_end.min(range.to), ..range })];
            *append = true;
            if range.to <= answer_end && !*last {
                return None;
            }
        }
        Some(event)
    }
}

/// Returns the range of a partial answer in an event.
fn answer_range(event: &EventKind) -> Option<TextRange> {
    let EventKind::Artifact { pieces, .. } = event else { return None };
    let [piece] = pieces.as_slice() else { return None };
    (piece.text.channel == TextChannel::Answer).then_some(piece.text)
}

#[cfg(test)]
mod tests {
    use super::ReplayFilter;
    use crate::model::execution::AttemptId;
    use crate::model::execution::content::StoredPart;
    use crate::model::execution::event::{EventKind, TextChannel, TextRange};

    fn answer_text_range(from: u64, to: u64) -> TextRange {
        TextRange { attempt_id: AttemptId::FIRST, channel: TextChannel::Answer, from, to }
    }

    fn answer_event(from: u64, to: u64, append: bool, last: bool) -> EventKind {
        let pieces = vec![StoredPart::text(answer_text_range(from, to))];
        let id = "answer".to_owned();
        EventKind::Artifact { id, name: None, description: None, pieces, append, last }
    }

    fn warning(message: &str) -> EventKind {
        EventKind::Warning { message: message.to_owned() }
    }

    #[test]
    fn each_replayed_event_is_filtered_exactly_once() {
        let replay_filter = ReplayFilter::new(vec![
            warning("a"),
            EventKind::ProcessStarted { pid: 7 },
            warning("a"),
        ]);
        assert_eq!(replay_filter.filter(EventKind::ProcessStarted { pid: 7 }), None);
        assert_eq!(replay_filter.filter(warning("a")), None);
        assert_eq!(replay_filter.filter(warning("a")), None);
        assert_eq!(replay_filter.filter(warning("a")), Some(warning("a")));
        assert_eq!(replay_filter.filter(warning("b")), Some(warning("b")));
    }

    #[test]
    fn a_replayed_answer_reports_only_its_new_part() {
        let recorded =
            || vec![answer_event(0, 10, false, false), answer_event(10, 30, true, false)];
        for cuts in [&[30, 50][..], &[5, 25, 50], &[10, 30, 50], &[50]] {
            let replay_filter = ReplayFilter::new(recorded());
            let mut from = 0;
            let mut reported_end = 30;
            for to in cuts {
                if let Some(event) = replay_filter.filter(answer_event(from, *to, from > 0, false))
                {
                    assert_eq!(event, answer_event(reported_end, *to, true, false), "{cuts:?}");
                    reported_end = *to;
                }
                from = *to;
            }
            assert_eq!(reported_end, 50, "{cuts:?}");
            assert_eq!(
                replay_filter.filter(answer_event(50, 60, true, true)),
                Some(answer_event(50, 60, true, true))
            );
        }
    }

    #[test]
    fn a_replayed_answer_without_its_end_gets_it() {
        let replay_filter = ReplayFilter::new(vec![answer_event(0, 30, false, false)]);
        assert_eq!(
            replay_filter.filter(answer_event(0, 30, false, true)),
            Some(answer_event(30, 30, true, true))
        );
        assert_eq!(
            ReplayFilter::default().filter(answer_event(0, 9, false, true)),
            Some(answer_event(0, 9, false, true))
        );
    }
}

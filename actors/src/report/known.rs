//! What an earlier life told of an attempt that is told again from its beginning.
//!
//! A driver that takes up held work reads all of it once more. What it makes of it is the same, but
//! for the places at which text that grows was cut; so what is known is left out, and of text that
//! is known in part the rest is told.

use std::sync::Arc;

use tokio::sync::watch;

use crate::decide::budget::count;
use crate::model::budget::Charge;
use crate::model::content::Piece;
use crate::model::event::{Channel, Fact, Span};

/// Facts that need not be told again. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Known(Arc<watch::Sender<Facts>>);

#[derive(Debug, Default)]
struct Facts {
    left: Vec<Fact>,
    /// How far the answer that grows was shown.
    shown: u64,
}

impl Known {
    /// These are known.
    #[must_use]
    pub fn new(facts: Vec<Fact>) -> Self {
        let shown = facts.iter().filter_map(grown).map(|span| span.to).max().unwrap_or_default();
        Self(Arc::new(watch::Sender::new(Facts { left: facts, shown })))
    }

    /// What the agent had counted by then.
    pub(super) fn counted(&self) -> Charge {
        let facts = self.0.borrow();
        facts.left.iter().fold(Charge::default(), |counted, fact| match fact {
            Fact::Used { numbers, cumulative } => {
                count(counted, Charge::counted(numbers), *cumulative).0
            }
            _ => counted,
        })
    }

    /// What is new of a fact; `None` when nothing is.
    pub(super) fn sift(&self, fact: Fact) -> Option<Fact> {
        let is_known = self.0.send_if_modified(|facts| {
            let place = facts.left.iter().position(|known| *known == fact);
            place.map(|place| facts.left.swap_remove(place)).is_some()
        });
        if is_known { None } else { self.rest(fact) }
    }

    fn rest(&self, mut fact: Fact) -> Option<Fact> {
        let shown = self.0.borrow().shown;
        let (Some(span), Fact::Artifact { pieces, append, last, .. }) = (grown(&fact), &mut fact)
        else {
            return Some(fact);
        };
        if shown > span.from {
            *pieces = vec![Piece::text(Span { from: shown.min(span.to), ..span })];
            *append = true;
            if span.to <= shown && !*last {
                return None;
            }
        }
        Some(fact)
    }
}

/// The span of the answer that is told piece by piece.
fn grown(fact: &Fact) -> Option<Span> {
    let Fact::Artifact { pieces, .. } = fact else { return None };
    let [piece] = pieces.as_slice() else { return None };
    (piece.text.channel == Channel::Answer).then_some(piece.text)
}

#[cfg(test)]
mod tests {
    use super::Known;
    use crate::model::content::Piece;
    use crate::model::event::{Channel, Fact, Span};
    use crate::model::execution::Stamp;

    fn span(from: u64, to: u64) -> Span {
        Span { stamp: Stamp::FIRST, channel: Channel::Answer, from, to }
    }

    fn grown(from: u64, to: u64, append: bool, last: bool) -> Fact {
        let pieces = vec![Piece::text(span(from, to))];
        let id = "answer".to_owned();
        Fact::Artifact { id, name: None, description: None, pieces, append, last }
    }

    fn warned(message: &str) -> Fact {
        Fact::Warned { message: message.to_owned() }
    }

    #[test]
    fn what_was_told_is_not_told_again_and_each_only_once() {
        let known = Known::new(vec![warned("a"), Fact::Spawned { pid: 7 }, warned("a")]);
        assert_eq!(known.sift(Fact::Spawned { pid: 7 }), None);
        assert_eq!(known.sift(warned("a")), None);
        assert_eq!(known.sift(warned("a")), None);
        assert_eq!(known.sift(warned("a")), Some(warned("a")));
        assert_eq!(known.sift(warned("b")), Some(warned("b")));
    }

    #[test]
    fn of_an_answer_that_grows_only_the_rest_is_told_wherever_it_is_cut() {
        let told = || vec![grown(0, 10, false, false), grown(10, 30, true, false)];
        for cuts in [&[30, 50][..], &[5, 25, 50], &[10, 30, 50], &[50]] {
            let known = Known::new(told());
            let mut from = 0;
            let mut shown = 30;
            for to in cuts {
                if let Some(fact) = known.sift(grown(from, *to, from > 0, false)) {
                    assert_eq!(fact, grown(shown, *to, true, false), "{cuts:?}");
                    shown = *to;
                }
                from = *to;
            }
            assert_eq!(shown, 50, "{cuts:?}");
            assert_eq!(known.sift(grown(50, 60, true, true)), Some(grown(50, 60, true, true)));
        }
    }

    #[test]
    fn an_answer_that_had_all_but_its_end_gets_it() {
        let known = Known::new(vec![grown(0, 30, false, false)]);
        assert_eq!(known.sift(grown(0, 30, false, true)), Some(grown(30, 30, true, true)));
        assert_eq!(Known::default().sift(grown(0, 9, false, true)), Some(grown(0, 9, false, true)));
    }
}

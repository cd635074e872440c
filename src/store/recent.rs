//! What was read again and has not changed since: whoever looks at an execution time after time is
//! answered from memory.
//!
//! Kept is what was asked for a second time, since most is read once. The writer has it forgotten before
//! it says that it changed an execution, so that nobody reads what he knows to be over.

mod found;

use std::collections::{HashMap, VecDeque};

use algonius_actors::model::event::Span;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use tokio::sync::Mutex;

use super::sql;
use found::{Found, Kept};

/// Executions of which something is kept or was asked for once, at most.
const MOST: usize = 1024;

/// So much of one execution is kept, in parts.
const PARTS: usize = 16;

/// The largest part that is kept, in bytes; about.
const LARGEST: usize = 64 << 10;

/// What is kept in all, in bytes; about.
const ROOM: usize = 2 << 20;

/// Of which executions a change may have changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touched {
    /// Of none.
    Nothing,
    /// Of one.
    One(ExecutionId),
    /// Of any.
    Any,
}

/// A part of what the ledger has of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Its row.
    Record,
    /// All of its events.
    Events,
    /// Some of its text.
    Text(Span),
}

/// By whom a message was sent, to which agent, and under which key.
pub(super) type Sent = (PrincipalId, AgentId, [u8; 32]);

/// Its execution, and the digest of what it asks.
pub(super) type Twin = (ExecutionId, [u8; 32]);

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    known: HashMap<ExecutionId, Entry>,
    /// In which order they came; those that were forgotten may still be among them.
    order: VecDeque<(ExecutionId, u64)>,
    /// Of all that is kept.
    bytes: usize,
    /// Of the last entry.
    number: u64,
    /// Messages that came again. Nothing of this changes until they are removed.
    twins: HashMap<Sent, Twin>,
}

/// What is known of one execution since nothing of it has changed.
#[derive(Debug)]
struct Entry {
    /// No other entry has it, whatever was forgotten meanwhile.
    number: u64,
    /// What was asked for; kept from the second time on.
    parts: Vec<(Part, Option<Found>)>,
    bytes: usize,
}

/// What a shelf has of a part.
enum Seen {
    /// It.
    Known(Found),
    /// Nothing yet, and it was asked for before, under this entry.
    Again(u64),
    /// Nothing.
    Never,
}

impl Recent {
    /// A part as it is kept, or else as it is read. Reading has a box of its own, since most who ask often
    /// need none.
    pub(super) async fn ask<T: Kept, R: Future<Output = sql::Result<T>>>(
        &self,
        (id, part): (ExecutionId, Part),
        read: impl FnOnce() -> R,
    ) -> sql::Result<T> {
        let entry = match self.0.lock().await.look(id, part) {
            Seen::Known(found) => match T::take(found) {
                Some(found) => return Ok(found),
                None => None,
            },
            Seen::Again(number) => Some(number),
            Seen::Never => None,
        };
        let read = Box::pin(read()).await?;
        if let Some(number) = entry
            && let Some(found) = read.put()
        {
            self.0.lock().await.keep((id, number), part, found);
        }
        Ok(read)
    }

    /// What is known of a message that came again.
    pub(super) async fn twin(&self, sent: &Sent) -> Option<Twin> {
        self.0.lock().await.twins.get(sent).copied()
    }

    /// A message has come again.
    pub(super) async fn came_again(&self, sent: Sent, twin: Twin) {
        let twins = &mut self.0.lock().await.twins;
        if twins.len() >= MOST {
            twins.clear();
        }
        twins.insert(sent, twin);
    }

    /// What is known of these is over.
    pub(super) async fn forget(&self, touched: impl IntoIterator<Item = Touched>) {
        let mut shelf = self.0.lock().await;
        touched.into_iter().for_each(|touched| shelf.forget(touched));
    }
}

impl Shelf {
    fn look(&mut self, id: ExecutionId, part: Part) -> Seen {
        let Some(entry) = self.known.get_mut(&id) else {
            self.begin(id, part);
            return Seen::Never;
        };
        match entry.parts.iter().find(|(known, _)| *known == part) {
            Some((_, Some(found))) => return Seen::Known(found.clone()),
            Some((_, None)) => return Seen::Again(entry.number),
            None => {}
        }
        if entry.parts.len() < PARTS {
            entry.parts.push((part, None));
        }
        Seen::Never
    }

    fn begin(&mut self, id: ExecutionId, part: Part) {
        self.number += 1;
        let entry = Entry { number: self.number, parts: vec![(part, None)], bytes: 0 };
        self.known.insert(id, entry);
        self.order.push_back((id, self.number));
        if self.order.len() > MOST {
            self.drop_oldest();
        }
    }

    /// Keeps a part, where nothing of its execution has changed since it was asked for.
    fn keep(&mut self, (id, number): (ExecutionId, u64), part: Part, found: Found) {
        let size = found.size();
        let entry = self.known.get_mut(&id).filter(|entry| entry.number == number);
        let Some(entry) = entry.filter(|_| size <= LARGEST) else { return };
        let place = entry.parts.iter_mut().find(|(known, _)| *known == part);
        if let Some((_, place @ None)) = place {
            *place = Some(found);
            entry.bytes += size;
            self.bytes += size;
        }
        while self.bytes > ROOM && !self.order.is_empty() {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((id, number)) = self.order.pop_front() else { return };
        if self.known.get(&id).is_some_and(|entry| entry.number == number) {
            self.forget(Touched::One(id));
        }
    }

    fn forget(&mut self, touched: Touched) {
        match touched {
            Touched::Nothing => {}
            Touched::One(id) => {
                self.bytes -= self.known.remove(&id).map_or(0, |entry| entry.bytes);
            }
            Touched::Any => {
                self.known.clear();
                self.order.clear();
                self.twins.clear();
                self.bytes = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::event::{Event, Fact};
    use chrono::DateTime;

    use super::*;

    const WHOLE: Part = Part::Events;

    fn text(length: usize) -> Found {
        Found::Text("x".repeat(length))
    }

    /// Asks for texts of a length; answers how often it was really read.
    async fn reads(recent: &Recent, id: ExecutionId, length: usize, times: usize) -> usize {
        let mut read = 0;
        for _ in 0..times {
            let reading = async {
                read += 1;
                Ok("x".repeat(length))
            };
            assert_eq!(recent.ask((id, WHOLE), || reading).await.unwrap().len(), length);
        }
        read
    }

    #[tokio::test]
    async fn what_is_asked_for_again_is_read_twice_and_anew_once_it_was_touched() {
        let (recent, one, other) = (Recent::default(), ExecutionId::fresh(), ExecutionId::fresh());
        assert_eq!(reads(&recent, one, 7, 9).await, 2);
        assert_eq!(reads(&recent, other, 7, 9).await, 2);
        recent.forget([Touched::Nothing, Touched::One(one)]).await;
        assert_eq!(reads(&recent, one, 8, 9).await, 2);
        assert_eq!(reads(&recent, other, 7, 9).await, 0);
        recent.forget([Touched::Any]).await;
        assert_eq!(reads(&recent, other, 9, 9).await, 2);
        let large = ExecutionId::fresh();
        assert_eq!(reads(&recent, large, LARGEST + 1, 9).await, 9);
    }

    /// A reader that was overtaken by a change must not leave behind what it read before.
    #[tokio::test]
    async fn what_changed_while_it_was_read_is_not_kept() {
        let (recent, id) = (Recent::default(), ExecutionId::fresh());
        reads(&recent, id, 7, 1).await;
        let reading = async {
            recent.forget([Touched::One(id)]).await;
            reads(&recent, id, 8, 1).await;
            Ok("old".to_owned())
        };
        recent.ask((id, WHOLE), || reading).await.unwrap();
        assert_eq!(reads(&recent, id, 8, 3).await, 1);
    }

    /// However long what an agent said is: there is no more room than there is.
    #[test]
    fn what_is_long_is_not_kept() {
        for (length, is_kept) in [(LARGEST / 2, true), (LARGEST, false)] {
            let (mut shelf, id) = (Shelf::default(), ExecutionId::fresh());
            shelf.look(id, WHOLE);
            let fact = Fact::Warned { message: "x".repeat(length) };
            let event = Event { number: 1, at: DateTime::UNIX_EPOCH, fact };
            shelf.keep((id, shelf.number), WHOLE, Found::Events(vec![event]));
            assert_eq!(matches!(shelf.look(id, WHOLE), Seen::Known(_)), is_kept, "{length}");
        }
    }

    #[test]
    fn there_is_room_for_so_much_and_the_oldest_go_first() {
        let mut shelf = Shelf::default();
        let ids: Vec<_> = (0..MOST + 10).map(|_| ExecutionId::fresh()).collect();
        for id in &ids {
            shelf.look(*id, WHOLE);
        }
        assert_eq!((shelf.known.len(), shelf.order.len()), (MOST, MOST));
        assert!(matches!(shelf.look(ids[10], WHOLE), Seen::Again(_)));
        for id in &ids[10..] {
            let Seen::Again(number) = shelf.look(*id, WHOLE) else { panic!("it was asked for") };
            shelf.keep((*id, number), WHOLE, text(LARGEST));
            assert!(shelf.bytes <= ROOM);
        }
        let kept = ROOM / LARGEST;
        assert_eq!((shelf.known.len(), shelf.bytes), (kept, kept * LARGEST));
        assert!(matches!(shelf.look(ids[MOST + 9], WHOLE), Seen::Known(_)));
        shelf.forget(Touched::Any);
        assert_eq!((shelf.known.len(), shelf.order.len(), shelf.bytes), (0, 0, 0));
    }
}

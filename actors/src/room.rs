//! The memory that executions may take together: one whose agent says how much it takes begins when
//! there is so much left.
//!
//! What is counted is what agents say, not what is measured: a program that has just begun takes little
//! yet, and ten of them would all be let in.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::model::id::ExecutionId;
use crate::turns::Turns;

/// The room of a service. Cheap to clone; without a bound there is room for all.
#[derive(Clone, Default)]
pub struct Room {
    most: Option<u64>,
    taken: Arc<watch::Sender<BTreeMap<ExecutionId, u64>>>,
}

impl Room {
    /// Room for so many bytes.
    #[must_use]
    pub fn of(most: Option<u64>) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Takes so much of it; `None` where others have too much of it. Who is alone may have it all and
    /// more: it would wait for ever.
    pub(crate) fn enter(&self, id: ExecutionId, bytes: u64, turns: &Turns) -> Option<Berth> {
        let is_in = self.taken.send_if_modified(|taken| {
            let others = taken.iter().filter(|(other, _)| **other != id);
            let sum = others.fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
            let fits = sum == 0 || self.most.is_none_or(|most| sum.saturating_add(bytes) <= most);
            if fits {
                taken.insert(id, bytes);
            }
            fits
        });
        is_in.then(|| self.berth(id, turns))
    }

    /// Takes so much for one that runs already.
    pub(crate) fn occupy(&self, id: ExecutionId, bytes: u64, turns: &Turns) -> Berth {
        self.taken.send_modify(|taken| {
            taken.insert(id, bytes);
        });
        self.berth(id, turns)
    }

    fn berth(&self, id: ExecutionId, turns: &Turns) -> Berth {
        Berth { id, room: self.clone(), turns: turns.clone() }
    }
}

/// A part of the room. Dropping it gives it back, and wakes nobody: one that is held up elsewhere takes and
/// drops it again and again, and would wake the others, and they it.
pub(crate) struct Berth {
    id: ExecutionId,
    room: Room,
    turns: Turns,
}

impl Berth {
    /// Gives it back, and tells those who wait.
    pub(crate) fn leave(self) {
        let turns = self.turns.clone();
        drop(self);
        turns.rouse();
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.room.taken.send_modify(|taken| {
            taken.remove(&self.id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_held_up_elsewhere_wakes_nobody_and_who_ends_does() {
        let (room, turns) = (Room::of(Some(10)), Turns::default());
        let mut news = turns.listen();
        news.mark_unchanged();
        drop(room.enter(ExecutionId::fresh(), 6, &turns));
        assert!(!news.has_changed().unwrap());
        room.enter(ExecutionId::fresh(), 6, &turns).unwrap().leave();
        assert!(news.has_changed().unwrap());
    }

    #[test]
    fn there_is_room_for_so_much_and_for_one_that_is_alone() {
        let (room, turns) = (Room::of(Some(10)), Turns::default());
        let enter = |bytes| room.enter(ExecutionId::fresh(), bytes, &turns);
        let first = enter(6);
        assert!(first.is_some() && enter(5).is_none());
        let second = enter(4);
        assert!(second.is_some() && enter(1).is_none());
        drop(first);
        assert!(enter(7).is_none() && enter(6).is_some());
        drop(second);
        let huge = enter(99);
        assert!(huge.is_some() && enter(1).is_none());
        let (endless, id) = (Room::default(), ExecutionId::fresh());
        let all: Vec<_> =
            (0..9).map(|_| endless.enter(ExecutionId::fresh(), u64::MAX, &turns)).collect();
        assert!(all.iter().all(Option::is_some));
        let again = (room.enter(id, 0, &turns), room.occupy(id, 50, &turns));
        assert!(again.0.is_none(), "the huge one is there still");
    }
}

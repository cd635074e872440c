//! What those who wait in the line of an agent are shown: their places, kept current.

use std::mem;
use std::time::Duration;

use ractor::ActorRef;

use super::{AgentData, AgentMsg, Waiting};
use crate::model::id::ExecutionId;
use crate::model::queue::{Queued, Reason};
use crate::model::status::QueuedStatus;

/// A line of so many is told of every move.
const SHORT: usize = 64;

/// How old the places in a longer line may be at least: telling thousands of each move was most of the
/// work.
const PAUSE: Duration = Duration::from_millis(100);

/// Of the longest lines so many are told in a millisecond, on the average.
const TOLD_PER_MS: usize = 5;

impl AgentData {
    /// The line has moved.
    pub(super) fn mind_places(&mut self, me: &ActorRef<AgentMsg>) {
        if self.waiting.len() <= SHORT {
            self.show_places();
        } else if !mem::replace(&mut self.are_places_due, true) {
            let me = me.clone();
            let pause = pause(self.waiting.len());
            self.spawn(async move {
                tokio::time::sleep(pause).await;
                _ = me.cast(AgentMsg::PlacesDue); // The timer ends with the actor.
            });
        }
    }

    /// A long line has had its pause.
    pub(super) fn places_due(&mut self) {
        self.are_places_due = false;
        self.show_places();
    }

    /// Tells one who has come to the line where it is.
    pub(super) fn show_place(&self, id: ExecutionId, position: usize) {
        if let Some(one) = self.waiting.get(&id) {
            let place = self.shown(one, Queued::new(position, Reason::AgentBusy));
            one.progress.send_if_modified(|progress| progress.waits(Some(place)));
        }
    }

    /// Tells everyone in the line where they are. Nothing of it is recorded: it is true now only.
    fn show_places(&self) {
        let mut places: std::collections::HashMap<_, _> = self.line.places().collect();
        for (id, one) in &self.waiting {
            // Until it is answered nobody knows of it.
            let place = places.remove(id).filter(|_| one.reply.is_none());
            let place = place.map(|place| self.shown(one, place));
            one.progress.send_if_modified(|progress| progress.waits(place));
        }
    }

    fn shown(&self, one: &Waiting, place: Queued) -> Queued {
        match one.parked {
            Some(parked) => Queued { until: Some(parked.until), ..place },
            None => self.held_up(place),
        }
    }

    pub(super) fn queued(&self) -> Vec<QueuedStatus> {
        let queued = self.line.places().filter_map(|(id, place)| {
            let one = self.waiting.get(&id)?;
            let Queued { position, reason, until } = self.shown(one, place);
            let left = self.args.spec.capacity.patience + self.grace();
            let deadline = one.parked.map_or(one.since + left, |parked| parked.until);
            Some(QueuedStatus { id, position, reason, since: one.since, until, deadline })
        });
        queued.collect()
    }
}

/// How old the places in a line of so many may be.
fn pause(length: usize) -> Duration {
    PAUSE.max(Duration::from_millis((length / TOLD_PER_MS) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_thousands_is_told_as_many_places_in_a_second_as_one_of_hundreds() {
        let told = [65, 500, 10_000, 20_000].map(|length| pause(length).as_millis());
        assert_eq!(told, [100, 100, 2_000, 4_000]);
    }
}

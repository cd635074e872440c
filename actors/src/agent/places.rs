//! What those who wait in the line of an agent are shown: their places, kept current.

use super::{AgentData, Waiting};
use crate::model::queue::Queued;
use crate::model::status::QueuedStatus;

impl AgentData {
    /// Tells everyone in the line where they are. Nothing of it is recorded: it is true now only.
    pub(super) fn show_places(&self) {
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

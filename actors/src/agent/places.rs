//! What those who wait in the line of an agent are shown: their places, kept current.

use super::AgentData;
use crate::model::status::QueuedStatus;

impl AgentData {
    /// Tells everyone in the line where they are. Nothing of it is recorded: it is true now only.
    pub(super) fn show_places(&self) {
        let mut places: std::collections::HashMap<_, _> = self.line.places().collect();
        for (id, one) in &self.waiting {
            // Until it is answered nobody knows of it.
            let place = places.remove(id).filter(|_| one.reply.is_none());
            one.progress.send_if_modified(|progress| progress.waits(place));
        }
    }

    pub(super) fn queued(&self) -> Vec<QueuedStatus> {
        let queued = self.line.places().filter_map(|(id, place)| {
            let one = self.waiting.get(&id)?;
            let (since, position) = (one.since, place.position);
            let deadline = since + self.args.spec.capacity.patience;
            Some(QueuedStatus { id, position, reason: place.reason, since, deadline })
        });
        queued.collect()
    }
}

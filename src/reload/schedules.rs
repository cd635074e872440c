//! Schedules of another configuration.

use algonius_actors::model::schedule::Configured;

use super::Reloader;
use super::difference::changes;
use crate::config::{Scheduled, Scheduling, Settings};
use crate::wire::admin::Changes;

/// The schedules of a configuration, as the tree takes them.
pub(crate) fn schedules(scheduling: &Scheduling) -> Vec<Configured> {
    let schedules = scheduling.schedules.iter();
    schedules.map(|it| Configured { spec: it.spec.clone(), owner: it.owner.clone() }).collect()
}

impl Reloader {
    /// What differs.
    pub(super) fn rescheduled(&self, settings: &Settings) -> Changes {
        let name = |scheduled: &Scheduled| scheduled.spec.id.to_string();
        let (before, after) = (&self.settings.scheduling, &settings.scheduling);
        changes(&before.schedules, &after.schedules, name, |one, it| one == it)
    }

    /// Has the scheduler change over. What it asked for goes on. Where it does not answer it is asked
    /// again with the next configuration, and at the next start.
    pub(super) async fn reschedule(&self) {
        let configured = schedules(&self.settings.scheduling);
        let gateway = self.world.front.gateway();
        if let Err(failure) = gateway.configure_schedules(configured).await {
            tracing::error!(code = %failure.code, "schedules are as they were before the reload");
        }
    }
}

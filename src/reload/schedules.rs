//! Schedules of another configuration.

use algonius_actors::model::failure::Failure;
use algonius_actors::model::schedule::Configured;

use super::Reloader;
use super::difference::changes;
use crate::config::{Scheduled, Scheduling, Settings};
use crate::wire::admin::{Applied, Changes};

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

    /// Has the scheduler change over. What it asked for goes on.
    ///
    /// # Errors
    /// When the scheduler did not. Then those of `before` are in force still, and it is asked again by
    /// the next reload and at the next start.
    pub(super) async fn reschedule(
        &mut self,
        applied: &mut Applied,
        before: Scheduling,
    ) -> Result<(), Failure> {
        if applied.schedules.is_empty() {
            return Ok(());
        }
        let configured = schedules(&self.settings.scheduling);
        let done = self.world.front.gateway().configure_schedules(configured).await;
        if let Err(failure) = &done {
            tracing::error!(code = %failure.code, "schedules are as they were before the reload");
            (self.settings.scheduling, applied.schedules) = (before, Changes::default());
        }
        done
    }
}

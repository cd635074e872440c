//! Schedules of another configuration.

use algonius_actors::api::Api;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::schedule::ConfiguredSchedule;

use super::difference::diff_by_name;
use crate::config::{ScheduleWithOwner, SchedulerSettings};
use crate::wire::admin::{AppliedChanges, Changes};

/// Returns the schedules of a configuration in the form for the scheduler.
pub(crate) fn configured_schedules(scheduling: &SchedulerSettings) -> Vec<ConfiguredSchedule> {
    let schedules = scheduling.schedules.iter();
    schedules
        .map(|it| ConfiguredSchedule { spec: it.spec.clone(), owner: it.owner.clone() })
        .collect()
}

/// Returns the changed schedules.
pub(super) fn schedule_changes(before: &SchedulerSettings, after: &SchedulerSettings) -> Changes {
    let name = |scheduled: &ScheduleWithOwner| scheduled.spec.id.to_string();
    diff_by_name(&before.schedules, &after.schedules, name, |one, it| one == it)
}

/// Applies changed schedules to the scheduler. Their running executions continue.
///
/// # Errors
/// Fails if the scheduler does not apply them. The schedules of `before` stay in force then, and the next reload or
/// start tries again.
pub(super) async fn apply_schedules(
    api: &Api,
    (before, after): (SchedulerSettings, &mut SchedulerSettings),
    applied: &mut AppliedChanges,
) -> Result<(), Failure> {
    if applied.schedules.is_empty() {
        return Ok(());
    }
    let result = api.schedules.configure_schedules(configured_schedules(after)).await;
    if let Err(failure) = &result {
        tracing::error!(code = %failure.code, "failed to apply schedules; the earlier ones stay in force");
        // The next reload compares with the schedules that are in force, so it finds the difference again.
        (*after, applied.schedules) = (before, Changes::default());
    }
    result
}

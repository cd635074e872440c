//! `/api/v1/schedules`: schedules and their occurrences.

pub mod mutations;
pub mod queries;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ScheduleId;
use algonius_actors::model::schedule::ScheduleView;
use algonius_actors::model::schedule::recurrence::RecurrenceRule;

use super::invalid_params;
use crate::serve::AppState;
use crate::wire::api::schedules::{ScheduleEntry, ScheduleRequest};

/// Defaults and rules of the configuration for the schedules of callers.
pub struct ScheduleDefaults {
    /// Time zone of a schedule that names none.
    pub zone: String,
    /// True if cron expressions may have a field for seconds.
    pub allows_seconds: bool,
}

fn parse_recurrence_rule(
    app: &AppState,
    cron: &str,
    zone: Option<&str>,
) -> Result<RecurrenceRule, Failure> {
    let rule = RecurrenceRule::new(
        cron,
        zone.unwrap_or(&app.schedule_defaults.zone),
        app.schedule_defaults.allows_seconds,
    );
    rule.map_err(|error| invalid_params(&error.to_string()))
}

fn schedule_entry(view: &ScheduleView) -> ScheduleEntry {
    let ScheduleView {
        schedule,
        state,
        next_due_at,
        running_executions,
        waiting_occurrence_count: waiting,
        failure_streak,
        is_redacted: redacted,
    } = view;
    let alert_after = schedule.spec.alert_after;
    ScheduleEntry {
        definition: ScheduleRequest::from_spec(&schedule.spec),
        owner: schedule.owner.to_string(),
        origin: schedule.origin,
        state: *state,
        next: *next_due_at,
        working: running_executions.iter().map(ToString::to_string).collect(),
        waiting: *waiting,
        failures_in_a_row: *failure_streak,
        alert: alert_after > 0 && *failure_streak >= alert_after,
        redacted: *redacted,
        input_lost: schedule.has_sealed_texts(),
        created_at: schedule.created_at,
        changed_at: schedule.changed_at,
    }
}

fn parse_schedule_id(id: &str) -> Result<ScheduleId, Failure> {
    ScheduleId::new(id)
        .map_err(|_no_id| Failure::new(Code::ScheduleUnknown, "there is no such schedule"))
}

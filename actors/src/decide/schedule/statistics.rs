//! Statistics of a schedule: the status of its occurrences, the outcomes of its executions, and its punctuality.

use super::due::ON_TIME_TOLERANCE;
use crate::model::code::{Category, Code};
use crate::model::execution::Outcome;
use crate::model::schedule::occurrence::{Occurrence, OccurrenceEnd, OccurrenceStatus};
use crate::model::schedule::statistics::{FailureClass, ScheduleStatistics};

/// Returns the statistics of these occurrences.
#[must_use]
pub fn compute_statistics(occurrences: &[Occurrence]) -> ScheduleStatistics {
    let mut statistics = ScheduleStatistics::default();
    for occurrence in occurrences {
        *statistics.times.entry(occurrence.status).or_default() +=
            u64::from(occurrence.planned_time_count);
        if let Some(ending) = occurrence.end {
            statistics.count_ending(ending);
        }
    }
    let refused = statistics.times.get(&OccurrenceStatus::Refused).copied().unwrap_or_default();
    statistics.success_permille = permille(statistics.succeeded, statistics.ended + refused);
    let deviations = occurrences.iter().filter_map(Occurrence::delay);
    let mut deviations: Vec<i64> = deviations.map(|it| it.num_milliseconds().abs()).collect();
    deviations.sort_unstable();
    let on_time_tolerance_ms = i64::try_from(ON_TIME_TOLERANCE.as_millis()).unwrap_or(i64::MAX);
    let punctual = deviations.iter().filter(|it| **it <= on_time_tolerance_ms).count();
    statistics.punctual_permille = permille(punctual as u64, deviations.len() as u64);
    statistics.delay_p95_ms =
        deviations.get((deviations.len() * 95).div_ceil(100).saturating_sub(1)).copied();
    statistics.delay_max_ms = deviations.last().copied();
    statistics
}

impl ScheduleStatistics {
    fn count_ending(&mut self, ending: OccurrenceEnd) {
        self.ended += 1;
        if ending.outcome == Outcome::Completed {
            self.succeeded += 1;
            self.recovered += u64::from(ending.had_failed_attempt);
        } else {
            *self.failed.entry(failure_class(ending)).or_default() += 1;
        }
    }
}

/// Returns the class of an end that is not a success.
#[must_use]
pub fn failure_class(ending: OccurrenceEnd) -> FailureClass {
    match (ending.outcome, ending.code) {
        (Outcome::Cancelled, _) => FailureClass::Cancelled,
        (Outcome::Timeout, _) => FailureClass::Timeout,
        (_, Some(Code::Forbidden | Code::Unauthenticated | Code::LockedOut)) => {
            FailureClass::Authentication
        }
        (_, Some(code)) => match code.category() {
            Category::Transient => FailureClass::Transient,
            Category::Agent => FailureClass::Agent,
            Category::Permanent | Category::System => FailureClass::System,
        },
        (_, None) => FailureClass::Agent,
    }
}

fn permille(part: u64, total: u64) -> Option<u64> {
    (part * 1000).checked_div(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{AgentId, PrincipalId, ScheduleId};
    use crate::model::schedule::occurrence::OccurrenceCause;
    use chrono::{DateTime, TimeDelta};

    fn occurrence(delay_ms: i64, ending: Option<(Outcome, Option<Code>)>) -> Occurrence {
        let planned = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let ending = ending.map(|(outcome, code)| OccurrenceEnd {
            outcome,
            code,
            had_failed_attempt: false,
            at: planned,
        });
        Occurrence {
            schedule: ScheduleId::new("a").unwrap(),
            planned_at: planned,
            due_at: planned,
            cause: OccurrenceCause::Due,
            status: OccurrenceStatus::Fired,
            reason: None,
            planned_time_count: 1,
            decided_at: planned,
            agent: AgentId::new("worker").unwrap(),
            owner: PrincipalId(uuid::Uuid::nil()),
            fired_at: Some(planned + TimeDelta::milliseconds(delay_ms)),
            execution: None,
            deadline: None,
            end: ending,
        }
    }

    #[test]
    fn statistics_count_executions_and_occurrences_by_outcome() {
        let mut occurrences = vec![
            occurrence(5, Some((Outcome::Completed, None))),
            occurrence(40_000, Some((Outcome::Failed, Some(Code::Exit)))),
            occurrence(9, Some((Outcome::Timeout, Some(Code::Timeout)))),
            occurrence(7, None),
        ];
        let missed = Occurrence {
            status: OccurrenceStatus::Missed,
            planned_time_count: 7,
            fired_at: None,
            ..occurrences[3].clone()
        };
        let refused = Occurrence {
            status: OccurrenceStatus::Refused,
            planned_time_count: 1,
            ..missed.clone()
        };
        occurrences.extend([missed, refused]);
        let result = compute_statistics(&occurrences);
        let times = [
            (OccurrenceStatus::Fired, 4),
            (OccurrenceStatus::Missed, 7),
            (OccurrenceStatus::Refused, 1),
        ];
        assert_eq!(result.times.into_iter().collect::<Vec<_>>(), times);
        assert_eq!((result.ended, result.succeeded, result.success_permille), (3, 1, Some(250)));
        let failed = [(FailureClass::Timeout, 1), (FailureClass::Agent, 1)];
        assert_eq!(result.failed.into_iter().collect::<Vec<_>>(), failed);
        assert_eq!((result.punctual_permille, result.delay_p95_ms), (Some(750), Some(40_000)));
    }

    #[test]
    fn statistics_of_no_occurrences_are_empty() {
        assert_eq!(compute_statistics(&[]), ScheduleStatistics::default());
    }
}

//! How a schedule did: what became of its times, how its work ended, and how punctual it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::due::ON_TIME;
use crate::model::code::{Category, Code};
use crate::model::execution::Outcome;
use crate::model::occurrence::{Ending, Occurrence, Verdict};

/// Why work did not succeed, in classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It took too long.
    Timeout,
    /// The agent failed.
    Agent,
    /// The supervisor failed.
    System,
    /// Somebody was not allowed to do something.
    Authentication,
    /// Something that passes by itself did not pass in time.
    Transient,
    /// It was called off.
    Cancelled,
}

/// How a schedule did over a time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Its times by what became of them.
    pub times: BTreeMap<Verdict, u64>,
    /// Work that ended.
    pub ended: u64,
    /// Work that succeeded.
    pub succeeded: u64,
    /// Work that succeeded after an attempt that failed.
    pub recovered: u64,
    /// Work that did not succeed, by class.
    pub failed: BTreeMap<Class, u64>,
    /// Succeeded of those that ended or were refused, in thousandths; nothing where none was.
    pub success_permille: Option<u64>,
    /// Asked for within 30 seconds of when it was due, of all that was asked for, in thousandths.
    pub punctual_permille: Option<u64>,
    /// The deviation that 95 of 100 did not exceed, in milliseconds.
    pub deviation_p95_ms: Option<i64>,
    /// The longest deviation in milliseconds.
    pub deviation_max_ms: Option<i64>,
}

/// Counts occurrences.
#[must_use]
pub fn statistics(occurrences: &[Occurrence]) -> Statistics {
    let mut all = Statistics::default();
    for occurrence in occurrences {
        *all.times.entry(occurrence.verdict).or_default() += u64::from(occurrence.times);
        if let Some(ending) = occurrence.ending {
            all.count(ending);
        }
    }
    let refused = all.times.get(&Verdict::Refused).copied().unwrap_or_default();
    all.success_permille = permille(all.succeeded, all.ended + refused);
    let deviations = occurrences.iter().filter_map(Occurrence::deviation);
    let mut deviations: Vec<i64> = deviations.map(|it| it.num_milliseconds().abs()).collect();
    deviations.sort_unstable();
    let on_time = i64::try_from(ON_TIME.as_millis()).unwrap_or(i64::MAX);
    let punctual = deviations.iter().filter(|it| **it <= on_time).count();
    all.punctual_permille = permille(punctual as u64, deviations.len() as u64);
    all.deviation_p95_ms =
        deviations.get((deviations.len() * 95).div_ceil(100).saturating_sub(1)).copied();
    all.deviation_max_ms = deviations.last().copied();
    all
}

impl Statistics {
    fn count(&mut self, ending: Ending) {
        self.ended += 1;
        if ending.outcome == Outcome::Completed {
            self.succeeded += 1;
            self.recovered += u64::from(ending.recovered);
        } else {
            *self.failed.entry(class(ending)).or_default() += 1;
        }
    }
}

/// The class of an end that is no success.
#[must_use]
pub fn class(ending: Ending) -> Class {
    match (ending.outcome, ending.code) {
        (Outcome::Cancelled, _) => Class::Cancelled,
        (Outcome::Timeout, _) => Class::Timeout,
        (_, Some(Code::Forbidden | Code::Unauthenticated | Code::LockedOut)) => {
            Class::Authentication
        }
        (_, Some(code)) => match code.category() {
            Category::Transient => Class::Transient,
            Category::Agent => Class::Agent,
            Category::Permanent | Category::System => Class::System,
        },
        (_, None) => Class::Agent,
    }
}

fn permille(part: u64, whole: u64) -> Option<u64> {
    (part * 1000).checked_div(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{AgentId, PrincipalId};
    use crate::model::occurrence::Cause;
    use crate::model::schedule::ScheduleId;
    use chrono::{DateTime, TimeDelta};

    fn occurrence(late: i64, ending: Option<(Outcome, Option<Code>)>) -> Occurrence {
        let planned = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let ending =
            ending.map(|(outcome, code)| Ending { outcome, code, recovered: false, at: planned });
        Occurrence {
            schedule: ScheduleId::new("a").unwrap(),
            planned,
            due: planned,
            cause: Cause::Due,
            verdict: Verdict::Fired,
            reason: None,
            times: 1,
            decided_at: planned,
            agent: AgentId::new("worker").unwrap(),
            owner: PrincipalId(uuid::Uuid::nil()),
            fired_at: Some(planned + TimeDelta::milliseconds(late)),
            execution: None,
            deadline: None,
            ending,
        }
    }

    #[test]
    fn work_is_counted_by_how_it_ended_and_times_by_what_became_of_them() {
        let mut all = vec![
            occurrence(5, Some((Outcome::Completed, None))),
            occurrence(40_000, Some((Outcome::Failed, Some(Code::Exit)))),
            occurrence(9, Some((Outcome::Timeout, Some(Code::Timeout)))),
            occurrence(7, None),
        ];
        let missed =
            Occurrence { verdict: Verdict::Missed, times: 7, fired_at: None, ..all[3].clone() };
        let refused = Occurrence { verdict: Verdict::Refused, times: 1, ..missed.clone() };
        all.extend([missed, refused]);
        let told = statistics(&all);
        let times = [(Verdict::Fired, 4), (Verdict::Missed, 7), (Verdict::Refused, 1)];
        assert_eq!(told.times.into_iter().collect::<Vec<_>>(), times);
        assert_eq!((told.ended, told.succeeded, told.success_permille), (3, 1, Some(250)));
        let failed = [(Class::Timeout, 1), (Class::Agent, 1)];
        assert_eq!(told.failed.into_iter().collect::<Vec<_>>(), failed);
        assert_eq!((told.punctual_permille, told.deviation_p95_ms), (Some(750), Some(40_000)));
    }

    #[test]
    fn nothing_counted_is_no_number() {
        assert_eq!(statistics(&[]), Statistics::default());
    }
}

//! Steps of occurrences with their effects.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{OccurrenceEffect, OccurrenceExecution, OccurrenceMachine};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};
use crate::model::schedule::occurrence::Occurrence;
use crate::model::schedule::recurrence::RecurrenceRule;
use crate::model::schedule::{
    MissedPolicy, OverlapPolicy, Schedule, ScheduleOrigin, ScheduleSpec, TextSealing,
};
use crate::scheduler::OccurrenceKey;
use crate::scheduler::evaluate::new_occurrence;
use crate::scheduler::table::ScheduleTable;
use crate::scheduler::timer_queue::TimerEntry;

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn table(overlap: OverlapPolicy) -> ScheduleTable {
    let spec = ScheduleSpec {
        id: id(),
        name: "a".to_owned(),
        agent: AgentId::new("worker").unwrap(),
        recurrence: RecurrenceRule::hourly(),
        input: String::new(),
        params: BTreeMap::new(),
        missed: MissedPolicy::Once { window: Duration::from_secs(60) },
        overlap,
        jitter: Duration::ZERO,
        deadline: None,
        alert_after: 0,
        enabled: true,
    };
    let schedule = Schedule {
        spec,
        text_sealing: TextSealing::Unsealed,
        owner: PrincipalId(uuid::Uuid::nil()),
        origin: ScheduleOrigin::Api,
        paused: false,
        decided_until: NOW,
        created_at: NOW,
        changed_at: NOW,
    };
    let mut table = ScheduleTable::default();
    let interned = table.intern(schedule);
    table.insert_all(vec![interned]);
    table
}

fn id() -> ScheduleId {
    ScheduleId::new("a").unwrap()
}

fn occurrence(table: &ScheduleTable, second: i64) -> Occurrence {
    let planned = NOW + TimeDelta::seconds(second);
    new_occurrence(&table.get(&id()).unwrap().schedule, planned, planned, NOW)
}

fn key(second: i64) -> OccurrenceKey {
    OccurrenceKey { schedule: id(), planned_at: NOW + TimeDelta::seconds(second) }
}

/// Returns the effects as short texts, with the times in seconds.
fn describe(effects: Vec<OccurrenceEffect>) -> Vec<String> {
    let second = |key: &OccurrenceKey| key.planned_at.timestamp();
    let descriptions = effects.into_iter().map(|effect| match effect {
        OccurrenceEffect::Submit(key) => format!("submit {}", second(&key)),
        OccurrenceEffect::CheckAcceptance(key) => format!("check {}", second(&key)),
        OccurrenceEffect::Record(result) => {
            format!("record {} {}", second(&result.key), result.status.as_str())
        }
        OccurrenceEffect::SetTimer(when, _) => format!("timer {}", when.timestamp()),
        OccurrenceEffect::Observe(run) => format!("observe {}", second(&run.key)),
        OccurrenceEffect::Cancel(run) => format!("cancel {}", second(&run.key)),
    });
    descriptions.collect()
}

fn occurrence_execution(second: i64) -> OccurrenceExecution {
    OccurrenceExecution { key: key(second), execution: ExecutionId::generate(), progress: None }
}

#[test]
fn a_queued_occurrence_starts_when_the_run_before_it_ends() {
    let (table, mut machine) = (table(OverlapPolicy::Queue), OccurrenceMachine::default());
    let occurrences = vec![occurrence(&table, 1), occurrence(&table, 2)];
    assert_eq!(describe(machine.add_occurrences(&id(), occurrences, &table)), ["submit 1"]);
    assert_eq!(
        describe(machine.handle_execution_start(occurrence_execution(1), NOW)),
        ["record 1 fired", "observe 1"]
    );
    assert_eq!(describe(machine.handle_execution_end(&key(1), &table)), ["submit 2"]);
}

#[test]
fn a_cancellation_waits_until_the_execution_is_known() {
    let (table, mut machine) = (table(OverlapPolicy::Queue), OccurrenceMachine::default());
    let occurrences = vec![occurrence(&table, 1), occurrence(&table, 2)];
    machine.add_occurrences(&id(), occurrences, &table);
    assert_eq!(describe(machine.cancel(&key(1), "late", NOW, &table)), ["timer 1"]);
    machine.handle_execution_start(occurrence_execution(1), NOW);
    assert_eq!(describe(machine.cancel(&key(1), "late", NOW, &table)), ["cancel 1"]);
    assert_eq!(describe(machine.cancel(&key(2), "late", NOW, &table)), ["record 2 skipped"]);
    assert_eq!(describe(machine.cancel(&key(2), "late", NOW, &table)), Vec::<String>::new());
}

#[test]
fn a_temporary_rejection_is_retried_within_the_window() {
    let (table, mut machine) = (table(OverlapPolicy::Queue), OccurrenceMachine::default());
    machine.add_occurrences(&id(), vec![occurrence(&table, 0)], &table);
    let failure = Failure::new(Code::QueueFull, "full");
    let mut descriptions = Vec::new();
    for second in [0, 1, 3, 60, 61] {
        assert!(machine.begin_submission(&key(0)).is_some() || second > 60);
        let now = NOW + TimeDelta::seconds(second);
        descriptions.extend(describe(machine.retry(
            &key(0),
            &failure,
            (now, TimerEntry::Resubmit),
            &table,
        )));
    }
    let expected = ["timer 1", "timer 3", "timer 7", "timer 68", "record 0 refused"];
    assert_eq!(descriptions, expected);
}

#[test]
fn a_replacing_occurrence_cancels_only_once_it_is_accepted() {
    let (table, mut machine) = (table(OverlapPolicy::CancelPrevious), OccurrenceMachine::default());
    machine.add_occurrences(&id(), vec![occurrence(&table, 1)], &table);
    machine.handle_execution_start(occurrence_execution(1), NOW);
    let later = vec![occurrence(&table, 2), occurrence(&table, 3)];
    let started = describe(machine.add_occurrences(&id(), later, &table));
    assert_eq!(started, ["record 2 coalesced", "check 3"]);
    assert_eq!(describe(machine.handle_acceptance_check(&key(3), None, NOW, &table)), ["cancel 1"]);
    let refusal = Failure::new(Code::AgentDisabled, "disabled");
    let refused = describe(machine.handle_acceptance_check(&key(3), Some(refusal), NOW, &table));
    // An occurrence that the check before a replacement refuses cancels no run
    assert_eq!(refused, ["record 3 refused"]);
}

/// The condition that refuses it may end, and the previous run would be lost without a replacement.
#[test]
fn a_temporarily_refused_occurrence_cancels_nothing() {
    let (table, mut machine) = (table(OverlapPolicy::CancelPrevious), OccurrenceMachine::default());
    machine.add_occurrences(&id(), vec![occurrence(&table, 0)], &table);
    machine.handle_execution_start(occurrence_execution(0), NOW);
    machine.add_occurrences(&id(), vec![occurrence(&table, 1)], &table);
    let mut descriptions = Vec::new();
    for second in [1, 2, 62] {
        machine.begin_submission(&key(1)).unwrap();
        let failure = Some(Failure::new(Code::Pressure, "no memory"));
        let now = NOW + TimeDelta::seconds(second);
        descriptions.extend(describe(machine.handle_acceptance_check(
            &key(1),
            failure,
            now,
            &table,
        )));
    }
    assert_eq!(descriptions, ["timer 2", "timer 4", "record 1 refused"]);
    machine.add_occurrences(&id(), vec![occurrence(&table, 2)], &table);
    assert_eq!(describe(machine.handle_acceptance_check(&key(2), None, NOW, &table)), ["cancel 0"]);
    machine.handle_execution_end(&key(0), &table);
    // It is submitted now, and a check that is still running changes nothing.
    let late = machine.handle_acceptance_check(&key(2), None, NOW, &table);
    assert_eq!(describe(late), Vec::<String>::new());
}

#[test]
fn a_removed_schedule_keeps_the_record_of_its_run() {
    let (mut table, mut machine) = (table(OverlapPolicy::Queue), OccurrenceMachine::default());
    machine.add_occurrences(&id(), vec![occurrence(&table, 1)], &table);
    machine.drop_occurrences_of(&id());
    table.remove(&id());
    assert_eq!(
        describe(machine.handle_execution_start(occurrence_execution(1), NOW)),
        ["record 1 fired", "observe 1"]
    );
    assert_eq!(describe(machine.resume(orphaned_occurrence(2), &table, NOW)), ["record 2 refused"]);
    assert_eq!(machine.open_occurrences().counts(&id()), Default::default());
}

/// Returns an occurrence of a schedule that is no longer in a table.
fn orphaned_occurrence(second: i64) -> Occurrence {
    occurrence(&table(OverlapPolicy::Queue), second)
}

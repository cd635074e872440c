//! Conformance tests of the schedule store. Each test gets a fresh store.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};
use algonius_actors::model::schedule::occurrence::{
    Occurrence, OccurrenceCause, OccurrenceEnd, OccurrenceQuery, OccurrenceStatus,
};
use algonius_actors::model::schedule::recurrence::RecurrenceRule;
use algonius_actors::model::schedule::{
    MissedPolicy, OverlapPolicy, Schedule, ScheduleOrigin, ScheduleSpec, TextSealing,
};
use algonius_actors::ports::schedule_store::{
    OccurrenceStatusChange, ScheduleEvaluation, ScheduleStore,
};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::at_second;

pub(crate) type AnyScheduleStore = Arc<dyn ScheduleStore>;

/// Instantiates all tests for a schedule store that `$open` returns, with a guard that must live as long.
macro_rules! schedule_store_conformance {
    ($open:path) => {
        schedule_store_conformance! { $open:
            a_schedule_is_read_back_unchanged
            one_of_100_decisions_about_an_occurrence_counts
            an_evaluation_moves_the_cursor_of_existing_schedules_only
            an_occurrence_is_settled_once_and_read_back
            only_unfinished_occurrences_are_open
            occurrences_are_paged_by_time
            old_settled_occurrences_are_forgotten_but_not_open_ones
        }
    };
    ($open:path: $($test:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $test() {
            let (schedule_store, _guard) = $open().await;
            crate::conformance::schedules::$test(schedule_store).await;
        })*
    };
}
pub(crate) use schedule_store_conformance;

fn schedule_id() -> ScheduleId {
    ScheduleId::new("nightly").unwrap()
}

pub(crate) fn schedule() -> Schedule {
    Schedule {
        spec: ScheduleSpec {
            id: schedule_id(),
            name: "nightly".to_owned(),
            agent: AgentId::new("worker").unwrap(),
            recurrence: RecurrenceRule::new("@every 15m", "Europe/Zurich", false).unwrap(),
            input: "work".to_owned(),
            params: [("branch".to_owned(), "main".to_owned())].into(),
            missed: MissedPolicy::All { max: 3, window: Duration::from_secs(60) },
            overlap: OverlapPolicy::Queue,
            jitter: Duration::from_secs(5),
            deadline: Some(Duration::from_millis(1500)),
            alert_after: 3,
            enabled: true,
        },
        text_sealing: TextSealing::Sealed([7, 0, 255].into()),
        owner: PrincipalId(Uuid::from_u128(7)),
        origin: ScheduleOrigin::Api,
        paused: true,
        decided_until: at_second(5),
        created_at: at_second(1),
        changed_at: at_second(2),
    }
}

fn occurrence(at: i64, status: OccurrenceStatus) -> Occurrence {
    Occurrence {
        schedule: schedule_id(),
        planned_at: at_second(at),
        due_at: at_second(at + 1),
        cause: OccurrenceCause::CatchUp,
        status,
        reason: Some("because".to_owned()),
        planned_time_count: 3,
        decided_at: at_second(at + 2),
        agent: AgentId::new("worker").unwrap(),
        owner: PrincipalId(Uuid::from_u128(7)),
        fired_at: None,
        execution: None,
        deadline: Some(at_second(at + 9)),
        end: None,
    }
}

async fn put_schedule_and_occurrences(
    schedule_store: &AnyScheduleStore,
    occurrences: Vec<Occurrence>,
) -> Vec<Occurrence> {
    schedule_store.put_schedules(vec![schedule()]).await.unwrap();
    let evaluation =
        ScheduleEvaluation { schedule: schedule_id(), decided_until: at_second(9), occurrences };
    schedule_store.record_evaluations(vec![evaluation]).await.unwrap().remove(0)
}

pub(crate) async fn a_schedule_is_read_back_unchanged(schedule_store: AnyScheduleStore) {
    schedule_store.put_schedules(vec![schedule()]).await.unwrap();
    assert_eq!(schedule_store.schedules().await.unwrap(), [schedule()]);
    let mut changed = schedule();
    changed.spec.input = "other words".to_owned();
    changed.paused = false;
    schedule_store.put_schedules(vec![changed.clone()]).await.unwrap();
    assert_eq!(schedule_store.schedules().await.unwrap(), [changed]);
    schedule_store.remove_schedules(vec![schedule_id()]).await.unwrap();
    assert_eq!(schedule_store.schedules().await.unwrap(), []);
}

pub(crate) async fn one_of_100_decisions_about_an_occurrence_counts(
    schedule_store: AnyScheduleStore,
) {
    schedule_store.put_schedules(vec![schedule()]).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let schedule_store = Arc::clone(&schedule_store);
        let occurrences = vec![occurrence(60, OccurrenceStatus::Pending)];
        let evaluation = ScheduleEvaluation {
            schedule: schedule_id(),
            decided_until: at_second(60),
            occurrences,
        };
        tasks.spawn(async move {
            schedule_store.record_evaluations(vec![evaluation]).await.unwrap().remove(0)
        });
    }
    let inserted_count: usize = tasks.join_all().await.iter().map(Vec::len).sum();
    assert_eq!((inserted_count, schedule_store.open_occurrences().await.unwrap().len()), (1, 1));
}

pub(crate) async fn an_evaluation_moves_the_cursor_of_existing_schedules_only(
    schedule_store: AnyScheduleStore,
) {
    let skipped = occurrence(60, OccurrenceStatus::Skipped);
    assert_eq!(
        put_schedule_and_occurrences(&schedule_store, vec![skipped.clone()]).await,
        [skipped]
    );
    assert_eq!(schedule_store.schedules().await.unwrap()[0].decided_until, at_second(9));
    let unknown_schedule = ScheduleEvaluation {
        schedule: ScheduleId::new("gone").unwrap(),
        decided_until: at_second(9),
        occurrences: vec![occurrence(70, OccurrenceStatus::Pending)],
    };
    assert_eq!(schedule_store.record_evaluations(vec![unknown_schedule]).await.unwrap(), [[]; 1]);
    schedule_store.remove_schedules(vec![schedule_id()]).await.unwrap();
    let removed = ScheduleEvaluation {
        schedule: schedule_id(),
        decided_until: at_second(80),
        occurrences: vec![occurrence(80, OccurrenceStatus::Pending)],
    };
    assert_eq!(schedule_store.record_evaluations(vec![removed]).await.unwrap(), [[]; 1]);
}

pub(crate) async fn an_occurrence_is_settled_once_and_read_back(schedule_store: AnyScheduleStore) {
    put_schedule_and_occurrences(&schedule_store, vec![occurrence(60, OccurrenceStatus::Pending)])
        .await;
    let execution = Some(ExecutionId::generate());
    let fired = OccurrenceStatusChange {
        schedule: schedule_id(),
        planned_at: at_second(60),
        status: OccurrenceStatus::Fired,
        reason: None,
        execution,
        at: at_second(63),
    };
    let refused = OccurrenceStatusChange {
        status: OccurrenceStatus::Refused,
        execution: None,
        ..fired.clone()
    };
    schedule_store.record_status_changes(vec![fired, refused]).await.unwrap();
    let ending = OccurrenceEnd {
        outcome: Outcome::Failed,
        code: Some(Code::Exit),
        had_failed_attempt: true,
        at: at_second(70),
    };
    schedule_store.record_end(&schedule_id(), at_second(60), ending).await.unwrap();
    let expected = Occurrence {
        status: OccurrenceStatus::Fired,
        reason: None,
        execution,
        fired_at: Some(at_second(63)),
        end: Some(ending),
        ..occurrence(60, OccurrenceStatus::Pending)
    };
    assert_eq!(
        schedule_store.occurrences_since(&schedule_id(), at_second(60)).await.unwrap(),
        [expected]
    );
    assert_eq!(schedule_store.occurrences_since(&schedule_id(), at_second(61)).await.unwrap(), []);
}

pub(crate) async fn only_unfinished_occurrences_are_open(schedule_store: AnyScheduleStore) {
    let all = OccurrenceStatus::ALL.iter().zip(1..).map(|(status, at)| occurrence(at, *status));
    put_schedule_and_occurrences(&schedule_store, all.collect()).await;
    let open = schedule_store.open_occurrences().await.unwrap();
    let open: Vec<_> = open.iter().map(|it| it.status).collect();
    assert_eq!(open, [OccurrenceStatus::Pending, OccurrenceStatus::Fired]);
    let ending = OccurrenceEnd {
        outcome: Outcome::Completed,
        code: None,
        had_failed_attempt: false,
        at: at_second(9),
    };
    schedule_store.record_end(&schedule_id(), at_second(2), ending).await.unwrap();
    assert_eq!(schedule_store.open_occurrences().await.unwrap().len(), 1);
}

pub(crate) async fn occurrences_are_paged_by_time(schedule_store: AnyScheduleStore) {
    let all = (1..=25).map(|at| {
        occurrence(
            at,
            if at % 2 == 0 { OccurrenceStatus::Skipped } else { OccurrenceStatus::Missed },
        )
    });
    put_schedule_and_occurrences(&schedule_store, all.collect()).await;
    let mut query =
        OccurrenceQuery { schedule: Some(schedule_id()), limit: 10, ..Default::default() };
    let mut seen = Vec::new();
    loop {
        let page = schedule_store.occurrences(query.clone()).await.unwrap();
        let Some(last) = page.last() else { break };
        query.before = Some((last.planned_at, schedule_id()));
        seen.extend(page.iter().map(|it| it.planned_at));
    }
    let expected: Vec<_> = (1..=25).rev().map(at_second).collect();
    assert_eq!(seen, expected);
    let narrow_query = OccurrenceQuery {
        status: Some(OccurrenceStatus::Skipped),
        since: Some(at_second(20)),
        owner: Some(PrincipalId(Uuid::from_u128(7))),
        limit: 100,
        ..Default::default()
    };
    assert_eq!(schedule_store.occurrences(narrow_query.clone()).await.unwrap().len(), 3);
    let for_agents = |agents: &[&str]| {
        let agents = agents.iter().map(|id| AgentId::new(*id).unwrap()).collect();
        OccurrenceQuery { agents: Some(agents), ..narrow_query.clone() }
    };
    for (agents, count) in [(&["worker", "other"][..], 3), (&["other"], 0), (&[], 0)] {
        assert_eq!(
            schedule_store.occurrences(for_agents(agents)).await.unwrap().len(),
            count,
            "{agents:?}"
        );
    }
    let other_owner = OccurrenceQuery { owner: Some(PrincipalId(Uuid::nil())), ..narrow_query };
    assert_eq!(schedule_store.occurrences(other_owner).await.unwrap(), []);
}

pub(crate) async fn old_settled_occurrences_are_forgotten_but_not_open_ones(
    schedule_store: AnyScheduleStore,
) {
    let mut all: Vec<_> = (1..=5).map(|at| occurrence(at, OccurrenceStatus::Missed)).collect();
    all.push(occurrence(6, OccurrenceStatus::Pending));
    all.push(occurrence(7, OccurrenceStatus::Fired));
    all.push(occurrence(100, OccurrenceStatus::Missed));
    put_schedule_and_occurrences(&schedule_store, all).await;
    assert_eq!(schedule_store.remove_occurrences(at_second(50), 3).await.unwrap(), 3);
    assert_eq!(schedule_store.remove_occurrences(at_second(50), 100).await.unwrap(), 2);
    let left = schedule_store.occurrences_since(&schedule_id(), at_second(0)).await.unwrap();
    let left: Vec<_> = left.iter().map(|it| it.planned_at).collect();
    assert_eq!(left, [at_second(6), at_second(7), at_second(100)]);
}

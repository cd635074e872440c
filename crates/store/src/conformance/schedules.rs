//! Conformance tests of the schedule store. Each test gets a fresh store.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};
use algonius_actors::model::schedule::occurrence::{
    Occurrence, OccurrenceCause, OccurrenceEnding, OccurrenceQuery, OccurrenceStatus,
};
use algonius_actors::model::schedule::recurrence::Timetable;
use algonius_actors::model::schedule::{
    Missed, Overlap, Schedule, ScheduleOrigin, ScheduleSpec, SealedTexts,
};
use algonius_actors::ports::schedule_store::{Advance, ScheduleStore, Settled};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::second;

pub(crate) type AnyTimebook = Arc<dyn ScheduleStore>;

/// Instantiates all tests for a schedule store that `$open` returns, with a guard that must live as long.
macro_rules! timebook_conformance {
    ($open:path) => {
        timebook_conformance! { $open:
            a_schedule_is_read_back_unchanged
            one_of_100_decisions_about_an_occurrence_counts
            an_advance_moves_the_cursor_of_existing_schedules_only
            an_occurrence_is_settled_once_and_read_back
            only_unfinished_occurrences_are_open
            occurrences_are_paged_by_time
            old_settled_occurrences_are_forgotten_but_not_open_ones
        }
    };
    ($open:path: $($story:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $story() {
            let (timebook, _kept) = $open().await;
            crate::conformance::schedules::$story(timebook).await;
        })*
    };
}
pub(crate) use timebook_conformance;

fn id() -> ScheduleId {
    ScheduleId::new("nightly").unwrap()
}

pub(crate) fn schedule() -> Schedule {
    Schedule {
        spec: ScheduleSpec {
            id: id(),
            name: "nightly".to_owned(),
            agent: AgentId::new("worker").unwrap(),
            timetable: Timetable::new("@every 15m", "Europe/Zurich", false).unwrap(),
            input: "work".to_owned(),
            params: [("branch".to_owned(), "main".to_owned())].into(),
            missed: Missed::All { max: 3, window: Duration::from_secs(60) },
            overlap: Overlap::Queue,
            jitter: Duration::from_secs(5),
            deadline: Some(Duration::from_millis(1500)),
            alert_after: 3,
            enabled: true,
        },
        sealed: SealedTexts::Sealed([7, 0, 255].into()),
        owner: PrincipalId(Uuid::from_u128(7)),
        origin: ScheduleOrigin::Api,
        paused: true,
        cursor: second(5),
        created_at: second(1),
        changed_at: second(2),
    }
}

fn occurrence(at: i64, verdict: OccurrenceStatus) -> Occurrence {
    Occurrence {
        schedule: id(),
        planned: second(at),
        due: second(at + 1),
        cause: OccurrenceCause::CatchUp,
        verdict,
        reason: Some("because".to_owned()),
        times: 3,
        decided_at: second(at + 2),
        agent: AgentId::new("worker").unwrap(),
        owner: PrincipalId(Uuid::from_u128(7)),
        fired_at: None,
        execution: None,
        deadline: Some(second(at + 9)),
        ending: None,
    }
}

async fn put(timebook: &AnyTimebook, occurrences: Vec<Occurrence>) -> Vec<Occurrence> {
    timebook.put(vec![schedule()]).await.unwrap();
    let advance = Advance { schedule: id(), cursor: second(9), occurrences };
    timebook.advance(vec![advance]).await.unwrap().remove(0)
}

pub(crate) async fn a_schedule_is_read_back_unchanged(timebook: AnyTimebook) {
    timebook.put(vec![schedule()]).await.unwrap();
    assert_eq!(timebook.schedules().await.unwrap(), [schedule()]);
    let mut changed = schedule();
    changed.spec.input = "other words".to_owned();
    changed.paused = false;
    timebook.put(vec![changed.clone()]).await.unwrap();
    assert_eq!(timebook.schedules().await.unwrap(), [changed]);
    timebook.remove(vec![id()]).await.unwrap();
    assert_eq!(timebook.schedules().await.unwrap(), []);
}

pub(crate) async fn one_of_100_decisions_about_an_occurrence_counts(timebook: AnyTimebook) {
    timebook.put(vec![schedule()]).await.unwrap();
    let mut deciding = JoinSet::new();
    for _ in 0..100 {
        let timebook = Arc::clone(&timebook);
        let occurrences = vec![occurrence(60, OccurrenceStatus::Pending)];
        let advance = Advance { schedule: id(), cursor: second(60), occurrences };
        deciding.spawn(async move { timebook.advance(vec![advance]).await.unwrap().remove(0) });
    }
    let fresh: usize = deciding.join_all().await.iter().map(Vec::len).sum();
    assert_eq!((fresh, timebook.open().await.unwrap().len()), (1, 1));
}

pub(crate) async fn an_advance_moves_the_cursor_of_existing_schedules_only(timebook: AnyTimebook) {
    let given = occurrence(60, OccurrenceStatus::Skipped);
    assert_eq!(put(&timebook, vec![given.clone()]).await, [given]);
    assert_eq!(timebook.schedules().await.unwrap()[0].cursor, second(9));
    let gone = Advance {
        schedule: ScheduleId::new("gone").unwrap(),
        cursor: second(9),
        occurrences: vec![occurrence(70, OccurrenceStatus::Pending)],
    };
    assert_eq!(timebook.advance(vec![gone]).await.unwrap(), [[]; 1]);
    timebook.remove(vec![id()]).await.unwrap();
    let removed = Advance {
        schedule: id(),
        cursor: second(80),
        occurrences: vec![occurrence(80, OccurrenceStatus::Pending)],
    };
    assert_eq!(timebook.advance(vec![removed]).await.unwrap(), [[]; 1]);
}

pub(crate) async fn an_occurrence_is_settled_once_and_read_back(timebook: AnyTimebook) {
    put(&timebook, vec![occurrence(60, OccurrenceStatus::Pending)]).await;
    let execution = Some(ExecutionId::fresh());
    let fired = Settled {
        schedule: id(),
        planned: second(60),
        verdict: OccurrenceStatus::Fired,
        reason: None,
        execution,
        at: second(63),
    };
    let refused = Settled { verdict: OccurrenceStatus::Refused, execution: None, ..fired.clone() };
    timebook.settle(vec![fired, refused]).await.unwrap();
    let ending = OccurrenceEnding {
        outcome: Outcome::Failed,
        code: Some(Code::Exit),
        recovered: true,
        at: second(70),
    };
    timebook.end(&id(), second(60), ending).await.unwrap();
    let expected = Occurrence {
        verdict: OccurrenceStatus::Fired,
        reason: None,
        execution,
        fired_at: Some(second(63)),
        ending: Some(ending),
        ..occurrence(60, OccurrenceStatus::Pending)
    };
    assert_eq!(timebook.tally(&id(), second(60)).await.unwrap(), [expected]);
    assert_eq!(timebook.tally(&id(), second(61)).await.unwrap(), []);
}

pub(crate) async fn only_unfinished_occurrences_are_open(timebook: AnyTimebook) {
    let all = OccurrenceStatus::ALL.iter().zip(1..).map(|(verdict, at)| occurrence(at, *verdict));
    put(&timebook, all.collect()).await;
    let open = timebook.open().await.unwrap();
    let open: Vec<_> = open.iter().map(|it| it.verdict).collect();
    assert_eq!(open, [OccurrenceStatus::Pending, OccurrenceStatus::Fired]);
    let ending = OccurrenceEnding {
        outcome: Outcome::Completed,
        code: None,
        recovered: false,
        at: second(9),
    };
    timebook.end(&id(), second(2), ending).await.unwrap();
    assert_eq!(timebook.open().await.unwrap().len(), 1);
}

pub(crate) async fn occurrences_are_paged_by_time(timebook: AnyTimebook) {
    let all = (1..=25).map(|at| {
        occurrence(
            at,
            if at % 2 == 0 { OccurrenceStatus::Skipped } else { OccurrenceStatus::Missed },
        )
    });
    put(&timebook, all.collect()).await;
    let mut query = OccurrenceQuery { schedule: Some(id()), limit: 10, ..Default::default() };
    let mut seen = Vec::new();
    loop {
        let page = timebook.occurrences(query.clone()).await.unwrap();
        let Some(last) = page.last() else { break };
        query.before = Some((last.planned, id()));
        seen.extend(page.iter().map(|it| it.planned));
    }
    let expected: Vec<_> = (1..=25).rev().map(second).collect();
    assert_eq!(seen, expected);
    let narrow = OccurrenceQuery {
        verdict: Some(OccurrenceStatus::Skipped),
        since: Some(second(20)),
        owner: Some(PrincipalId(Uuid::from_u128(7))),
        limit: 100,
        ..Default::default()
    };
    assert_eq!(timebook.occurrences(narrow.clone()).await.unwrap().len(), 3);
    let of = |agents: &[&str]| {
        let agents = agents.iter().map(|id| AgentId::new(*id).unwrap()).collect();
        OccurrenceQuery { agents: Some(agents), ..narrow.clone() }
    };
    for (agents, count) in [(&["worker", "other"][..], 3), (&["other"], 0), (&[], 0)] {
        assert_eq!(timebook.occurrences(of(agents)).await.unwrap().len(), count, "{agents:?}");
    }
    let others = OccurrenceQuery { owner: Some(PrincipalId(Uuid::nil())), ..narrow };
    assert_eq!(timebook.occurrences(others).await.unwrap(), []);
}

pub(crate) async fn old_settled_occurrences_are_forgotten_but_not_open_ones(timebook: AnyTimebook) {
    let mut all: Vec<_> = (1..=5).map(|at| occurrence(at, OccurrenceStatus::Missed)).collect();
    all.push(occurrence(6, OccurrenceStatus::Pending));
    all.push(occurrence(7, OccurrenceStatus::Fired));
    all.push(occurrence(100, OccurrenceStatus::Missed));
    put(&timebook, all).await;
    assert_eq!(timebook.forget(second(50), 3).await.unwrap(), 3);
    assert_eq!(timebook.forget(second(50), 100).await.unwrap(), 2);
    let left = timebook.tally(&id(), second(0)).await.unwrap();
    let left: Vec<_> = left.iter().map(|it| it.planned).collect();
    assert_eq!(left, [second(6), second(7), second(100)]);
}

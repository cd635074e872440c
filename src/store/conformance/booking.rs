//! Stories of the timebook. Each gets a fresh one.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::occurrence::{Cause, Ending, Occurrence, OccurrenceQuery, Verdict};
use algonius_actors::model::schedule::{
    Missed, Origin, Overlap, Schedule, ScheduleId, ScheduleSpec,
};
use algonius_actors::model::timetable::Timetable;
use algonius_actors::ports::timebook::{Advance, Settled, Timebook};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::second;

pub(in crate::store) type AnyTimebook = Arc<dyn Timebook>;

/// Tells every story of the timebook to what `$open` gives, with what must live as long.
macro_rules! timebook_conformance {
    ($open:path) => {
        timebook_conformance! { $open:
            a_schedule_is_read_back_as_it_was_put
            of_100_who_decide_about_one_time_one_does
            a_decision_moves_the_cursor_and_a_schedule_that_is_gone_takes_none
            what_became_of_a_time_is_noted_once_and_read_back
            only_what_is_not_over_is_open
            occurrences_are_paged_by_time
            what_is_long_over_is_forgotten_and_what_is_open_never
        }
    };
    ($open:path: $($story:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $story() {
            let (timebook, _kept) = $open().await;
            crate::store::conformance::booking::$story(timebook).await;
        })*
    };
}
pub(in crate::store) use timebook_conformance;

fn id() -> ScheduleId {
    ScheduleId::new("nightly").unwrap()
}

pub(in crate::store) fn schedule() -> Schedule {
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
        owner: PrincipalId(Uuid::from_u128(7)),
        origin: Origin::Api,
        paused: true,
        cursor: second(5),
        created_at: second(1),
        changed_at: second(2),
    }
}

fn occurrence(at: i64, verdict: Verdict) -> Occurrence {
    Occurrence {
        schedule: id(),
        planned: second(at),
        due: second(at + 1),
        cause: Cause::CatchUp,
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

pub(in crate::store) async fn a_schedule_is_read_back_as_it_was_put(timebook: AnyTimebook) {
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

pub(in crate::store) async fn of_100_who_decide_about_one_time_one_does(timebook: AnyTimebook) {
    timebook.put(vec![schedule()]).await.unwrap();
    let mut deciding = JoinSet::new();
    for _ in 0..100 {
        let timebook = Arc::clone(&timebook);
        let occurrences = vec![occurrence(60, Verdict::Pending)];
        let advance = Advance { schedule: id(), cursor: second(60), occurrences };
        deciding.spawn(async move { timebook.advance(vec![advance]).await.unwrap().remove(0) });
    }
    let fresh: usize = deciding.join_all().await.iter().map(Vec::len).sum();
    assert_eq!((fresh, timebook.open().await.unwrap().len()), (1, 1));
}

pub(in crate::store) async fn a_decision_moves_the_cursor_and_a_schedule_that_is_gone_takes_none(
    timebook: AnyTimebook,
) {
    let given = occurrence(60, Verdict::Skipped);
    assert_eq!(put(&timebook, vec![given.clone()]).await, [given]);
    assert_eq!(timebook.schedules().await.unwrap()[0].cursor, second(9));
    let gone = Advance {
        schedule: ScheduleId::new("gone").unwrap(),
        cursor: second(9),
        occurrences: vec![occurrence(70, Verdict::Pending)],
    };
    assert_eq!(timebook.advance(vec![gone]).await.unwrap(), [[]; 1]);
    timebook.remove(vec![id()]).await.unwrap();
    let removed = Advance {
        schedule: id(),
        cursor: second(80),
        occurrences: vec![occurrence(80, Verdict::Pending)],
    };
    assert_eq!(timebook.advance(vec![removed]).await.unwrap(), [[]; 1]);
}

pub(in crate::store) async fn what_became_of_a_time_is_noted_once_and_read_back(
    timebook: AnyTimebook,
) {
    put(&timebook, vec![occurrence(60, Verdict::Pending)]).await;
    let execution = Some(ExecutionId::fresh());
    let fired = Settled {
        schedule: id(),
        planned: second(60),
        verdict: Verdict::Fired,
        reason: None,
        execution,
        at: second(63),
    };
    let refused = Settled { verdict: Verdict::Refused, execution: None, ..fired.clone() };
    timebook.settle(vec![fired, refused]).await.unwrap();
    let ending = Ending {
        outcome: Outcome::Failed,
        code: Some(Code::Exit),
        recovered: true,
        at: second(70),
    };
    timebook.end(&id(), second(60), ending).await.unwrap();
    let expected = Occurrence {
        verdict: Verdict::Fired,
        reason: None,
        execution,
        fired_at: Some(second(63)),
        ending: Some(ending),
        ..occurrence(60, Verdict::Pending)
    };
    assert_eq!(timebook.tally(&id(), second(60)).await.unwrap(), [expected]);
    assert_eq!(timebook.tally(&id(), second(61)).await.unwrap(), []);
}

pub(in crate::store) async fn only_what_is_not_over_is_open(timebook: AnyTimebook) {
    let all = Verdict::ALL.iter().zip(1..).map(|(verdict, at)| occurrence(at, *verdict));
    put(&timebook, all.collect()).await;
    let open = timebook.open().await.unwrap();
    let open: Vec<_> = open.iter().map(|it| it.verdict).collect();
    assert_eq!(open, [Verdict::Pending, Verdict::Fired]);
    let ending =
        Ending { outcome: Outcome::Completed, code: None, recovered: false, at: second(9) };
    timebook.end(&id(), second(2), ending).await.unwrap();
    assert_eq!(timebook.open().await.unwrap().len(), 1);
}

pub(in crate::store) async fn occurrences_are_paged_by_time(timebook: AnyTimebook) {
    let all = (1..=25)
        .map(|at| occurrence(at, if at % 2 == 0 { Verdict::Skipped } else { Verdict::Missed }));
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
        verdict: Some(Verdict::Skipped),
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

pub(in crate::store) async fn what_is_long_over_is_forgotten_and_what_is_open_never(
    timebook: AnyTimebook,
) {
    let mut all: Vec<_> = (1..=5).map(|at| occurrence(at, Verdict::Missed)).collect();
    all.push(occurrence(6, Verdict::Pending));
    all.push(occurrence(7, Verdict::Fired));
    all.push(occurrence(100, Verdict::Missed));
    put(&timebook, all).await;
    assert_eq!(timebook.forget(second(50), 3).await.unwrap(), 3);
    assert_eq!(timebook.forget(second(50), 100).await.unwrap(), 2);
    let left = timebook.tally(&id(), second(0)).await.unwrap();
    let left: Vec<_> = left.iter().map(|it| it.planned).collect();
    assert_eq!(left, [second(6), second(7), second(100)]);
}

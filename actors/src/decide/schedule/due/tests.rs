//! Tests: every planned time is decided once, however often and late the schedule is evaluated.

use proptest::prelude::*;

use crate::decide::schedule::due::*;
use crate::model::id::AgentId;
use crate::model::schedule::recurrence::RecurrenceRule;

const HOUR: Duration = Duration::from_secs(3600);

fn spec(cron: &str, missed: MissedPolicy) -> ScheduleSpec {
    ScheduleSpec {
        id: ScheduleId::new("nightly").unwrap(),
        name: "nightly".to_owned(),
        agent: AgentId::new("worker").unwrap(),
        recurrence: RecurrenceRule::new(cron, "UTC", true).unwrap(),
        input: "work".to_owned(),
        params: std::collections::BTreeMap::new(),
        missed,
        overlap: OverlapPolicy::Skip,
        jitter: Duration::ZERO,
        deadline: None,
        alert_after: 3,
        enabled: true,
    }
}

fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(&format!("2026-05-05T{text}Z")).unwrap().with_timezone(&Utc)
}

/// Formats the result of an evaluation: the fires and the missed ones, as `12:00 due` and `10:00+2 missed`.
fn format_evaluation(evaluation: &DueEvaluation) -> Vec<String> {
    let unsubmitted_texts = evaluation.unsubmitted_ranges.iter().map(|it| {
        (
            it.first,
            format!(
                "{}+{} {}",
                it.first.format("%H:%M"),
                it.planned_time_count,
                it.status.as_str()
            ),
        )
    });
    let submissions = evaluation.to_submit.iter();
    let submission_texts = submissions
        .map(|(it, _, cause)| (*it, format!("{} {}", it.format("%H:%M"), cause.as_str())));
    let mut all: Vec<_> = unsubmitted_texts.chain(submission_texts).collect();
    all.sort();
    all.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn a_due_time_fires_and_the_next_one_is_returned() {
    let hourly = spec("0 * * * *", MissedPolicy::default());
    let evaluation = evaluate_schedule((&hourly).into(), at("11:00:00"), at("12:00:00"));
    assert_eq!(format_evaluation(&evaluation), ["12:00 due"]);
    assert_eq!(
        (evaluation.decided_until, evaluation.next_evaluation_at),
        (at("12:00:00"), Some(at("13:00:00")))
    );
    let evaluation = evaluate_schedule((&hourly).into(), at("12:00:00"), at("12:59:59"));
    assert_eq!(
        (format_evaluation(&evaluation).len(), evaluation.decided_until),
        (0, at("12:00:00"))
    );
}

#[test]
fn missed_times_are_handled_by_the_missed_policy() {
    let window = 3 * HOUR;
    let cases = [
        (MissedPolicy::Skip, "12:20:00", vec!["08:00+5 missed"]),
        (
            MissedPolicy::Once { window },
            "12:20:00",
            vec!["08:00+2 missed", "10:00+2 coalesced", "12:00 catch-up"],
        ),
        (
            MissedPolicy::Once { window },
            "12:00:10",
            vec!["08:00+2 missed", "10:00+2 coalesced", "12:00 due"],
        ),
        (
            MissedPolicy::All { max: 2, window },
            "12:20:00",
            vec!["08:00+2 missed", "10:00+1 missed", "11:00 catch-up", "12:00 catch-up"],
        ),
        (
            MissedPolicy::All { max: 9, window },
            "12:20:00",
            vec!["08:00+2 missed", "10:00 catch-up", "11:00 catch-up", "12:00 catch-up"],
        ),
    ];
    for (missed, now, expected) in cases {
        let evaluation =
            evaluate_schedule((&spec("0 * * * *", missed)).into(), at("07:00:00"), at(now));
        assert_eq!(format_evaluation(&evaluation), expected, "{missed:?} at {now}");
        // Occurrences that passed while the service was down follow the policy of the
        // schedule
        assert_eq!(evaluation.next_evaluation_at, Some(at("13:00:00")));
    }
}

#[test]
fn times_are_open_again_after_the_clock_is_set_back() {
    let hourly = spec("0 * * * *", MissedPolicy::default());
    let evaluation = evaluate_schedule((&hourly).into(), at("18:00:00"), at("12:30:00"));
    assert_eq!(
        (format_evaluation(&evaluation).len(), evaluation.next_evaluation_at),
        (0, Some(at("13:00:00")))
    );
    let evaluation = evaluate_schedule((&hourly).into(), at("13:00:00"), at("12:59:40"));
    assert_eq!(
        evaluation.next_evaluation_at,
        Some(at("14:00:00")),
        "a clock that is a little off decides nothing twice"
    );
}

#[test]
fn jitter_is_stable_per_occurrence_and_bounded() {
    let jittered = ScheduleSpec { jitter: HOUR / 2, ..spec("0 * * * *", MissedPolicy::default()) };
    let mut delays: Vec<_> = (0..20)
        .map(|hour| at(&format!("{hour:02}:00:00")))
        .map(|planned| due_time(&jittered.id, jittered.jitter, planned) - planned)
        .collect();
    let max_delay = TimeDelta::from_std(jittered.jitter).unwrap();
    assert!(delays.iter().all(|delay| *delay >= TimeDelta::zero() && *delay <= max_delay));
    delays.dedup();
    assert!(delays.len() > 15, "{delays:?}");
    let due = due_time(&jittered.id, jittered.jitter, at("12:00:00"));
    let earlier_evaluation =
        evaluate_schedule((&jittered).into(), at("11:00:00"), due - TimeDelta::milliseconds(1));
    assert_eq!(
        (format_evaluation(&earlier_evaluation).len(), earlier_evaluation.next_evaluation_at),
        (0, Some(due))
    );
    assert_eq!(
        format_evaluation(&evaluate_schedule((&jittered).into(), at("11:00:00"), due)),
        ["12:00 due"]
    );
}

#[test]
fn years_of_seconds_are_not_iterated() {
    let every_second = spec("* * * * * *", MissedPolicy::default());
    // Also between two seconds, where the window starts within a second.
    for now in [at("12:00:00"), at("12:00:00.5")] {
        let evaluation = evaluate_schedule((&every_second).into(), now - TimeDelta::days(400), now);
        let [expired, late] = &*evaluation.unsubmitted_ranges else { panic!("{evaluation:?}") };
        let first = (now - TimeDelta::days(400)).timestamp() + 1;
        assert_eq!(expired.first.timestamp(), first);
        assert!(expired.planned_time_count as usize >= MAX_COUNTED_TIMES, "{expired:?}");
        assert!(expired.reason.contains("more than are counted"));
        assert_eq!(late.status, OccurrenceStatus::Coalesced);
        assert!((3568..=3570).contains(&late.planned_time_count), "{late:?}");
        assert!((30..=31).contains(&evaluation.to_submit.len()));
        assert_eq!(evaluation.decided_until, at("12:00:00"));
    }
}

#[test]
fn expired_times_of_a_delayed_schedule_have_one_record() {
    let jitter = Duration::from_secs(300);
    let jittered_spec = ScheduleSpec { jitter, ..spec("* * * * *", MissedPolicy::default()) };
    let now = at("12:00:00");
    let evaluation = evaluate_schedule((&jittered_spec).into(), now - TimeDelta::days(30), now);
    let expired: Vec<_> = evaluation
        .unsubmitted_ranges
        .iter()
        .filter(|range| range.status == OccurrenceStatus::Missed)
        .collect();
    let [range] = &*expired else { panic!("{expired:?}") };
    assert_eq!(range.first, now - TimeDelta::days(30) + TimeDelta::minutes(1));
    assert!(range.planned_time_count as usize >= MAX_COUNTED_TIMES, "{range:?}");
    assert!(range.reason.contains("more than are counted"));
}

#[test]
fn the_latest_of_many_late_times_are_caught_up() {
    let now = at("12:00:40");
    let days = |count: u64| Duration::from_secs(count * 86_400);
    let once = MissedPolicy::Once { window: days(7) };
    let all = |max| MissedPolicy::All { max, window: days(7) };
    for (cron, missed, days_late, count) in [
        ("* * * * *", once, 2, 1),
        ("* * * * *", once, 4, 1),
        ("* * * * *", once, 30, 1),
        ("* * * * *", all(3), 5, 3),
        ("* * * * *", all(1000), 7, 1000),
        ("0 * 8 * * *", all(1000), 90, 7 * 60),
        ("*/5 * 8-9 * * *", all(1000), 5, 1000),
        ("*/30 * * * * *", once, 3, 1),
    ] {
        let frequent = spec(cron, missed);
        let evaluation =
            evaluate_schedule((&frequent).into(), now - TimeDelta::days(days_late), now);
        let caught_up = evaluation.to_submit.iter().filter(|it| it.2 == OccurrenceCause::CatchUp);
        let caught_up: Vec<_> = caught_up.map(|(planned, _, _)| *planned).collect();
        let is_late = |planned: &DateTime<Utc>| {
            now - *planned <= TimeDelta::days(7) && now - *planned > TimeDelta::seconds(30)
        };
        let planned = frequent.recurrence.planned_times_after(now - TimeDelta::days(days_late));
        let late: Vec<_> = planned.take_while(|it| *it <= now).filter(is_late).collect();
        let has_punctual_time = evaluation.to_submit.len() > caught_up.len();
        let expected = match missed {
            MissedPolicy::Once { .. } if has_punctual_time => &late[late.len()..],
            _ => &late[late.len() - count..],
        };
        assert_eq!(caught_up, expected, "{cron} {missed:?} {days_late}");
        let late_unsubmitted = evaluation.unsubmitted_ranges.iter().filter(|it| is_late(&it.last));
        let late_unsubmitted_count: usize =
            late_unsubmitted.clone().map(|it| it.planned_time_count as usize).sum();
        let is_count_complete = !late_unsubmitted.clone().any(|it| it.reason.contains("counted"));
        assert_eq!(
            is_count_complete,
            late_unsubmitted_count + expected.len() == late.len(),
            "{cron} {missed:?}"
        );
        assert!(
            is_count_complete || late_unsubmitted_count >= MAX_COUNTED_TIMES,
            "{cron} {missed:?}"
        );
    }
}

#[test]
fn no_time_of_a_delayed_schedule_is_lost() {
    let now = at("12:00:40");
    for (jitter, id) in [(300, "nightly"), (1800, "nightly"), (1800, "tick"), (3600, "tick")] {
        let window = Duration::from_secs(7 * 86_400);
        let jittered_spec = ScheduleSpec {
            id: ScheduleId::new(id).unwrap(),
            jitter: Duration::from_secs(jitter),
            ..spec("* * * * *", MissedPolicy::Once { window })
        };
        let evaluation = evaluate_schedule((&jittered_spec).into(), now - TimeDelta::days(5), now);
        let submitted_times: Vec<_> =
            evaluation.to_submit.iter().map(|(planned, _, _)| *planned).collect();
        let due_times = jittered_spec
            .recurrence
            .planned_times_after(now - TimeDelta::days(5))
            .map(|planned| (planned, due_time(&jittered_spec.id, jittered_spec.jitter, planned)))
            .take_while(|(_, due)| *due <= now)
            .collect::<Vec<_>>();
        let last_planned = due_times.last().unwrap().0;
        assert_eq!(evaluation.decided_until, last_planned, "{id} {jitter}");
        let on_time = due_times.into_iter().filter(|(_, due)| now - *due <= TimeDelta::seconds(30));
        for (planned, _) in on_time {
            assert!(submitted_times.contains(&planned), "{id} {jitter}: {planned}");
        }
    }
}

#[test]
fn a_busy_schedule_follows_its_overlap_policy() {
    use OverlapPolicy::{Allow, CancelPrevious, Queue, Skip};
    for overlap in [Skip, Queue, CancelPrevious, Allow] {
        assert_eq!(decide_overlap(overlap, 0, 0), OverlapDecision::Fire);
    }
    assert_eq!(decide_overlap(Allow, 3, 0), OverlapDecision::Fire);
    assert!(matches!(decide_overlap(Skip, 1, 0), OverlapDecision::Skip(_)));
    assert!(matches!(decide_overlap(Skip, 0, 1), OverlapDecision::Skip(_)));
    assert_eq!(
        (decide_overlap(Queue, 1, 0), decide_overlap(Queue, 0, 1)),
        (OverlapDecision::Wait, OverlapDecision::Wait)
    );
    assert!(matches!(decide_overlap(Queue, 1, MAX_WAITING_OCCURRENCES), OverlapDecision::Skip(_)));
    assert_eq!(decide_overlap(CancelPrevious, 1, 0), OverlapDecision::Replace);
}

proptest! {
    #[test]
    fn each_time_is_decided_exactly_once_by_any_evaluations(
        gaps in proptest::collection::vec(1_u32..20_000, 1..40),
        jitter in 0_u64..1200,
        policy in 0_u8..3,
    ) {
        let missed = match policy {
            0 => MissedPolicy::Skip,
            1 => MissedPolicy::default(),
            _ => MissedPolicy::All { max: 3, window: 2 * HOUR },
        };
        let spec = ScheduleSpec { jitter: Duration::from_secs(jitter), ..spec("*/7 * * * *", missed) };
        let start = at("00:00:00");
        let (mut cursor, mut now, mut decided_time_count) = (start, start, 0);
        for gap in gaps {
            now += TimeDelta::seconds(gap.into());
            let evaluation = evaluate_schedule((&spec).into(), cursor, now);
            for range in &evaluation.unsubmitted_ranges {
                let planned_times = spec.recurrence.planned_times_after(cursor).take_while(|it| *it <= range.last);
                prop_assert!(planned_times.count() >= range.planned_time_count as usize);
                decided_time_count += range.planned_time_count as usize;
            }
            decided_time_count += evaluation.to_submit.len();
            prop_assert!(evaluation.decided_until >= cursor);
            prop_assert!(evaluation.next_evaluation_at.is_some_and(|next| next > now));
            cursor = evaluation.decided_until;
        }
        let is_due = |planned: &DateTime<Utc>| due_time(&spec.id, spec.jitter, *planned) <= now;
        let expected = spec.recurrence.planned_times_after(start).take_while(is_due).count();
        prop_assert_eq!(decided_time_count, expected);
    }
}

//! What is removed of a history, by data alone.

use std::time::Duration;

use algonius_actors::decide::retention::{Progress, Source, Trust};
use algonius_actors::model::stock::{Keep, Stock, Sweep};
use chrono::{DateTime, TimeDelta, Utc};

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_800_000_000)
}

fn bounds() -> Keep {
    Keep {
        max_age: Some(30 * DAY),
        max_executions: Some(1000),
        max_bytes: Some(1 << 20),
        min_age: HOUR,
    }
}

fn stock(executions: u64, bytes: u64) -> Stock {
    Stock { executions, ended: executions, bytes, ..Stock::default() }
}

/// What a pass asks for when each of its sweeps finds nothing.
fn asked(keep: Keep, stock: Stock, age_counts: bool) -> Vec<(Source, Sweep)> {
    let mut progress = Progress::begin(now(), age_counts, &stock);
    let mut asked = Vec::new();
    while let Some((source, sweep)) = progress.next(&keep, &stock) {
        asked.push((source, sweep));
        progress = progress.removed(source, 0);
    }
    asked
}

#[test]
fn what_is_older_than_it_may_be_goes_and_nothing_else_while_there_is_room() {
    let sweep = Sweep { from: None, before: Some(now() - TimeDelta::days(30)), most: 50 };
    assert_eq!(asked(bounds(), stock(10, 1), true), [(Source::Age, sweep)]);
    assert_eq!(asked(bounds(), stock(10, 1), false), []);
    let for_ever = Keep { max_age: None, ..bounds() };
    assert_eq!(asked(for_ever, stock(1000, 1 << 20), true), []);
}

#[test]
fn what_is_too_much_goes_but_for_what_ended_just_now() {
    let keep = Keep { max_age: None, ..bounds() };
    let (future, past) = (now() + TimeDelta::days(1), now() - TimeDelta::hours(1));
    let sweeps = |most| {
        [
            (Source::Future, Sweep { from: Some(future), before: None, most }),
            (Source::Past, Sweep { from: None, before: Some(past), most }),
        ]
    };
    assert_eq!(asked(keep, stock(1007, 1), true), sweeps(7));
    assert_eq!(asked(keep, stock(90_000, 1), true), sweeps(50));
    assert_eq!(asked(keep, stock(900, (1 << 20) + 1), true), sweeps(5));
    let free = Stock { free_bytes: 1, ..stock(900, (1 << 20) + 1) };
    assert_eq!(asked(keep, free, true), []);
}

#[test]
fn a_pass_removes_by_age_no_more_than_a_part() {
    let stock = stock(10_000, 1);
    let keep = Keep { max_executions: None, max_bytes: None, ..bounds() };
    let (mut progress, mut removed) = (Progress::begin(now(), true, &stock), 0);
    while let Some((source, sweep)) = progress.next(&keep, &stock) {
        removed += u64::from(sweep.most);
        progress = progress.removed(source, sweep.most.into());
    }
    assert_eq!(removed, 500);
}

#[test]
fn nothing_is_removed_before_its_least_age() {
    let keep = Keep { max_age: Some(HOUR), min_age: DAY, ..bounds() };
    let before = Some(now() - TimeDelta::days(1));
    assert_eq!(
        asked(keep, stock(1, 1), true),
        [(Source::Age, Sweep { from: None, before, most: 50 })]
    );
}

#[test]
fn for_a_day_after_the_clock_was_set_age_does_not_count() {
    for jump in [TimeDelta::days(365), -TimeDelta::days(365), TimeDelta::hours(2)] {
        let (trust, first) = Trust::default().look(now(), Duration::ZERO);
        let (trust, steady) = trust.look(now() + TimeDelta::minutes(10), HOUR / 6);
        let set = now() + jump;
        let (trust, set_now) = trust.look(set, HOUR / 3);
        let (trust, later) = trust.look(set + TimeDelta::hours(23), HOUR / 3 + 23 * HOUR);
        let (_, after) = trust.look(set + TimeDelta::hours(24), HOUR / 3 + 24 * HOUR);
        let seen = [first, steady, set_now, later, after];
        assert_eq!(seen, [true, true, false, false, true], "{jump}");
    }
}

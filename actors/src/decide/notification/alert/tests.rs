//! Tests of the alert logic with inputs and times alone.

use proptest::prelude::*;

use crate::decide::notification::alert::*;

/// Watch with low limits, and the changes that it returned.
#[derive(Default)]
struct Story {
    watch: Watch,
    told: Vec<String>,
}

impl Story {
    fn see(&mut self, second: u64, sighting: AlertInput) -> &mut Self {
        let spec = AlertSpec {
            requests_per_minute: 10,
            failure_streak: 3,
            ledger_free_bytes: 100,
            linger: Duration::from_secs(30),
        };
        let now = Duration::from_secs(second);
        let (watch, changes) = step(std::mem::take(&mut self.watch), sighting, now, &spec);
        self.watch = watch;
        self.told.extend(changes.into_iter().map(|change| match change {
            AlertChange::Opened((cause, subject), value, limit) => {
                format!("{second} {} {subject} {value}/{limit}", cause.as_str())
            }
            AlertChange::Closed((cause, subject)) => {
                format!("{second} {} {subject} over", cause.as_str())
            }
        }));
        self
    }
}

fn asked() -> AlertInput {
    AlertInput::Requested("/x".to_owned(), 1)
}

fn agent() -> AgentId {
    AgentId::new("one").expect("an id")
}

#[test]
fn a_request_rate_above_the_limit_raises_one_alert() {
    let mut story = Story::default();
    (0..10).for_each(|second| _ = story.see(second, asked()));
    assert_eq!(story.told, [""; 0]);
    (10..50).for_each(|second| _ = story.see(second, asked()));
    assert_eq!(story.told, ["10 request-rate /x 11/10"]);
    // Hysteresis: nine within the last minute are still too many, eight are not.
    story.see(100, AlertInput::Tick);
    assert_eq!(story.told.len(), 1);
    story.see(101, AlertInput::Tick).see(103, AlertInput::Tick);
    assert_eq!(story.told.last().map(String::as_str), Some("101 request-rate /x over"));
    assert_eq!(story.told.len(), 2);
}

#[test]
fn batched_requests_count_like_single_requests() {
    let mut story = Story::default();
    let many = |count| AlertInput::Requested("/x".to_owned(), count);
    story.see(0, many(4)).see(1, many(6));
    assert_eq!(story.told, [""; 0]);
    story.see(2, many(5_000)).see(3, many(1));
    assert_eq!(story.told, ["2 request-rate /x 5010/10"]);
    story.see(61, AlertInput::Tick);
    assert_eq!(story.told.len(), 1);
    story.see(62, AlertInput::Tick);
    assert_eq!(story.told[1..], ["62 request-rate /x over"]);
}

#[test]
fn requests_at_the_limit_raise_no_alert_per_endpoint() {
    let mut story = Story::default();
    for second in (0..600).step_by(6) {
        story.see(second, asked()).see(second, AlertInput::Requested("/y".to_owned(), 1));
    }
    assert_eq!(story.told, [""; 0]);
}

#[test]
fn a_failure_streak_alert_lasts_until_a_success() {
    let mut story = Story::default();
    for good in [false, false, true, false, false, false, false, true, false] {
        story.see(1, AlertInput::Ended(agent(), good));
    }
    assert_eq!(story.told, ["1 failure-streak one 3/3", "1 failure-streak one over"]);
}

#[test]
fn a_nearly_spent_budget_raises_one_alert_per_day() {
    let mut story = Story::default();
    let spent = |percent, left| AlertInput::Spent(agent(), percent, Duration::from_secs(left));
    story.see(0, spent(79, 100)).see(1, spent(80, 99)).see(2, spent(130, 98));
    assert!(story.watch.ends_by_itself());
    story.see(99, AlertInput::Tick).see(100, AlertInput::Tick).see(101, spent(5, 1000));
    let expected =
        ["1 budget-nearly-spent one 80/80", "100 budget-nearly-spent one over"].map(str::to_owned);
    assert_eq!(story.told, expected);
    // The operator increases the budget.
    story.see(102, spent(90, 999)).see(103, spent(45, 998));
    assert_eq!(story.told[3..], ["103 budget-nearly-spent one over"]);
}

#[test]
fn a_disk_alert_opens_and_closes_once_with_hysteresis() {
    let mut story = Story::default();
    for bytes in [101, 99, 101, 99, 124, 125, 126] {
        story.see(0, AlertInput::Free(bytes));
    }
    assert_eq!(story.told, ["0 ledger-nearly-full  99/100", "0 ledger-nearly-full  over"]);
}

#[test]
fn each_resource_shortage_has_an_alert_of_its_own() {
    let mut story = Story::default();
    use Shortage::{Cpu, Memory};
    for short in [vec![Cpu], vec![Cpu, Memory], vec![Memory], vec![]] {
        story.see(0, AlertInput::Short(short));
    }
    let expected = [
        "0 pressure processors 1/0",
        "0 pressure memory 1/0",
        "0 pressure processors over",
        "0 pressure memory over",
    ];
    assert_eq!(story.told, expected);
}

#[test]
fn a_one_time_alert_closes_after_a_quiet_period() {
    let mut story = Story::default();
    story
        .see(0, AlertInput::GivenUp(20))
        .see(20, AlertInput::GivenUp(20))
        .see(40, AlertInput::Tick);
    assert_eq!(story.told, ["0 push-given-up  20/0"]);
    story.see(50, AlertInput::Tick).see(60, AlertInput::Tick);
    assert_eq!(story.told.last().map(String::as_str), Some("50 push-given-up  over"));
    story.see(70, AlertInput::Quarantined(agent())).see(9_999, AlertInput::Tick);
    assert_eq!(story.told.last().map(String::as_str), Some("70 agent-quarantined one 1/0"));
}

#[test]
fn a_limit_of_zero_disables_its_alert() {
    let spec = AlertSpec {
        requests_per_minute: 0,
        failure_streak: 0,
        ledger_free_bytes: 0,
        linger: Duration::ZERO,
    };
    let mut watch = Watch::default();
    for sighting in [asked(), AlertInput::Ended(agent(), false), AlertInput::Free(0)] {
        let (next, changes) = step(watch, sighting, Duration::ZERO, &spec);
        assert_eq!(changes, []);
        watch = next;
    }
}

fn sightings() -> impl Strategy<Value = AlertInput> {
    prop_oneof![
        6 => Just(asked()),
        1 => any::<bool>().prop_map(|good| AlertInput::Ended(agent(), good)),
        1 => (0..200u64).prop_map(AlertInput::Free),
        1 => Just(AlertInput::GivenUp(1)),
        1 => Just(AlertInput::Short(vec![Shortage::Cpu])),
        1 => Just(AlertInput::Short(Vec::new())),
        1 => (0..200u64, 0..99u64).prop_map(|(percent, left)| {
            AlertInput::Spent(agent(), percent, Duration::from_secs(left))
        }),
        2 => Just(AlertInput::Tick),
    ]
}

proptest! {
    /// The opening and the closing of an alert alternate.
    #[test]
    fn alerts_open_and_close_alternately(
        seen in proptest::collection::vec((sightings(), 0..20u64), 0..200)
    ) {
        let (mut story, mut second) = (Story::default(), 0);
        for (sighting, pause) in seen {
            second += pause;
            story.see(second, sighting);
        }
        let mut open = std::collections::BTreeSet::new();
        for told in story.told {
            let mut words = told.split(' ').skip(1);
            let key = (words.next().map(str::to_owned), words.next().map(str::to_owned));
            let is_over = told.ends_with("over");
            prop_assert!(if is_over { open.remove(&key) } else { open.insert(key) }, "{told}");
        }
    }

    /// The memory is limited to the limit and one, however many requests arrive.
    #[test]
    fn the_request_history_is_bounded(count in 0..500usize) {
        let mut story = Story::default();
        (0..count).for_each(|_| _ = story.see(0, asked()));
        prop_assert!(story.watch.requests.values().all(|times| times.len() <= 11));
    }
}

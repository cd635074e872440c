//! Alerts, told by sightings and times alone.

use proptest::prelude::*;

use super::*;

/// A watch with low bounds, and what it told.
#[derive(Default)]
struct Story {
    watch: Watch,
    told: Vec<String>,
}

impl Story {
    fn see(&mut self, second: u64, sighting: Sighting) -> &mut Self {
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
            Change::Opened((cause, subject), value, limit) => {
                format!("{second} {} {subject} {value}/{limit}", cause.as_str())
            }
            Change::Closed((cause, subject)) => {
                format!("{second} {} {subject} over", cause.as_str())
            }
        }));
        self
    }
}

fn asked() -> Sighting {
    Sighting::Requested("/x".to_owned(), 1)
}

fn agent() -> AgentId {
    AgentId::new("one").expect("an id")
}

#[test]
fn one_request_more_than_is_expected_within_a_minute_is_told_once() {
    let mut story = Story::default();
    (0..10).for_each(|second| _ = story.see(second, asked()));
    assert_eq!(story.told, [""; 0]);
    (10..50).for_each(|second| _ = story.see(second, asked()));
    assert_eq!(story.told, ["10 request-rate /x 11/10"]);
    // Hysteresis: nine within the last minute are still too many, eight are not.
    story.see(100, Sighting::Tick);
    assert_eq!(story.told.len(), 1);
    story.see(101, Sighting::Tick).see(103, Sighting::Tick);
    assert_eq!(story.told.last().map(String::as_str), Some("101 request-rate /x over"));
    assert_eq!(story.told.len(), 2);
}

#[test]
fn requests_that_are_told_together_count_as_those_that_are_told_one_by_one() {
    let mut story = Story::default();
    let many = |count| Sighting::Requested("/x".to_owned(), count);
    story.see(0, many(4)).see(1, many(6));
    assert_eq!(story.told, [""; 0]);
    story.see(2, many(5_000)).see(3, many(1));
    assert_eq!(story.told, ["2 request-rate /x 5010/10"]);
    story.see(61, Sighting::Tick);
    assert_eq!(story.told.len(), 1);
    story.see(62, Sighting::Tick);
    assert_eq!(story.told[1..], ["62 request-rate /x over"]);
}

#[test]
fn as_many_as_are_expected_are_never_too_many_and_endpoints_are_counted_apart() {
    let mut story = Story::default();
    for second in (0..600).step_by(6) {
        story.see(second, asked()).see(second, Sighting::Requested("/y".to_owned(), 1));
    }
    assert_eq!(story.told, [""; 0]);
}

#[test]
fn failures_in_a_row_are_told_until_one_works() {
    let mut story = Story::default();
    for good in [false, false, true, false, false, false, false, true, false] {
        story.see(1, Sighting::Ended(agent(), good));
    }
    assert_eq!(story.told, ["1 failure-streak one 3/3", "1 failure-streak one over"]);
}

#[test]
fn a_budget_that_is_nearly_spent_is_told_once_a_day_until_the_next_begins() {
    let mut story = Story::default();
    let spent = |percent, left| Sighting::Spent(agent(), percent, Duration::from_secs(left));
    story.see(0, spent(79, 100)).see(1, spent(80, 99)).see(2, spent(130, 98));
    assert!(story.watch.ends_by_itself());
    story.see(99, Sighting::Tick).see(100, Sighting::Tick).see(101, spent(5, 1000));
    let expected =
        ["1 budget-nearly-spent one 80/80", "100 budget-nearly-spent one over"].map(str::to_owned);
    assert_eq!(story.told, expected);
    // Somebody gives it more to spend.
    story.see(102, spent(90, 999)).see(103, spent(45, 998));
    assert_eq!(story.told[3..], ["103 budget-nearly-spent one over"]);
}

#[test]
fn a_disk_that_fills_and_is_emptied_is_told_twice_and_not_more() {
    let mut story = Story::default();
    for bytes in [101, 99, 101, 99, 124, 125, 126] {
        story.see(0, Sighting::Free(bytes));
    }
    assert_eq!(story.told, ["0 ledger-nearly-full  99/100", "0 ledger-nearly-full  over"]);
}

#[test]
fn each_shortage_has_its_own_beginning_and_end() {
    let mut story = Story::default();
    use Shortage::{Cpu, Memory};
    for short in [vec![Cpu], vec![Cpu, Memory], vec![Memory], vec![]] {
        story.see(0, Sighting::Short(short));
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
fn what_happens_once_is_over_when_it_has_not_happened_again_for_a_while() {
    let mut story = Story::default();
    story.see(0, Sighting::GivenUp(20)).see(20, Sighting::GivenUp(20)).see(40, Sighting::Tick);
    assert_eq!(story.told, ["0 push-given-up  20/0"]);
    story.see(50, Sighting::Tick).see(60, Sighting::Tick);
    assert_eq!(story.told.last().map(String::as_str), Some("50 push-given-up  over"));
    story.see(70, Sighting::Quarantined(agent())).see(9_999, Sighting::Tick);
    assert_eq!(story.told.last().map(String::as_str), Some("70 agent-quarantined one 1/0"));
}

#[test]
fn a_bound_of_zero_tells_nothing() {
    let spec = AlertSpec {
        requests_per_minute: 0,
        failure_streak: 0,
        ledger_free_bytes: 0,
        linger: Duration::ZERO,
    };
    let mut watch = Watch::default();
    for sighting in [asked(), Sighting::Ended(agent(), false), Sighting::Free(0)] {
        let (next, changes) = step(watch, sighting, Duration::ZERO, &spec);
        assert_eq!(changes, []);
        watch = next;
    }
}

fn sightings() -> impl Strategy<Value = Sighting> {
    prop_oneof![
        6 => Just(asked()),
        1 => any::<bool>().prop_map(|good| Sighting::Ended(agent(), good)),
        1 => (0..200u64).prop_map(Sighting::Free),
        1 => Just(Sighting::GivenUp(1)),
        1 => Just(Sighting::Short(vec![Shortage::Cpu])),
        1 => Just(Sighting::Short(Vec::new())),
        1 => (0..200u64, 0..99u64).prop_map(|(percent, left)| {
            Sighting::Spent(agent(), percent, Duration::from_secs(left))
        }),
        2 => Just(Sighting::Tick),
    ]
}

proptest! {
    /// Who is told of an alert hears of its end before it hears of it again.
    #[test]
    fn openings_and_closings_take_turns(
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

    /// However many requests come, no more than the bound and one are remembered.
    #[test]
    fn what_is_remembered_is_bounded(count in 0..500usize) {
        let mut story = Story::default();
        (0..count).for_each(|_| _ = story.see(0, asked()));
        prop_assert!(story.watch.requests.values().all(|times| times.len() <= 11));
    }
}

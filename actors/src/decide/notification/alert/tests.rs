//! Tests of the alert logic with inputs and times alone.

use proptest::prelude::*;

use crate::decide::notification::alert::*;

/// Watch with low limits, and the changes that it returned.
#[derive(Default)]
struct AlertScenario {
    tracker: AlertTracker,
    log: Vec<String>,
}

impl AlertScenario {
    fn apply(&mut self, second: u64, alert_input: AlertInput) -> &mut Self {
        let spec = AlertSpec {
            requests_per_minute: 10,
            failure_streak: 3,
            min_ledger_free_bytes: 100,
            event_alert_duration: Duration::from_secs(30),
        };
        let now = Duration::from_secs(second);
        let (tracker, changes) =
            apply_alert_input(std::mem::take(&mut self.tracker), alert_input, now, &spec);
        self.tracker = tracker;
        self.log.extend(changes.into_iter().map(|change| match change {
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

fn one_request() -> AlertInput {
    AlertInput::RequestsReceived("/x".to_owned(), 1)
}

fn agent() -> AgentId {
    AgentId::new("one").expect("an id")
}

#[test]
fn a_request_rate_above_the_limit_raises_one_alert() {
    let mut scenario = AlertScenario::default();
    (0..10).for_each(|second| _ = scenario.apply(second, one_request()));
    assert_eq!(scenario.log, [""; 0]);
    (10..50).for_each(|second| _ = scenario.apply(second, one_request()));
    assert_eq!(scenario.log, ["10 request-rate /x 11/10"]);
    // Hysteresis: nine within the last minute are still too many, eight are not.
    scenario.apply(100, AlertInput::Tick);
    assert_eq!(scenario.log.len(), 1);
    scenario.apply(101, AlertInput::Tick).apply(103, AlertInput::Tick);
    assert_eq!(scenario.log.last().map(String::as_str), Some("101 request-rate /x over"));
    assert_eq!(scenario.log.len(), 2);
}

#[test]
fn batched_requests_count_like_single_requests() {
    let mut scenario = AlertScenario::default();
    let requests = |count| AlertInput::RequestsReceived("/x".to_owned(), count);
    scenario.apply(0, requests(4)).apply(1, requests(6));
    assert_eq!(scenario.log, [""; 0]);
    scenario.apply(2, requests(5_000)).apply(3, requests(1));
    assert_eq!(scenario.log, ["2 request-rate /x 5010/10"]);
    scenario.apply(61, AlertInput::Tick);
    assert_eq!(scenario.log.len(), 1);
    scenario.apply(62, AlertInput::Tick);
    assert_eq!(scenario.log[1..], ["62 request-rate /x over"]);
}

#[test]
fn requests_at_the_limit_raise_no_alert_per_endpoint() {
    let mut scenario = AlertScenario::default();
    for second in (0..600).step_by(6) {
        scenario
            .apply(second, one_request())
            .apply(second, AlertInput::RequestsReceived("/y".to_owned(), 1));
    }
    assert_eq!(scenario.log, [""; 0]);
}

#[test]
fn a_failure_streak_alert_lasts_until_a_success() {
    let mut scenario = AlertScenario::default();
    for succeeded in [false, false, true, false, false, false, false, true, false] {
        scenario.apply(1, AlertInput::ExecutionEnded(agent(), succeeded));
    }
    assert_eq!(scenario.log, ["1 failure-streak one 3/3", "1 failure-streak one over"]);
}

#[test]
fn a_nearly_spent_budget_raises_one_alert_per_day() {
    let mut scenario = AlertScenario::default();
    let budget_used = |percent, seconds_left| {
        AlertInput::BudgetUsed(agent(), percent, Duration::from_secs(seconds_left))
    };
    scenario
        .apply(0, budget_used(79, 100))
        .apply(1, budget_used(80, 99))
        .apply(2, budget_used(130, 98));
    assert!(scenario.tracker.needs_ticks());
    scenario
        .apply(99, AlertInput::Tick)
        .apply(100, AlertInput::Tick)
        .apply(101, budget_used(5, 1000));
    let expected =
        ["1 budget-nearly-spent one 80/80", "100 budget-nearly-spent one over"].map(str::to_owned);
    assert_eq!(scenario.log, expected);
    // The operator increases the budget.
    scenario.apply(102, budget_used(90, 999)).apply(103, budget_used(45, 998));
    assert_eq!(scenario.log[3..], ["103 budget-nearly-spent one over"]);
}

#[test]
fn a_disk_alert_opens_and_closes_once_with_hysteresis() {
    let mut scenario = AlertScenario::default();
    for bytes in [101, 99, 101, 99, 124, 125, 126] {
        scenario.apply(0, AlertInput::LedgerFreeBytes(bytes));
    }
    assert_eq!(scenario.log, ["0 ledger-nearly-full  99/100", "0 ledger-nearly-full  over"]);
}

#[test]
fn each_resource_shortage_has_an_alert_of_its_own() {
    let mut scenario = AlertScenario::default();
    use Shortage::{Cpu, Memory};
    for shortages in [vec![Cpu], vec![Cpu, Memory], vec![Memory], vec![]] {
        scenario.apply(0, AlertInput::Shortages(shortages));
    }
    let expected = [
        "0 pressure processors 1/0",
        "0 pressure memory 1/0",
        "0 pressure processors over",
        "0 pressure memory over",
    ];
    assert_eq!(scenario.log, expected);
}

#[test]
fn a_one_time_alert_closes_after_a_quiet_period() {
    let mut scenario = AlertScenario::default();
    scenario
        .apply(0, AlertInput::PushAbandoned(20))
        .apply(20, AlertInput::PushAbandoned(20))
        .apply(40, AlertInput::Tick);
    assert_eq!(scenario.log, ["0 push-given-up  20/0"]);
    scenario.apply(50, AlertInput::Tick).apply(60, AlertInput::Tick);
    assert_eq!(scenario.log.last().map(String::as_str), Some("50 push-given-up  over"));
    scenario.apply(70, AlertInput::AgentQuarantined(agent())).apply(9_999, AlertInput::Tick);
    assert_eq!(scenario.log.last().map(String::as_str), Some("70 agent-quarantined one 1/0"));
}

#[test]
fn a_limit_of_zero_disables_its_alert() {
    let spec = AlertSpec {
        requests_per_minute: 0,
        failure_streak: 0,
        min_ledger_free_bytes: 0,
        event_alert_duration: Duration::ZERO,
    };
    let mut tracker = AlertTracker::default();
    for alert_input in
        [one_request(), AlertInput::ExecutionEnded(agent(), false), AlertInput::LedgerFreeBytes(0)]
    {
        let (next, changes) = apply_alert_input(tracker, alert_input, Duration::ZERO, &spec);
        assert_eq!(changes, []);
        tracker = next;
    }
}

fn alert_inputs() -> impl Strategy<Value = AlertInput> {
    prop_oneof![
        6 => Just(one_request()),
        1 => any::<bool>().prop_map(|succeeded| AlertInput::ExecutionEnded(agent(), succeeded)),
        1 => (0..200u64).prop_map(AlertInput::LedgerFreeBytes),
        1 => Just(AlertInput::PushAbandoned(1)),
        1 => Just(AlertInput::Shortages(vec![Shortage::Cpu])),
        1 => Just(AlertInput::Shortages(Vec::new())),
        1 => (0..200u64, 0..99u64).prop_map(|(percent, seconds_left)| {
            AlertInput::BudgetUsed(agent(), percent, Duration::from_secs(seconds_left))
        }),
        2 => Just(AlertInput::Tick),
    ]
}

proptest! {
    /// The opening and the closing of an alert alternate.
    #[test]
    fn alerts_open_and_close_alternately(
        inputs in proptest::collection::vec((alert_inputs(), 0..20u64), 0..200)
    ) {
        let (mut scenario, mut second) = (AlertScenario::default(), 0);
        for (alert_input, pause) in inputs {
            second += pause;
            scenario.apply(second, alert_input);
        }
        let mut open_keys = std::collections::BTreeSet::new();
        for line in scenario.log {
            let mut words = line.split(' ').skip(1);
            let key = (words.next().map(str::to_owned), words.next().map(str::to_owned));
            let is_closed = line.ends_with("over");
            prop_assert!(if is_closed { open_keys.remove(&key) } else { open_keys.insert(key) }, "{line}");
        }
    }

    /// The memory is limited to the limit and one, however many requests arrive.
    #[test]
    fn the_request_history_is_bounded(count in 0..500usize) {
        let mut scenario = AlertScenario::default();
        (0..count).for_each(|_| _ = scenario.apply(0, one_request()));
        prop_assert!(scenario.tracker.request_times.values().all(|times| times.len() <= 11));
    }
}

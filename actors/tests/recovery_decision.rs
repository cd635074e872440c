//! What becomes of an unfinished execution: one table.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::decide::execution::way_out;
use algonius_actors::decide::recovery::{Verdict, recover};
use algonius_actors::model::agent::Access;
use algonius_actors::model::budget::Charge;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{Fence, Outcome, Stamp, State};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::model::quota::Parked;
use algonius_actors::model::record::Record;
use algonius_actors::model::request::Trigger;
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use uuid::Uuid;

fn accepted_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn record(state: State, replayable: bool) -> Record {
    let (stamp, at) = (Stamp::FIRST, accepted_at());
    Record {
        id: ExecutionId(Uuid::from_u128(1)),
        agent: AgentId::new("worker").unwrap(),
        owner: PrincipalId(Uuid::from_u128(2)),
        message: MessageId("message".to_owned()),
        context: ContextId("context".to_owned()),
        trigger: Trigger::Api,
        trace: None,
        access: Access::ReadOnly,
        state,
        outcome: None,
        failure: None,
        stamp,
        fence: Fence::default(),
        answered: false,
        params: std::collections::BTreeMap::default(),
        overrides: Default::default(),
        replayable,
        accepted_at: at,
        started_at: None,
        changed_at: at,
        ended_at: None,
        parked: None,
        spent: Charge::default(),
        pid: None,
        exit_code: None,
        last_event: 0,
    }
}

/// The verdict after so many seconds of at most 60, in a word.
fn verdict(state: State, replayable: bool, waited: i64) -> String {
    let now = accepted_at() + TimeDelta::seconds(waited);
    match recover(&record(state, replayable), now, Duration::from_secs(60), false) {
        Verdict::Requeue => "requeue".to_owned(),
        Verdict::Keep => "keep".to_owned(),
        Verdict::Park(_) => "park".to_owned(),
        Verdict::Resume => "resume".to_owned(),
        Verdict::Fail(failure) => failure.code.to_string(),
    }
}

#[test]
fn what_has_not_begun_takes_its_place_again_if_its_input_is_whole_and_its_patience_lasts() {
    let verdicts = [(true, 60), (true, 61), (false, 60), (false, 61), (true, -5)]
        .map(|(replayable, waited)| verdict(State::Idle, replayable, waited));
    let [expired, masked] = [Code::QueueTimeout, Code::InterruptedNotRun].map(Code::as_str);
    assert_eq!(verdicts, ["requeue", expired, masked, expired, "requeue"]);
}

proptest! {
    /// Whatever else is true of it: what has begun is interrupted, what waits for input is kept.
    #[test]
    fn what_has_begun_is_never_begun_again(replayable: bool, waited in 0i64..10_000) {
        for state in State::ALL {
            let expected = match state {
                State::Idle => continue,
                State::Waiting => "keep",
                _ => "interrupted",
            };
            prop_assert_eq!(verdict(*state, replayable, waited), expected, "{}", state);
        }
    }
}

#[test]
fn what_is_parked_waits_on_if_its_input_is_whole_however_long_ago_it_was_accepted() {
    let word = |replayable, state, after| {
        let parked = Some(Parked { until: accepted_at(), times: 1, attempt: 1 });
        let stamp = Stamp { turn: 1, attempt: after };
        let record = Record { parked, stamp, ..record(state, replayable) };
        let now = accepted_at() + TimeDelta::days(1);
        match recover(&record, now, Duration::from_secs(60), false) {
            Verdict::Park(_) => "park".to_owned(),
            Verdict::Fail(failure) => failure.code.to_string(),
            _ => "else".to_owned(),
        }
    };
    assert_eq!(word(true, State::Failed, 1), "park");
    assert_eq!(word(false, State::Failed, 1), "not-replayable");
    // It went on since, and was interrupted.
    assert_eq!(word(true, State::Failed, 2), "interrupted");
    assert_eq!(word(true, State::Running, 2), "interrupted");
}

/// From each state in which an execution can be unfinished there is a way to each end that the
/// table of moves has.
#[test]
fn every_way_out_is_in_the_table() {
    use State::{Failed, Idle, Running, Starting, Waiting};
    for from in [Idle, Starting, Running, Waiting, Failed] {
        let way = way_out(from, Outcome::Failed);
        let mut state = from;
        for (left, entered) in way {
            assert_eq!(left, state, "no chain from {from}");
            assert!(left.may_become(entered), "{left} -> {entered}");
            state = entered;
        }
        assert_eq!(state, State::Cleanup, "from {from}");
    }
}

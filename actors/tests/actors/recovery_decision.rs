//! The table that decides about each unfinished execution after a restart.

use std::time::Duration;

use algonius_actors::decide::execution::transitions_to_end;
use algonius_actors::decide::recovery::{InputLoss, RecoveryDecision, decide_recovery};
use algonius_actors::model::agent::Access;
use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::agent::quota::{Deferral, DeferralCause};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::record::{ExecutionRecord, RequestedInput};
use algonius_actors::model::execution::request::Trigger;
use algonius_actors::model::execution::{AttemptId, ExecutionState, Fence, Outcome};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use uuid::Uuid;

fn accepted_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn record_in_state(state: ExecutionState) -> ExecutionRecord {
    let (attempt_id, at) = (AttemptId::FIRST, accepted_at());
    ExecutionRecord {
        id: ExecutionId(Uuid::from_u128(1)),
        agent: AgentId::new("worker").unwrap(),
        owner: PrincipalId(Uuid::from_u128(2)),
        message_id: MessageId("message".to_owned()),
        context: ContextId("context".to_owned()),
        trigger: Trigger::Api,
        trace: None,
        access: Access::ReadOnly,
        state,
        outcome: None,
        failure: None,
        attempt_id,
        fence: Fence::default(),
        requested_input: RequestedInput::default(),
        params: std::collections::BTreeMap::default(),
        overrides: Default::default(),
        stores_raw_input: true,
        accepted_at: at,
        started_at: None,
        changed_at: at,
        ended_at: None,
        latest_deferral: None,
        spent: Charge::default(),
        pid: None,
        exit_code: None,
        last_event_number: 0,
    }
}

/// Returns the reason why an input is lost, if it is lost.
const fn input_loss(has_input: bool) -> Option<InputLoss> {
    if has_input { None } else { Some(InputLoss::KeyMissing) }
}

/// The verdict after so many seconds of at most 60, in a word.
fn decision_word(state: ExecutionState, has_input: bool, waited: i64) -> String {
    let now = accepted_at() + TimeDelta::seconds(waited);
    match decide_recovery(
        &record_in_state(state),
        now,
        Duration::from_secs(60),
        false,
        input_loss(has_input),
    ) {
        RecoveryDecision::Requeue => "requeue".to_owned(),
        RecoveryDecision::KeepWaiting => "keep".to_owned(),
        RecoveryDecision::Defer(_) => "defer".to_owned(),
        RecoveryDecision::Resume => "resume".to_owned(),
        RecoveryDecision::Fail(failure) => failure.code.to_string(),
    }
}

#[test]
fn recovery_requeues_whole_inputs_within_the_queue_timeout() {
    let decisions = [(true, 60), (true, 61), (false, 60), (false, 61), (true, -5)]
        .map(|(has_input, waited)| decision_word(ExecutionState::Idle, has_input, waited));
    let [expired, lost] = [Code::QueueTimeout, Code::InterruptedNotRun].map(Code::as_str);
    assert_eq!(decisions, ["requeue", expired, lost, expired, "requeue"]);
}

/// Each reason has its own text, and the reason that a setting prevents names the setting.
#[test]
fn the_failure_of_a_lost_input_states_its_cause() {
    let message_of = |lost| match decide_recovery(
        &record_in_state(ExecutionState::Idle),
        accepted_at(),
        Duration::from_secs(60),
        false,
        Some(lost),
    ) {
        RecoveryDecision::Fail(failure) => failure.message,
        other => format!("{other:?}"),
    };
    assert_eq!(
        [InputLoss::NotStored, InputLoss::KeyMissing, InputLoss::Damaged].map(message_of),
        [
            "the service stopped before it ran, and its input held secrets that are not stored",
            "the service stopped before it ran, and its input was sealed and the key is gone; a key in \
             `inputs.key_file` outlives a reboot",
            "the service stopped before it ran, and its sealed input is damaged",
        ]
    );
}

proptest! {
    /// Whatever else is true of it: what has begun is interrupted, what waits for input is kept.
    #[test]
    fn recovery_never_restarts_work_that_has_begun(has_input: bool, waited in 0i64..10_000) {
        for state in ExecutionState::ALL {
            let expected = match state {
                ExecutionState::Idle => continue,
                ExecutionState::Waiting => "keep",
                _ => "interrupted",
            };
            prop_assert_eq!(decision_word(*state, has_input, waited), expected, "{}", state);
        }
    }
}

#[test]
fn recovery_keeps_deferrals_of_any_age_with_a_whole_input() {
    let deferral_decision_word = |has_input, state, attempt| {
        let latest_deferral = Some(Deferral {
            until: accepted_at(),
            times: 1,
            attempt: 1,
            cause: DeferralCause::QuotaExhausted,
            overloads: 0,
        });
        let attempt_id = AttemptId { turn: 1, attempt };
        let record = ExecutionRecord { latest_deferral, attempt_id, ..record_in_state(state) };
        let now = accepted_at() + TimeDelta::days(1);
        match decide_recovery(&record, now, Duration::from_secs(60), false, input_loss(has_input)) {
            RecoveryDecision::Defer(_) => "defer".to_owned(),
            RecoveryDecision::Fail(failure) => failure.code.to_string(),
            _ => "else".to_owned(),
        }
    };
    assert_eq!(deferral_decision_word(true, ExecutionState::Failed, 1), "defer");
    assert_eq!(deferral_decision_word(false, ExecutionState::Failed, 1), "not-replayable");
    // It went on since, and was interrupted.
    assert_eq!(deferral_decision_word(true, ExecutionState::Failed, 2), "interrupted");
    assert_eq!(deferral_decision_word(true, ExecutionState::Running, 2), "interrupted");
}

/// From each state in which an execution can be unfinished there is a way to each end that the
/// table of moves has.
#[test]
fn every_transition_is_in_the_table() {
    use ExecutionState::{Failed, Idle, Running, Starting, Waiting};
    for from in [Idle, Starting, Running, Waiting, Failed] {
        let transitions = transitions_to_end(from, Outcome::Failed);
        let mut state = from;
        for (from_state, to_state) in transitions {
            assert_eq!(from_state, state, "no chain from {from}");
            assert!(from_state.may_become(to_state), "{from_state} -> {to_state}");
            state = to_state;
        }
        assert_eq!(state, ExecutionState::Cleanup, "from {from}");
    }
}

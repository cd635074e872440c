//! Events that an execution may hear, as chance has them.

use std::time::Duration;

use algonius_actors::decide::execution::{ExecutionDeadline, ExecutionEvent, NextAttempt};
use algonius_actors::model::agent::Access;
use algonius_actors::model::agent::quota::{Deferral, DeferralCause};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{AttemptId, Interruption};
use algonius_actors::model::failure::Failure;
use chrono::DateTime;
use proptest::prelude::*;
use proptest::sample;

pub(crate) fn accesses() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::ReadOnly), Just(Access::ReadWrite)]
}

/// Attempts that are, were, or will be.
fn attempt_ids() -> impl Strategy<Value = AttemptId> {
    (1u32..3, 1u32..5).prop_map(|(turn, attempt)| AttemptId { turn, attempt })
}

pub(crate) fn results() -> impl Strategy<Value = Result<(), Failure>> {
    let codes = prop_oneof![
        Just(Code::Exit),
        Just(Code::TransientFailure),
        Just(Code::NoResources),
        Just(Code::QuotaExceeded)
    ];
    prop_oneof![1 => Just(Ok(())), 3 => codes.prop_map(|code| Err(Failure::new(code, "it failed")))]
}

fn deadlines() -> impl Strategy<Value = ExecutionDeadline> {
    use ExecutionDeadline::{Answer, Idle, Run, Start, Stop};
    prop_oneof![Just(Start), Just(Run), Just(Idle), Just(Stop), Just(Answer)]
}

/// Decisions of an agent about a failed attempt.
fn next_attempts() -> impl Strategy<Value = NextAttempt> {
    let deferral = Deferral {
        until: DateTime::UNIX_EPOCH,
        times: 1,
        attempt: 1,
        cause: DeferralCause::QuotaExhausted,
        overloads: 0,
    };
    prop_oneof![
        Just(NextAttempt::None),
        Just(NextAttempt::AfterPause),
        Just(NextAttempt::AfterDeferral(deferral))
    ]
}

fn budget_exceeded_failure() -> Failure {
    Failure::new(Code::BudgetExceeded, "it used up too much")
}

/// Every event there is, at any attempt.
pub(crate) fn events() -> impl Strategy<Value = ExecutionEvent> {
    prop_oneof![
        Just(ExecutionEvent::SlotAvailable),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::Claimed { attempt_id }),
        (attempt_ids(), 0u64..70).prop_map(|(attempt_id, waited)| {
            ExecutionEvent::ResourceBusy { attempt_id, waited: Duration::from_secs(waited) }
        }),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::ClaimRetryDue { attempt_id }),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::ClaimFailed { attempt_id }),
        Just(ExecutionEvent::SettledElsewhere),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::Started { attempt_id }),
        (attempt_ids(), results())
            .prop_map(|(attempt_id, result)| ExecutionEvent::Ended { attempt_id, result }),
        (attempt_ids(), results(), 0u64..30_000).prop_map(|(attempt_id, result, retry_after)| {
            let failure = result.err().unwrap_or_else(|| Failure::new(Code::Exit, "it failed"));
            ExecutionEvent::FailedWithRetryAfter {
                attempt_id,
                failure,
                retry_after: Duration::from_secs(retry_after),
            }
        }),
        (attempt_ids(), next_attempts()).prop_map(|(attempt_id, next_attempt)| {
            ExecutionEvent::NextAttemptDecided { attempt_id, next_attempt }
        }),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::LimitExceeded {
            attempt_id,
            failure: budget_exceeded_failure()
        }),
        Just(ExecutionEvent::StartRefused { failure: budget_exceeded_failure() }),
        (attempt_ids(), sample::select(Interruption::ALL)).prop_map(
            |(attempt_id, required_input)| ExecutionEvent::NeedsInput {
                attempt_id,
                required_input
            }
        ),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::Suspended { attempt_id }),
        Just(ExecutionEvent::InputReceived),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::RunDeadlineNear { attempt_id }),
        (attempt_ids(), 0u64..70).prop_map(|(attempt_id, quiet)| {
            ExecutionEvent::SilenceMeasured { attempt_id, silence: Duration::from_secs(quiet) }
        }),
        (attempt_ids(), deadlines()).prop_map(|(attempt_id, deadline)| {
            ExecutionEvent::DeadlinePassed { attempt_id, deadline }
        }),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::RetryDue { attempt_id }),
        Just(ExecutionEvent::QueueExpired),
        Just(ExecutionEvent::CancelRequested { reason: "called off".to_owned() }),
        Just(ExecutionEvent::Settled),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::UsageReadingDue { attempt_id }),
        attempt_ids().prop_map(|attempt_id| ExecutionEvent::CleanUpCompleted { attempt_id }),
    ]
}

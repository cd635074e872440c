//! Events that an execution may hear, as chance has them.

use std::time::Duration;

use algonius_actors::decide::execution::{Deadline, Event};
use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::failure::Failure;
use proptest::prelude::*;

pub(crate) fn accesses() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::ReadOnly), Just(Access::ReadWrite)]
}

/// Attempts that are, were, or will be.
fn stamps() -> impl Strategy<Value = Stamp> {
    (1u32..3, 1u32..5).prop_map(|(turn, attempt)| Stamp { turn, attempt })
}

pub(crate) fn verdicts() -> impl Strategy<Value = Result<(), Failure>> {
    let codes = prop_oneof![
        Just(Code::Exit),
        Just(Code::TransientFailure),
        Just(Code::NoResources),
        Just(Code::QuotaExceeded)
    ];
    prop_oneof![1 => Just(Ok(())), 3 => codes.prop_map(|code| Err(Failure::new(code, "it failed")))]
}

fn deadlines() -> impl Strategy<Value = Deadline> {
    use Deadline::{Answer, Idle, Run, Start, Stop};
    prop_oneof![Just(Start), Just(Run), Just(Idle), Just(Stop), Just(Answer)]
}

fn overspent() -> Failure {
    Failure::new(Code::BudgetExceeded, "it used up too much")
}

/// Every event there is, at any attempt.
pub(crate) fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Begin),
        stamps().prop_map(|at| Event::Claimed { at }),
        (stamps(), 0u64..70)
            .prop_map(|(at, waited)| { Event::Busy { at, waited: Duration::from_secs(waited) } }),
        stamps().prop_map(|at| Event::ClaimDue { at }),
        stamps().prop_map(|at| Event::ClaimFailed { at }),
        Just(Event::Gone),
        stamps().prop_map(|at| Event::Started { at }),
        (stamps(), verdicts()).prop_map(|(at, verdict)| Event::Ended { at, verdict }),
        (stamps(), verdicts(), 0u64..30_000).prop_map(|(at, verdict, lasts)| {
            let failure = verdict.err().unwrap_or_else(|| Failure::new(Code::Exit, "it failed"));
            Event::Failed { at, failure, lasts: Duration::from_secs(lasts) }
        }),
        stamps().prop_map(|at| Event::Overspent { at, failure: overspent() }),
        Just(Event::Denied { failure: overspent() }),
        stamps().prop_map(|at| Event::Asked { at }),
        Just(Event::Answered),
        stamps().prop_map(|at| Event::Nearing { at }),
        (stamps(), 0u64..70)
            .prop_map(|(at, quiet)| { Event::Quiet { at, quiet: Duration::from_secs(quiet) } }),
        (stamps(), deadlines()).prop_map(|(at, deadline)| Event::Overdue { at, deadline }),
        stamps().prop_map(|at| Event::RetryDue { at }),
        Just(Event::QueueExpired),
        Just(Event::Cancel { why: "called off".to_owned() }),
        Just(Event::Settled),
        stamps().prop_map(|at| Event::BeatDue { at }),
        stamps().prop_map(|at| Event::Cleaned { at }),
    ]
}

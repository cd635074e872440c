//! Errors as callers meet them: each is brought about, asked for on every way, and compared with what
//! is checked in under `errors/snapshots`.

mod ask;
mod grpc;
mod snapshot;

mod doors;
mod protocol;
mod tasks;

use algonius_actors::model::code::Code;

use ask::{Ask, What};
use snapshot::{CANARY, check, code_of, scenarios};

/// Codes that no scenario here can bring about from outside, and what shows them instead.
const ELSEWHERE: &[(Code, &str)] = &[
    (Code::AgentQuarantined, "needs a fault within: `faults.rs`"),
    (Code::AgentRemoved, "needs an agent that leaves: `reload.rs`"),
    (Code::ConfigurationRejected, "told by `/api/v1/reload` only: `reload.rs`"),
    (Code::TokenExists, "told by `/api/v1/tokens` only: `tokens.rs`"),
    (Code::TokenUnknown, "told by `/api/v1/tokens` only: `tokens.rs`"),
    (Code::Internal, "needs a fault within: `faults.rs`"),
    (Code::QuotaExceeded, "needs an account that has used up what it may: `quota.rs`"),
    (Code::BudgetExceeded, "needs an agent that has used up what it may: `quota.rs`"),
    (Code::NoResources, "needs a machine without processes"),
    (Code::StartTimeout, "needs a program that does not begin: told inside"),
    (Code::ScheduleUnknown, "told by the API for programs: `schedules.rs`"),
    (Code::ScheduleExists, "told by the API for programs: `schedules.rs`"),
    (Code::ScheduleFixed, "told by the API for programs: `schedules.rs`"),
    (Code::ExtensionRequired, "no agent requires one"),
    (Code::ExecutionUnfinished, "of `/api/v1` alone: `history.rs`"),
    (Code::NotReplayable, "of `/api/v1` alone: `history.rs`"),
    (Code::ExtendedCardMissing, "no agent that offers the operation lacks a card"),
];

#[test]
fn every_code_is_told_on_every_way_or_is_known_to_be_told_elsewhere() {
    let told: Vec<_> = scenarios().iter().filter_map(|name| code_of(name)).collect();
    let is_known = |code: &Code| ELSEWHERE.iter().any(|(elsewhere, _)| elsewhere == code);
    let missing: Vec<_> =
        Code::ALL.iter().filter(|code| !told.contains(code) && !is_known(code)).collect();
    assert!(missing.is_empty(), "no scenario tells {missing:?}");
    let both: Vec<_> = told.iter().filter(|code| is_known(code)).collect();
    assert!(both.is_empty(), "a scenario does tell {both:?}");
    assert!(told.len() >= 40, "{} scenarios", told.len());
}

//! Errors as callers meet them: each is brought about, asked for on every way, and compared with what
//! is checked in under `errors/snapshots`.

mod error_request;
mod grpc;
mod snapshot;

mod malformed_requests;
mod refusals;
mod tasks;

use algonius_actors::model::code::Code;

use error_request::{ErrorRequest, RequestKind};
use snapshot::{CANARY, assert_snapshot, snapshot_code, snapshot_names};

/// Codes that no scenario here can bring about from outside, and what shows them instead.
const EXEMPT_CODES: &[(Code, &str)] = &[
    (Code::AgentQuarantined, "needs a fault within: `faults.rs`"),
    (Code::TooManyHops, "needs services that call each other: `remote/call_loops.rs`"),
    (Code::AgentRemoved, "needs an agent that leaves: `reload.rs`"),
    (Code::ConfigurationRejected, "told by `/api/v1/reload` only: `reload.rs`"),
    (Code::TokenExists, "told by `/api/v1/tokens` only: `tokens.rs`"),
    (Code::AccountUnknown, "told by `/api/v1/quota` only: `quota.rs`"),
    (Code::AgentRateLimited, "needs a provider that limits the rate: `quota.rs`"),
    (Code::AgentOverloaded, "needs a provider that is overloaded: `quota.rs`"),
    (Code::TokenUnknown, "told by `/api/v1/tokens` only: `tokens.rs`"),
    (Code::Internal, "needs a fault within: `faults.rs`"),
    (Code::MemberFailed, "needs a team: `team.rs`"),
    (Code::StepsExhausted, "needs a cognitive agent: `cognitive.rs`"),
    (Code::ModelUnavailable, "needs a cognitive agent: `cognitive.rs`"),
    (Code::ModelRefused, "needs a cognitive agent: `cognitive.rs`"),
    (Code::ModelUnusable, "needs a cognitive agent: `cognitive.rs`"),
    (Code::MemberUnavailable, "needs a team: `actors/tests/actors/team.rs`"),
    (
        Code::AcceptTimeout,
        "needs a disk that is slow for ten seconds: `actors/tests/actors/unavailable_ledger.rs`",
    ),
    (Code::QuotaExceeded, "needs an account that has used up what it may: `quota.rs`"),
    (Code::BudgetExceeded, "needs an agent that has used up what it may: `quota.rs`"),
    (Code::NoResources, "needs a machine without processes"),
    (Code::StartTimeout, "needs a program that does not begin: told inside"),
    (Code::ScheduleUnknown, "told by the API for programs: `schedules.rs`"),
    (Code::ScheduleExists, "told by the API for programs: `schedules.rs`"),
    (Code::ScheduleFixed, "told by the API for programs: `schedules.rs`"),
    (Code::InputSealed, "of a schedule's occurrence alone: `sealed_inputs.rs`"),
    (Code::ExtensionRequired, "no agent requires one"),
    (Code::ExecutionUnfinished, "of `/api/v1` alone: `history.rs`"),
    (Code::NotReplayable, "of `/api/v1` alone: `history.rs`"),
    (Code::InteractionUnknown, "of `/api/v1` alone: `interactive/refusing.rs`"),
    (Code::InteractionClosed, "needs an agent that asks: `interactive/refusing.rs`"),
    (Code::InteractionChanged, "needs an agent that asks: `interactive/refusing.rs`"),
    (Code::AnswerInvalid, "needs an agent that asks: `interactive/refusing.rs`"),
    (Code::ToolLimit, "needs an interactive agent: `limits_of_tools.rs`"),
    (Code::UnauthorizedTool, "needs an interactive agent: `limits_of_tools.rs`"),
    (Code::SessionNotOpened, "needs an interactive agent: `interactive/protocol_faults.rs`"),
    (Code::ModeRefused, "needs an interactive agent: `interactive/modes.rs`"),
    (Code::ExtendedCardMissing, "no agent that offers the operation lacks a card"),
];

#[test]
fn every_error_code_has_a_scenario_or_an_exemption() {
    let covered_codes: Vec<_> =
        snapshot_names().iter().filter_map(|name| snapshot_code(name)).collect();
    let is_exempt = |code: &Code| EXEMPT_CODES.iter().any(|(exempt, _)| exempt == code);
    let uncovered_codes: Vec<_> =
        Code::ALL.iter().filter(|code| !covered_codes.contains(code) && !is_exempt(code)).collect();
    assert!(uncovered_codes.is_empty(), "no scenario tells {uncovered_codes:?}");
    let covered_exemptions: Vec<_> = covered_codes.iter().filter(|code| is_exempt(code)).collect();
    assert!(covered_exemptions.is_empty(), "a scenario does tell {covered_exemptions:?}");
    assert!(covered_codes.len() >= 40, "{} scenarios", covered_codes.len());
}

//! Tests of the failure classification, as a table.

use chrono::{DateTime, Utc};
use regex::Regex;

use crate::decide::classify::success_evaluation::tests::test_program;
use crate::decide::classify::success_evaluation::{
    AttemptOutcome, ReportedResult, UnreadableLine, evaluate_attempt,
};
use crate::model::agent::success_criteria::{FailureMatchers, FailureRules};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::{EventDialect, OutputMethod, ProcessExit, ProgramSpec};

fn matchers(status: &[u16], exit_codes: &[i32], regex: &str) -> FailureMatchers {
    let regex = Some(Regex::new(regex).unwrap());
    FailureMatchers { http_statuses: status.to_vec(), exit_codes: exit_codes.to_vec(), regex }
}

fn native_program() -> ProgramSpec {
    let mut program = test_program();
    program.output_method = OutputMethod::Native(EventDialect::Claude);
    program.failure_rules = FailureRules {
        transient: matchers(&[404, 401], &[75, 41], "busy"),
        permanent: matchers(&[529], &[41], "hopeless"),
        quota: matchers(&[430], &[42], "used up"),
        ..FailureRules::default()
    };
    program
}

fn classify_attempt(exit: i32, stderr: &str, reported_result: ReportedResult) -> Failure {
    let ended_at: DateTime<Utc> = "2026-11-22T14:00:00Z".parse().unwrap();
    let (exit, answer) = (ProcessExit::Code(exit), Ok(""));
    let attempt_outcome = AttemptOutcome {
        exit,
        answer,
        has_other_output: false,
        stdout: "",
        stderr,
        reported_result,
        ended_at,
    };
    evaluate_attempt(&native_program(), &attempt_outcome).unwrap_err()
}

fn reported_failure(code: Code) -> ReportedResult {
    let failure = Some(Failure::new(code, "the agent reported: so it is"));
    ReportedResult { failure, ..ReportedResult::default() }
}

fn reported_status(status: u16) -> ReportedResult {
    ReportedResult { http_status: Some(status), ..ReportedResult::default() }
}

#[test]
fn certain_signals_win_over_guesses() {
    let no_report = ReportedResult::default;
    for (case, exit, stderr, reported_result, code) in [
        (
            "credentials, whatever else matches",
            75,
            "busy",
            reported_status(401),
            Code::NotAuthenticated,
        ),
        (
            "no right, whatever else matches",
            42,
            "used up",
            reported_status(403),
            Code::NotAuthenticated,
        ),
        ("a status that is named", 41, "hopeless", reported_status(404), Code::TransientFailure),
        ("against what it means", 75, "busy", reported_status(529), Code::PermanentFailure),
        ("a status of a quota", 75, "busy", reported_status(430), Code::QuotaExceeded),
        ("a usual status", 41, "hopeless", reported_status(500), Code::TransientFailure),
        ("too much to do", 41, "hopeless", reported_status(503), Code::AgentOverloaded),
        ("a wrong request", 75, "busy", reported_status(400), Code::PermanentFailure),
        ("too many, and no time", 41, "hopeless", reported_status(429), Code::AgentRateLimited),
        ("too many, until", 41, "Retry-After: 9", reported_status(429), Code::AgentRateLimited),
        ("too many, for long", 41, "Retry-After: 900", reported_status(429), Code::QuotaExceeded),
        ("too many, in words", 41, "insufficient_quota", reported_status(429), Code::QuotaExceeded),
        ("too many, as named", 41, "used up", reported_status(429), Code::QuotaExceeded),
        (
            "a quota of a minute",
            41,
            "quota exceeded, retry in 20.5s",
            reported_status(429),
            Code::AgentRateLimited,
        ),
        ("nothing to pay with", 75, "busy", reported_status(402), Code::QuotaExceeded),
        ("an event", 75, "busy", reported_failure(Code::Rejected), Code::Rejected),
        (
            "an event that only says that it failed",
            75,
            "",
            reported_failure(Code::Reported),
            Code::TransientFailure,
        ),
        ("the exit before the text", 75, "hopeless", no_report(), Code::TransientFailure),
        ("what will not pass goes first", 41, "busy", no_report(), Code::PermanentFailure),
        ("an exit of a quota", 42, "", no_report(), Code::QuotaExceeded),
        ("hopeless words", 3, "hopeless, busy", no_report(), Code::PermanentFailure),
        ("words of a quota", 3, "busy, used up", no_report(), Code::QuotaExceeded),
        ("busy words", 3, "busy", no_report(), Code::TransientFailure),
        ("nothing", 3, "", no_report(), Code::Exit),
        ("an event alone", 3, "", reported_failure(Code::Reported), Code::Reported),
        ("an event in spite of the exit", 0, "", reported_failure(Code::Reported), Code::Reported),
    ] {
        assert_eq!(classify_attempt(exit, stderr, reported_result).code, code, "{case}");
    }
}

#[test]
fn a_quota_failure_states_its_end() {
    let failure = classify_attempt(3, "used up. Try again in 1h 20m", ReportedResult::default());
    assert_eq!(failure.until, Some("2026-11-22T15:20:00Z".parse().unwrap()));
    assert!(failure.message.ends_with("(until 2026-11-22T15:20:00Z)"), "{failure}");
    let reported_result =
        ReportedResult { http_status: Some(429), ..reported_failure(Code::QuotaExceeded) };
    let failure = classify_attempt(3, "", reported_result);
    assert_eq!((failure.code, failure.until), (Code::QuotaExceeded, None));
    assert_eq!(failure.message, "the agent reported: so it is");
    assert_eq!(classify_attempt(3, "busy, Retry-After: 9", ReportedResult::default()).until, None);
}

#[test]
fn failure_rules_with_429_classifies_short_waits_as_rate_limits() {
    let mut program = native_program();
    program.failure_rules.quota.http_statuses.push(429);
    let ended_at: DateTime<Utc> = "2026-11-22T14:00:00Z".parse().unwrap();
    for (stderr, code, retry_after) in [
        ("", Code::QuotaExceeded, None),
        ("retry-after: 20", Code::AgentRateLimited, Some(20)),
        ("resets in 4 hours", Code::QuotaExceeded, Some(4 * 3600)),
    ] {
        let (exit, answer, reported_result) = (ProcessExit::Code(1), Ok(""), reported_status(429));
        let attempt_outcome = AttemptOutcome {
            exit,
            answer,
            has_other_output: false,
            stdout: "",
            stderr,
            reported_result,
            ended_at,
        };
        let failure = evaluate_attempt(&program, &attempt_outcome).unwrap_err();
        let seconds_until_reset = failure.until.map(|until| (until - ended_at).num_seconds());
        assert_eq!((failure.code, seconds_until_reset), (code, retry_after), "{stderr}");
    }
}

#[test]
fn an_output_without_an_end_marker_is_ended_early() {
    let unfinished_result = ReportedResult { lacks_final_event: true, ..ReportedResult::default() };
    assert_eq!(classify_attempt(0, "", unfinished_result.clone()).code, Code::EndedEarly);
    assert_eq!(classify_attempt(0, "busy", unfinished_result.clone()).code, Code::TransientFailure);
    let denied = vec!["Bash".to_owned(), "Write".to_owned()];
    let denied_result = ReportedResult { denied_tools: denied, ..unfinished_result };
    let failure = classify_attempt(0, "", denied_result.clone());
    assert_eq!(failure.code, Code::Denied);
    assert_eq!(failure.message, "it was not let use Bash, Write, and answered nothing");
    // Words beside it do not explain the missing answer; a lost part of it does.
    for (is_result_lost, code) in [(false, Code::Denied), (true, Code::OutputUnreadable)] {
        let (reason, text) = ("is not JSON".to_owned(), "new version".to_owned());
        let unreadable_line = Some(UnreadableLine { line: 1, reason, text, is_result_lost });
        let result = ReportedResult { unreadable_line, ..denied_result.clone() };
        assert_eq!(classify_attempt(0, "", result).code, code);
    }
    assert_eq!(classify_attempt(0, "", ReportedResult::default()).code, Code::EmptyAnswer);
}

//! What a failure means, as a table.

use chrono::{DateTime, Utc};
use regex::Regex;

use crate::decide::contract::tests::program;
use crate::decide::contract::{Evidence, Testimony, judge};
use crate::model::code::Code;
use crate::model::contract::{FailureContract, Signs};
use crate::model::failure::Failure;
use crate::model::program::{Dialect, Exit, OutputPattern, ProgramSpec};

fn signs(status: &[u16], exit_codes: &[i32], regex: &str) -> Signs {
    let regex = Some(Regex::new(regex).unwrap());
    Signs { status: status.to_vec(), exit_codes: exit_codes.to_vec(), regex }
}

fn native() -> ProgramSpec {
    let mut program = program();
    program.output = OutputPattern::Native(Dialect::Claude);
    program.failures = FailureContract {
        transient: signs(&[404, 401], &[75, 41], "busy"),
        permanent: signs(&[529], &[41], "hopeless"),
        quota: signs(&[430], &[42], "used up"),
    };
    program
}

fn judged(exit: i32, stderr: &str, told: Testimony) -> Failure {
    let now: DateTime<Utc> = "2026-11-22T14:00:00Z".parse().unwrap();
    let (exit, answer) = (Exit::Code(exit), Some(""));
    let evidence = Evidence { exit, answer, has_more: false, stdout: "", stderr, told, now };
    judge(&native(), &evidence).unwrap_err()
}

fn told(code: Code) -> Testimony {
    let failure = Some(Failure::new(code, "the agent reported: so it is"));
    Testimony { failure, ..Testimony::default() }
}

fn status(status: u16) -> Testimony {
    Testimony { status: Some(status), ..Testimony::default() }
}

#[test]
fn what_is_known_for_sure_goes_before_what_is_guessed() {
    let none = Testimony::default;
    for (case, exit, stderr, told, code) in [
        ("credentials, whatever else matches", 75, "busy", status(401), Code::NotAuthenticated),
        ("no right, whatever else matches", 42, "used up", status(403), Code::NotAuthenticated),
        ("a status that is named", 41, "hopeless", status(404), Code::TransientFailure),
        ("against what it means", 75, "busy", status(529), Code::PermanentFailure),
        ("a status of a quota", 75, "busy", status(430), Code::QuotaExceeded),
        ("a usual status", 41, "hopeless", status(503), Code::TransientFailure),
        ("a wrong request", 75, "busy", status(400), Code::PermanentFailure),
        ("too many, and no time", 41, "hopeless", status(429), Code::TransientFailure),
        ("too many, until", 41, "Retry-After: 9", status(429), Code::QuotaExceeded),
        ("nothing to pay with", 75, "busy", status(402), Code::QuotaExceeded),
        ("an event", 75, "busy", told(Code::Rejected), Code::Rejected),
        (
            "an event that only says that it failed",
            75,
            "",
            told(Code::Reported),
            Code::TransientFailure,
        ),
        ("the exit before the text", 75, "hopeless", none(), Code::TransientFailure),
        ("what will not pass goes first", 41, "busy", none(), Code::PermanentFailure),
        ("an exit of a quota", 42, "", none(), Code::QuotaExceeded),
        ("hopeless words", 3, "hopeless, busy", none(), Code::PermanentFailure),
        ("words of a quota", 3, "busy, used up", none(), Code::QuotaExceeded),
        ("busy words", 3, "busy", none(), Code::TransientFailure),
        ("nothing", 3, "", none(), Code::Exit),
        ("an event alone", 3, "", told(Code::Reported), Code::Reported),
        ("an event in spite of the exit", 0, "", told(Code::Reported), Code::Reported),
    ] {
        assert_eq!(judged(exit, stderr, told).code, code, "{case}");
    }
}

#[test]
fn a_quota_says_until_when() {
    let failure = judged(3, "used up. Try again in 1h 20m", Testimony::default());
    assert_eq!(failure.until, Some("2026-11-22T15:20:00Z".parse().unwrap()));
    assert!(failure.message.ends_with("(until 2026-11-22T15:20:00Z)"), "{failure}");
    let told = Testimony { status: Some(429), ..told(Code::QuotaExceeded) };
    let failure = judged(3, "", told);
    assert_eq!((failure.code, failure.until), (Code::TransientFailure, None));
    assert_eq!(failure.message, "the agent reported: so it is");
    assert_eq!(judged(3, "busy, Retry-After: 9", Testimony::default()).until, None);
}

#[test]
fn who_does_not_say_that_it_is_done_is_not() {
    let open = Testimony { is_open: true, ..Testimony::default() };
    assert_eq!(judged(0, "", open.clone()).code, Code::EndedEarly);
    assert_eq!(judged(0, "busy", open.clone()).code, Code::TransientFailure);
    let denied = vec!["Bash".to_owned(), "Write".to_owned()];
    let failure = judged(0, "", Testimony { denied, ..open });
    assert_eq!(failure.code, Code::Denied);
    assert_eq!(failure.message, "it was not let use Bash, Write, and answered nothing");
    assert_eq!(judged(0, "", Testimony::default()).code, Code::EmptyAnswer);
}

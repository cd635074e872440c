//! Tests of the evaluation, as a table and as properties.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use chrono::DateTime;
use proptest::prelude::*;
use regex::Regex;

use super::{
    AttemptOutcome, MissingAnswer, ProcessExit, ReportedResult, evaluate_attempt, spawn_failure,
};
use crate::model::agent::success_criteria::{
    FailureMatchers, FailureRules, SuccessCriteria, UsagePattern,
};
use crate::model::code::{Category, Code};
use crate::model::failure::Failure;
use crate::model::host::resources::ResourceLimits;
use crate::model::host::sandbox::Sandbox;
use crate::model::program::runtime_settings::ProgramRuntimeSettings;
use crate::model::program::{
    InputMethod, OutputMethod, ProgramSpec, ProgramUser, PromptPatterns, ServiceLossAction,
};

/// Program that succeeds with exit code 0 or 4, with an answer and without `broken`; 75 and `busy` are transient.
pub(in crate::decide) fn test_program() -> ProgramSpec {
    ProgramSpec {
        user: ProgramUser::default(),
        on_service_loss: ServiceLossAction::default(),
        command: PathBuf::from("/bin/true"),
        args: Vec::new(),
        params: BTreeMap::new(),
        env: BTreeMap::new(),
        working_dir: PathBuf::from("/"),
        input_method: InputMethod::Stdin,
        output_method: OutputMethod::Stdout,
        input_file_template: String::new(),
        output_file_template: String::new(),
        success_criteria: SuccessCriteria {
            exit_codes: vec![0, 4],
            require_output: true,
            fail_regex: Some(Regex::new("broken").unwrap()),
            json_pointer: None,
            artifact_path: None,
            answer_schema: None,
            check: None,
        },
        failure_rules: FailureRules {
            transient: FailureMatchers {
                http_statuses: Vec::new(),
                exit_codes: vec![4, 75],
                regex: Some(Regex::new("busy").unwrap()),
            },
            ..FailureRules::default()
        },
        prompt_patterns: PromptPatterns {
            patterns: [Regex::new(r"\[y/N\] ?$").unwrap()].into(),
            silence: Duration::from_secs(2),
        },
        sandbox: Sandbox::default(),
        resource_limits: ResourceLimits::default(),
        runtime_settings: ProgramRuntimeSettings::default(),
        usage_pattern: UsagePattern::default(),
        session_resume: None,
        stdio_protocol: None,
        pool: None,
    }
}

fn reported_failure() -> Option<Failure> {
    Some(Failure::new(Code::Reported, "it said so"))
}

fn outcome_with<'t>(
    exit: ProcessExit,
    answer: Option<&'t str>,
    stderr: &'t str,
) -> AttemptOutcome<'t> {
    let (reported_result, ended_at) = (ReportedResult::default(), DateTime::UNIX_EPOCH);
    AttemptOutcome {
        exit,
        answer: answer.ok_or(MissingAnswer::FileAbsent),
        has_other_output: false,
        stdout: "",
        stderr,
        reported_result,
        ended_at,
    }
}

fn failure_code(
    exit: ProcessExit,
    answer: Option<&str>,
    stderr: &str,
    reported: Option<Failure>,
) -> Option<Code> {
    let stdout = answer.unwrap_or_default();
    let reported_result = ReportedResult { failure: reported, ..ReportedResult::default() };
    let attempt_outcome =
        AttemptOutcome { stdout, reported_result, ..outcome_with(exit, answer, stderr) };
    evaluate_attempt(&test_program(), &attempt_outcome).err().map(|failure| failure.code)
}

#[test]
fn the_first_failed_criterion_is_the_failure() {
    use ProcessExit::{Code as C, Signal as S};
    let table = [
        ("success", C(0), Some("yes"), "", None, None),
        ("another code of success, though also transient", C(4), Some("yes"), "", None, None),
        ("busy words in a success", C(0), Some("busy"), "busy", None, None),
        ("code", C(3), Some("yes"), "", None, Some(Code::Exit)),
        (
            "code before what was reported",
            C(3),
            None,
            "broken",
            reported_failure(),
            Some(Code::Exit),
        ),
        ("signal", S(9), Some("yes"), "", None, Some(Code::Killed)),
        ("signal with busy words", S(9), Some("yes"), "busy", None, Some(Code::TransientFailure)),
        ("transient code", C(75), Some("yes"), "", None, Some(Code::TransientFailure)),
        ("transient words", C(3), Some("busy"), "", None, Some(Code::TransientFailure)),
        ("transient and broken", C(0), Some("broken"), "busy", None, Some(Code::TransientFailure)),
        ("a question", C(3), Some("so? [y/N]"), "", None, Some(Code::Interactive)),
        ("a question to nobody", C(75), Some("busy"), "[y/N] ", None, Some(Code::Interactive)),
        ("a question in a success", C(0), Some("so? [y/N]"), "", None, None),
        ("a signal at a question", S(9), Some("so? [y/N]"), "", None, Some(Code::Killed)),
        ("reported", C(0), Some("broken"), "", reported_failure(), Some(Code::Reported)),
        ("failure pattern in the answer", C(0), Some("broken"), "", None, Some(Code::FailPattern)),
        ("failure pattern in stderr", C(0), None, "broken", None, Some(Code::FailPattern)),
        ("no answer", C(0), None, "", None, Some(Code::AnswerMissing)),
        ("white space", C(0), Some(" \n\t"), "", None, Some(Code::EmptyAnswer)),
        ("a transient code of success, empty", C(4), Some(""), "", None, Some(Code::EmptyAnswer)),
    ];
    for (case, exit, answer, stderr, reported, expected) in table {
        assert_eq!(failure_code(exit, answer, stderr, reported), expected, "{case}");
    }
}

#[test]
fn an_empty_answer_succeeds_if_no_output_is_required() {
    let mut program = test_program();
    program.success_criteria.require_output = false;
    let attempt_outcome = outcome_with(ProcessExit::Code(0), Some(""), "");
    assert_eq!(evaluate_attempt(&program, &attempt_outcome), Ok(()));
}

#[test]
fn output_besides_the_answer_is_searched_for_transient_errors() {
    let outcome_with_stdout =
        |stdout| AttemptOutcome { stdout, ..outcome_with(ProcessExit::Code(0), Some("  "), "") };
    let code_for_stdout =
        |stdout| evaluate_attempt(&test_program(), &outcome_with_stdout(stdout)).unwrap_err().code;
    let outcome_with_artifact =
        AttemptOutcome { has_other_output: true, ..outcome_with_stdout("") };
    assert_eq!(evaluate_attempt(&test_program(), &outcome_with_artifact), Ok(()));
    assert_eq!(code_for_stdout("broken"), Code::EmptyAnswer);
    assert_eq!(code_for_stdout("busy"), Code::TransientFailure);
}

#[test]
fn only_a_lack_of_resources_is_a_transient_start_failure() {
    for errno in 0..200 {
        let is_transient = spawn_failure(errno).category() == Category::Transient;
        assert_eq!(is_transient, [11, 12, 23, 24, 26].contains(&errno), "{errno}");
    }
    assert_eq!(spawn_failure(2).code, Code::NotStarted);
    assert_eq!(spawn_failure(7).code, Code::InputRejected);
}

fn exits() -> impl Strategy<Value = ProcessExit> {
    prop_oneof![
        prop_oneof![Just(0), Just(4), Just(75), any::<i32>()].prop_map(ProcessExit::Code),
        (1..65).prop_map(ProcessExit::Signal),
    ]
}

fn output_texts() -> impl Strategy<Value = String> {
    "( |broken|busy|yes){0,3}"
}

proptest! {
    #[test]
    fn success_requires_that_every_criterion_holds(
        exit in exits(),
        answer in proptest::option::of(output_texts()),
        stderr in output_texts(),
        has_reported_failure in any::<bool>(),
    ) {
        let reported = if has_reported_failure { reported_failure() } else { None };
        let is_failure = !matches!(exit, ProcessExit::Code(0 | 4))
            || reported.is_some()
            || stderr.contains("broken")
            || answer.as_ref().is_none_or(|text| text.trim().is_empty() || text.contains("broken"));
        prop_assert_eq!(failure_code(exit, answer.as_deref(), &stderr, reported).is_some(), is_failure);
    }

    #[test]
    fn no_failure_repeats_output_of_the_program(
        exit in exits(),
        secret in "[a-z]{3}-[0-9]{9}",
        word in "(broken|busy|)",
    ) {
        let text = format!("{secret} {word}");
        let (answer, stderr) = (Some(text.as_str()), text.as_str());
        let attempt_outcome = AttemptOutcome { stdout: &text, ..outcome_with(exit, answer, stderr) };
        if let Err(failure) = evaluate_attempt(&test_program(), &attempt_outcome) {
            prop_assert!(!failure.message.contains(&secret));
        }
    }
}

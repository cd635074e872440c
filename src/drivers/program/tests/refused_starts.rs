//! Tests of requests that are refused before a process exists, and of refusals by the system.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use algonius_actors::driver::report::Report;
use algonius_actors::model::code::Code;
use algonius_actors::model::program::{InputMethod, OutputMethod};

use super::fixture::{ProgramFixture, RecordedEntry, program_fixture, shell_fixture};

fn program_with_input(args: &[&str], input: &str) -> ProgramFixture {
    let mut fixture = program_fixture("/bin/echo", args).with_input(input);
    fixture.program.input_method = InputMethod::Args;
    fixture
}

/// Returns the code of the refusal, and asserts that no process started for it.
async fn run_and_find_refusal(fixture: &ProgramFixture) -> Option<Code> {
    let record = fixture.run_to_end().await;
    let has_started = record
        .entries
        .iter()
        .any(|entry| matches!(entry, RecordedEntry::Report(Report::Started { .. })));
    assert_eq!(has_started, record.result.is_ok());
    record.failure_code()
}

#[tokio::test(flavor = "multi_thread")]
async fn unsafe_or_long_command_lines_are_refused() {
    let refusal_code = Some(Code::InputRejected);
    let long = "x".repeat(131_071);
    let longer = format!("{long}x");
    let repeated_args = ["{{ input }}"; 13];
    for (case, args, input, expected) in [
        ("zero byte", &["{{ input }}"][..], "a\0b", refusal_code),
        ("longest", &["{{ input }}"], &long, None),
        ("too long", &["{{ input }}"], &longer, refusal_code),
        ("together too long", &repeated_args, &long, refusal_code),
        ("option", &["{{ input }}"], "--help", refusal_code),
        ("option behind another argument", &["-n", "{{input}}"], "-e", refusal_code),
        ("option of a filter", &["{{ input | trim }}"], "  -e", refusal_code),
        ("guarded option", &["--", "{{ input }}"], "-e", None),
        ("joined option", &["--text={{ input }}"], "-e", None),
        ("a guard behind it is none", &["{{ input }}", "--"], "-e", refusal_code),
        ("no such parameter", &["{{ param.x }}"], "", refusal_code),
    ] {
        assert_eq!(
            run_and_find_refusal(&program_with_input(args, input)).await,
            expected,
            "{case}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_come_from_the_configuration_only() {
    let mut fixture = program_with_input(&["{{ param.flag }}"], "");
    fixture.program.params.insert("flag".to_owned(), "-n".to_owned());
    assert_eq!(run_and_find_refusal(&fixture).await, None);
    fixture.input.params.insert("flag".to_owned(), "-e".to_owned());
    assert_eq!(run_and_find_refusal(&fixture).await, Some(Code::InputRejected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_id_with_a_zero_byte_is_refused() {
    let mut fixture = program_fixture("/bin/true", &[]);
    fixture.context_id = "a\0b".to_owned();
    assert_eq!(run_and_find_refusal(&fixture).await, Some(Code::InputRejected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_name_must_stay_in_its_folder() {
    for name in ["../{{ attempt }}", "{{ input }}", "", "..", "a/b"] {
        let mut fixture = shell_fixture("true", &[]).with_input("/etc/passwd");
        (fixture.program.output_method, fixture.program.output_file_template) =
            (OutputMethod::File, name.to_owned());
        assert_eq!(run_and_find_refusal(&fixture).await, Some(Code::InputRejected), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_is_one_permanent_failure() {
    let missing_program_failure =
        program_fixture("/nowhere/agent", &[]).run_to_end().await.result.unwrap_err();
    assert_eq!(missing_program_failure.code, Code::AgentUnavailable);
    assert!(
        missing_program_failure.message.ends_with("its program `agent` is not installed"),
        "{missing_program_failure:?}"
    );
    let not_executable_failure =
        program_fixture("/etc/passwd", &[]).run_to_end().await.result.unwrap_err();
    assert_eq!(not_executable_failure.message, "the program may not be executed");
    for (folder, message) in [
        ("/nowhere", "its working folder does not exist"),
        ("/etc/passwd", "its working folder is a file"),
    ] {
        let mut fixture_without_working_dir = program_fixture("/bin/true", &[]);
        fixture_without_working_dir.program.working_dir = folder.into();
        let failure = fixture_without_working_dir.run_to_end().await.result.unwrap_err();
        assert_eq!((failure.code, &*failure.message), (Code::NotStarted, message));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cause_of_a_failed_start_has_its_own_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        (
            "#!/no/such/perl\n",
            "the program cannot be executed: its interpreter `perl` does not exist",
        ),
        (
            "#!/bin/sh\r\necho\r\n",
            "the program cannot be executed: its first line ends in a carriage return, so that its interpreter `sh` \
             does not exist",
        ),
        (
            "#!/usr/bin/env no-such-node\n",
            "the program cannot be executed: its interpreter `no-such-node` does not exist",
        ),
        (
            "echo no line\n",
            "the program cannot be executed: it is neither a script with a `#!` line nor a binary of this machine",
        ),
    ] {
        let file = folder.path().join("agent");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let failure =
            program_fixture(file.to_str().unwrap(), &[]).run_to_end().await.result.unwrap_err();
        assert_eq!((failure.code, &*failure.message), (Code::NotStarted, expected), "{text:?}");
    }
}

//! Tests of the success checks.

use std::path::PathBuf;
use std::time::Duration;

use algonius_actors::model::agent::success_criteria::CheckCommand;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;

use super::fixture::{AttemptRecord, ProgramFixture, shell_fixture, wait_until};

fn program_with_check(script: &str, check: &str, timeout: Duration) -> ProgramFixture {
    let mut fixture = shell_fixture(script, &[]);
    let args = ["-c", check, "{{ execution_id }}"].map(ToOwned::to_owned).to_vec();
    let command = PathBuf::from("/bin/sh");
    fixture.program.success_criteria.check =
        Some(Box::new(CheckCommand { command, args, timeout }));
    fixture
}

const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_required_artifact_must_exist_and_not_be_empty() {
    for (script, code) in [
        ("echo x > report.md; echo done", None),
        (": > report.md; echo done", Some(Code::ArtifactMissing)),
        ("mkdir report.md; echo done", Some(Code::ArtifactMissing)),
        ("ln -s /etc/passwd report.md; echo done", Some(Code::ArtifactMissing)),
        ("echo done", Some(Code::ArtifactMissing)),
        ("exit 3", Some(Code::Exit)),
    ] {
        let mut fixture = shell_fixture(script, &[]);
        fixture.program.success_criteria.artifact_path = Some("report.md".to_owned());
        let record = fixture.run_to_end().await;
        assert_eq!(record.failure_code(), code, "{script}");
        assert_eq!(record.answer().is_some(), code.is_none(), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_must_match_its_schema() {
    for (answer, code) in [
        (r#"{"n": 1}"#, None),
        (r#"{"n": "unus"}"#, Some(Code::SchemaMismatch)),
        (r#"Sure: {"n": 1}"#, Some(Code::SchemaMismatch)),
    ] {
        let mut fixture = shell_fixture("cat", &[]).with_input(answer);
        let schema = serde_json::json!({"properties": {"n": {"type": "integer"}}});
        fixture.program.success_criteria.answer_schema = Some(schema);
        let record = fixture.run_to_end().await;
        assert_eq!(record.failure_code(), code, "{answer}");
        let debug_text = format!("{:?}", record.result);
        assert!(!debug_text.contains("unus") && !debug_text.contains("Sure"), "{debug_text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_runs_in_the_work_folder_and_decides_the_outcome() {
    for (check, code) in [
        ("test \"$(cat made)\" = made && test -n \"$0\"", None),
        ("echo loud; echo louder >&2; exit 3", Some(Code::CheckFailed)),
        ("kill -KILL $$", Some(Code::CheckFailed)),
    ] {
        let fixture = program_with_check("echo made > made; echo done", check, CHECK_TIMEOUT);
        let record = fixture.run_to_end().await;
        assert_eq!(record.failure_code(), code, "{check}: {:?}", record.result);
        assert_eq!(record.answer().is_some(), code.is_none(), "{check}");
    }
    let fixture = program_with_check("exit 3", "touch seen", CHECK_TIMEOUT);
    assert_eq!(fixture.run_to_end().await.failure_code(), Some(Code::Exit));
    assert!(!fixture.home.path().join("seen").exists(), "what failed is not looked at");
}

/// Returns the recorded output of a check.
fn check_output(record: &AttemptRecord) -> Option<(&str, &str)> {
    record.events().into_iter().find_map(|event| match event {
        EventKind::CheckOutput { stdout, stderr } => Some((stdout.as_str(), stderr.as_str())),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_a_failed_check_is_redacted_and_bounded() {
    let mut fixture =
        program_with_check("echo done", "echo 2 of 7 fail; echo at $0 >&2; exit 3", CHECK_TIMEOUT);
    if let Some(check) = &mut fixture.program.success_criteria.check {
        check.args[2] = "hush-hush-hush".to_owned();
    }
    fixture.secrets = vec!["hush-hush-hush".to_owned()];
    let record = fixture.run_to_end().await;
    let (stdout, stderr) = check_output(&record).unwrap();
    assert_eq!(stdout, "2 of 7 fail\n");
    assert!(stderr.starts_with("at ") && !stderr.contains("hush"), "{stderr}");

    let flood = "yes x | head -c 3000000; echo the end; exit 1";
    let record = program_with_check("echo done", flood, CHECK_TIMEOUT).run_to_end().await;
    let (stdout, stderr) = check_output(&record).unwrap();
    assert!(stdout.starts_with("[... ") && stdout.ends_with("x\nthe end\n"), "{stdout}");
    assert!(stdout.len() < 5_000 && stderr.is_empty(), "{} bytes", stdout.len());

    let slow =
        program_with_check("echo done", "echo so far; sleep 600", Duration::from_millis(500));
    assert_eq!(check_output(&slow.run_to_end().await), Some(("so far\n", "")));

    let passing = program_with_check("echo done", "echo all is well; exit 0", CHECK_TIMEOUT);
    assert_eq!(check_output(&passing.run_to_end().await), None);
}

/// Test that a check may change no more than the agent, which is nothing of the system.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_runs_in_the_sandbox_of_its_agent() {
    let outside_folder = tempfile::tempdir().unwrap();
    let touched = outside_folder.path().join("touched");
    let record =
        program_with_check("echo done", &format!("touch {}", touched.display()), CHECK_TIMEOUT)
            .run_to_end()
            .await;
    assert_eq!(record.failure_code(), Some(Code::CheckFailed));
    assert!(
        check_output(&record).is_some_and(|(_, stderr)| stderr.contains("denied")),
        "{:?}",
        check_output(&record)
    );
    assert!(!touched.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_exceeds_its_timeout_is_killed() {
    let fixture =
        program_with_check("echo done", "setsid sleep 600 & sleep 600", Duration::from_millis(300));
    let record = fixture.run_to_end().await;
    assert_eq!(record.failure_code(), Some(Code::CheckFailed));
    let message = record.result.unwrap_err().message;
    assert_eq!(message, "the success check did not finish within 0.3 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_cancelled_with_its_attempt() {
    let fixture = program_with_check("echo done", "sleep 600", CHECK_TIMEOUT);
    let mut attempt = fixture.start().await;
    fixture.wait_until_running(1, "sleep").await;
    attempt.stop();
    assert_eq!(attempt.wait_for_end().await.unwrap_err().code, Code::CheckFailed);
    attempt.clean_up().await;
    wait_until(|| fixture.living_pids().is_empty()).await;
}

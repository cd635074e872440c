//! Tests of the end of a program and of everything that it started.

use std::path::Path;
use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::program::OutputMethod;
use tokio::time::Instant;

use super::fixture::{
    AttemptRecord, ProgramFixture, exists, program_fixture, shell_fixture, wait_until,
};

/// Script that ignores SIGTERM, as its child does.
const SIGTERM_IGNORING_SCRIPT: &str = r#"trap "" TERM; sleep 600 & exec sleep 600"#;

/// Script that leaves a process in another session, which is alive when the program ends.
const DAEMON_LEAVING_SCRIPT: &str =
    r#"echo $(setsid sh -c 'echo up; exec sleep 600 >/dev/null 2>&1' </dev/null &)"#;

const NO_PROCESSES: Vec<i32> = Vec::new();

#[tokio::test(flavor = "multi_thread")]
async fn output_is_read_while_its_program_still_runs() {
    for redirection in [">&-", ">&- 2>&-"] {
        let script =
            format!("echo early; exec {redirection}; until [ -e go ]; do sleep 0.01; done");
        let fixture = shell_fixture(&script, &[]);
        let mut attempt = fixture.start().await;
        while attempt.text(TextChannel::Stdout) != "early\n" {
            attempt.next_entry().await;
        }
        std::fs::write(fixture.home.path().join("go"), "").unwrap();
        assert_eq!(attempt.wait_for_end().await, Ok(()));
        attempt.clean_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_is_reported_with_the_output() {
    let record = shell_fixture("echo out; echo err >&2; exit 3", &[]).run_to_end().await;
    let failure = record.result.as_ref().unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (Code::Exit, "exited with code 3"));
    assert_eq!((record.text(TextChannel::Stdout).as_str(), record.answer()), ("out\n", None));
    assert_eq!(record.text(TextChannel::Stderr), "err\n");
    assert_eq!(
        shell_fixture("kill -KILL $$", &[]).run_to_end().await.failure_code(),
        Some(Code::Killed)
    );
    assert_eq!(
        shell_fixture("exit 75", &[]).run_to_end().await.failure_code(),
        Some(Code::TransientFailure)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_begins_with_sigterm() {
    let fixture = shell_fixture(r#"trap "echo bye; exit 0" TERM; sleep 600 & wait"#, &[]);
    let mut attempt = fixture.start().await;
    fixture.wait_until_running(1, "sleep").await;
    attempt.stop();
    attempt.wait_for_end().await.unwrap();
    attempt.clean_up().await;
    assert_eq!(fixture.living_pids(), NO_PROCESSES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ignores_the_stop_is_killed_with_its_tree() {
    let fixture = shell_fixture(SIGTERM_IGNORING_SCRIPT, &[]);
    let mut attempt = fixture.start().await;
    fixture.wait_until_running(2, "sleep").await;
    let requested_at = Instant::now();
    attempt.stop();
    attempt.stop();
    assert_eq!(attempt.wait_for_end().await.unwrap_err().code, Code::Killed);
    assert!(requested_at.elapsed() >= fixture.spec.limits.timeouts.grace);
    assert_eq!(fixture.living_pids(), NO_PROCESSES);
    attempt.clean_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_is_killed_before_the_end_is_reported() {
    let fixture = shell_fixture(DAEMON_LEAVING_SCRIPT, &[]);
    let mut attempt = fixture.start().await;
    attempt.wait_for_end().await.unwrap();
    assert_eq!(fixture.living_pids(), NO_PROCESSES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_holds_the_pipe_does_not_delay_the_end() {
    for script in ["sleep 600 & echo held", "setsid sleep 600 & echo held", "yes & echo held"] {
        let fixture = shell_fixture(script, &[]);
        let mut attempt = fixture.start().await;
        attempt.wait_for_end().await.unwrap();
        assert_eq!(fixture.living_pids(), NO_PROCESSES, "{script}");
        attempt.clean_up().await;
    }
}

/// Test of processes that neither a variable nor a group identifies.
#[tokio::test(flavor = "multi_thread")]
async fn processes_without_environment_or_session_are_killed() {
    for wrapper in ["env -i", "setsid env -i", "setsid env -i setsid env -i"] {
        let fixture = shell_fixture(&format!("{wrapper} sleep 600 >/dev/null 2>&1 & echo $!"), &[]);
        let mut attempt = fixture.start().await;
        attempt.wait_for_end().await.unwrap();
        let sleeper_pid = attempt.text(TextChannel::Stdout);
        assert!(!exists(&Path::new("/proc").join(sleeper_pid.trim())), "{wrapper}");
        attempt.clean_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_written_shortly_after_the_exit_is_read() {
    let record = shell_fixture("(sleep 0.3; echo late) & echo early", &[]).run_to_end().await;
    assert_eq!(record.answer().as_deref(), Some("early\nlate\n"));
}

/// Test with each location of the folder, with and without waiting for its creation.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_changes_only_its_own_temporary_folder() {
    let script = "mkdir $TMPDIR/deep && echo left > $TMPDIR/deep/file && cat $TMPDIR/deep/file; touch here 2>&1 || true";
    for in_memory in [false, true] {
        let mut fixture = shell_fixture(script, &[]);
        (fixture.is_runtime_dir_in_memory, fixture.spec.access) = (in_memory, Access::ReadOnly);
        fixture.program.sandbox.writable = None;
        let answer = fixture.run_to_end().await.answer().unwrap_or_default();
        assert!(answer.starts_with("left\n"), "{answer}");
        let is_sandboxed = fixture.spec.confinement().unwrap().isolation.is_some();
        assert_eq!(!exists(&fixture.home.path().join("here")), is_sandboxed, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_lease_kills_the_program_and_cleans_up() {
    let mut fixture = shell_fixture(SIGTERM_IGNORING_SCRIPT, &["{{ output_file }}"]);
    fixture.program.output_method = OutputMethod::File;
    fixture.spec.limits.timeouts.grace = Duration::from_secs(3_600);
    let mut attempt = fixture.start().await;
    fixture.wait_until_running(2, "sleep").await;
    assert_eq!(fixture.leftover_folder_count(), 1);
    drop(attempt.lease.take());
    assert!(attempt.wait_for_end().await.is_err());
    assert_eq!(fixture.living_pids(), NO_PROCESSES);
    wait_until(|| fixture.leftover_folder_count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_dropped_at_once_leaves_nothing() {
    for _ in 0..20 {
        let fixture = shell_fixture(SIGTERM_IGNORING_SCRIPT, &[]);
        let mut attempt = fixture.start().await;
        drop(attempt.lease.take());
        assert!(attempt.wait_for_end().await.is_err());
        assert_eq!(fixture.living_pids(), NO_PROCESSES);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cleanup_during_a_run_ends_it() {
    let fixture = shell_fixture(DAEMON_LEAVING_SCRIPT, &[]);
    let mut attempt = fixture.start().await;
    let cleaning = attempt.lease.take().unwrap().clean_up();
    cleaning.await;
    assert_eq!(fixture.living_pids(), NO_PROCESSES);
    _ = attempt.wait_for_end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cleanup_of_one_attempt_spares_the_next() {
    let mut fixture = shell_fixture(DAEMON_LEAVING_SCRIPT, &[]);
    let mut first = fixture.start().await;
    first.wait_for_end().await.unwrap();
    fixture.attempt_id = fixture.attempt_id.next_attempt();
    fixture.program.args = vec!["-c".to_owned(), SIGTERM_IGNORING_SCRIPT.to_owned()];
    let mut second = fixture.start().await;
    fixture.wait_until_running(2, "sleep").await;
    first.clean_up().await;
    assert_eq!(fixture.living_pids().len(), 2);
    second.stop();
    assert!(second.wait_for_end().await.is_err());
    second.clean_up().await;
    assert_eq!(fixture.living_pids(), NO_PROCESSES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_ledger_ends_the_run() {
    let script = "until [ -e go ]; do sleep 0.01; done; head -c 99999 /dev/zero; exec sleep 600";
    let fixture = shell_fixture(script, &[]);
    let mut attempt = fixture.start().await;
    fixture.wait_until_running(1, "sh").await;
    attempt.fill_ledger();
    std::fs::write(fixture.home.path().join("go"), "").unwrap();
    assert_eq!(attempt.wait_for_end().await.unwrap_err().code, Code::LedgerUnavailable);
    assert_eq!(fixture.living_pids(), NO_PROCESSES);
    attempt.clean_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_parallel_runs_get_their_own_answers() {
    let fixtures: Vec<ProgramFixture> = (0..40)
        .map(|number| program_fixture("/bin/cat", &[]).with_input(format!("n{number}")))
        .collect();
    let runs =
        fixtures.into_iter().map(|fixture| tokio::spawn(async move { fixture.run_to_end().await }));
    for (number, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
        let record: AttemptRecord = run.await.unwrap();
        assert_eq!(record.answer(), Some(format!("n{number}")));
    }
}

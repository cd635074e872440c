//! Tests of the end of a program and of everything that it started.

use std::path::Path;
use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::program::OutputPattern;
use tokio::time::Instant;

use super::world::{Stage, Story, exists, program, shell, until};

/// Script that ignores SIGTERM, as its child does.
const STUBBORN: &str = r#"trap "" TERM; sleep 600 & exec sleep 600"#;

/// Script that leaves a process in another session, which is alive when the program ends.
const DAEMON: &str =
    r#"echo $(setsid sh -c 'echo up; exec sleep 600 >/dev/null 2>&1' </dev/null &)"#;

const NOBODY: Vec<i32> = Vec::new();

#[tokio::test(flavor = "multi_thread")]
async fn output_is_read_while_its_program_still_runs() {
    for closed in [">&-", ">&- 2>&-"] {
        let script = format!("echo early; exec {closed}; until [ -e go ]; do sleep 0.01; done");
        let stage = shell(&script, &[]);
        let mut run = stage.start().await;
        while run.text(TextChannel::Stdout) != "early\n" {
            run.next().await;
        }
        std::fs::write(stage.home.path().join("go"), "").unwrap();
        assert_eq!(run.ended().await, Ok(()));
        run.clean().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_is_reported_with_the_output() {
    let story = shell("echo out; echo err >&2; exit 3", &[]).play().await;
    let failure = story.verdict.as_ref().unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (Code::Exit, "exited with code 3"));
    assert_eq!((story.text(TextChannel::Stdout).as_str(), story.answer()), ("out\n", None));
    assert_eq!(story.text(TextChannel::Stderr), "err\n");
    assert_eq!(shell("kill -KILL $$", &[]).play().await.code(), Some(Code::Killed));
    assert_eq!(shell("exit 75", &[]).play().await.code(), Some(Code::TransientFailure));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_begins_with_sigterm() {
    let stage = shell(r#"trap "echo bye; exit 0" TERM; sleep 600 & wait"#, &[]);
    let mut run = stage.start().await;
    stage.until_running(1, "sleep").await;
    run.stop();
    run.ended().await.unwrap();
    run.clean().await;
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ignores_the_stop_is_killed_with_its_tree() {
    let stage = shell(STUBBORN, &[]);
    let mut run = stage.start().await;
    stage.until_running(2, "sleep").await;
    let asked = Instant::now();
    run.stop();
    run.stop();
    assert_eq!(run.ended().await.unwrap_err().code, Code::Killed);
    assert!(asked.elapsed() >= stage.spec.limits.deadlines.grace);
    assert_eq!(stage.alive(), NOBODY);
    run.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_is_killed_before_the_end_is_reported() {
    let stage = shell(DAEMON, &[]);
    let mut run = stage.start().await;
    run.ended().await.unwrap();
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_holds_the_pipe_does_not_delay_the_end() {
    for holder in ["sleep 600 & echo held", "setsid sleep 600 & echo held", "yes & echo held"] {
        let stage = shell(holder, &[]);
        let mut run = stage.start().await;
        run.ended().await.unwrap();
        assert_eq!(stage.alive(), NOBODY, "{holder}");
        run.clean().await;
    }
}

/// Test of processes that neither a variable nor a group identifies.
#[tokio::test(flavor = "multi_thread")]
async fn processes_without_environment_or_session_are_killed() {
    for shed in ["env -i", "setsid env -i", "setsid env -i setsid env -i"] {
        let story = shell(&format!("{shed} sleep 600 >/dev/null 2>&1 & echo $!"), &[]);
        let mut run = story.start().await;
        run.ended().await.unwrap();
        let sleeper = run.text(TextChannel::Stdout);
        assert!(!exists(&Path::new("/proc").join(sleeper.trim())), "{shed}");
        run.clean().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_written_shortly_after_the_exit_is_read() {
    let story = shell("(sleep 0.3; echo late) & echo early", &[]).play().await;
    assert_eq!(story.answer().as_deref(), Some("early\nlate\n"));
}

/// Test with each location of the folder, with and without waiting for its creation.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_changes_only_its_own_temporary_folder() {
    let script = "mkdir $TMPDIR/deep && echo left > $TMPDIR/deep/file && cat $TMPDIR/deep/file; touch here 2>&1 || true";
    for in_memory in [false, true] {
        let mut stage = shell(script, &[]);
        (stage.in_memory, stage.spec.access) = (in_memory, Access::ReadOnly);
        stage.program.sandbox.writable = None;
        let answer = stage.play().await.answer().unwrap_or_default();
        assert!(answer.starts_with("left\n"), "{answer}");
        let is_held = stage.spec.confinement().unwrap().isolation.is_some();
        assert_eq!(!exists(&stage.home.path().join("here")), is_held, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_lease_kills_the_program_and_cleans_up() {
    let mut stage = shell(STUBBORN, &["{{ output_file }}"]);
    stage.program.output = OutputPattern::File;
    stage.spec.limits.deadlines.grace = Duration::from_secs(3_600);
    let mut run = stage.start().await;
    stage.until_running(2, "sleep").await;
    assert_eq!(stage.left(), 1);
    drop(run.lease.take());
    assert!(run.ended().await.is_err());
    assert_eq!(stage.alive(), NOBODY);
    until(|| stage.left() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_dropped_at_once_leaves_nothing() {
    for _ in 0..20 {
        let stage = shell(STUBBORN, &[]);
        let mut run = stage.start().await;
        drop(run.lease.take());
        assert!(run.ended().await.is_err());
        assert_eq!(stage.alive(), NOBODY);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cleanup_during_a_run_ends_it() {
    let stage = shell(DAEMON, &[]);
    let mut run = stage.start().await;
    let cleaning = run.lease.take().unwrap().clean();
    cleaning.await;
    assert_eq!(stage.alive(), NOBODY);
    _ = run.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cleanup_of_one_attempt_spares_the_next() {
    let mut stage = shell(DAEMON, &[]);
    let mut first = stage.start().await;
    first.ended().await.unwrap();
    stage.stamp = stage.stamp.retried();
    stage.program.args = vec!["-c".to_owned(), STUBBORN.to_owned()];
    let mut second = stage.start().await;
    stage.until_running(2, "sleep").await;
    first.clean().await;
    assert_eq!(stage.alive().len(), 2);
    second.stop();
    assert!(second.ended().await.is_err());
    second.clean().await;
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_ledger_ends_the_run() {
    let script = "until [ -e go ]; do sleep 0.01; done; head -c 99999 /dev/zero; exec sleep 600";
    let stage = shell(script, &[]);
    let mut run = stage.start().await;
    stage.until_running(1, "sh").await;
    run.fill_the_ledger();
    std::fs::write(stage.home.path().join("go"), "").unwrap();
    assert_eq!(run.ended().await.unwrap_err().code, Code::LedgerUnavailable);
    assert_eq!(stage.alive(), NOBODY);
    run.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_parallel_runs_get_their_own_answers() {
    let stages: Vec<Stage> =
        (0..40).map(|number| program("/bin/cat", &[]).says(format!("n{number}"))).collect();
    let runs = stages.into_iter().map(|stage| tokio::spawn(async move { stage.play().await }));
    for (number, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
        let story: Story = run.await.unwrap();
        assert_eq!(story.answer(), Some(format!("n{number}")));
    }
}

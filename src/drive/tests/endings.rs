//! How a program ends, and that everything it started ends with it.

use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::event::Channel;
use algonius_actors::model::program::OutputPattern;
use tokio::time::Instant;

use super::world::{Stage, Story, exists, program, shell, until};
use crate::warden::sweep_instance;

/// Ignores the polite request, as its child does.
const STUBBORN: &str = r#"trap "" TERM; sleep 600 & exec sleep 600"#;

/// Leaves a process in another session, which is there when the program ends.
const DAEMON: &str =
    r#"echo $(setsid sh -c 'echo up; exec sleep 600 >/dev/null 2>&1' </dev/null &)"#;

const NOBODY: Vec<i32> = Vec::new();

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_is_told_with_what_was_written() {
    let story = shell("echo out; echo err >&2; exit 3", &[]).play().await;
    let failure = story.verdict.as_ref().unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (Code::Exit, "exited with code 3"));
    assert_eq!((story.text(Channel::Stdout).as_str(), story.answer()), ("out\n", None));
    assert_eq!(story.text(Channel::Stderr), "err\n");
    assert_eq!(shell("kill -KILL $$", &[]).play().await.code(), Some(Code::Killed));
    assert_eq!(shell("exit 75", &[]).play().await.code(), Some(Code::TransientFailure));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_polite_first() {
    let stage = shell(r#"trap "echo bye; exit 0" TERM; sleep 600 & wait"#, &[]);
    let mut run = stage.start();
    stage.until_running(1, "sleep").await;
    run.stop();
    run.ended().await.unwrap();
    run.clean().await;
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ignores_the_stop_is_killed_after_the_grace_with_its_children() {
    let stage = shell(STUBBORN, &[]);
    let mut run = stage.start();
    stage.until_running(2, "sleep").await;
    let asked = Instant::now();
    run.stop();
    run.stop();
    assert_eq!(run.ended().await.unwrap_err().code, Code::Killed);
    assert!(asked.elapsed() >= stage.spec.deadlines.grace);
    assert_eq!(stage.alive(), NOBODY);
    run.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_is_ended_by_the_clean_up() {
    let stage = shell(DAEMON, &[]);
    let mut run = stage.start();
    run.ended().await.unwrap();
    assert_eq!(stage.alive().len(), 1);
    run.clean().await;
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writers_daemon_is_dead_before_the_end_is_told() {
    let mut stage = shell(DAEMON, &[]);
    stage.spec.access = Access::ReadWrite;
    let mut run = stage.start();
    run.ended().await.unwrap();
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_pipe_delays_the_end_by_a_second_at_most() {
    for holder in ["sleep 600 & echo held", "setsid sleep 600 & echo held", "yes & echo held"] {
        let stage = shell(holder, &[]);
        let begun = Instant::now();
        let mut run = stage.start();
        run.ended().await.unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(1_900), "{holder} took {took:?}");
        assert_eq!(stage.alive(), NOBODY, "{holder}");
        run.clean().await;
    }
}

/// Its environment is empty, so that only its group tells whose it is.
#[tokio::test(flavor = "multi_thread")]
async fn what_stays_in_the_group_is_dead_before_the_end_is_told() {
    let story = shell("env -i sleep 600 >/dev/null 2>&1 & echo $!", &[]).play().await;
    let place = format!("/proc/{}/stat", story.answer().unwrap().trim());
    let is_alive = || std::fs::read_to_string(&place).is_ok_and(|line| !line.contains(") Z "));
    until(|| !is_alive()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_holder_wrote_in_that_second_is_read() {
    let story = shell("(sleep 0.3; echo late) & echo early", &[]).play().await;
    assert_eq!(story.answer().as_deref(), Some("early\nlate\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_lease_kills_and_cleans() {
    let mut stage = shell(STUBBORN, &["{{ output_file }}"]);
    stage.program.output = OutputPattern::File;
    stage.spec.deadlines.grace = Duration::from_secs(3_600);
    let mut run = stage.start();
    stage.until_running(2, "sleep").await;
    assert!(exists(&stage.runtime_dir().join(format!("{}-1-1", stage.execution))));
    drop(run.lease.take());
    assert!(run.ended().await.is_err());
    assert_eq!(stage.alive(), NOBODY);
    until(|| std::fs::read_dir(stage.runtime_dir()).unwrap().count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_dropped_at_once_leaves_nothing() {
    for _ in 0..20 {
        let stage = shell(STUBBORN, &[]);
        let mut run = stage.start();
        drop(run.lease.take());
        assert!(run.ended().await.is_err());
        assert_eq!(stage.alive(), NOBODY);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_in_mid_run_ends_it() {
    let stage = shell(DAEMON, &[]);
    let mut run = stage.start();
    let cleaning = run.lease.take().unwrap().clean();
    cleaning.await;
    assert_eq!(stage.alive(), NOBODY);
    _ = run.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaning_one_attempt_spares_the_next() {
    let mut stage = shell(DAEMON, &[]);
    let mut first = stage.start();
    first.ended().await.unwrap();
    stage.stamp = stage.stamp.retried();
    let mut second = stage.start();
    second.ended().await.unwrap();
    first.clean().await;
    assert_eq!(stage.alive().len(), 1);
    second.clean().await;
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_up_sweep_ends_what_the_instance_left_and_nothing_else() {
    let (ours, mut theirs) = (shell(DAEMON, &[]), shell(DAEMON, &[]));
    theirs.instance = uuid::Uuid::new_v4();
    let (mut run, mut other) = (ours.start(), theirs.start());
    run.ended().await.unwrap();
    other.ended().await.unwrap();
    assert_eq!(sweep_instance(ours.instance).await, 1);
    assert_eq!((ours.alive().len(), theirs.alive().len()), (0, 1));
    other.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_takes_no_more_ends_the_run() {
    let script = "until [ -e go ]; do sleep 0.01; done; head -c 99999 /dev/zero; exec sleep 600";
    let stage = shell(script, &[]);
    let mut run = stage.start();
    stage.until_running(1, "sh").await;
    run.fill_the_ledger();
    std::fs::write(stage.home.path().join("go"), "").unwrap();
    assert_eq!(run.ended().await.unwrap_err().code, Code::LedgerUnavailable);
    assert_eq!(stage.alive(), NOBODY);
    run.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_get_their_own_answers() {
    let stages: Vec<Stage> =
        (0..40).map(|number| program("/bin/cat", &[]).says(format!("n{number}"))).collect();
    let runs = stages.into_iter().map(|stage| tokio::spawn(async move { stage.play().await }));
    for (number, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
        let story: Story = run.await.unwrap();
        assert_eq!(story.answer(), Some(format!("n{number}")));
    }
}

#[test]
fn a_runtime_that_goes_takes_its_programs_along() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let stage = shell(STUBBORN, &[]);
    let run = runtime.block_on(async {
        let run = stage.start();
        stage.until_running(2, "sleep").await;
        run
    });
    drop(runtime);
    let watcher = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    watcher.block_on(until(|| stage.alive().is_empty()));
    drop(run);
}

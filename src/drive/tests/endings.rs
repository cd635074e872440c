//! How a program ends, and that everything it started ends with it.

use std::path::Path;
use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::event::Channel;
use algonius_actors::model::program::OutputPattern;
use tokio::time::Instant;

use super::world::{Stage, Story, exists, program, shell, until};

/// Ignores the polite request, as its child does.
const STUBBORN: &str = r#"trap "" TERM; sleep 600 & exec sleep 600"#;

/// Leaves a process in another session, which is there when the program ends.
const DAEMON: &str =
    r#"echo $(setsid sh -c 'echo up; exec sleep 600 >/dev/null 2>&1' </dev/null &)"#;

const NOBODY: Vec<i32> = Vec::new();

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_there_while_its_program_lives_on() {
    for closed in [">&-", ">&- 2>&-"] {
        let script = format!("echo early; exec {closed}; until [ -e go ]; do sleep 0.01; done");
        let stage = shell(&script, &[]);
        let mut run = stage.start().await;
        while run.text(Channel::Stdout) != "early\n" {
            run.next().await;
        }
        std::fs::write(stage.home.path().join("go"), "").unwrap();
        assert_eq!(run.ended().await, Ok(()));
        run.clean().await;
    }
}

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
    let mut run = stage.start().await;
    stage.until_running(1, "sleep").await;
    run.stop();
    run.ended().await.unwrap();
    run.clean().await;
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ignores_the_stop_is_killed_after_the_grace_with_its_children() {
    let stage = shell(STUBBORN, &[]);
    let mut run = stage.start().await;
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
async fn a_daemon_is_dead_before_the_end_is_told() {
    let stage = shell(DAEMON, &[]);
    let mut run = stage.start().await;
    run.ended().await.unwrap();
    assert_eq!(stage.alive(), NOBODY);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_the_pipe_for_ten_minutes_does_not_hold_up_the_end() {
    for holder in ["sleep 600 & echo held", "setsid sleep 600 & echo held", "yes & echo held"] {
        let stage = shell(holder, &[]);
        let mut run = stage.start().await;
        run.ended().await.unwrap();
        assert_eq!(stage.alive(), NOBODY, "{holder}");
        run.clean().await;
    }
}

/// Neither a variable nor a group tells whose they are.
#[tokio::test(flavor = "multi_thread")]
async fn what_sheds_its_environment_and_its_session_is_dead_before_the_end_is_told() {
    for shed in ["env -i", "setsid env -i", "setsid env -i setsid env -i"] {
        let story = shell(&format!("{shed} sleep 600 >/dev/null 2>&1 & echo $!"), &[]);
        let mut run = story.start().await;
        run.ended().await.unwrap();
        let sleeper = run.text(Channel::Stdout);
        assert!(!exists(&Path::new("/proc").join(sleeper.trim())), "{shed}");
        run.clean().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_holder_wrote_in_that_second_is_read() {
    let story = shell("(sleep 0.3; echo late) & echo early", &[]).play().await;
    assert_eq!(story.answer().as_deref(), Some("early\nlate\n"));
}

/// Wherever its folder stands, and whether anything is waited for while it is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_changes_its_own_folder_alone_and_nothing_is_left_of_that() {
    let script = "mkdir $TMPDIR/deep && echo left > $TMPDIR/deep/file && cat $TMPDIR/deep/file; touch here 2>&1 || true";
    for in_memory in [false, true] {
        let mut stage = shell(script, &[]);
        (stage.in_memory, stage.spec.access) = (in_memory, Access::ReadOnly);
        stage.program.sandbox.writable = None;
        let answer = stage.play().await.answer().unwrap_or_default();
        assert!(answer.starts_with("left\n"), "{answer}");
        let is_held = stage.spec.isolation.is_some();
        assert_eq!(!exists(&stage.home.path().join("here")), is_held, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_lease_kills_and_cleans() {
    let mut stage = shell(STUBBORN, &["{{ output_file }}"]);
    stage.program.output = OutputPattern::File;
    stage.spec.deadlines.grace = Duration::from_secs(3_600);
    let mut run = stage.start().await;
    stage.until_running(2, "sleep").await;
    assert!(exists(&stage.files_dir().join(format!("{}-1-1", stage.execution))));
    drop(run.lease.take());
    assert!(run.ended().await.is_err());
    assert_eq!(stage.alive(), NOBODY);
    until(|| std::fs::read_dir(stage.files_dir()).unwrap().count() == 0).await;
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
async fn a_clean_up_in_mid_run_ends_it() {
    let stage = shell(DAEMON, &[]);
    let mut run = stage.start().await;
    let cleaning = run.lease.take().unwrap().clean();
    cleaning.await;
    assert_eq!(stage.alive(), NOBODY);
    _ = run.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_one_attempt_spares_the_next() {
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
async fn a_ledger_that_takes_no_more_ends_the_run() {
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
async fn many_at_once_get_their_own_answers() {
    let stages: Vec<Stage> =
        (0..40).map(|number| program("/bin/cat", &[]).says(format!("n{number}"))).collect();
    let runs = stages.into_iter().map(|stage| tokio::spawn(async move { stage.play().await }));
    for (number, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
        let story: Story = run.await.unwrap();
        assert_eq!(story.answer(), Some(format!("n{number}")));
    }
}

//! Tests of programs that wait for a person, and of programs that only appear to.

use std::time::Duration;

use algonius_actors::decide::classify::tty_prompt_detection;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::program::OutputMethod;
use regex::Regex;

use super::fixture::{ProgramFixture, shell_fixture};

async fn assert_prompt_failure(fixture: ProgramFixture, script: &str) {
    assert_eq!(
        fixture.run_to_end().await.result,
        Err(tty_prompt_detection::prompt_failure()),
        "{script}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_program_at_a_prompt_is_stopped_and_fails() {
    for script in [
        "printf 'Go on? [y/N] '; sleep 600",
        "printf 'Go on? [y/N] ' >&2; sleep 600",
        "echo work; printf 'Go on? '; printf '[y/'; printf 'N]'; sleep 600",
        r"printf '\033[1mGo on? [y/N]\033[0m '; sleep 600",
        "trap 'exit 0' TERM; printf 'Go on? [y/N] '; sleep 600 & wait",
        "trap '' TERM; printf 'Go on? [y/N] '; while :; do sleep 600; done",
    ] {
        assert_prompt_failure(shell_fixture(script, &[]), script).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_before_a_prompt_is_kept() {
    let mut fixture = shell_fixture("echo begun; printf 'Go on? [y/N] '; sleep 600 & wait", &[]);
    fixture.program.output_method = OutputMethod::Events;
    let record = fixture.run_to_end().await;
    assert_eq!(record.result, Err(tty_prompt_detection::prompt_failure()));
    assert_eq!(record.text(TextChannel::Stdout), "begun\nGo on? [y/N] ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_exit_at_a_prompt_is_a_prompt_failure() {
    for script in [
        "printf 'Go on? [y/N] '; read answer || exit 1",
        "printf 'Go on? [y/N] '; echo 'EOFError: EOF when reading a line' >&2; exit 1",
        "printf 'Go on? [y/N] ' >&2; exit 75",
    ] {
        assert_prompt_failure(shell_fixture(script, &[]), script).await;
    }
}

/// Test in a session without a terminal, because the tests themselves may have one.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_for_a_terminal_is_a_prompt_failure() {
    let script = "setsid -w sh -c 'read answer < /dev/tty'";
    assert_prompt_failure(shell_fixture(script, &[]), script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_continues_after_a_prompt_is_not_stopped() {
    for (script, answer) in [
        ("printf 'Go on? [y/N] '; sleep 0.05; echo yes", "Go on? [y/N] yes\n"),
        ("printf 'Go on? [y/N] '", "Go on? [y/N] "),
        ("printf 'Go on? [y/N] '; echo; sleep 0.7; printf done", "Go on? [y/N] \ndone"),
        ("printf 'Go on? [y/N] '; exec >&- ; sleep 0.7", "Go on? [y/N] "),
        ("printf 'is it so?'; sleep 0.7", "is it so?"),
    ] {
        assert_eq!(
            shell_fixture(script, &[]).run_to_end().await.answer().as_deref(),
            Some(answer),
            "{script}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_failure_after_a_prompt_keeps_its_code() {
    use algonius_actors::model::code::Code;
    let script = "printf 'Go on? [y/N] '; echo no; exit 3";
    assert_eq!(shell_fixture(script, &[]).run_to_end().await.failure_code(), Some(Code::Exit));
    let mut fixture = shell_fixture("printf 'Go on? [y/N] '; sleep 0.7; exit 3", &[]);
    fixture.program.prompt_patterns.patterns = [].into();
    assert_eq!(fixture.run_to_end().await.failure_code(), Some(Code::Exit));
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_patterns_come_from_the_configuration() {
    let mut fixture = shell_fixture("printf 'Quo vadis> '; sleep 600", &[]);
    fixture.program.prompt_patterns.patterns = [Regex::new("> $").unwrap()].into();
    fixture.program.prompt_patterns.silence = Duration::from_millis(100);
    assert_eq!(fixture.run_to_end().await.result, Err(tty_prompt_detection::prompt_failure()));
}

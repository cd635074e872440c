//! Programs that wait for a person, and programs that only look so.

use std::time::Duration;

use algonius_actors::decide::prompt;
use algonius_actors::model::event::Channel;
use algonius_actors::model::program::OutputPattern;
use regex::Regex;

use super::world::{Stage, shell};

async fn expect_prompt(stage: Stage, script: &str) {
    assert_eq!(stage.play().await.verdict, Err(prompt::failure()), "{script}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_and_is_silent_is_stopped_and_fails() {
    for script in [
        "printf 'Go on? [y/N] '; sleep 600",
        "printf 'Go on? [y/N] ' >&2; sleep 600",
        "echo work; printf 'Go on? '; printf '[y/'; printf 'N]'; sleep 600",
        r"printf '\033[1mGo on? [y/N]\033[0m '; sleep 600",
        "trap 'exit 0' TERM; printf 'Go on? [y/N] '; sleep 600 & wait",
        "trap '' TERM; printf 'Go on? [y/N] '; while :; do sleep 600; done",
    ] {
        expect_prompt(shell(script, &[]), script).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_wrote_before_is_kept_and_nothing_is_left_of_it() {
    let mut stage = shell("echo begun; printf 'Go on? [y/N] '; sleep 600 & wait", &[]);
    stage.program.output = OutputPattern::Events;
    let story = stage.play().await;
    assert_eq!(story.verdict, Err(prompt::failure()));
    assert_eq!(story.text(Channel::Stdout), "begun\nGo on? [y/N] ");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_exits_badly_at_a_question_fails_so() {
    for script in [
        "printf 'Go on? [y/N] '; read answer || exit 1",
        "printf 'Go on? [y/N] '; echo 'EOFError: EOF when reading a line' >&2; exit 1",
        "printf 'Go on? [y/N] ' >&2; exit 75",
    ] {
        expect_prompt(shell(script, &[]), script).await;
    }
}

/// Started by the tests it may have a terminal, so it is given a session without one.
#[tokio::test(flavor = "multi_thread")]
async fn who_looks_for_a_terminal_in_vain_and_says_so_fails_so() {
    let script = "setsid -w sh -c 'read answer < /dev/tty'";
    expect_prompt(shell(script, &[]), script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_on_or_succeeds_is_left_alone() {
    for (script, answer) in [
        ("printf 'Go on? [y/N] '; sleep 0.05; echo yes", "Go on? [y/N] yes\n"),
        ("printf 'Go on? [y/N] '", "Go on? [y/N] "),
        ("printf 'Go on? [y/N] '; echo; sleep 0.7; printf done", "Go on? [y/N] \ndone"),
        ("printf 'Go on? [y/N] '; exec >&- ; sleep 0.7", "Go on? [y/N] "),
        ("printf 'is it so?'; sleep 0.7", "is it so?"),
    ] {
        assert_eq!(shell(script, &[]).play().await.answer().as_deref(), Some(answer), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_failure_stays_what_it_is() {
    use algonius_actors::model::code::Code;
    let script = "printf 'Go on? [y/N] '; echo no; exit 3";
    assert_eq!(shell(script, &[]).play().await.code(), Some(Code::Exit));
    let mut off = shell("printf 'Go on? [y/N] '; sleep 0.7; exit 3", &[]);
    off.program.prompts.patterns = [].into();
    assert_eq!(off.play().await.code(), Some(Code::Exit));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_is_up_to_the_configuration() {
    let mut stage = shell("printf 'Quo vadis> '; sleep 600", &[]);
    stage.program.prompts.patterns = [Regex::new("> $").unwrap()].into();
    stage.program.prompts.silence = Duration::from_millis(100);
    assert_eq!(stage.play().await.verdict, Err(prompt::failure()));
}

//! Children, wardens and services are killed in an order that is drawn, while callers send, send
//! again and call off. What the agents themselves wrote down judges.
//!
//! `ALGONIUS_CHAOS_ROUNDS` makes it longer, `ALGONIUS_CHAOS_SEED` draws the same order again.

mod callers;
mod chaos_run;
mod cognitive_kills;
mod question_kills;
mod seeded_rng;
mod team_kills;

use std::fs;

use crate::harness::Setup;
use crate::harness::processes::{open_descriptor_count, reset_peak_and_read_rss};
use crate::history_check::HistoryChecker;
use chaos_run::{ChaosAction, ChaosRun};
use seeded_rng::rng_and_rounds_or_default;

/// Two agents that change one folder, and one that changes nothing. What each run writes down
/// stands in `HERE/witnessed`.
const AGENTS: &str = "
[pressure]
enabled = false
[tokens.ann]
token_env = 'ANN'
[tokens.bob]
token_env = 'BOB'
[agents.writer]
sandbox.writable = ['HERE']
command = 'FAKE'
args = ['witness', 'HERE/witnessed', 'HERE/lock']
access = 'read-write'
working_dir = 'HERE/work'
queue_depth = 1000
[agents.editor]
sandbox.writable = ['HERE']
command = 'FAKE'
args = ['witness', 'HERE/witnessed', 'HERE/lock']
access = 'read-write'
working_dir = 'HERE/work'
queue_depth = 1000
[agents.reader]
sandbox.writable = ['HERE']
command = 'FAKE'
args = ['witness', 'HERE/witnessed', '-']
max_concurrent = 4
queue_depth = 1000
";

/// Everything that may happen, as often as it stands here.
const ALL_ACTIONS: &[ChaosAction] = &[
    ChaosAction::Send,
    ChaosAction::Send,
    ChaosAction::Send,
    ChaosAction::Send,
    ChaosAction::SendAgain,
    ChaosAction::Cancel,
    ChaosAction::KillAgentProcess,
    ChaosAction::KillHolder,
    ChaosAction::KillService,
    ChaosAction::KillHolderAndService,
];

/// What may happen in one life of a service.
const ACTIONS_WITHOUT_RESTART: &[ChaosAction] = &[
    ChaosAction::Send,
    ChaosAction::Send,
    ChaosAction::SendAgain,
    ChaosAction::Cancel,
    ChaosAction::KillAgentProcess,
    ChaosAction::KillHolder,
];

/// More than the readers of the ledger open at need, less than one for each execution.
const MAX_DESCRIPTOR_GROWTH: usize = 16;
const MAX_MEMORY_GROWTH_BYTES: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_leave_every_message_run_and_ended_once() {
    let (rng, rounds) = rng_and_rounds_or_default(60);
    let setup = Setup::new(AGENTS).env("ANN", &"a".repeat(40)).env("BOB", &"b".repeat(40));
    fs::create_dir(setup.test_folder().join("work")).unwrap();
    let mut chaos = ChaosRun::new(setup.start().await, rng);
    chaos.run_random_actions(ALL_ACTIONS, rounds).await;
    chaos.wait_until_idle().await;
    // A life that was not killed has not leaked.
    chaos.restart().await;
    chaos.run_random_actions(&[ChaosAction::Send], 10).await;
    chaos.wait_until_idle().await;
    let pid = chaos.service.pid();
    let (initial_descriptor_count, initial_memory_bytes) =
        (open_descriptor_count(pid), reset_peak_and_read_rss(pid));
    chaos.run_random_actions(ACTIONS_WITHOUT_RESTART, rounds).await;
    chaos.wait_until_idle().await;
    chaos
        .wait_until("the descriptors", || {
            open_descriptor_count(pid) <= initial_descriptor_count + MAX_DESCRIPTOR_GROWTH
        })
        .await;
    let growth_bytes = reset_peak_and_read_rss(pid).saturating_sub(initial_memory_bytes);
    assert!(growth_bytes <= MAX_MEMORY_GROWTH_BYTES, "{growth_bytes} bytes more");
    chaos.send_all_again().await;
    let checker = HistoryChecker::new(chaos.history_check_input()).await;
    // Every accepted message starts once for each of its attempts, ends once and leaves no
    // process, whichever process is killed
    checker.check().await;
    // A run in which nothing was completed or nothing was hit would show nothing.
    let counts = checker.code_or_outcome_counts();
    println!("{counts:?}");
    assert!(counts.contains_key("completed") && counts.len() > 1, "{counts:?}");
}

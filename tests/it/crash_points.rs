//! Crash points: for every k, the k-th write, file, spawn or packet fails, or is the last that its
//! process does. The next start knows everything that was told, and settles it.
//!
//! A sample of the points is tried, drawn by a seed that is printed; `ALGONIUS_CRASH_SEED` draws
//! the same. `ALGONIUS_CRASH_POINTS=all` tries every point, and a word of the modes below, as
//! `die` or `file`, those of such modes.

mod scenario;

use std::collections::{BTreeMap, HashMap};

use tokio::task::{Id, JoinSet, LocalSet};

use crate::harness::fault_injection::{FaultMode, InjectedFault};
use scenario::{ScenarioResult, run_scenario};

/// Scenarios at a time.
const MAX_PARALLEL_SCENARIOS: usize = 4;
/// Points of each mode in a sample.
const SAMPLE_POINT_COUNT: u64 = 3;

const fn fault_mode(
    process: &'static str,
    counted_call_kinds: &'static str,
    effect: &'static str,
) -> FaultMode {
    FaultMode { process, counted_call_kinds, effect }
}

fn env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::test]
async fn every_message_ends_once_whichever_write_fails() {
    // Every accepted message ends once, whichever system call of the service fails, on a full
    // disk or a broken one
    explore_crash_points(&[
        fault_mode("serve", "write", "once:28"),
        fault_mode("serve", "write", "once:5"),
        fault_mode("serve", "write", "on:28"),
        fault_mode("serve", "file", "once:28"),
    ])
    .await;
}

#[tokio::test]
async fn every_message_ends_once_wherever_the_service_dies() {
    let all_calls = "write,file,spawn,send";
    // Every accepted message ends once, whichever system call is the last that the service
    // completes, or half completes
    explore_crash_points(&[
        fault_mode("serve", all_calls, "die"),
        fault_mode("serve", all_calls, "tear"),
    ])
    .await;
}

#[tokio::test]
async fn every_message_ends_once_whichever_spawn_fails() {
    // Every accepted message ends once if processes, descriptors or packet buffers are short
    explore_crash_points(&[
        fault_mode("serve", "spawn", "once:24"),
        fault_mode("serve", "send", "once:105"),
        fault_mode("warden", "spawn", "once:11"),
        fault_mode("warden", "send", "once:105"),
        fault_mode("warden", "write,file", "once:28"),
    ])
    .await;
}

#[tokio::test]
async fn every_message_ends_once_wherever_the_warden_dies() {
    let all_calls = "write,file,spawn,send";
    // Every accepted message ends once, whichever system call is the last that the warden
    // completes
    explore_crash_points(&[
        fault_mode("warden", all_calls, "die"),
        fault_mode("warden", all_calls, "tear"),
    ])
    .await;
}

/// Tries points of each mode, so many at a time.
async fn explore_crash_points(modes: &[FaultMode]) {
    LocalSet::new().run_until(explore_in_local_set(modes)).await;
}

async fn explore_in_local_set(modes: &[FaultMode]) {
    for &mode in modes {
        let baseline = run_scenario(InjectedFault { mode, call_number: u64::MAX }).await;
        let (call_count, affected_count) =
            (baseline.tally.counted_calls, baseline.tally.affected_calls);
        assert!(call_count > 0 && affected_count == 0, "{mode:?}: {:?}", baseline.tally);
        let mut exploration = ModeExploration::default();
        match env_variable("ALGONIUS_CRASH_POINTS").as_deref() {
            Some("all") => exploration.explore_all(mode).await,
            Some(word) if word == mode.effect || word == mode.counted_call_kinds => {
                exploration.explore_all(mode).await;
            }
            _ => exploration.explore_sample(mode, call_count).await,
        }
        println!(
            "{mode:?}: {call_count} points, struck {}: {:?}",
            exploration.affected_scenario_count, exploration.outcome_counts
        );
        assert!(exploration.failures.is_empty(), "it did not hold: {:#?}", exploration.failures);
        assert!(exploration.affected_scenario_count > 0, "{mode:?}: nothing was struck");
    }
}

/// What came of the scenarios of one mode.
#[derive(Default)]
struct ModeExploration {
    affected_scenario_count: u64,
    outcome_counts: BTreeMap<String, u64>,
    /// What did not hold, and where.
    failures: Vec<(InjectedFault, String)>,
    scenarios: JoinSet<ScenarioResult>,
    faults_by_task: HashMap<Id, InjectedFault>,
    /// How many points there were not.
    unreached_point_count: usize,
}

impl ModeExploration {
    async fn explore_all(&mut self, mode: FaultMode) {
        let mut call_number = 1;
        while self.unreached_point_count < MAX_PARALLEL_SCENARIOS {
            self.start_scenario(InjectedFault { mode, call_number }).await;
            call_number += 1;
        }
        self.collect_remaining().await;
    }

    async fn explore_sample(&mut self, mode: FaultMode, call_count: u64) {
        let random_seed = uuid::Uuid::new_v4().as_u64_pair().0 >> 32;
        let seed =
            env_variable("ALGONIUS_CRASH_SEED").map_or(random_seed, |seed| seed.parse().unwrap());
        println!("ALGONIUS_CRASH_SEED={seed}");
        let stride = call_count.div_ceil(SAMPLE_POINT_COUNT).max(1);
        let first_call = seed % stride + 1;
        for call_number in (first_call..=call_count).step_by(usize::try_from(stride).unwrap()) {
            self.start_scenario(InjectedFault { mode, call_number }).await;
        }
        self.collect_remaining().await;
    }

    async fn start_scenario(&mut self, fault: InjectedFault) {
        if self.scenarios.len() >= MAX_PARALLEL_SCENARIOS {
            self.collect_next().await;
        }
        let scenario = self.scenarios.spawn_local(run_scenario(fault));
        self.faults_by_task.insert(scenario.id(), fault);
    }

    async fn collect_remaining(&mut self) {
        while !self.scenarios.is_empty() {
            self.collect_next().await;
        }
    }

    async fn collect_next(&mut self) {
        let Some(scenario) = self.scenarios.join_next_with_id().await else { return };
        let fault_of_task = |id| self.faults_by_task.get(&id).copied().unwrap();
        let (fault, ScenarioResult { tally, outcomes }) = match scenario {
            Ok((id, result)) => (fault_of_task(id), result),
            Err(error) => {
                let fault = fault_of_task(error.id());
                println!("did not hold: {fault:?}");
                return self.failures.push((fault, error.to_string()));
            }
        };
        println!("{} of {}: {}", fault.call_number, tally.counted_calls, tally.first_affected_call);
        self.affected_scenario_count += u64::from(tally.affected_calls > 0);
        self.unreached_point_count += usize::from(tally.affected_calls == 0);
        outcomes
            .into_iter()
            .for_each(|outcome| *self.outcome_counts.entry(outcome).or_default() += 1);
    }
}

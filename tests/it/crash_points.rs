//! Crash points: for every k, the k-th write, file, spawn or packet fails, or is the last that its
//! process does. The next start knows everything that was told, and settles it.
//!
//! A sample of the points is tried, drawn by a seed that is printed; `ALGONIUS_CRASH_SEED` draws
//! the same. `ALGONIUS_CRASH_POINTS=all` tries every point, and a word of the modes below, as
//! `die` or `file`, those of such modes.

mod scenario;

use std::collections::{BTreeMap, HashMap};

use tokio::task::{Id, JoinSet, LocalSet};

use crate::harness::fault_injection::{Fault, FaultMode};
use scenario::{ScenarioResult, run_scenario};

/// Scenarios at a time.
const PARALLEL_SCENARIOS: usize = 4;
/// Points of each mode in a sample.
const SAMPLE_POINTS: u64 = 3;

const fn mode(process: &'static str, calls: &'static str, effect: &'static str) -> FaultMode {
    FaultMode { process, calls, effect }
}

fn env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::test]
async fn every_message_ends_once_whichever_write_fails() {
    // Every accepted message ends once, whichever system call of the service fails, on a full
    // disk or a broken one
    explore(&[
        mode("serve", "write", "once:28"),
        mode("serve", "write", "once:5"),
        mode("serve", "write", "on:28"),
        mode("serve", "file", "once:28"),
    ])
    .await;
}

#[tokio::test]
async fn every_message_ends_once_wherever_the_service_dies() {
    let all = "write,file,spawn,send";
    // Every accepted message ends once, whichever system call is the last that the service
    // completes, or half completes
    explore(&[mode("serve", all, "die"), mode("serve", all, "tear")]).await;
}

#[tokio::test]
async fn every_message_ends_once_whichever_spawn_fails() {
    // Every accepted message ends once if processes, descriptors or packet buffers are short
    explore(&[
        mode("serve", "spawn", "once:24"),
        mode("serve", "send", "once:105"),
        mode("warden", "spawn", "once:11"),
        mode("warden", "send", "once:105"),
        mode("warden", "write,file", "once:28"),
    ])
    .await;
}

#[tokio::test]
async fn every_message_ends_once_wherever_the_warden_dies() {
    let all = "write,file,spawn,send";
    // Every accepted message ends once, whichever system call is the last that the warden
    // completes
    explore(&[mode("warden", all, "die"), mode("warden", all, "tear")]).await;
}

/// Tries points of each mode, so many at a time.
async fn explore(modes: &[FaultMode]) {
    LocalSet::new().run_until(explore_locally(modes)).await;
}

async fn explore_locally(modes: &[FaultMode]) {
    for &mode in modes {
        let baseline = run_scenario(Fault { mode, call_number: u64::MAX }).await;
        let (counted, affected) = (baseline.tally.counted, baseline.tally.affected);
        assert!(counted > 0 && affected == 0, "{mode:?}: {:?}", baseline.tally);
        let mut results = ModeResults::default();
        match env_variable("ALGONIUS_CRASH_POINTS").as_deref() {
            Some("all") => results.all(mode).await,
            Some(word) if word == mode.effect || word == mode.calls => results.all(mode).await,
            _ => results.sample(mode, counted).await,
        }
        println!("{mode:?}: {counted} points, struck {}: {:?}", results.affected, results.outcomes);
        assert!(results.faults.is_empty(), "it did not hold: {:#?}", results.faults);
        assert!(results.affected > 0, "{mode:?}: nothing was struck");
    }
}

/// What came of the scenarios of one mode.
#[derive(Default)]
struct ModeResults {
    affected: u64,
    outcomes: BTreeMap<String, u64>,
    /// What did not hold, and where.
    faults: Vec<(Fault, String)>,
    scenarios: JoinSet<ScenarioResult>,
    points: HashMap<Id, Fault>,
    /// How many points there were not.
    beyond: usize,
}

impl ModeResults {
    async fn all(&mut self, mode: FaultMode) {
        let mut at = 1;
        while self.beyond < PARALLEL_SCENARIOS {
            self.start_scenario(Fault { mode, call_number: at }).await;
            at += 1;
        }
        self.finish().await;
    }

    async fn sample(&mut self, mode: FaultMode, counted: u64) {
        let random_seed = uuid::Uuid::new_v4().as_u64_pair().0 >> 32;
        let seed =
            env_variable("ALGONIUS_CRASH_SEED").map_or(random_seed, |seed| seed.parse().unwrap());
        println!("ALGONIUS_CRASH_SEED={seed}");
        let stride = counted.div_ceil(SAMPLE_POINTS).max(1);
        let first = seed % stride + 1;
        for at in (first..=counted).step_by(usize::try_from(stride).unwrap()) {
            self.start_scenario(Fault { mode, call_number: at }).await;
        }
        self.finish().await;
    }

    async fn start_scenario(&mut self, fault: Fault) {
        if self.scenarios.len() >= PARALLEL_SCENARIOS {
            self.collect_next().await;
        }
        let scenario = self.scenarios.spawn_local(run_scenario(fault));
        self.points.insert(scenario.id(), fault);
    }

    async fn finish(&mut self) {
        while !self.scenarios.is_empty() {
            self.collect_next().await;
        }
    }

    async fn collect_next(&mut self) {
        let Some(scenario) = self.scenarios.join_next_with_id().await else { return };
        let point = |id| self.points.get(&id).copied().unwrap();
        let (fault, ScenarioResult { tally, outcomes }) = match scenario {
            Ok((id, result)) => (point(id), result),
            Err(error) => {
                let fault = point(error.id());
                println!("did not hold: {fault:?}");
                return self.faults.push((fault, error.to_string()));
            }
        };
        println!("{} of {}: {}", fault.call_number, tally.counted, tally.call);
        self.affected += u64::from(tally.affected > 0);
        self.beyond += usize::from(tally.affected == 0);
        outcomes.into_iter().for_each(|outcome| *self.outcomes.entry(outcome).or_default() += 1);
    }
}

//! The service, its process holder, or both are killed in the middle of a team's run. The file that the members write
//! judges.

use std::collections::BTreeMap;
use std::time::Duration;

use super::seeded_rng::rng_and_rounds_or_default;
use crate::harness::client::task_state;
use crate::harness::processes::kill9;
use crate::harness::{ServiceProcess, Setup};

/// Three members, each of which writes its name and its input to a file, and a team of them.
const TEAM: &str = r#"
[agents.one]
command = "sh"
args = ["-c", 'text=$(cat); echo "one $text" >> HERE/witnessed; sleep 0.1; echo "$text"']
sandbox.writable = ["HERE"]
[agents.two]
command = "sh"
args = ["-c", 'text=$(cat); echo "two $text" >> HERE/witnessed; sleep 0.1; echo "$text"']
sandbox.writable = ["HERE"]
[agents.three]
command = "sh"
args = ["-c", 'text=$(cat); echo "three $text" >> HERE/witnessed; sleep 0.1; echo "$text"']
sandbox.writable = ["HERE"]
[agents.crew]
kind = "team"
team.steps = ["one", "two", "three"]
"#;
/// Members in the order of their steps.
const MEMBERS: [&str; 3] = ["one", "two", "three"];
/// Latest moment of a kill, in milliseconds after the request: a run takes about 400 ms.
const MAX_KILL_DELAY_MS: u64 = 500;

/// Processes that a kill ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Service,
    Holder,
    Both,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_a_random_moment_repeats_and_loses_no_hop() {
    let (mut rng, rounds) = rng_and_rounds_or_default(45);
    let kill_count = rounds / 5;
    let mut service = Setup::new(TEAM).start().await;
    let mut outcome_counts: BTreeMap<(Victim, String), u32> = BTreeMap::new();
    for number in 0..kill_count {
        let victims = [Victim::Service, Victim::Holder, Victim::Both];
        let victim = victims[usize::try_from(number % 3).unwrap()];
        let text = format!("run-{number}");
        let run_id = service.start_task("crew", &text).await;
        // The moment of the kill is the subject of the test.
        tokio::time::sleep(Duration::from_millis(rng.random_below(MAX_KILL_DELAY_MS))).await;
        kill_and_restart(victim, &mut service).await;
        let task = service.wait_for_task_end("crew", &run_id).await;
        let outcome = task_state(&task);
        // R-134: A run of a team has one outcome, and no step of it runs twice or is lost, if the service, the process holder or both are killed
        check_run(&service, (&run_id, &text), (victim, &outcome)).await;
        *outcome_counts.entry((victim, outcome)).or_default() += 1;
        if victim == Victim::Holder {
            // The next holder belongs to another thread, where the test does not look for it.
            service.kill9().await;
            service.start_again().await;
        }
    }
    println!("{outcome_counts:?}");
    let unfinished = service.get("/api/v1/executions?unfinished=true").await.json();
    assert_eq!(unfinished["executions"].as_array().unwrap().len(), 0, "{unfinished}");
}

async fn kill_and_restart(victim: Victim, service: &mut ServiceProcess) {
    match victim {
        Victim::Service => service.kill9().await,
        Victim::Holder => return kill9(service.holder_pid()),
        Victim::Both => service.kill9_with_holder().await,
    }
    service.start_again().await;
}

/// Checks a run that has ended: its members ran in order, each at most once, and all of them if the run completed.
async fn check_run(
    service: &ServiceProcess,
    (run, text): (&str, &str),
    (victim, outcome): (Victim, &str),
) {
    let log = service.setup.read_file("witnessed");
    let suffix = format!(" {text}");
    let member_names: Vec<_> = log.lines().filter_map(|line| line.strip_suffix(&suffix)).collect();
    let description = format!("{victim:?} killed, {outcome}: {member_names:?}");
    assert!(MEMBERS.starts_with(&member_names), "{description}");
    let tree = service.get(&format!("/api/v1/executions/{run}/tree")).await.json();
    let context = service.fetch_execution(run).await["contextId"].clone();
    match outcome {
        "completed" => assert_eq!(member_names, MEMBERS, "{description}"),
        "failed" => {
            assert_eq!(tree["error"]["code"], "member-failed", "{description}: {tree}");
            let hops = tree["hops"].as_array().unwrap();
            let last_code = &hops.last().unwrap()["code"];
            assert_eq!(last_code, "interrupted", "{description}: {tree}");
            // The program of the hop died with its holder. Without that it had not started when the service was killed.
            let is_last_hop_unstarted = member_names.len() + 1 == hops.len();
            let may_have_started = victim != Victim::Service && member_names.len() == hops.len();
            assert!(is_last_hop_unstarted || may_have_started, "{description}: {tree}");
        }
        _ => panic!("{description}: {tree}"),
    }
    let hops = tree["hops"].as_array().unwrap();
    for (number, hop) in (1..).zip(hops) {
        assert_eq!((&hop["hop"], &hop["stage"]), (&number.into(), &"ended".into()), "{tree}");
        assert!(hop["tree"]["outcome"].is_string(), "a hop outlived its run: {tree}");
    }
    let all_hops = service.get("/api/v1/executions?trigger=hop&limit=1000").await.json();
    let all_hops = all_hops["executions"].as_array().unwrap();
    let hops_of_run = all_hops.iter().filter(|hop| hop["contextId"] == context);
    assert_eq!(hops_of_run.count(), hops.len(), "{description}: {tree}");
}

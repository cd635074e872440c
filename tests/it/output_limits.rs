//! Agents that print without end: the ends are kept, and memory is not.

use std::fs;

use nix::unistd::Pid;

use crate::harness::client::task_outcome;
use crate::harness::{Service, fake_agent_config};

/// As a program with line ends, as one without, and on standard error.
fn agents() -> String {
    let config = r#"
[agents.words]
command = "sh"
args = ["-c", "yes 'to and fro' | tr '\\n' ' ' | head -c 200000000; echo; echo the end"]
max_output_bytes = 1_000_000
[agents.errors]
command = "sh"
args = ["-c", "FAKE flood 200000000 >&2; printf done"]
max_output_bytes = 1_000_000
"#;
    [&fake_agent_config("lines", "flood 200000000", ""), config].concat()
}

/// The most memory that the service had so far, in bytes.
fn peak_memory_bytes(service: &Service) -> u64 {
    let pid = Pid::from_raw(service.pid());
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_flood_of_200_megabytes_keeps_its_ends_and_little_memory() {
    let service = Service::start(&agents()).await;
    let limits = [("lines", 10 << 20), ("words", 1_000_000), ("errors", 1_000_000)];
    let initial_bytes = peak_memory_bytes(&service);
    for (agent, limit) in limits {
        let (state, answer) = task_outcome(&service.send(agent, "").await);
        assert_eq!(state, "completed", "{agent}");
        if agent == "errors" {
            assert_eq!(answer, "done");
            continue;
        }
        let (head, tail) = answer.split_once("\n[... ").unwrap();
        let (dropped, tail) = tail.split_once(" bytes were dropped ...]\n").unwrap();
        let dropped: usize = dropped.parse().unwrap();
        let expected_end = if agent == "words" { "\nthe end\n" } else { "xxx" };
        assert!(tail.ends_with(expected_end), "{agent}");
        let printed_bytes = 200_000_000 + if agent == "words" { "\nthe end\n".len() } else { 0 };
        assert_eq!(head.len() + dropped + tail.len(), printed_bytes, "{agent}");
        assert!(head.len() + tail.len() <= limit && head.len() > limit / 2, "{agent}");
    }
    let growth = peak_memory_bytes(&service) - initial_bytes;
    assert!(growth < 100 << 20, "{} MB more", growth >> 20);
}

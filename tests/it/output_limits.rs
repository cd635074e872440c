//! Agents that print without end: the ends are kept, and memory is not.

use std::fs;

use nix::unistd::Pid;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, fake_agent_config};

/// As a program with line ends, as one without, and on standard error.
fn flooding_agents_config() -> String {
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
fn peak_memory_bytes(service: &ServiceProcess) -> u64 {
    let pid = Pid::from_raw(service.pid());
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_flood_of_200_megabytes_keeps_its_ends_and_little_memory() {
    let service = ServiceProcess::start(&flooding_agents_config()).await;
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
        let (dropped_bytes, tail) = tail.split_once(" bytes were dropped ...]\n").unwrap();
        let dropped_bytes: usize = dropped_bytes.parse().unwrap();
        let expected_end = if agent == "words" { "\nthe end\n" } else { "xxx" };
        assert!(tail.ends_with(expected_end), "{agent}");
        let printed_bytes = 200_000_000 + if agent == "words" { "\nthe end\n".len() } else { 0 };
        assert_eq!(head.len() + dropped_bytes + tail.len(), printed_bytes, "{agent}");
        assert!(head.len() + tail.len() <= limit && head.len() > limit / 2, "{agent}");
    }
    let growth = peak_memory_bytes(&service) - initial_bytes;
    assert!(growth < 100 << 20, "{} MB more", growth >> 20);
}

#[tokio::test]
async fn the_last_lines_of_a_long_standard_error_are_shown() {
    let many_lines_agent = "[agents.loud]\ncommand = 'sh'\nargs = ['-c', 'FAKE flood 3000000 >&2; echo >&2; \
                 echo the real cause >&2; exit 3']\n";
    let one_line_agent = "[agents.line]\ncommand = 'sh'\nargs = ['-c', 'head -c 3000000 /dev/zero | tr \"\\0\" x >&2; \
                echo >&2; exit 3']\n";
    let service = ServiceProcess::start(&[many_lines_agent, one_line_agent].concat()).await;
    let send_output = service.run_command(&["send", "line", "x"], "").await;
    assert!(send_output.stderr.contains("standard error: xxx"), "{}", send_output.stderr.len());
    let send_output = service.run_command(&["send", "loud", "x"], "").await;
    assert!(
        send_output.stderr.contains("standard error: the real cause"),
        "{}",
        send_output.stderr
    );
    let id = send_output.stderr.split("algonius tasks show ").nth(1).unwrap().trim();
    let show_output = service.run_command(&["tasks", "show", id], "").await;
    assert!(show_output.stdout.ends_with("\nthe real cause\n"), "{}", show_output.stdout.len());
    assert!(
        show_output.stderr.contains("only the end of standard error is shown"),
        "{}",
        show_output.stderr
    );
    let watch_output = service.run_command(&["tasks", "watch", id], "").await;
    let expected_end =
        format!("standard error: the real cause\n  more: algonius tasks show {id}\n");
    assert!(watch_output.stderr.ends_with(&expected_end), "{}", watch_output.stderr.len());
}

#[tokio::test]
async fn a_turn_end_in_a_line_of_two_megabytes_is_found() {
    let agent = r#"
[agents.kept]
command = "sh"
args = ["-c", '''while read -r line; do
    printf '{"type":"text","text":"%s"}\n' "$line"
    printf '{"type":"status","text":"'; head -c 2000000 /dev/zero | tr '\0' x; printf '","end":true}\n'
done''']
mode = "interactive"
output = "events"
timeout = 60
[agents.kept.turn]
end_json = { end = true }
"#;
    let service = ServiceProcess::start(agent).await;
    for text in ["one", "two"] {
        assert_eq!(task_outcome(&service.send("kept", text).await), completed_outcome(text));
    }
}

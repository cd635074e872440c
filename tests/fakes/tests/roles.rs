//! Tests of the fake agent's roles, on which other tests rely.
#![expect(clippy::unwrap_used, reason = "a helper that cannot help fails the test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");

fn start_role(args: &[&str]) -> Child {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(FAKE_AGENT);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).spawn().unwrap()
}

fn run_with_input(args: &[&str], input: &str) -> Output {
    let mut child = start_role(args);
    let write_result = child.stdin.take().unwrap().write_all(input.as_bytes());
    assert!(write_result.is_ok() || args == ["no-stdin"]);
    child.wait_with_output().unwrap()
}

fn run_role(args: &[&str]) -> (Option<i32>, String) {
    let output = run_with_input(args, "");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn success_output(text: &str) -> (Option<i32>, String) {
    (Some(0), text.to_owned())
}

fn read_pid(child: &mut Child) -> i32 {
    let pipe = child.stdout.as_mut().unwrap();
    let mut line = String::new();
    BufReader::new(pipe).read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

/// Returns fields 3, 5 and 6 of the process's line: its state, group and session.
fn process_stat(pid: i32) -> (String, String, String) {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = line.rsplit_once(')').unwrap().1.to_owned();
    let field = |index: usize| rest.split_whitespace().nth(index).unwrap().to_owned();
    (field(0), field(2), field(3))
}

fn scratch_file(name: &str) -> PathBuf {
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    _ = fs::remove_file(&file);
    file
}

#[test]
fn the_fake_answers_as_its_role_requires() {
    assert_eq!(run_with_input(&["echo"], "hello\0ö").stdout, "hello\0ö".as_bytes());
    assert_eq!(run_role(&["sleep", "0.01", "late"]), success_output("late"));
    assert_eq!(
        run_role(&["args", "a b", "\"", "--"]),
        success_output("\"a b\"\n\"\\\"\"\n\"--\"\n")
    );
    assert_eq!(run_role(&["flood", "100000"]).1.len(), 100_000);
    assert_eq!(run_with_input(&["no-stdin"], &"x".repeat(10)).stdout, b"not read");
    assert!(run_role(&["tty"]).1.contains("terminal"));
    assert!(run_role(&["env"]).1.lines().is_sorted());
    assert!(Path::new(run_role(&["cwd"]).1.trim()).is_absolute());
    assert!(String::from_utf8(run_with_input(&["noisy"], "").stdout).is_err());
}

#[test]
fn the_fake_fails_as_its_role_requires() {
    let output = run_with_input(&["exit", "7", "sorry"], "");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(7), &b"sorry"[..]));
    assert_eq!(run_role(&["no such part"]).0, Some(64));
    assert_eq!(run_role(&["exit", "words"]).0, Some(70));
}

#[test]
fn events_are_lines_of_json() {
    let (_, text) = run_role(&["events", "a: b", "failed:transient:busy: 9", "unknown", "junk"]);
    let lines: Vec<_> = text.lines().collect();
    let parse_event = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
    assert_eq!(parse_event(lines[0]).unwrap()["text"], "a: b");
    assert_eq!(parse_event(lines[1]).unwrap()["message"], "busy: 9");
    assert_eq!(parse_event(lines[2]).unwrap()["type"], "of-a-later-release");
    assert_eq!(parse_event(lines[3]), None);
}

/// Returns the types of the events of the kit's agent at a turn.
fn kit_event_types(version: &str, message: &str, turn: &str) -> Vec<String> {
    let mut command = Command::new(FAKE_AGENT);
    command.args(["tck", version]).env("A2A_MESSAGE_ID", message).env("ALGONIUS_TURN", turn);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let events = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    events
        .map(|event| event.get("type").and_then(|kind| kind.as_str()).unwrap().to_owned())
        .collect()
}

#[test]
fn the_conformance_agent_obeys_the_message_id() {
    assert_eq!(kit_event_types("1.0", "tck-complete-task-7", "1"), ["status"]);
    assert_eq!(kit_event_types("1.0", "tck-artifact-file-url-7", "1"), ["artifact"]);
    assert_eq!(
        kit_event_types("1.0", "tck-stream-artifact-chunked-7", "1"),
        ["status", "artifact", "artifact"]
    );
    assert_eq!(kit_event_types("1.0", "tck-multi-turn-7", "1"), ["input_required"]);
    assert_eq!(kit_event_types("1.0", "tck-multi-turn-7", "2"), ["status"]);
    assert_eq!(kit_event_types("1.0", "tck-reject-task-7", "1"), ["rejected"]);
    assert_eq!(kit_event_types("1.0", "tck-auth-required-7", "1"), ["auth_required"]);
    assert_eq!(kit_event_types("1.0", "any", "1"), ["text"]);
    for turn in ["1", "2"] {
        assert_eq!(kit_event_types("0.3", "any", turn), ["status", "input_required"]);
    }
}

#[test]
fn a_flaky_agent_fails_as_often_as_configured() {
    let file = scratch_file("flaky");
    let run = || run_role(&["flaky", file.to_str().unwrap(), "2", "75"]);
    assert_eq!([run().0, run().0], [Some(75), Some(75)]);
    assert_eq!(run(), success_output("run 3"));
}

#[test]
fn a_run_is_logged_from_start_to_end() {
    let file = scratch_file("once");
    let output = run_with_input(&["once", file.to_str().unwrap()], "0.02\n");
    assert_eq!(output.stdout, b"done");
    let lines = fs::read_to_string(file).unwrap();
    let time = |line: &str| line.split(' ').nth(1).unwrap().parse::<u128>().unwrap();
    let (start, end) = lines.trim().split_once('\n').unwrap();
    assert!(start.starts_with("start ") && end.starts_with("end "));
    assert!(time(end) - time(start) >= 20_000_000);
}

#[test]
fn a_witness_reports_every_overlap_on_its_lock() {
    let (file, lock) = (scratch_file("witness"), scratch_file("witness-lock"));
    let args = ["witness", file.to_str().unwrap(), lock.to_str().unwrap()];
    for words in [vec!["start", "end"], vec!["start", "end", "start", "overlap", "end"]] {
        let output = run_with_input(&args, "0").stdout;
        assert_eq!(String::from_utf8(output).unwrap().lines().count(), 2000);
        let lines = fs::read_to_string(&file).unwrap();
        let first_words: Vec<_> =
            lines.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(first_words, words);
    }
    let daemon_pids = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        fs::read_link(process.path().join("fd/0")).is_ok_and(|input| input == lock)
    });
    let daemon_pids: Vec<i32> =
        daemon_pids.map(|process| process.file_name().to_str().unwrap().parse().unwrap()).collect();
    assert_eq!(daemon_pids.len(), 2);
    daemon_pids.iter().for_each(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).unwrap());
}

#[test]
fn a_stubborn_agent_and_its_child_outlive_sigterm() {
    let mut child = start_role(&["stubborn"]);
    let (leader, grandchild) = (i32::try_from(child.id()).unwrap(), read_pid(&mut child));
    killpg(Pid::from_raw(leader), Signal::SIGTERM).unwrap();
    let status_text = |pid| fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    for pid in [leader, grandchild] {
        let status = status_text(pid);
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        assert_eq!(mask >> (Signal::SIGTERM as u32 - 1) & 1, 1);
        assert_eq!(process_stat(pid).1, leader.to_string());
    }
    killpg(Pid::from_raw(leader), Signal::SIGKILL).unwrap();
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_daemon_stays_in_its_own_session() {
    let daemon = run_role(&["daemonize"]).1.trim().parse().unwrap();
    let (state, _, session) = process_stat(daemon);
    assert_eq!((state == "Z", session), (false, daemon.to_string()));
    kill(Pid::from_raw(daemon), Signal::SIGKILL).unwrap();
}

#[test]
fn a_held_pipe_stays_open_after_the_end() {
    let mut child = start_role(&["hold-pipe"]);
    assert!(child.wait().unwrap().success());
    let leader = Pid::from_raw(i32::try_from(child.id()).unwrap());
    killpg(leader, None).unwrap();
    let mut answer = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"held");
    killpg(leader, Signal::SIGKILL).unwrap();
}

#[test]
fn the_fake_is_found_next_to_a_running_test() {
    let program = algonius_fakes::fake_agent_path(&std::env::current_exe().unwrap());
    assert_eq!(program, Path::new(FAKE_AGENT));
}

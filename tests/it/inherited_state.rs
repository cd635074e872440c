//! The service is started by parents with unusual state: ignored and blocked signals, an open umask, descriptors that
//! nobody closed, and a standard error that nobody reads.

use std::fs;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{Setup, fake_agent_config};
use crate::read_only::skip_without_requirement;

/// Prints the state that an agent inherits.
const INHERITED_STATE_AGENT: &str = r#"
[agents.state]
command = "sh"
args = ["-c", "umask; grep -E 'Sig(Blk|Ign)' /proc/$$/status | cut -f2; ls /proc/self/fd | wc -l"]
"#;

/// The state that an agent has with any parent: umask, blocked and ignored signals, and four descriptors of `ls`, which
/// has a folder open beside the standard streams.
fn expected_state(umask: &str) -> String {
    format!("{umask}\n{0}\n{0}\n4\n", "0".repeat(16))
}

/// A parent that ignores signals, and starts the service by the fake launcher with these settings.
fn setup_with_launcher(ignored_signals: &str, settings: &[&str]) -> Setup {
    let fake_agent = algonius_fakes::fake_agent_path(&std::env::current_exe().unwrap());
    let script =
        format!("$SIG{{$_}} = 'IGNORE' for qw({ignored_signals}); exec {{ $ARGV[0] }} @ARGV");
    let launcher = ["perl", "-e", &script, fake_agent.to_str().unwrap(), "launch"];
    Setup::new(INHERITED_STATE_AGENT).with_launcher(&[&launcher[..], settings, &["--"]].concat())
}

#[tokio::test]
async fn state_of_the_parent_reaches_neither_service_nor_agents() {
    let settings = ["block=15", "block=2", "umask=0000", "descriptors=100"];
    let mut service = setup_with_launcher("CHLD USR2 XFSZ NUM40", &settings).start().await;
    let task = service.send("state", "go").await;
    assert_eq!(task_outcome(&task), completed_outcome(&expected_state("0022")));
    let stderr = service.stderr_text();
    for expected in ["SIGINT", "SIGUSR2", "SIGCHLD", "SIGTERM", "\"0000\""] {
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
    let holder_fds = fs::read_dir(format!("/proc/{}/fd", service.holder_pid())).unwrap();
    let is_dev_null = |path: &std::path::PathBuf| path == std::path::Path::new("/dev/null");
    let targets = holder_fds.flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
    assert!(targets.filter(is_dev_null).count() <= 3, "the holder keeps descriptors of the parent");
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
}

#[tokio::test]
async fn an_umask_loses_no_bit_that_closes_files_to_others() {
    for (inherited, expected) in
        [("0077", "0077"), ("0002", "0002"), ("0777", "0077"), ("0140", "0062")]
    {
        let service = setup_with_launcher("USR1", &[&format!("umask={inherited}")]).start().await;
        let task = service.send("state", "go").await;
        assert_eq!(
            task_outcome(&task),
            completed_outcome(&expected_state(expected)),
            "{inherited}"
        );
    }
}

/// Soft limits in the units of `ulimit`: open files, seconds of processor time, KiB of a file, KiB of stack.
const SOFT_LIMITS: [(&str, &str); 4] = [("n", "40"), ("t", "86400"), ("f", "100"), ("s", "300")];

#[tokio::test]
async fn soft_limits_of_the_parent_bind_only_the_agents() {
    let print_script: String =
        SOFT_LIMITS.map(|(option, _)| format!("ulimit -S{option}; ")).concat();
    let agents = format!("[agents.limits]\ncommand = 'bash'\nargs = ['-c', '{print_script}']\n");
    let set_script: String =
        SOFT_LIMITS.map(|(option, value)| format!("ulimit -S{option} {value} && ")).concat();
    let launcher = ["bash", "-c", &format!("{set_script}exec \"$0\" \"$@\"")];
    let service = Setup::new(&agents).with_launcher(&launcher).start().await;
    let expected: String = SOFT_LIMITS.map(|(_, value)| format!("{value}\n")).concat();
    for _ in 0..3 {
        let task = service.send("limits", "go").await;
        assert_eq!(task_outcome(&task), completed_outcome(&expected));
    }
    let limits = fs::read_to_string(format!("/proc/{}/limits", service.pid())).unwrap();
    let soft_limit = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(soft_limit("Max cpu time"), "unlimited");
    assert_eq!(soft_limit("Max file size"), "unlimited");
    assert_ne!(soft_limit("Max open files"), "40");
    assert_ne!(soft_limit("Max stack size"), "307200");
    let doctor_output = service.run_command(&["doctor"], "").await;
    assert!(!doctor_output.stdout.contains("the service may use only"), "{doctor_output:?}");
}

/// The kernel does not apply this limit to root.
#[tokio::test]
async fn the_limit_of_processes_binds_only_the_agents() {
    if skip_without_requirement("root") {
        return;
    }
    let agent = "[agents.limits]\ncommand = 'bash'\nargs = ['-c', 'ulimit -Su']\n";
    let script = "ulimit -Su 1500 && exec \"$0\" \"$@\"";
    let setup = Setup::new(agent).with_unprivileged_user();
    let mut setup = setup.with_launcher(&["bash", "-c", script]);
    setup.install_next_release(); // The user may have no right to enter the folder of the build.
    let service = setup.start().await;
    let task = service.send("limits", "go").await;
    assert_eq!(task_outcome(&task), completed_outcome("1500\n"));
    let limits = fs::read_to_string(format!("/proc/{}/limits", service.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max processes")).unwrap();
    assert_ne!(line.split_whitespace().nth(2), Some("1500"), "{line}");
}

#[tokio::test]
async fn small_hard_limits_are_reported() {
    let script = r#"ulimit -t 90000 && ulimit -f 1000000 && ulimit -n 900 && exec "$0" "$@""#;
    let setup = Setup::new(INHERITED_STATE_AGENT).with_launcher(&["bash", "-c", script]);
    let config = setup.write_config().display().to_string();
    let report = setup.run_command(&["doctor", &config], "").await.stdout;
    let service = setup.start().await;
    for (expected, remedy) in [
        ("90000 seconds of processor time", "LimitCPU in the unit"),
        ("1024000000 bytes of a file, such as the ledger", "LimitFSIZE in the unit"),
        ("900 open files", "LimitNOFILE in the unit"),
    ] {
        assert!(report.contains(expected) && report.contains(remedy), "{expected}: {report}");
        let stderr = service.stderr_text();
        assert!(stderr.contains(expected) && stderr.contains(remedy), "{expected}: {stderr}");
    }
}

/// Reads standard error up to the banner, and then no more while the service runs.
const BANNER_ONLY_READER_SCRIPT: &str = r#"exec "$0" "$@" 2> >(
    while IFS= read -r line; do
        printf '%s\n' "$line" >&2
        case $line in *'"text":"hello"}'*) break ;; esac
    done
    while kill -0 $$ 2>/dev/null; do sleep 0.2; done)"#;

#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let setup = Setup::new(&fake_agent_config("echo", "echo", "")).env("RUST_LOG", "trace");
    let mut service = setup.with_launcher(&["bash", "-c", BANNER_ONLY_READER_SCRIPT]).start().await;
    for number in 0..100 {
        let text = number.to_string();
        assert_eq!(task_outcome(&service.send("echo", &text).await), completed_outcome(&text));
    }
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
}

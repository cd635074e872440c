//! The service is started by parents with unusual state: ignored and blocked signals, an open umask, descriptors that
//! nobody closed, and a standard error that nobody reads.

use std::fs;

use crate::harness::client::{completed_with, task_outcome};
use crate::harness::{Setup, fake_agent_config};

/// Prints the state that an agent inherits.
const STATE_AGENT: &str = r#"
[agents.state]
command = "sh"
args = ["-c", "umask; grep -E 'Sig(Blk|Ign)' /proc/$$/status | cut -f2; ls /proc/self/fd | wc -l"]
"#;

/// The state that an agent has with any parent: umask, blocked and ignored signals, and four descriptors of `ls`, which
/// has a folder open beside the standard streams.
fn state_with_umask(umask: &str) -> String {
    format!("{umask}\n{0}\n{0}\n4\n", "0".repeat(16))
}

/// A parent that ignores signals, and starts the service by the fake launcher with these settings.
fn launched_with(ignored: &str, settings: &[&str]) -> Setup {
    let fake_agent = algonius_fakes::fake_agent_path(&std::env::current_exe().unwrap());
    let script = format!("$SIG{{$_}} = 'IGNORE' for qw({ignored}); exec {{ $ARGV[0] }} @ARGV");
    let launcher = ["perl", "-e", &script, fake_agent.to_str().unwrap(), "launch"];
    Setup::new(STATE_AGENT).launched_by(&[&launcher[..], settings, &["--"]].concat())
}

#[tokio::test]
async fn state_of_the_parent_reaches_neither_service_nor_agents() {
    let settings = ["block=15", "block=2", "umask=0000", "descriptors=100"];
    let mut service = launched_with("CHLD USR2 XFSZ NUM40", &settings).start().await;
    let task = service.send("state", "go").await;
    assert_eq!(task_outcome(&task), completed_with(&state_with_umask("0022")));
    let stderr = service.stderr_text();
    for expected in ["SIGINT", "SIGUSR2", "SIGCHLD", "SIGTERM", "\"0000\""] {
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
    let holder_fds = fs::read_dir(format!("/proc/{}/fd", service.warden_pid())).unwrap();
    let is_inherited = |path: &std::path::PathBuf| path == std::path::Path::new("/dev/null");
    let targets = holder_fds.flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
    assert!(
        targets.filter(is_inherited).count() <= 3,
        "the holder keeps descriptors of the parent"
    );
    service.sigterm();
    assert!(service.wait_for_exit().await.success());
}

#[tokio::test]
async fn an_umask_loses_no_bit_that_closes_files_to_others() {
    for (inherited, expected) in
        [("0077", "0077"), ("0002", "0002"), ("0777", "0077"), ("0140", "0062")]
    {
        let service = launched_with("USR1", &[&format!("umask={inherited}")]).start().await;
        let task = service.send("state", "go").await;
        assert_eq!(task_outcome(&task), completed_with(&state_with_umask(expected)), "{inherited}");
    }
}

/// Reads standard error up to the banner, and then no more while the service runs.
const READER: &str = r#"exec "$0" "$@" 2> >(
    while IFS= read -r line; do
        printf '%s\n' "$line" >&2
        case $line in *'"text":"hello"}'*) break ;; esac
    done
    while kill -0 $$ 2>/dev/null; do sleep 0.2; done)"#;

#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let setup = Setup::new(&fake_agent_config("echo", "echo", "")).env("RUST_LOG", "trace");
    let mut service = setup.launched_by(&["bash", "-c", READER]).start().await;
    for number in 0..100 {
        let text = number.to_string();
        assert_eq!(task_outcome(&service.send("echo", &text).await), completed_with(&text));
    }
    service.sigterm();
    assert!(service.wait_for_exit().await.success());
}

//! An agent that bubblewrap holds: what it sees and changes, and that it ends, is killed and is taken
//! up again as any other.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome, task_state};
use crate::harness::processes::{child_pids, pids_with_env};
use crate::harness::{ServiceProcess, Setup, gated_agent_config, message_params, poll_until};
use crate::read_only::{
    WITHOUT_LANDLOCK_SCRIPT, as_unprivileged_owner, setup_with_intruder, skip_without_requirement,
    start_and_expect_no_changes,
};

/// What is wrapped, and may write its log.
const BUBBLEWRAP_SETTING: &str = "sandbox.isolation = 'bubblewrap'";

/// The processes of an execution.
fn execution_pids(id: &str) -> Vec<i32> {
    pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"))
}

/// An agent of one script, with further settings.
fn script_agent_config(settings: &str, script: &str) -> String {
    format!("[agents.one]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\n{settings}\n")
}

async fn expect_isolation(service: &ServiceProcess, agent: &str, isolation: &str) {
    let status = service.fetch_agent_status(agent).await;
    assert_eq!(
        (&status["enforcement"], &status["isolation"]),
        (&"enforced".into(), &isolation.into())
    );
}

/// It is tried at the start whether bubblewrap works here.
#[tokio::test]
async fn a_service_starts_with_its_warden_as_its_only_child() {
    if !skip_without_requirement("bubblewrap") {
        let service = ServiceProcess::start(&script_agent_config(BUBBLEWRAP_SETTING, "cat")).await;
        assert_eq!(child_pids(service.pid()), [service.holder_pid()]);
    }
}

#[tokio::test]
async fn a_wrapped_script_without_its_interpreter_is_explained() {
    if !skip_without_requirement("bubblewrap") {
        let agents = format!(
            "[agents.bare]\ncommand = 'HERE/bare'\n{BUBBLEWRAP_SETTING}\n\
             [agents.node]\ncommand = 'HERE/node-tool'\n{BUBBLEWRAP_SETTING}\n"
        );
        let setup = Setup::new(&agents)
            .with_executable("bare", "#!/bin/sh\r\necho hi\r\n")
            .with_executable("node-tool", "#!/usr/bin/env no-such-node\n");
        let service = setup.start().await;
        for (agent, expected) in [
            (
                "bare",
                "its first line ends in a carriage return, so that its interpreter `sh` does not exist",
            ),
            ("node", "its interpreter `no-such-node` does not exist"),
        ] {
            let task = service.send(agent, "x").await;
            assert_eq!(task_outcome(&task), failed_outcome("agent-not-started"));
            let message = &task["status"]["message"]["parts"][0]["text"];
            assert_eq!(*message, format!("the program cannot be executed: {expected}"));
        }
    }
}

#[tokio::test]
async fn a_wrapped_read_only_agent_cannot_change_its_workspace() {
    if !skip_without_requirement("bubblewrap") {
        // R-72: A read-only agent cannot change its workspace, as root and as a plain user
        expect_isolation(
            &start_and_expect_no_changes(setup_with_intruder(BUBBLEWRAP_SETTING)).await,
            "reader",
            "bubblewrap",
        )
        .await;
    }
}

#[tokio::test]
async fn an_unprivileged_service_wraps_read_only_agents_too() {
    if !skip_without_requirement("bubblewrap") && !skip_without_requirement("root") {
        let setup = as_unprivileged_owner(setup_with_intruder(BUBBLEWRAP_SETTING));
        // R-72: A read-only agent cannot change its workspace, as root and as a plain user
        let service = start_and_expect_no_changes(setup).await;
        expect_isolation(&service, "reader", "bubblewrap").await;
    }
}

#[tokio::test]
async fn without_landlock_bubblewrap_is_used_by_default() {
    if !skip_without_requirement("bubblewrap") {
        let setup = setup_with_intruder("").with_launcher(&["perl", "-e", WITHOUT_LANDLOCK_SCRIPT]);
        // R-73: If the kernel has no Landlock, bubblewrap confines read-only agents by default
        let service = start_and_expect_no_changes(setup).await;
        expect_isolation(&service, "reader", "bubblewrap").await;
        let status = service.run_command(&["status"], "").await.stdout;
        assert!(status.contains("wrapped by bubblewrap"), "{status}");
    }
}

/// Looks for what is hidden, tries what is refused, and does what is not.
const PROBE_SCRIPT: &str = r#"#!/bin/sh
cd "$PLACE/site" || exit 9
cat "$PLACE/secrets/key" .env; ls -A "$PLACE/secrets"
ls "$PLACE/state/algonius"; ls "$PLACE/run/algonius" | grep -v "$A2A_TASK_ID"
echo x > x
for try in 'echo x > .git/hooks/pre-commit' 'rm -r .git/hooks' 'rmdir .git/hooks' 'chmod 700 .git/hooks' \
    'mv .git/hooks .git/h' 'mv -T .git g' 'mv -T ../site ../other' 'echo x > .git/config' \
    'rm .git/config' 'mv x .git/config' 'ln -f x .git/config' 'ln .git/config y && echo x > y' \
    'echo x > /proc/self/cwd/.git/config' 'umount .git/hooks' 'mount --bind /tmp .git' \
    'unshare -Urm umount .git/hooks' 'unshare -Urm umount "$PLACE/secrets"' \
    'echo x > "$PLACE/secrets/new"' 'kill -0 $SERVICE'; do
  (eval "$try") 2>/dev/null >/dev/null && echo "worked: $try"
done
echo ok > .git/HEAD && echo ok > file && mv file moved && echo ok > ../beside && echo fine
"#;

/// An agent that may change everything but some.
fn probe_setup() -> Setup {
    let agent = "[agents.one]\ncommand = 'HERE/curious'\naccess = 'read-write'\n\
         working_dir = 'HERE/site'\nenv.PLACE = 'HERE'\n\
         [agents.one.sandbox]\nhidden = ['HERE/secrets', 'HERE/site/.env']\n\
         protected = ['.git/hooks', '.git/config']\n";
    let agent =
        agent.replace("env.PLACE", &format!("env.SERVICE = '{}'\nenv.PLACE", std::process::id()));
    let setup = Setup::new(&agent).with_executable("curious", PROBE_SCRIPT);
    for folder in ["secrets", "site/.git/hooks"] {
        fs::create_dir_all(setup.test_folder().join(folder)).unwrap();
    }
    for file in ["secrets/key", "site/.env", "site/.git/config"] {
        fs::write(setup.test_folder().join(file), "as it was").unwrap();
    }
    setup
}

async fn expect_only_unprotected_access(setup: Setup) {
    let service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "go").await), completed_outcome("fine\n"));
    let read_file = |name| service.setup.read_file(name);
    assert_eq!(["secrets/key", "site/.env", "site/.git/config"].map(read_file), ["as it was"; 3]);
    assert_eq!(["site/.git/HEAD", "site/moved", "beside"].map(read_file), ["ok\n"; 3]);
    assert_eq!(
        fs::read_dir(service.setup.test_folder().join("site/.git/hooks")).unwrap().count(),
        0
    );
    expect_isolation(&service, "one", "bubblewrap").await;
}

#[tokio::test]
async fn hidden_and_protected_paths_hold_in_a_wrapped_agent() {
    if !skip_without_requirement("bubblewrap") {
        // R-74: Hidden paths are empty, protected paths can be neither changed nor moved, and the
        // ledger is invisible
        expect_only_unprotected_access(probe_setup()).await;
    }
}

#[tokio::test]
async fn an_unprivileged_service_hides_and_protects_paths_too() {
    if !skip_without_requirement("bubblewrap") && !skip_without_requirement("root") {
        let setup = probe_setup();
        let chown_status =
            Command::new("chown").args(["-R", "65532:65532"]).arg(setup.test_folder()).status();
        assert!(chown_status.unwrap().success());
        expect_only_unprotected_access(setup.with_unprivileged_user()).await;
    }
}

/// The service has the rights that its agent lost, and lends them to nobody.
#[tokio::test]
async fn hidden_files_are_not_delivered_by_artifact_events() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let agent = "[agents.one]\ncommand = 'HERE/teller'\noutput = 'events'\nworking_dir = 'HERE'\n\
                 sandbox.hidden = ['HERE/.env']\n";
    let script = r#"#!/bin/sh
for path in .env state/algonius/token run/algonius/other seen; do
  echo "{\"type\":\"artifact\",\"file\":{\"path\":\"$path\"}}"
done
"#;
    let setup = Setup::new(agent).with_executable("teller", script);
    for (file, text) in [(".env", "secret"), ("seen", "seen")] {
        fs::write(setup.test_folder().join(file), text).unwrap();
    }
    let service = setup.start().await;
    fs::write(service.setup.test_folder().join("run/algonius/other"), "of another").unwrap();
    let task = service.send("one", "go").await;
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!((task_state(&task).as_str(), artifacts.len()), ("failed", 1), "{task}");
    // R-75: The service does not deliver hidden files or the ledger that an agent names in its
    // events
    assert_eq!(artifacts[0]["parts"][0]["file"]["name"], "seen");
}

#[tokio::test]
async fn a_missing_or_replaceable_protected_path_stops_the_start() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let service = probe_setup().start().await;
    let hooks = service.setup.test_folder().join("site/.git/hooks");
    fs::remove_dir(&hooks).unwrap();
    // R-77: A protected path that is missing or replaceable stops the start of the program
    assert_eq!(task_outcome(&service.send("one", "go").await), failed_outcome("agent-not-started"));
    assert!(!hooks.exists() && !service.setup.test_folder().join("beside").exists());
    symlink("../../elsewhere", &hooks).unwrap();
    fs::create_dir(service.setup.test_folder().join("elsewhere")).unwrap();
    assert_eq!(task_outcome(&service.send("one", "go").await), failed_outcome("agent-not-started"));
    assert!(!service.setup.test_folder().join("beside").exists());
}

/// Calls by TCP and by UDP.
const NETWORK_CLIENT_SCRIPT: &str = r#"#!/usr/bin/perl
use IO::Socket::INET;
my $udp = IO::Socket::INET->new(Proto => 'udp', PeerAddr => "127.0.0.1:$ENV{PORT}");
$udp && $udp->send('heard') and print "sent\n";
IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ENV{PORT}") and print "connected\n";
"#;

#[tokio::test]
async fn without_network_neither_tcp_nor_udp_works() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let udp_socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    udp_socket.set_nonblocking(true).unwrap();
    let agent = |id, network| {
        format!(
            "[agents.{id}]\ncommand = 'HERE/caller'\nenv.PORT = '{port}'\n\
             sandbox = {{ isolation = 'bubblewrap', network = {network} }}\n"
        )
    };
    let setup = Setup::new(&[agent("open", true), agent("shut", false)].concat());
    let service = setup.with_executable("caller", NETWORK_CLIENT_SCRIPT).start().await;
    let answer = task_outcome(&service.send("shut", "go").await).1;
    // R-78: Without network, neither TCP nor UDP reaches a host
    assert!(!answer.contains("connected"), "{answer}");
    assert!(udp_socket.recv(&mut [0; 9]).is_err(), "it was heard");
    assert_eq!(
        task_outcome(&service.send("open", "go").await),
        completed_outcome("sent\nconnected\n")
    );
    assert_eq!(udp_socket.recv(&mut [0; 9]).unwrap(), 5);
}

#[tokio::test]
async fn output_and_exit_code_pass_through_the_wrapper() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let script = "echo $A2A_TASK_ID $ALGONIUS_ATTEMPT; cat; echo oops >&2; exit 3";
    let settings = format!("{BUBBLEWRAP_SETTING}\nsuccess.exit_codes = [3]");
    let service = ServiceProcess::start(&script_agent_config(&settings, script)).await;
    let task = service.send("one", "and what was asked").await;
    let id = task["id"].as_str().unwrap();
    assert_eq!(task_outcome(&task), completed_outcome(&format!("{id} 1\nand what was asked")));
    let record = service.fetch_execution(id).await;
    assert_eq!((&record["exitCode"], &record["stderr"]), (&3.into(), &"oops\n".into()));
    assert!(execution_pids(id).is_empty());
}

#[tokio::test]
async fn a_wrapped_program_handles_sigterm() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let script = "trap \"echo farewell >&2; exit 3\" TERM; echo start >> HERE/log\n\
                while :; do sleep 0.05; done";
    let settings = format!("{BUBBLEWRAP_SETTING}\nsandbox.writable = ['HERE']\nstop_grace = 20");
    let service = ServiceProcess::start(&script_agent_config(&settings, script)).await;
    let id = service.start_task("one", "x").await;
    service.setup.wait_for_file_text("log", "start\n").await;
    assert_eq!(task_state(&service.cancel("one", &id).await), "canceled");
    let record = service.fetch_execution(&id).await;
    let stderr = record["stderr"].as_str().unwrap();
    // R-79: A wrapped program that receives SIGTERM can still write within its grace period
    assert!(record["exitCode"] == 3 && stderr.ends_with("farewell\n"), "{record}");
    assert!(execution_pids(&id).is_empty());
}

#[tokio::test]
async fn a_wrapped_program_that_ignores_its_stop_is_killed() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let script =
        "trap \"\" TERM; setsid sleep 600 & echo start >> HERE/log; while :; do sleep 1; done";
    let settings = format!("{BUBBLEWRAP_SETTING}\nsandbox.writable = ['HERE']\nstop_grace = 0.1");
    let service = ServiceProcess::start(&script_agent_config(&settings, script)).await;
    let id = service.start_task("one", "x").await;
    service.setup.wait_for_file_text("log", "start\n").await;
    assert!(
        execution_pids(&id).len() >= 4,
        "the wrapper, its first process, the program and its child"
    );
    assert_eq!(task_state(&service.cancel("one", &id).await), "canceled");
    // R-80: A wrapped program is killed after its grace period with all that it started, in any
    // session
    assert!(execution_pids(&id).is_empty());
}

#[tokio::test]
async fn a_wrapped_program_survives_a_kill_of_the_service() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let mut service = ServiceProcess::start(&gated_agent_config("one", BUBBLEWRAP_SETTING)).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go");
    let task = service.wait_for_task_end("one", &id).await;
    // R-81: A wrapped program continues when the service is killed, and is resumed
    assert_eq!(task_outcome(&task), completed_outcome("ann\n"));
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn usage_of_a_wrapped_program_is_measured_from_outside() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let script = "i=0; until [ -e HERE/go ]; do i=$((i+1)); done; echo over";
    let agent = script_agent_config(&format!("{BUBBLEWRAP_SETTING}\nheartbeat = 0.1"), script);
    let service = Setup::new(&format!("heartbeat_min = 0.01\n{agent}")).start().await;
    let id = service.start_task("one", "x").await;
    // R-76: The service measures the usage of a wrapped program from outside
    poll_until("a reading of the program itself", async || {
        let usage = service.fetch_agent_status("one").await.pointer("/running/0/usage").cloned()?;
        let is_complete = usage["processes"].as_u64()? >= 3 && usage["cpuMs"].as_u64()? >= 100;
        is_complete.then_some(())
    })
    .await;
    service.setup.open_gate("go");
    let task = service.wait_for_task_end("one", &id).await;
    assert_eq!(task_outcome(&task), completed_outcome("over\n"));
    let record = service.fetch_execution(&id).await.to_string();
    let has_usage = record.contains("\"spent\"") || record.contains("resource-usage");
    assert!(!has_usage, "a wrapper does not know it: {record}");
}

#[tokio::test]
async fn a_wrapped_program_ends_with_its_warden() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let script = "setsid sleep 600 & echo start >> HERE/log; sleep 600";
    let settings = format!("{BUBBLEWRAP_SETTING}\nsandbox.writable = ['HERE']");
    let mut service = ServiceProcess::start(&script_agent_config(&settings, script)).await;
    let id = service.start_task("one", "x").await;
    service.setup.wait_for_file_text("log", "start\n").await;
    service.kill9_with_holder().await;
    // R-82: A wrapped program ends with its warden, even if no service returns
    poll_until("the end of all", async || execution_pids(&id).is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_failed_start_in_the_wrapper_is_reported_as_not_started() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let agent = format!("[agents.one]\ncommand = 'HERE/tool'\n{BUBBLEWRAP_SETTING}\n");
    let setup = Setup::new(&agent).with_executable("tool", "#!/nowhere/interpreter\n");
    let service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "x").await), failed_outcome("agent-not-started"));
    fs::remove_file(service.setup.test_folder().join("tool")).unwrap();
    // The attempt fails, or the request is refused if the service has already noticed the missing program.
    let response = service.call("one", "message/send", &message_params("x")).await.body;
    assert!(response.contains("agent-unavailable"), "{response}");
}

#[tokio::test]
async fn agents_that_need_a_missing_bubblewrap_stop_the_start() {
    for settings in
        [BUBBLEWRAP_SETTING, "sandbox.hidden = ['HERE/home']", "sandbox.protected = ['kept']"]
    {
        let setup = setup_with_intruder(settings).without_bubblewrap();
        let config = setup.write_config().display().to_string();
        let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
        let output = setup.run_command(&args, "").await;
        // R-83: If bubblewrap does not work, the service does not start with agents that need it
        assert_eq!(output.exit_code, Some(1), "{output:?}");
        assert!(output.stderr.contains("bubblewrap unusable"), "{output:?}");
        let report = setup.run_command(&["doctor", &config], "").await;
        let finding = report.stdout.lines().find(|line| line.contains("agent reader"));
        assert!(report.exit_code == Some(1) && finding.unwrap().starts_with("BAD"), "{report:?}");
    }
}

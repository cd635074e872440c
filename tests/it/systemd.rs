//! The service under systemd: what it tells it, and what the command line has it do.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use algonius_skips::{skip, skip_without};
use tokio::net::UnixDatagram as Socket;

use crate::harness::processes::{holder_pids, is_alive};
use crate::harness::{ServiceClient, Setup, gated_agent_config, poll_until, within_deadline};

const ENV_AGENT: &str = "[agents.env]\ncommand = 'env'\n";

/// A socket like that of systemd, and a setup whose service is told of it.
fn setup_with_notify_socket(agents: &str) -> (Socket, Setup) {
    let setup = Setup::new(agents);
    let socket_path = setup.test_folder().join("notify");
    let socket = UnixDatagram::bind(&socket_path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let setup = setup.env("NOTIFY_SOCKET", socket_path.to_str().unwrap());
    (Socket::from_std(socket).unwrap(), setup)
}

async fn receive_notification(socket: &Socket) -> String {
    let mut bytes = [0; 4096];
    let length = within_deadline("a word to systemd", socket.recv(&mut bytes)).await.unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[tokio::test]
async fn systemd_is_notified_of_readiness_and_of_the_drain() {
    let agents = gated_agent_config("one", "access = 'read-write'");
    let (socket, setup) = setup_with_notify_socket(&agents);
    let ready_file = setup.test_folder().join("word");
    // Heard by a task of its own, which asks at the very moment that it hears.
    let notification_task = tokio::spawn(async move {
        let ready_message = receive_notification(&socket).await;
        let address =
            ready_message.split("http://").nth(1).and_then(|rest| rest.lines().next()).unwrap();
        let client = ServiceClient { address: address.parse().unwrap(), token: "none".to_owned() };
        let health = client.get("/health").await;
        fs::write(ready_file, &ready_message).unwrap();
        (socket, ready_message, health.status)
    });
    let mut service = setup.start().await;
    let (socket, ready_message, health_status) =
        within_deadline("READY", notification_task).await.unwrap();
    assert!(ready_message.starts_with("READY=1\n"), "{ready_message}");
    assert_eq!(health_status, 200);
    service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_sigterm();
    // R-59: The service notifies systemd when it is ready and when it drains
    assert!(receive_notification(&socket).await.starts_with("STOPPING=1\n"));
    assert!(!service.has_exited(), "what runs may finish first");
    service.setup.open_gate("go");
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
}

#[tokio::test]
async fn the_notify_socket_reaches_neither_agent_nor_warden() {
    let (socket, setup) = setup_with_notify_socket(ENV_AGENT);
    let service = setup.start().await;
    assert!(receive_notification(&socket).await.starts_with("READY=1\n"));
    let output = service.run_command(&["send", "env", "x"], "").await.stdout;
    // R-60: The notify socket of systemd reaches neither an agent nor the warden
    assert!(output.contains("A2A_TASK_ID=") && !output.contains("NOTIFY_SOCKET"), "{output}");
    let holder_pid = holder_pids(service.pid()).pop().unwrap();
    match fs::read(format!("/proc/{holder_pid}/environ")) {
        Ok(environment) => assert_eq!(String::from_utf8_lossy(&environment), ""),
        Err(_) => skip("only root sees the environment of a warden"),
    }
}

#[tokio::test]
async fn a_missing_notify_socket_is_tolerated() {
    let setup = Setup::new(ENV_AGENT).env("NOTIFY_SOCKET", "/nowhere/at/all");
    let service = setup.start().await;
    let is_warning_logged =
        async || service.stderr_text().contains("failed to notify systemd").then_some(());
    poll_until("a word about it", is_warning_logged).await;
    assert_eq!(service.run_command(&["send", "env", "x"], "").await.exit_code, Some(0));
}

/// Notes what it is asked for, and answers as systemd does where the unit is there.
const SYSTEMCTL_SCRIPT: &str = r#"#!/bin/sh
echo "$*" >> HERE/asked
case "$*" in
*show*) printf 'ActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=42\nStatusText=serves\n' ;;
*broken*) echo 'no such thing' >&2; exit 1 ;;
esac
"#;

/// A machine whose user has a systemd, played by a script, and a configuration.
fn setup_with_systemd() -> Setup {
    let setup = Setup::from_config_text("[agents.echo]\ncommand = 'cat'\n");
    let folder = setup.test_folder().display().to_string();
    fs::create_dir_all(setup.test_folder().join("run/systemd")).unwrap();
    let path = format!("{folder}:/usr/bin:/bin");
    setup
        .with_executable("systemctl", &SYSTEMCTL_SCRIPT.replace("HERE", &folder))
        .env("PATH", &path)
}

fn unit_file(setup: &Setup) -> PathBuf {
    setup.test_folder().join("home/.config/systemd/user/algonius.service")
}

#[tokio::test]
async fn a_user_service_is_installed_reported_and_removed() {
    let setup = setup_with_systemd();
    let config = setup.write_config().display().to_string();
    let status_output_without_unit = setup.run_command(&["service", "status"], "").await;
    assert_eq!(status_output_without_unit.exit_code, Some(1), "{status_output_without_unit:?}");
    assert!(
        status_output_without_unit.stderr.contains("unit-missing"),
        "{status_output_without_unit:?}"
    );
    let install_args = ["service", "install", "--config", &config];
    let install_output = setup.run_command(&install_args, "").await;
    assert_eq!(install_output.exit_code, Some(0), "{install_output:?}");
    assert!(install_output.stderr.contains("enable-linger"), "{install_output:?}");
    let unit = fs::read_to_string(unit_file(&setup)).unwrap();
    let folder = setup.test_folder().display();
    assert!(unit.contains(&format!(" serve --config {config}\n")), "{unit}");
    assert!(unit.contains(&format!("Environment=PATH={folder}:/usr/bin:/bin\n")), "{unit}");
    let dry_run_output = setup.run_command(&[&install_args[..], &["--dry-run"]].concat(), "").await;
    assert_eq!(dry_run_output.stdout, unit);
    let status_text = setup.run_command(&["service", "status"], "").await.stdout;
    for expected in ["active (running), pid 42", "enabled", "serves"] {
        assert!(status_text.contains(expected), "{status_text}");
    }
    let status_json = setup.run_command(&["service", "status", "--json"], "").await.stdout;
    assert!(status_json.contains("\"pid\": 42"), "{status_json}");
    // It writes over its own.
    assert_eq!(setup.run_command(&install_args, "").await.exit_code, Some(0));
    let uninstall_output = setup.run_command(&["service", "uninstall"], "").await;
    assert_eq!(uninstall_output.exit_code, Some(0), "{uninstall_output:?}");
    assert!(!unit_file(&setup).exists());
    let enable_calls = "--user daemon-reload\n--user enable --now algonius.service\n";
    let show_call = "--user show --property=ActiveState,SubState,UnitFileState,MainPID,StatusText \
                 algonius.service\n";
    let disable_calls = "--user disable --now algonius.service\n--user daemon-reload\n";
    let expected_calls = [enable_calls, show_call, show_call, enable_calls, disable_calls].concat();
    assert_eq!(setup.read_file("asked"), expected_calls);
}

#[tokio::test]
async fn a_faulty_or_foreign_unit_is_not_installed() {
    let setup = setup_with_systemd();
    let no_config_output = setup.run_command(&["service", "install"], "").await;
    assert_eq!(no_config_output.exit_code, Some(4), "{no_config_output:?}");
    assert!(no_config_output.stderr.contains("configuration-missing"), "{no_config_output:?}");
    fs::write(setup.test_folder().join("bad.toml"), "[agents.a]\ncommand = 'no-such-program'\n")
        .unwrap();
    let faulty_output =
        setup.run_command(&["service", "install", "--config", "bad.toml"], "").await;
    assert_eq!(faulty_output.exit_code, Some(4), "{faulty_output:?}");
    assert!(faulty_output.stderr.contains("no-such-program"), "{faulty_output:?}");
    let (config, file) = (setup.write_config().display().to_string(), unit_file(&setup));
    // As the service will see them, and not as the present terminal does.
    let install_args = ["service", "install", "--config", &config];
    let wrong_path_output =
        setup.run_command(&[&install_args[..], &["--path", "/nowhere"]].concat(), "").await;
    assert_eq!(wrong_path_output.exit_code, Some(4), "{wrong_path_output:?}");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[Service]\nExecStart=/bin/true\n").unwrap();
    for args in [&install_args[..], &["service", "uninstall"]] {
        let foreign_output = setup.run_command(args, "").await;
        assert_eq!(foreign_output.exit_code, Some(1), "{foreign_output:?}");
        assert!(foreign_output.stderr.contains("unit-foreign"), "{foreign_output:?}");
    }
    assert_eq!(setup.read_file("asked"), "");
    assert_eq!(
        setup.run_command(&[&install_args[..], &["--force"]].concat(), "").await.exit_code,
        Some(0)
    );
    assert!(fs::read_to_string(file).unwrap().contains("Type=notify"));
}

#[tokio::test]
async fn errors_of_systemctl_are_shown_verbatim() {
    let script = "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n";
    let setup = setup_with_systemd().with_executable("systemctl", script);
    let config = setup.write_config().display().to_string();
    let refused_output = setup.run_command(&["service", "install", "--config", &config], "").await;
    assert_eq!(refused_output.exit_code, Some(1), "{refused_output:?}");
    assert!(refused_output.stderr.contains("Failed to connect to bus"), "{refused_output:?}");
    assert!(refused_output.stderr.contains("systemctl --user daemon-reload"), "{refused_output:?}");
}

#[tokio::test]
async fn a_systemd_that_does_not_answer_ends_no_query() {
    let script = "#!/bin/sh\ncase \"$*\" in *show*) echo $$ > pid; exec sleep 600 ;; esac\n";
    let setup = setup_with_systemd().with_executable("systemctl", script);
    let config = setup.write_config().display().to_string();
    let install_output = setup.run_command(&["service", "install", "--config", &config], "").await;
    assert_eq!(install_output.exit_code, Some(0), "{install_output:?}");
    let status_output = setup.run_command(&["service", "status"], "").await;
    assert_eq!(status_output.exit_code, Some(1), "{status_output:?}");
    assert!(
        status_output.stderr.contains("it did not answer within 5 s (systemd-refused)"),
        "{status_output:?}"
    );
    let pid = setup.read_file("pid").trim().parse().unwrap();
    poll_until("the end of the command", async || (!is_alive(pid)).then_some(())).await;
}

#[tokio::test]
async fn a_unit_that_cannot_be_replaced_leaves_no_other_file() {
    let setup = setup_with_systemd();
    let config = setup.write_config().display().to_string();
    let file = unit_file(&setup);
    fs::create_dir_all(file.join("occupied")).unwrap();
    let args = ["service", "install", "--force", "--config", &config];
    let refused_output = setup.run_command(&args, "").await;
    assert_eq!(refused_output.exit_code, Some(1), "{refused_output:?}");
    let entries = fs::read_dir(file.parent().unwrap()).unwrap().flatten();
    assert_eq!(entries.map(|entry| entry.path()).collect::<Vec<_>>(), [file]);
}

#[tokio::test]
async fn a_machine_without_systemd_gets_instructions() {
    let setup = Setup::from_config_text("[agents.echo]\ncommand = 'cat'\n");
    let config = setup.write_config().display().to_string();
    let arg_lists: [&[&str]; 3] = [&["install", "--config", &config], &["uninstall"], &["status"]];
    for arguments in arg_lists {
        let refused_output = setup.run_command(&[&["service"], arguments].concat(), "").await;
        assert_eq!(refused_output.exit_code, Some(1), "{refused_output:?}");
        for expected in ["no-systemd", "algonius serve", "--dry-run"] {
            assert!(refused_output.stderr.contains(expected), "{refused_output:?}");
        }
    }
    assert!(!unit_file(&setup).exists());
}

/// What systemd itself says of both units. No start of one under a real systemd is tested.
#[tokio::test]
async fn systemd_accepts_the_printed_unit() {
    let setup = Setup::from_config_text("");
    for scope in [&[][..], &["--system"]] {
        let dry_run_args = ["service", "install", "--dry-run"];
        let unit_text = setup.run_command(&[&dry_run_args[..], scope].concat(), "").await.stdout;
        let unit_path = setup.test_folder().join("algonius.service");
        fs::write(&unit_path, unit_text).unwrap();
        let mut verify_command = tokio::process::Command::new("systemd-analyze");
        verify_command.args(["verify", "--man=no"]).arg(&unit_path).kill_on_drop(true);
        let Ok(output) =
            tokio::time::timeout(Duration::from_secs(60), verify_command.output()).await.unwrap()
        else {
            skip_without("systemd-analyze");
            return;
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !mentions_file(&stderr, &unit_path), "{stderr}");
    }
}

fn mentions_file(stderr: &str, file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap();
    stderr.lines().any(|line| line.contains(name))
}

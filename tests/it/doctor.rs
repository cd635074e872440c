//! What the machine offers, as the doctor and the service tell it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::Uid;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::mock_model::MockModel;
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, fake_agent_config, poll_until};

/// Returns a setup with agents and a free port: another test may use the default one.
fn setup_with_free_port(agents: &str) -> Setup {
    Setup::with_server_settings("listen = '127.0.0.1:0'", agents)
}

/// The doctor's findings, as JSON.
async fn run_doctor(setup: &Setup) -> (Option<i32>, Value) {
    let config = setup.write_config().display().to_string();
    let output = setup.run_command(&["doctor", &config, "--json"], "").await;
    (
        output.exit_code,
        serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")),
    )
}

fn severity<'r>(report: &'r Value, subject: &str) -> &'r Value {
    let findings = report["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["about"] == subject);
    &finding.unwrap_or_else(|| panic!("{subject} is not in {report}"))["weight"]
}

#[tokio::test]
async fn the_doctor_warns_of_a_team_whose_member_accepts_nothing() {
    let members =
        [fake_agent_config("one", "echo", ""), fake_agent_config("two", "echo", "enabled = false")];
    let team =
        |id: &str, steps: &str| format!("[agents.{id}]\nkind = 'team'\nteam.steps = {steps}\n");
    let teams = [team("good", "['one']"), team("weak", "['one', 'two']")];
    let setup = setup_with_free_port(&[members, teams].concat().concat());
    let (_, report) = run_doctor(&setup).await;
    assert_eq!(severity(&report, "agent good"), "good", "{report}");
    assert_eq!(severity(&report, "agent weak"), "warning", "{report}");
}

#[tokio::test]
async fn the_doctor_warns_of_a_model_that_cannot_be_reached() {
    let model = MockModel::start(&[]);
    let agent = |id: &str, url: &str| {
        format!(
            "[models.{id}]\nbase_url = '{url}'\n[agents.{id}]\nkind = 'cognitive'\n\
             layer = 'abstract'\nmodel_id = '{id}/m'\n"
        )
    };
    // No program listens on port 1.
    let agents = agent("good", &model.base_url()) + &agent("weak", "http://127.0.0.1:1/v1");
    let (_, report) = run_doctor(&setup_with_free_port(&agents)).await;
    assert_eq!(severity(&report, "agent good"), "good", "{report}");
    assert_eq!(severity(&report, "agent weak"), "warning", "{report}");
}

#[tokio::test]
async fn the_doctor_approves_a_sound_machine_without_a_service() {
    let setup = setup_with_free_port(&fake_agent_config("echo", "echo", ""));
    let (code, report) = run_doctor(&setup).await;
    assert_eq!(code, Some(0), "{report}");
    for subject in ["kernel", "labels", "server.data_dir", "server.runtime_dir", "server.watch"] {
        assert_eq!(severity(&report, subject), "good", "{report}");
    }
    let user_severity = if Uid::effective().is_root() { "warning" } else { "good" };
    assert_eq!(
        (severity(&report, "user"), severity(&report, "agent echo")),
        (&json!(user_severity), &json!("good"))
    );
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(report["rungs"]["kernel"], release.trim());
    let output = setup.run_command(&["doctor", setup.write_config().to_str().unwrap()], "").await;
    assert!(output.stdout.contains("good     agent echo: runs ") && output.exit_code == Some(0));
}

fn finding_about<'r>(report: &'r Value, subject: &str) -> &'r Value {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["about"] == subject)
        .unwrap_or_else(|| panic!("{subject}: {report}"))
}

/// Puts the unit there that starts the service on this configuration, with this path.
pub(crate) async fn install_unit(setup: &Setup, search_path: &str) {
    let config = setup.write_config().display().to_string();
    let args = ["service", "install", "--dry-run", "--config", &config, "--path", search_path];
    let unit = setup.run_command(&args, "").await.stdout;
    let folder = setup.test_folder().join("home/.config/systemd/user");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("algonius.service"), unit).unwrap();
}

#[tokio::test]
async fn the_doctor_uses_the_path_of_the_installed_service() {
    let setup = setup_with_free_port("[agents.tool]\ncommand = 'tool'\n");
    let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
    let setup = setup.with_executable("tool", "#!/bin/sh\nexec cat\n").env("PATH", &path);
    assert_eq!(run_doctor(&setup).await.0, Some(0), "the terminal finds it");
    install_unit(&setup, "/usr/bin:/bin").await;
    let (code, report) = run_doctor(&setup).await;
    assert_eq!((code, severity(&report, "configuration")), (Some(1), &json!("bad")));
    assert!(report.to_string().contains("no such program on the PATH"), "{report}");
    install_unit(&setup, &path).await;
    // Without a file it is what the service is started on.
    let output = setup.run_command(&["doctor", "--json"], "").await;
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (output.exit_code, severity(&report, "agent tool")),
        (Some(0), &json!("good")),
        "{report}"
    );
    let text = finding_about(&report, "service")["text"].as_str().unwrap();
    assert!(text.contains("algonius.service") && text.contains(&path), "{text}");
}

#[tokio::test]
async fn a_secret_known_to_the_terminal_only_is_reported_missing() {
    let agent = "[agents.a]\ncommand = 'cat'\n[agents.a.env_from]\nKEY = 'SECRET_OF_A'\n";
    let setup = setup_with_free_port(agent).env("SECRET_OF_A", "correct-horse-battery");
    assert_eq!(run_doctor(&setup).await.0, Some(0));
    install_unit(&setup, "/usr/bin:/bin").await;
    let (code, report) = run_doctor(&setup).await;
    assert_eq!(code, Some(1), "{report}");
    assert!(report.to_string().contains("env_from.KEY"), "{report}");
    let file = setup.config_sibling_path("environment");
    fs::write(&file, "SECRET_OF_A=correct-horse-battery\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, report) = run_doctor(&setup).await;
    assert_eq!((code, severity(&report, "environment")), (Some(0), &json!("good")), "{report}");
    assert!(!report.to_string().contains("horse"), "{report}");
}

#[tokio::test]
async fn the_doctor_reports_versions_of_known_programs() {
    let mark = Uuid::new_v4();
    let agents = format!(
        "[agents.one]\ncommand = 'HERE/claude'\nargs = ['-p']\n\
         [agents.two]\ncommand = 'HERE/codex'\nargs = ['exec']\nenv.MARK = '{mark}'\n\
         [agents.three]\ncommand = 'HERE/mine'\naccess = 'read-write'\n"
    );
    let setup = setup_with_free_port(&agents)
        .with_executable("claude", "#!/bin/sh\necho '2.1.0 (Claude Code)'\n")
        .with_executable("codex", "#!/bin/sh\nsleep 600 &\nwait\n")
        .with_executable("mine", "#!/bin/sh\ntouch \"$0.asked\"\n");
    let doctor = tokio::spawn(async move { (run_doctor(&setup).await, setup) });
    let processes = || pids_with_env(&format!("MARK={mark}"));
    poll_until("the one that tells nothing", async || (processes().len() == 2).then_some(())).await;
    let ((code, report), setup) = doctor.await.unwrap();
    assert_eq!(code, Some(0), "{report}");
    let text = |agent: &str| finding_about(&report, agent)["text"].as_str().unwrap().to_owned();
    assert!(text("agent one").contains("/claude (2.1.0 (Claude Code));"), "{report}");
    let timeout_note = "(version unknown: the program did not report its version within 5 s)";
    assert!(text("agent two").contains(timeout_note), "{report}");
    assert!(!setup.test_folder().join("mine.asked").exists(), "an unknown program was started");
    poll_until("the end of what it had started", async || processes().is_empty().then_some(()))
        .await;
}

#[tokio::test]
async fn suggested_fixes_of_the_doctor_work() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen = '{}'", listener.local_addr().unwrap());
    let setup = Setup::with_server_settings(&listen, &fake_agent_config("echo", "echo", ""));
    fs::create_dir(setup.test_folder().join("state/algonius")).unwrap();
    fs::write(setup.token_file(), "x".repeat(64)).unwrap();
    fs::set_permissions(setup.token_file(), fs::Permissions::from_mode(0o644)).unwrap();
    let (code, report) = run_doctor(&setup).await;
    assert_eq!(code, Some(1), "{report}");
    for subject in ["address", "server.token_file"] {
        assert_eq!(severity(&report, subject), "bad", "{report}");
    }
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(finding["fix"].is_string(), finding["weight"] != "good", "{finding}");
    }
    let fix = finding_about(&report, "server.token_file")["fix"].as_str().unwrap().to_owned();
    let fix_status = std::process::Command::new("sh").args(["-c", &fix]).status().unwrap();
    drop(listener);
    let (code, report) = run_doctor(&setup).await;
    assert!(fix_status.success() && code == Some(0), "{report}");
    assert_eq!(
        (severity(&report, "address"), severity(&report, "disk")),
        (&json!("good"), &json!("good"))
    );
}

/// The kernel accepts the connections, and no program reads them.
#[tokio::test]
async fn a_silent_program_at_the_address_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let agents = fake_agent_config("echo", "echo", "");
    let setup = Setup::with_server_settings(&format!("listen = '{address}'"), &agents);
    let setup = setup.env("ALGONIUS_TOKEN", &"x".repeat(64));
    let (config, url) = (setup.write_config().display().to_string(), format!("http://{address}"));
    let output = setup.run_command(&["--url", &url, "doctor", &config, "--json"], "").await;
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let variables_text = finding_about(&report, "variables")["text"].as_str().unwrap();
    assert!(
        variables_text.contains(&format!("the service at {url} did not answer within 5 s")),
        "{report}"
    );
    assert_eq!(severity(&report, "address"), "bad", "{report}");
}

#[tokio::test]
async fn an_address_with_a_running_service_is_good() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let text = format!(
        "[server]\nlisten = '{}'\n{}",
        service.address,
        fake_agent_config("echo", "echo", "")
    );
    let setup = Setup::from_config_text(&text);
    let (_, report) = run_doctor(&setup).await;
    assert_eq!(severity(&report, "address"), "good", "{report}");
}

#[tokio::test]
async fn the_doctor_exits_with_1_if_the_service_cannot_work() {
    let setup = setup_with_free_port("[agents.a]\ncommand = 'no-such-program'\n");
    let (code, report) = run_doctor(&setup).await;
    assert_eq!((code, severity(&report, "configuration")), (Some(1), &json!("bad")));
    assert!(report.to_string().contains("no such program on the PATH"), "{report}");
}

#[tokio::test]
async fn the_doctor_reports_folders_that_others_can_read() {
    let setup = setup_with_free_port(&fake_agent_config("echo", "echo", ""));
    let folder = setup.test_folder().join("state/algonius");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, report) = run_doctor(&setup).await;
    assert_eq!((code, severity(&report, "server.data_dir")), (Some(0), &json!("warning")));
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    let (code, report) = run_doctor(&setup).await;
    assert_eq!((code, severity(&report, "server.data_dir")), (Some(1), &json!("bad")));
}

#[tokio::test]
async fn bubblewrap_counts_only_if_it_works() {
    // A program that another than root can replace does not count, whatever it does.
    for script in ["exit 0", "exit 1"] {
        let expected = "unusable";
        let setup = setup_with_free_port(&fake_agent_config("echo", "echo", ""));
        let setup = setup.with_executable("bwrap", &format!("#!/bin/sh\n{script}\n"));
        let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
        let setup = setup.env("PATH", &path);
        assert_eq!(run_doctor(&setup).await.1["rungs"]["bubblewrap"], expected);
    }
}

#[tokio::test]
async fn the_status_shows_host_capabilities_and_the_warden() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let status = service.get("/status").await.json();
    let (_, report) = run_doctor(&service.setup).await;
    let machine = &status["machine"];
    for capability in ["kernel", "labels", "landlock", "bubblewrap", "cgroup", "root"] {
        assert_eq!(machine[capability], report["rungs"][capability], "{capability}: {status}");
    }
    let holder_pid = machine["wardens"][0].as_u64().unwrap();
    let name = fs::read_to_string(format!("/proc/{holder_pid}/comm")).unwrap();
    assert_eq!(name, "algonius-warden\n");
    let output = service.run_command(&["status"], "").await.stdout;
    assert!(output.contains(&format!("held by warden {holder_pid}")), "{output}");
}

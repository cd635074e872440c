//! Files that other users, or agents, could change: the service does not start with them, and does not reload
//! them automatically.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{MODE_CHANGE_METHODS, attack, hostile_setup};
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, poll_until};
use crate::read_only::skip_without_requirement;

pub(super) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn file_mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

/// A service with an agent that reads a variable from a file. It has run once, so all its files exist.
async fn initialized_setup() -> Setup {
    let agent = "[agents.one]\ncommand = 'cat'\nenv_file.KEY = 'HERE/key'\n";
    let setup = Setup::new(agent);
    let key = setup.test_folder().join("key");
    fs::write(&key, "some-secret-value\n").unwrap();
    set_mode(&key, 0o600);
    let mut service = setup.start().await;
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    std::mem::replace(&mut service.setup, Setup::new(""))
}

/// The service names this path with this reason, and starts after the command that it prints.
pub(super) async fn expect_refusal_and_repair(setup: Setup, path: &Path, reason: &str) {
    let (setup, output) = setup.try_start().await.err().unwrap();
    let expected = format!("{} {reason}; run `", path.display());
    let (_, remedy_text) =
        output.stderr.split_once(&expected).unwrap_or_else(|| panic!("{expected}{output:?}"));
    let (command, _) = remedy_text.split_once('`').unwrap();
    let doctor = setup.run_command(&["doctor", setup.write_config().to_str().unwrap()], "").await;
    assert_eq!(doctor.exit_code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains(&format!("fix: {command}")), "{doctor:?}");
    let check = setup.run_command(&["check", setup.write_config().to_str().unwrap()], "").await;
    assert!(check.stderr.contains(&format!("run `{command}`")), "{check:?}");
    let repair_status = std::process::Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(repair_status.success(), "{command}");
    let service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "hello").await), completed_outcome("hello"));
}

fn service_folder(setup: &Setup) -> PathBuf {
    setup.config_sibling_path("supervisor.toml").parent().unwrap().to_owned()
}

#[tokio::test]
async fn a_token_that_others_can_read_stops_the_start() {
    let setup = initialized_setup().await;
    let token = setup.token_file().canonicalize().unwrap();
    set_mode(&token, 0o644);
    expect_refusal_and_repair(setup, &token, "is accessible to other users").await;
}

#[tokio::test]
async fn files_that_others_can_write_stop_the_start() {
    for name in ["supervisor.toml", "state/algonius", "run/algonius", ""] {
        let setup = initialized_setup().await;
        let path = match name {
            "" => service_folder(&setup),
            name => service_folder(&setup).join(name),
        };
        set_mode(&path, 0o777);
        expect_refusal_and_repair(setup, &path, "is writable by other users").await;
    }
    let setup = initialized_setup().await;
    let key = setup.test_folder().join("key");
    set_mode(&key, 0o602);
    expect_refusal_and_repair(setup, &key, "is writable by other users").await;
}

#[tokio::test]
async fn files_of_another_user_stop_the_start() {
    if skip_without_requirement("root") {
        return;
    }
    let names =
        ["supervisor.toml", "state/algonius", "state/algonius/token", "run/algonius", "state"];
    for name in names {
        let setup = initialized_setup().await;
        let path = service_folder(&setup).join(name);
        chown(&path, Some(1), None).unwrap();
        expect_refusal_and_repair(setup, &path, "belongs to the user `daemon`").await;
    }
}

/// A user who creates the runtime folder first, as a folder or a link, does not
/// receive the requests of others.
#[tokio::test]
async fn a_runtime_folder_of_another_user_stops_the_start() {
    if skip_without_requirement("root") {
        return;
    }
    let setup = Setup::new(&fake_agent_config("one", "echo", ""));
    let runtime_folder = service_folder(&setup).join("run/algonius");
    let target = setup.test_folder().join("of-another");
    fs::create_dir(&target).unwrap();
    chown(&target, Some(1), None).unwrap();
    symlink(&target, &runtime_folder).unwrap();
    lchown(&runtime_folder, Some(1), None).unwrap();
    let (_, output) = setup.try_start().await.err().expect("the service started");
    for path in [&runtime_folder, &target] {
        let message = format!("{} belongs to the user `daemon`", path.display());
        assert!(output.stderr.contains(&message), "{output:?}");
    }
}

#[tokio::test]
async fn service_folders_that_others_can_read_are_closed() {
    let setup = initialized_setup().await;
    let folder = service_folder(&setup).join("state/algonius");
    set_mode(&folder, 0o755);
    let service = setup.start().await;
    assert_eq!(file_mode(&folder), 0o700);
    assert!(
        service.stderr_text().contains("removed access of other users to a folder"),
        "{}",
        service.stderr_text()
    );
}

async fn configuration_status(service: &ServiceProcess) -> Value {
    service.get("/status").await.json()["configuration"].clone()
}

async fn agent_ids(service: &ServiceProcess) -> Vec<String> {
    let list = service.get("/api/v1/agents").await.json();
    let ids = list["agents"].as_array().unwrap().iter();
    ids.map(|agent| agent["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the reason in the status for not applying changed files.
async fn wait_for_unwatched_reason(service: &ServiceProcess) -> String {
    let reason = poll_until("the reason", async || {
        let status = configuration_status(service).await;
        (status["watched"] == false).then(|| status["unwatchedReason"].clone())
    });
    reason.await.as_str().unwrap().to_owned()
}

fn config_with_second_agent(config: &Path) -> String {
    fs::read_to_string(config).unwrap() + "[agents.two]\ncommand = 'cat'\n"
}

/// A configuration that another user can write is applied neither automatically nor on request.
#[tokio::test]
async fn a_configuration_that_others_can_write_is_not_reloaded() {
    let service = Setup::new(&fake_agent_config("one", "echo", "")).start().await;
    assert_eq!(configuration_status(&service).await["watched"], true);
    let config = service.setup.config_sibling_path("supervisor.toml");
    set_mode(config.parent().unwrap(), 0o777);
    fs::write(&config, config_with_second_agent(&config)).unwrap();
    let reason = "the configuration: `service` is writable by other users";
    assert_eq!(wait_for_unwatched_reason(&service).await, reason);
    let reload = service.run_command(&["reload"], "").await;
    assert_eq!(reload.exit_code, Some(4), "{reload:?}");
    assert!(reload.stderr.contains("`service` is writable by other users"), "{reload:?}");
    assert_eq!(agent_ids(&service).await, ["one"]);
    set_mode(config.parent().unwrap(), 0o755);
    let reload = service.run_command(&["reload"], "").await;
    assert_eq!((reload.exit_code, agent_ids(&service).await.len()), (Some(0), 2), "{reload:?}");
    let status = configuration_status(&service).await;
    assert_eq!((&status["watched"], &status["unwatchedReason"]), (&json!(true), &json!(null)));
}

/// The time in which others can open the file is shorter than the pause between two looks.
#[tokio::test]
async fn a_mode_change_of_the_configuration_stops_watching() {
    let service = Setup::new(&fake_agent_config("one", "echo", "")).start().await;
    let config = service.setup.config_sibling_path("supervisor.toml");
    let text = config_with_second_agent(&config);
    let original_mode = file_mode(&config);
    set_mode(&config, 0o666);
    set_mode(&config, original_mode);
    fs::write(&config, text).unwrap();
    let reason = "the mode or the owner of `supervisor.toml` changed while the service ran";
    assert_eq!(wait_for_unwatched_reason(&service).await, reason);
    assert_eq!(agent_ids(&service).await, ["one"]);
    let reload = service.run_command(&["reload"], "").await;
    assert_eq!((reload.exit_code, agent_ids(&service).await.len()), (Some(0), 2), "{reload:?}");
    assert_eq!(configuration_status(&service).await["watched"], true);
}

/// The service restores the mode of the file, and a change from that time waits for an operator.
#[tokio::test]
async fn a_world_writable_configuration_stops_watching() {
    let service = Setup::new(&fake_agent_config("one", "echo", "")).start().await;
    let config = service.setup.config_sibling_path("supervisor.toml");
    let other_config = service.setup.config_sibling_path("other.toml");
    fs::write(&other_config, config_with_second_agent(&config)).unwrap();
    set_mode(&other_config, 0o666);
    fs::rename(&other_config, &config).unwrap();
    let reason = "`supervisor.toml` was opened to other users while the service ran";
    assert_eq!(wait_for_unwatched_reason(&service).await, reason);
    poll_until("its mode", async || (file_mode(&config) & 0o022 == 0).then_some(())).await;
    assert_eq!(agent_ids(&service).await, ["one"]);
    let reload = service.run_command(&["reload"], "").await;
    assert_eq!((reload.exit_code, agent_ids(&service).await.len()), (Some(0), 2), "{reload:?}");
    assert_eq!(configuration_status(&service).await["watched"], true);
}

/// An agent that works beside the configuration can add a file to that folder, so
/// nothing is applied automatically.
#[tokio::test]
async fn a_configuration_that_an_agent_can_change_is_not_watched() {
    let agent = "[agents.writer]\ncommand = 'sh'\naccess = 'read-write'\nworking_dir = 'HERE/../service'\n\
         args = ['-c', 'echo \"[agents.second]\\ncommand = \\\"cat\\\"\" > added && cat added >> supervisor.toml; echo done']\n";
    let mut setup = Setup::new(agent);
    // An agent that works in the very folder.
    setup.set_config_text(&format!("[pressure]\nenabled = false\n{agent}"));
    let service = setup.start().await;
    let status = configuration_status(&service).await;
    let reason = "the agent `writer` can change the configuration";
    assert_eq!((&status["watched"], &status["unwatchedReason"]), (&json!(false), &json!(reason)));
    assert!(service.stderr_text().contains("changed files are applied only by `algonius reload`"));
    let check =
        service.run_command(&["check", service.setup.write_config().to_str().unwrap()], "").await;
    assert!(check.stderr.contains(reason), "{check:?}");
    let config = service.setup.write_config().to_str().unwrap().to_owned();
    let doctor = service.run_command(&["doctor", &config], "").await;
    assert!(doctor.stdout.contains(reason), "{doctor:?}");
    assert_eq!(task_outcome(&service.send("writer", "go").await), completed_outcome("done\n"));
    assert!(service.setup.config_sibling_path("added").exists());
    // An operator's order is another thing.
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + "[agents.two]\ncommand = 'cat'\n").unwrap();
    let reload = service.run_command(&["reload"], "").await;
    assert_eq!(reload.exit_code, Some(0), "{reload:?}");
    assert!(agent_ids(&service).await.contains(&"two".to_owned()));
}

/// Landlock has no right for modes, so a confined agent can open a file of the service to other users.
#[tokio::test]
async fn the_service_restores_modes() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let attack = attack(hostile_setup("").without_bubblewrap()).await;
    let service = attack.expect_attack_result(&MODE_CHANGE_METHODS, "landlock", &[]).await;
    let secret = service.setup.test_folder().join("secrets/key");
    let token = service.setup.token_file();
    poll_until("the modes", async || {
        (file_mode(&secret) == 0o600 && file_mode(&token) == 0o600).then_some(())
    })
    .await;
    let message = "a file was opened to other users; its mode and owner are restored";
    poll_until("the log", async || service.stderr_text().contains(message).then_some(())).await;
}

/// The version of a program is requested before the first task of its agent, and in the sandbox too.
#[tokio::test]
async fn a_version_query_runs_in_the_sandbox_of_its_agent() {
    let preset = "[about]\ntitle = 'Hostile'\nverified = false\n[agent]\ncommand = 'HERE/hostile'\n\
         [agent.program_version]\nargs = ['--version']\nregex = '[a-z ]+'\n";
    for isolation in ["landlock", "bubblewrap"] {
        if skip_without_requirement(if isolation == "landlock" {
            "Landlock 6"
        } else {
            "bubblewrap"
        }) {
            continue;
        }
        let agent =
            format!("[agents.one]\npreset = 'hostile'\nsandbox.isolation = '{isolation}'\n");
        let program = "#!/bin/sh\n\
             if cat \"$PLACE/state/algonius/token\" > /dev/null 2>&1; then echo token read; \
             elif echo x > \"$PLACE/home\"/written 2> /dev/null; then echo file written; \
             else echo nothing reached; fi\n";
        let setup = Setup::new(&agent).with_executable("hostile", program);
        let test_folder = setup.test_folder().display().to_string();
        let presets_folder = setup.config_sibling_path("presets");
        fs::create_dir(&presets_folder).unwrap();
        let text = preset.replace("HERE", &test_folder)
            + &format!("[agent.env]\nPLACE = '{test_folder}'\n");
        fs::write(presets_folder.join("hostile.toml"), text).unwrap();
        let service = setup.start().await;
        let version = poll_until("its version", async || {
            service.fetch_agent_status("one").await["program"]["version"]
                .as_str()
                .map(str::to_owned)
        });
        assert_eq!(version.await, "nothing reached", "{isolation}");
        let config = service.setup.write_config().to_str().unwrap().to_owned();
        let doctor = service.run_command(&["doctor", &config], "").await;
        assert!(doctor.stdout.contains("nothing reached"), "{doctor:?}");
    }
}

/// A token for one agent reveals nothing about the others.
#[tokio::test]
async fn the_status_shows_a_token_only_its_own_agents() {
    let agents =
        [fake_agent_config("one", "echo", ""), fake_agent_config("two", "exit 7", "")].concat();
    let schedule = "[schedules.of-two]\nagent = 'two'\ncron = '@daily'\ninput = 'x'\n";
    let service = Setup::new(&(agents + schedule)).start().await;
    service.send("two", "x").await;
    let token_request = json!({"name": "ann", "scopes": ["read"], "agents": ["one"]}).to_string();
    let created = service.post("/api/v1/tokens", &token_request).await.json();
    let ann = service.client_with_token(created["token"].as_str().unwrap());
    let full_status = service.get("/status").await;
    assert!(
        full_status.body.contains("\"two\"") && full_status.json()["ledger"].is_object(),
        "{full_status:?}"
    );
    let visible_status = ann.get("/status").await;
    assert!(!visible_status.body.contains("two"), "{}", visible_status.body);
    let (full, visible) = (full_status.json(), visible_status.json());
    // Each of these counts the work of other callers, or names processes of other agents.
    for (pointer, is_null_or_empty) in [
        ("/ledger", Value::is_null as fn(&Value) -> bool),
        ("/scheduler/schedules", Value::is_null),
        ("/scheduler/active", Value::is_null),
        ("/retention/lastPass", Value::is_null),
        ("/machine/outputMemory", Value::is_null),
        ("/machine/wardens", |wardens| wardens == &json!([])),
    ] {
        let value_of = |status: &Value| status.pointer(pointer).cloned().unwrap_or_default();
        assert!(is_null_or_empty(&value_of(&visible)), "{pointer}: {visible}");
        assert!(!is_null_or_empty(&value_of(&full)), "{pointer}: {full}");
    }
    let token_file = service.setup.test_folder().join("ann.token");
    fs::write(&token_file, created["token"].as_str().unwrap()).unwrap();
    set_mode(&token_file, 0o600);
    let args = ["status", "--token-file", token_file.to_str().unwrap()];
    let printed_status = service.run_command(&args, "").await;
    assert_eq!(printed_status.exit_code, Some(0), "{printed_status:?}");
    assert!(!printed_status.stdout.contains("warden"), "{printed_status:?}");
    assert!(!printed_status.stdout.contains("schedules active"), "{printed_status:?}");
    let visible_agents: Vec<_> = visible_status.json()["agents"].as_array().unwrap().clone();
    assert_eq!(visible_agents.iter().map(|agent| &agent["id"]).collect::<Vec<_>>(), ["one"]);
}

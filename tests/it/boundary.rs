//! A hostile agent does not become its operator: it plays every way on each isolation of this machine, as
//! root and as a user without rights.

mod config_secrets;
mod exposed_secrets;
mod file_modes;
mod folders;
mod holder_sockets;
mod limits;
mod links;
mod lost_holder;
#[cfg(target_arch = "x86_64")]
mod machine_code;
mod nested;
mod network;
mod owners;
mod programs;
mod replaced_files;
mod shared_users;
mod slots;
mod sockets;
mod tools;
mod trust;
mod users;

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::client::{task_id, task_outcome};
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, poll_until};
use crate::read_only::skip_without_requirement;

/// The program of the hostile agent.
const HOSTILE_SCRIPT: &str = include_str!("boundary/hostile.pl");

/// Agents beside the hostile one: a victim that runs, and one with a secret file.
const OTHER_AGENTS: &str = r#"
[agents.other]
command = "sh"
args = ["-c", "exec sleep 600 < $0", "{{ input_file }}"]
input = "file"
home = "per-agent"
home_files = { login = "login" }
env.API_KEY = "third-secret-value"
[agents.keyed]
command = "cat"
env_file.API_KEY = "HERE/secrets/key"
[redaction]
secret_files = ["HERE/secrets/key"]
[agents.inline]
command = "cat"
env.API_KEY = "second-secret-value"
"#;

/// Isolations and accesses of the hostile agent.
const BUBBLEWRAP_SETTING: &str = "sandbox.isolation = 'bubblewrap'";
const CONFINED_SETTINGS: &str =
    "access = 'read-write'\nsandbox.writable = []\nsandbox.network = false";
const UNCONFINED_SETTING: &str = "access = 'read-write'";

/// Setting that stores the key of sealed inputs in its own file instead of the runtime directory.
const KEY_FILE_SETTING: &str = "[inputs]\nkey_file = 'HERE/secrets/inputs.key'\n";

/// A folder with a hostile agent in it.
fn hostile_setup(settings: &str) -> Setup {
    let abstract_socket_id = Uuid::new_v4();
    let text = format!(
        "[agents.hostile]\ncommand = 'HERE/hostile'\nworking_dir = 'HERE/home'\n\
         env.PLACE = 'HERE'\nenv.CONFIG_FOLDER = 'HERE/../service'\nenv.ABSTRACT = '{abstract_socket_id}'\n{settings}\n{OTHER_AGENTS}\n{}",
        if settings.contains(CONFINED_SETTINGS) { KEY_FILE_SETTING } else { "" }
    );
    let setup = Setup::new(&text)
        .with_executable("hostile", HOSTILE_SCRIPT)
        .env("ABSTRACT", &abstract_socket_id.to_string());
    let test_folder = setup.test_folder();
    fs::create_dir(test_folder.join("secrets")).unwrap();
    write_private_file(&test_folder.join("secrets/key"), "first-secret-value\n");
    write_private_file(&test_folder.join("secrets/inputs.key"), "");
    if settings.contains(CONFINED_SETTINGS) {
        write_private_file(&test_folder.join("secrets/inputs.key"), &"0a".repeat(32));
    }
    fs::write(test_folder.join("pids"), "").unwrap();
    write_private_file(setup.write_config(), &fs::read_to_string(setup.write_config()).unwrap());
    setup
}

fn write_private_file(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// The same setup with the configuration in the working folder and home of the hostile agent.
fn with_config_in_home(setup: Setup) -> Setup {
    let text = fs::read_to_string(setup.write_config()).unwrap();
    let config = setup.test_folder().join("home/supervisor.toml");
    let config_folder = config.parent().unwrap().display().to_string();
    let service_folder = format!("{}/../service", setup.test_folder().display());
    write_private_file(&config, &text.replace(&service_folder, &config_folder));
    setup.with_config_file(&config)
}

/// The same of a user without rights.
fn with_unprivileged_user(setup: Setup) -> Setup {
    let setup = setup.with_unprivileged_user();
    for name in ["hostile", "secrets", "secrets/key", "secrets/inputs.key", "pids"] {
        chown(setup.test_folder().join(name), Some(65_532), Some(65_532)).unwrap();
    }
    setup
}

/// A setup with the socket of a service manager, which belongs to the service's user.
fn with_systemd_socket(setup: Setup) -> (Setup, UnixListener) {
    let folder = setup.test_folder().join("run");
    let socket = UnixListener::bind(folder.join("bus")).unwrap();
    let owner = fs::metadata(&folder).unwrap().uid();
    chown(folder.join("bus"), Some(owner), Some(owner)).unwrap();
    (setup, socket)
}

/// Result of the hostile agent's attempts, and the service that it attacked.
struct AttackResult {
    successful_methods: Vec<String>,
    service: ServiceProcess,
    agent_status: Value,
}

/// Starts the service and a victim, and lets the hostile agent try everything.
async fn attack(setup: Setup) -> AttackResult {
    let run_hostile_program = async |service: &ServiceProcess| {
        let task = service.send("hostile", "go").await;
        let (state, text) = task_outcome(&task);
        assert_eq!(state, "completed", "{}", service.fetch_execution(&task_id(&task)).await);
        text
    };
    attack_with(setup, run_hostile_program).await
}

/// Starts the service and a victim, and lets the hostile program try everything; `run_hostile_program` starts it and
/// returns its output.
async fn attack_with(
    setup: Setup,
    run_hostile_program: impl AsyncFnOnce(&ServiceProcess) -> String,
) -> AttackResult {
    let service = setup.start().await;
    let test_folder = service.setup.test_folder().to_owned();
    let abstract_name = format!("algonius-boundary-{}", service.setup.env_variables()["ABSTRACT"]);
    let abstract_address = SocketAddr::from_abstract_name(abstract_name).unwrap();
    let _listener = UnixListener::bind_addr(&abstract_address).unwrap();
    let victim_id = service.start_task("other", "input of another caller").await;
    let victim_pid = poll_until("the victim", async || {
        let pids = pids_with_env(&format!("ALGONIUS_EXECUTION_ID={victim_id}"));
        let is_sleep = |pid: &&i32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
        };
        pids.iter().find(is_sleep).copied()
    })
    .await;
    let pids = format!("{} {} {victim_pid}", service.pid(), service.holder_pid());
    fs::write(test_folder.join("pids"), pids).unwrap();
    let text = run_hostile_program(&service).await;
    let successful = text.trim().split(", ").filter(|method| !method.is_empty());
    let successful_methods = successful.map(str::to_owned).collect();
    let agent_status = service.fetch_agent_status("hostile").await;
    AttackResult { successful_methods, service, agent_status }
}

impl AttackResult {
    /// These ways worked and no others; the status reports this level and these gaps.
    async fn expect_attack_result(
        self,
        expected: &[&str],
        level: &str,
        gaps: &[&str],
    ) -> ServiceProcess {
        assert_eq!(self.successful_methods, expected);
        let boundary = &self.agent_status["boundary"];
        assert_eq!(boundary["level"], level, "{}", self.agent_status);
        let gaps_found = boundary["gaps"].as_array().cloned().unwrap_or_default();
        assert_eq!(gaps_found, gaps, "{}", self.agent_status);
        self.service
    }
}

/// Landlock has no right for modes, so the service restores them; see `the_service_restores_modes`.
const MODE_CHANGE_METHODS: [&str; 2] =
    ["change the mode of a secret file", "change the mode of the token"];

#[tokio::test]
async fn under_landlock_a_read_only_agent_reaches_nothing() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let attack = attack(hostile_setup("").without_bubblewrap()).await;
    attack.expect_attack_result(&MODE_CHANGE_METHODS, "landlock", &[]).await;
}

#[tokio::test]
async fn under_landlock_a_confined_agent_reaches_nothing() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let attack = attack(hostile_setup(CONFINED_SETTINGS).without_bubblewrap()).await;
    attack.expect_attack_result(&MODE_CHANGE_METHODS, "landlock", &[]).await;
}

#[tokio::test]
async fn under_landlock_agents_of_a_plain_user_reach_nothing() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("root") {
        return;
    }
    for settings in ["", CONFINED_SETTINGS] {
        let attack =
            attack(with_unprivileged_user(hostile_setup(settings)).without_bubblewrap()).await;
        attack.expect_attack_result(&MODE_CHANGE_METHODS, "landlock", &[]).await;
    }
}

/// A socket of the user's service manager starts programs outside of every sandbox.
#[tokio::test]
async fn under_landlock_a_socket_that_starts_programs_is_a_gap() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let (setup, _bus) = with_systemd_socket(hostile_setup("").without_bubblewrap());
    let expected = [MODE_CHANGE_METHODS[0], "connect to a service manager", MODE_CHANGE_METHODS[1]];
    attack(setup).await.expect_attack_result(&expected, "landlock", &["sockets"]).await;
}

#[tokio::test]
async fn under_bubblewrap_agents_reach_nothing() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    for settings in [BUBBLEWRAP_SETTING, &format!("{BUBBLEWRAP_SETTING}\n{CONFINED_SETTINGS}")] {
        let (setup, _bus) = with_systemd_socket(hostile_setup(settings));
        attack(setup).await.expect_attack_result(&[], "mount-namespace", &[]).await;
    }
}

#[tokio::test]
async fn under_bubblewrap_agents_of_a_plain_user_reach_nothing() {
    if skip_without_requirement("bubblewrap") || skip_without_requirement("root") {
        return;
    }
    for settings in [BUBBLEWRAP_SETTING, &format!("{BUBBLEWRAP_SETTING}\n{CONFINED_SETTINGS}")] {
        let (setup, _bus) = with_systemd_socket(with_unprivileged_user(hostile_setup(settings)));
        attack(setup).await.expect_attack_result(&[], "mount-namespace", &[]).await;
    }
}

/// A read-write agent runs in bubblewrap if that is possible, even without a setting that requests it.
#[tokio::test]
async fn an_unconfined_agent_is_wrapped_and_reaches_nothing() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let (setup, _bus) = with_systemd_socket(hostile_setup(UNCONFINED_SETTING));
    attack(setup).await.expect_attack_result(&[], "mount-namespace", &["user-files"]).await;
}

#[tokio::test]
async fn an_unconfined_agent_of_a_plain_user_reaches_nothing() {
    if skip_without_requirement("bubblewrap") || skip_without_requirement("root") {
        return;
    }
    let (setup, _bus) =
        with_systemd_socket(with_unprivileged_user(hostile_setup(UNCONFINED_SETTING)));
    attack(setup).await.expect_attack_result(&[], "mount-namespace", &["user-files"]).await;
}

/// No mount keeps a file from being made in the folder where an agent works.
#[tokio::test]
async fn an_agent_that_works_beside_the_configuration_is_reported() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let expected = ["add a preset", "add variables to the unit"];
    let gaps = ["configuration-folder", "user-files"];
    attack(with_config_in_home(hostile_setup(UNCONFINED_SETTING)))
        .await
        .expect_attack_result(&expected, "mount-namespace", &gaps)
        .await;
}

/// With Landlock, a folder that may be changed may be read too.
#[tokio::test]
async fn a_writable_root_above_the_secrets_is_no_boundary() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let setup = hostile_setup("sandbox.writable = ['HERE/../service']").without_bubblewrap();
    let service = setup.start().await;
    let boundary = &service.fetch_agent_status("hostile").await["boundary"];
    let gaps = json!(["service-files", "configuration"]);
    assert_eq!((&boundary["level"], &boundary["gaps"]), (&json!("none"), &gaps), "{boundary}");
    let stderr = service.stderr_text();
    assert!(stderr.contains("agent is not isolated from the service"), "{stderr}");
}

/// Without bubblewrap it reaches the service's files, which is reported; its domain keeps it from other
/// processes all the same.
#[tokio::test]
async fn without_bubblewrap_an_unconfined_agent_is_reported() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("root") {
        return;
    }
    let attack =
        attack(with_unprivileged_user(hostile_setup(UNCONFINED_SETTING)).without_bubblewrap())
            .await;
    let stderr = attack.service.stderr_text();
    assert!(stderr.contains("agent is not isolated from the service"), "{stderr}");
    let config = attack.service.setup.write_config().display().to_string();
    let report = attack.service.setup.run_command(&["doctor", &config], "").await.stdout;
    let finding = report.lines().find(|line| line.contains("agent hostile"));
    assert!(finding.is_some_and(|line| line.starts_with("warning")), "{report}");
    let process_method_words =
        ["environment", "memory", "trace", "signal", "abstract", "speak", "root of"];
    let methods_against_processes = attack
        .successful_methods
        .iter()
        .filter(|method| process_method_words.iter().any(|word| method.contains(word)));
    assert_eq!(methods_against_processes.collect::<Vec<_>>(), Vec::<&String>::new());
    for method in ["read the token", "read the key of sealed inputs"] {
        assert!(
            attack.successful_methods.contains(&method.to_owned()),
            "{:?}",
            attack.successful_methods
        );
    }
    let boundary = &attack.agent_status["boundary"];
    assert_eq!(boundary["level"], "none", "{boundary}");
    assert_eq!(
        boundary["gaps"],
        json!(["service-files", "configuration", "configuration-folder", "user-files"])
    );
}

/// `sandbox.required` refuses the gap of the service's files.
#[tokio::test]
async fn without_bubblewrap_an_unconfined_agent_is_no_isolated_one() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let settings = format!("{UNCONFINED_SETTING}\nsandbox.required = true");
    let (_, output) =
        hostile_setup(&settings).without_bubblewrap().try_start().await.err().unwrap();
    let message = "the agent can read the service's token, keys and ledger";
    assert!(output.stderr.contains(message), "{}", output.stderr);
}

//! Agents that put links in the place of writable roots and working folders of agents.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::PathBuf;

use super::write_private_file;
use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

/// Agents that run their message as a script: one that works in `ws`, and others with a root below that.
const AGENTS: &str = "
[agents.rw]
command = 'sh'
args = ['-s']
access = 'read-write'
working_dir = 'HERE/ws'
sandbox.writable = []
sandbox.required = true
[agents.ro]
command = 'sh'
args = ['-s']
sandbox.writable = ['HERE/ws/cache']
sandbox.required = true
[agents.sub]
command = 'sh'
args = ['-s']
access = 'read-write'
working_dir = 'HERE/ws/sub'
sandbox.writable = []
sandbox.required = true
";

const BUBBLEWRAP_AGENTS: &str = "
[agents.bw]
command = 'sh'
args = ['-s']
sandbox.isolation = 'bubblewrap'
sandbox.writable = ['HERE/ws/cache']
sandbox.required = true
[agents.bs]
command = 'sh'
args = ['-s']
access = 'read-write'
working_dir = 'HERE/ws/sub'
sandbox.isolation = 'bubblewrap'
sandbox.writable = []
sandbox.required = true
[agents.br]
command = 'sh'
args = ['-s']
working_dir = 'HERE/ws/sub'
sandbox.isolation = 'bubblewrap'
sandbox.required = true
";

const UNPRIVILEGED_ID: u32 = 65_532;

fn setup(agents: &str) -> Setup {
    let setup = Setup::new(agents);
    for name in ["ws", "ws/cache", "ws/sub"] {
        fs::create_dir(setup.test_folder().join(name)).unwrap();
    }
    write_private_file(setup.write_config(), &fs::read_to_string(setup.write_config()).unwrap());
    setup
}

fn with_unprivileged_user(setup: Setup) -> Setup {
    let setup = setup.with_unprivileged_user();
    for name in ["ws", "ws/cache", "ws/sub"] {
        chown(setup.test_folder().join(name), Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID))
            .unwrap();
    }
    setup
}

/// Folder of the service's files: the configuration, `run` and `state`.
fn service_folder(service: &ServiceProcess) -> PathBuf {
    service
        .setup
        .config_sibling_path("supervisor.toml")
        .canonicalize()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned()
}

/// Has `rw` replace both folders by links to a path.
async fn replace_folders_by_links(service: &ServiceProcess, target: &str) {
    let ws = service.setup.test_folder().join("ws").display().to_string();
    let script = format!(
        "cd {ws} && rm -rf cache sub && ln -s {target} cache && ln -s {target} sub && echo replaced"
    );
    assert_eq!(task_outcome(&service.send("rw", &script).await), completed_outcome("replaced\n"));
    // A changed folder beside the service's files has rulesets built again.
    let ruleset_trigger_file = service_folder(service).join("changed");
    fs::write(&ruleset_trigger_file, "").unwrap();
    fs::remove_file(ruleset_trigger_file).unwrap();
}

/// Sends an agent a script that reads and changes the service's files, in its place and through `ws`.
async fn expect_file_attack_refused(service: &ServiceProcess, agent: &str) {
    let (folder_path, ws) = (service_folder(service), service.setup.test_folder().join("ws"));
    let (folder_path, ws) = (folder_path.display(), ws.display());
    let script = format!(
        "pwd; head -c 8 {folder_path}/state/algonius/token; ls {folder_path}/run/algonius\n\
         echo '# changed' >> {folder_path}/supervisor.toml; echo x >> {ws}/cache/changed\n\
         head -c 15 {ws}/cache; ls {ws}/cache . ; echo x > {folder_path}/state/algonius/changed; echo over"
    );
    let task = service.send(agent, &script).await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-not-started"), "{agent}: {task}");
    let status = task["status"].to_string();
    assert!(!status.contains(&folder_path.to_string()), "{agent}: {status}");
    assert!(
        status.contains("was replaced") || status.contains("belongs to the service"),
        "{status}"
    );
    let text = fs::read_to_string(service_folder(service).join("supervisor.toml")).unwrap();
    assert!(!text.contains("# changed"), "{agent} changed the configuration");
    for name in ["changed", "state/changed", "state/algonius/changed", "run/algonius/changed"] {
        assert!(!service_folder(service).join(name).exists(), "{agent} made {name}");
    }
}

async fn expect_no_access(setup: Setup, agents: &[&str]) {
    let service = setup.start().await;
    for agent in agents {
        assert_eq!(
            task_outcome(&service.send(agent, "echo ok").await),
            completed_outcome("ok\n"),
            "{agent}"
        );
    }
    // Above the service's files, equal to one, and below one.
    for name in
        ["", "state/algonius", "state/algonius/ledger.db", "run/algonius", "supervisor.toml"]
    {
        let target = service_folder(&service).join(name).display().to_string();
        replace_folders_by_links(&service, &target).await;
        for agent in agents {
            let is_file = name.ends_with(".db") || name.ends_with(".toml");
            // A file is no working folder; the system refuses the start of the program there.
            let has_linked_working_dir = ["sub", "bs", "br"].contains(agent);
            if is_file && has_linked_working_dir {
                let task = service.send(agent, "echo over").await;
                assert_eq!(
                    task_outcome(&task),
                    failed_outcome("agent-not-started"),
                    "{agent} {name}: {task}"
                );
            } else {
                expect_file_attack_refused(&service, agent).await;
            }
        }
    }
}

#[tokio::test]
async fn under_landlock_a_link_opens_no_service_files() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    expect_no_access(setup(AGENTS).without_bubblewrap(), &["ro", "sub"]).await;
    if !skip_without_requirement("root") {
        let setup = with_unprivileged_user(setup(AGENTS)).without_bubblewrap();
        expect_no_access(setup, &["ro", "sub"]).await;
    }
}

#[tokio::test]
async fn under_bubblewrap_a_link_opens_no_service_files() {
    if skip_without_requirement("bubblewrap") || skip_without_requirement("Landlock 6") {
        return;
    }
    let agents = format!("{AGENTS}{BUBBLEWRAP_AGENTS}");
    expect_no_access(setup(&agents), &["bw", "bs", "br"]).await;
    if !skip_without_requirement("root") {
        expect_no_access(with_unprivileged_user(setup(&agents)), &["bw", "bs", "br"]).await;
    }
}

/// A link to a folder that is not the service's own is noticed too: it widens what the agent may change.
#[tokio::test]
async fn a_replaced_writable_root_is_not_followed() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("bubblewrap") {
        return;
    }
    let service = setup(&format!("{AGENTS}{BUBBLEWRAP_AGENTS}")).start().await;
    let other_folder = service.setup.test_folder().join("home").display().to_string();
    replace_folders_by_links(&service, &other_folder).await;
    for agent in ["ro", "bw"] {
        let task = service.send(agent, &format!("echo x > {other_folder}/changed")).await;
        assert_eq!(task_outcome(&task), failed_outcome("agent-not-started"), "{agent}: {task}");
        assert!(task.to_string().contains("was replaced"), "{agent}: {task}");
    }
}

/// A link that exists when the service starts opens nothing either.
#[tokio::test]
async fn a_link_from_before_the_start_opens_no_file() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("bubblewrap") {
        return;
    }
    let setup = setup(&format!("{AGENTS}{BUBBLEWRAP_AGENTS}"));
    for name in ["ws/cache", "ws/sub"] {
        let path = setup.test_folder().join(name);
        fs::remove_dir(&path).unwrap();
        symlink(setup.test_folder().parent().unwrap().join("service"), path).unwrap();
    }
    let service = setup.start().await;
    for agent in ["ro", "sub", "bw", "bs", "br"] {
        expect_file_attack_refused(&service, agent).await;
    }
}

/// A root above the service's files that the configuration names works as before: mounts protect the files.
#[tokio::test]
async fn a_root_above_the_service_files_can_be_chosen() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let text = "[agents.wide]\ncommand = 'sh'\nargs = ['-s']\nsandbox.writable = ['HERE/..']\n\
         [agents.works]\ncommand = 'sh'\nargs = ['-s']\naccess = 'read-write'\n\
         working_dir = 'HERE/..'\nsandbox.writable = []\n";
    let service = Setup::new(text).start().await;
    let token = service.setup.token_file().display().to_string();
    for agent in ["wide", "works"] {
        let script = format!("head -c 8 {token} || echo kept");
        let task = service.send(agent, &script).await;
        assert_eq!(task_outcome(&task), completed_outcome("kept\n"), "{agent}: {task}");
        assert_eq!(service.fetch_agent_status(agent).await["boundary"]["level"], "mount-namespace");
    }
}

//! Secret files that are replaced while an agent runs in bubblewrap, as editors and programs that renew keys do it.

use std::fs;
use std::path::Path;

use super::{BUBBLEWRAP_SETTING, UNCONFINED_SETTING, write_private_file};
use crate::harness::client::task_outcome;
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, poll_until};
use crate::read_only::skip_without_requirement;

/// Agent that waits for a gate, and then prints the number of bytes that it reads of the keys in a folder.
fn waiting_agent(id: &str, folder: &str, settings: &str) -> String {
    let script = format!(
        "until [ -e HERE/gate ]; do sleep 0.05; done; cat HERE/{folder}/key* 2>/dev/null | wc -c; \
         (echo added >> HERE/{folder}/key) 2>/dev/null && echo written; true"
    );
    format!(
        "[agents.{id}]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\nworking_dir = 'HERE/work-{id}'\n{settings}\n"
    )
}

/// Returns a setup with a key in a folder of its own and another one beside another file, and agents that read each.
fn setup_with_keys(settings: &str) -> Setup {
    let agents = [("alone", "secrets"), ("shared", "mixed")];
    let agents = agents.map(|(id, folder)| waiting_agent(id, folder, settings)).concat();
    let setup = Setup::new(&format!(
        "{agents}[agents.keyed]\ncommand = 'cat'\nenv_file.API_KEY = 'HERE/secrets/key'\n\
         env_file.OTHER_KEY = 'HERE/mixed/key'\n"
    ));
    for folder in ["work-alone", "work-shared"] {
        fs::create_dir(setup.test_folder().join(folder)).unwrap();
    }
    for folder in ["secrets", "mixed"] {
        let folder = setup.test_folder().join(folder);
        fs::create_dir(&folder).unwrap();
        write_private_file(&folder.join("key"), "first-secret-value\n");
    }
    fs::write(setup.test_folder().join("mixed/notes.txt"), "for everyone").unwrap();
    setup
}

/// Starts an agent, and waits until it waits for the gate.
async fn start_waiting_task(service: &ServiceProcess, agent: &str) -> String {
    let id = service.start_task(agent, "go").await;
    poll_until("an agent that waits", async || {
        let pids = pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"));
        let is_sleep = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
        };
        pids.iter().any(is_sleep).then_some(())
    })
    .await;
    id
}

/// Replaces a key by another file, as `mv` does, and leaves a copy of the old one.
fn replace_key(folder: &Path) {
    fs::copy(folder.join("key"), folder.join("key.bak")).unwrap();
    write_private_file(&folder.join("key.new"), "second-secret-value\n");
    fs::rename(folder.join("key.new"), folder.join("key")).unwrap();
}

/// Lets both agents run while their keys are replaced; returns what they printed.
async fn run_during_replacement(setup: Setup) -> [String; 2] {
    let service = setup.start().await;
    let alone = start_waiting_task(&service, "alone").await;
    let shared = start_waiting_task(&service, "shared").await;
    for folder in ["secrets", "mixed"] {
        replace_key(&service.setup.test_folder().join(folder));
    }
    service.setup.open_gate("gate");
    let alone = task_outcome(&service.wait_for_task_end("alone", &alone).await);
    let shared = task_outcome(&service.wait_for_task_end("shared", &shared).await);
    assert_eq!((alone.0.as_str(), shared.0.as_str()), ("completed", "completed"));
    [alone.1, shared.1]
}

/// A mount over a file ends when the file is replaced. A folder with nothing but files of the service is covered as a
/// whole; in another one the new file becomes visible, as the page on the boundary states.
#[tokio::test]
async fn a_replaced_secret_file_stays_hidden_in_its_own_folder() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let (new_key, copy) = ("second-secret-value\n", "first-secret-value\n");
    let read_bytes = new_key.len() + copy.len();
    let [alone, shared] = run_during_replacement(setup_with_keys(BUBBLEWRAP_SETTING)).await;
    // A secret file in a folder of the service stays hidden from running agents if another file replaces it
    assert_eq!(alone, "0\n");
    assert_eq!(shared, format!("{read_bytes}\n"));
    let [alone, shared] = run_during_replacement(setup_with_keys(UNCONFINED_SETTING)).await;
    assert_eq!(alone, "0\n");
    assert_eq!(shared, format!("{read_bytes}\nwritten\n"));
}

/// A rule of Landlock is for a file and not for its name.
#[tokio::test]
async fn under_landlock_a_replaced_secret_file_stays_closed() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let setup = setup_with_keys("").without_bubblewrap();
    // A secret file in a folder of the service stays hidden from running agents if another file replaces it
    assert_eq!(run_during_replacement(setup).await, ["0\n", "0\n"]);
}

async fn doctor_report(setup: &Setup) -> String {
    let config = setup.write_config().display().to_string();
    setup.run_command(&["doctor", &config], "").await.stdout
}

#[tokio::test]
async fn the_doctor_names_secret_files_in_shared_folders() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let setup = setup_with_keys(BUBBLEWRAP_SETTING);
    let report = doctor_report(&setup).await;
    assert!(report.contains("agents that run in bubblewrap at that moment can read"), "{report}");
    assert!(report.contains("/mixed/key"), "{report}");
    assert!(!report.contains("/secrets/key"), "{report}");
    let setup = setup_with_keys("").without_bubblewrap();
    let report = doctor_report(&setup).await;
    assert!(report.contains("agent alone") && !report.contains("secret files"), "{report}");
}

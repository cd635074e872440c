//! Modes of the service's files: an agent of its user can change them, and stops nothing by that.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, message_params, poll_until};
use crate::read_only::skip_without_requirement;

/// Changes modes, one `MODE NAME` for each line of its input, and prints how many.
const MODE_CHANGER_SCRIPT: &str = r#"#!/usr/bin/perl
my $changed = 0;
while (<STDIN>) {
    my ($mode, $name) = /^(\d+) (.+)$/ or next;
    $changed += chmod(oct $mode, glob "$ENV{PLACE}/$name");
}
print "$changed\n";
"#;

const SERVICE_FOLDERS: [&str; 2] = ["run/algonius", "state/algonius"];

fn setup() -> Setup {
    let agents = format!(
        "[agents.changer]\ncommand = 'HERE/changer'\nenv.PLACE = 'HERE'\n\
         {}",
        fake_agent_config("one", "echo", "")
    );
    let setup =
        Setup::new(&agents).with_executable("changer", MODE_CHANGER_SCRIPT).without_bubblewrap();
    fs::set_permissions(setup.test_folder().join("changer"), fs::Permissions::from_mode(0o755))
        .unwrap();
    setup
}

fn file_mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Files that the service keeps in its folders.
fn service_files(service: &ServiceProcess) -> Vec<PathBuf> {
    let test_folder = service.setup.test_folder();
    let entries =
        SERVICE_FOLDERS.iter().flat_map(|folder| fs::read_dir(test_folder.join(folder)).unwrap());
    let paths = entries.flatten().map(|entry| entry.path());
    let files: Vec<_> = paths.filter(|path| path.is_file() && !path.ends_with("empty")).collect();
    let has_file = |part: &str| files.iter().any(|path| path.to_string_lossy().contains(part));
    for part in ["/token", "/ledger.db", "/ledger.db-wal", "/inputs-", "/wardens-"] {
        assert!(has_file(part), "{part} is not in {files:?}");
    }
    files
}

async fn expect_modes_restored(setup: Setup) {
    let mut service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "first").await), completed_outcome("first"));
    let files = service_files(&service);
    let folders = SERVICE_FOLDERS.iter().chain(&["run/algonius/scratch"]);
    let folders: Vec<_> = folders.map(|folder| service.setup.test_folder().join(folder)).collect();
    let initial_modes: Vec<_> =
        files.iter().chain(&folders).map(|path| (path, file_mode(path))).collect();
    for (files_mode, folders_mode) in [("000", "000"), ("666", "755")] {
        let names: String = SERVICE_FOLDERS
            .iter()
            .map(|folder| format!("{files_mode} {folder}/[!e]*\n{folders_mode} {folder}\n"))
            .collect();
        // Until the modes are restored, the service cannot always read the end of the task. The repeated message
        // returns the same task.
        let params = message_params(&names);
        let send = async || {
            let response = service.call("changer", "message/send", &params).await;
            (response.status == 200).then(|| task_outcome(&response.json()["result"]))
        };
        let changer_outcome = poll_until("the end of the changes", send).await;
        let min_changed_count = files.len() + folders.len();
        assert!(
            changer_outcome.1.trim().parse::<usize>().unwrap() >= min_changed_count,
            "{changer_outcome:?}"
        );
        let modes_are_restored = async || {
            let current_modes: Vec<_> =
                initial_modes.iter().map(|(path, _)| (*path, file_mode(path))).collect();
            let differs = |(one, other): &(&(&PathBuf, u32), &(&PathBuf, u32))| one != other;
            let different: Vec<_> =
                current_modes.iter().zip(&initial_modes).filter(differs).collect();
            different.is_empty().then_some(())
        };
        poll_until("the modes", modes_are_restored).await;
        assert_eq!(task_outcome(&service.send("one", "again").await), completed_outcome("again"));
    }
    let stderr = service.stderr_text();
    assert!(stderr.contains("a file was closed to the service; its mode is restored"), "{stderr}");
    // The service is not there to restore these.
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    let key_files: Vec<_> =
        files.iter().filter(|file| file.extension() == Some("key".as_ref())).collect();
    assert_eq!(key_files.len(), 2, "{files:?}");
    for wrong_mode in [0o644, 0o000] {
        for key in &key_files {
            fs::set_permissions(key, fs::Permissions::from_mode(wrong_mode)).unwrap();
        }
        service.start_again().await;
        assert_eq!(key_files.iter().map(|key| file_mode(key)).collect::<Vec<_>>(), [0o600, 0o600]);
        assert!(
            service.stderr_text().contains("key file had unexpected permissions"),
            "{}",
            service.stderr_text()
        );
        assert_eq!(task_outcome(&service.send("one", "after").await), completed_outcome("after"));
        service.send_sigterm();
        assert!(service.wait_for_exit().await.success());
    }
}

#[tokio::test]
async fn modes_that_an_agent_changes_stop_nothing() {
    if !skip_without_requirement("Landlock 6") {
        expect_modes_restored(setup()).await;
    }
}

#[tokio::test]
async fn modes_that_a_plain_agent_changes_stop_nothing() {
    if !skip_without_requirement("Landlock 6") && !skip_without_requirement("root") {
        expect_modes_restored(setup().with_unprivileged_user()).await;
    }
}

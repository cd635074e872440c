//! Shared memory of a confined agent: programs need it for their own processes, and it gives access to nothing else.

use std::path::Path;
use std::{env, fs};

use algonius_skips::skip;
use serde_json::Value;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

/// Uses shared memory as the system libraries do, then tries what they never do. Prints what worked.
const SHARED_MEMORY_SCRIPT: &str = r#"
name=/dev/shm/algonius-test-$ALGONIUS_EXECUTION_ID
worked() { printf '%s ' "$1"; }
(echo x > "$name") 2>/dev/null && worked create
(echo y >> "$name" && : > "$name") 2>/dev/null && worked change
ln "$name" "$name.linked" 2>/dev/null && worked link
mv "$name.linked" "$name.moved" 2>/dev/null && worked rename
rm "$name.moved" "$name" 2>/dev/null && worked remove
mkdir "$name.folder" 2>/dev/null && { worked mkdir; rmdir "$name.folder"; }
mkfifo "$name.fifo" 2>/dev/null && { worked fifo; rm "$name.fifo"; }
ln -s /etc/passwd "$name.symlink" 2>/dev/null && { worked symlink; rm "$name.symlink"; }
exit 0
"#;

fn agent_config(settings: &str) -> String {
    format!(
        "[agents.one]\ncommand = 'sh'\nargs = ['-c', '''{SHARED_MEMORY_SCRIPT}''']\n{settings}\n"
    )
}

async fn run_agent_with_setup(setup: Setup) -> Value {
    let service = setup.start().await;
    let task = service.send("one", "x").await;
    assert_eq!(task_outcome(&task).0, "completed", "{task}");
    task["artifacts"][0]["parts"][0]["text"].clone()
}

/// Returns the answer of an agent with these settings.
async fn run_agent_with_settings(settings: &str) -> Value {
    run_agent_with_setup(Setup::new(&agent_config(settings))).await
}

/// Returns whether agents get no shared memory here; records the skip then.
fn skip_without_shared_memory() -> bool {
    let folder = Path::new("/dev/shm");
    let is_usable = folder.canonicalize().is_ok_and(|path| path == folder)
        && !env::temp_dir().starts_with(folder)
        && tempfile::tempfile_in(folder).is_ok();
    if !is_usable {
        skip("needs /dev/shm, and temporary folders elsewhere");
    }
    !is_usable || skip_without_requirement("Landlock 3")
}

#[tokio::test]
async fn a_read_only_agent_uses_shared_memory() {
    if skip_without_shared_memory() {
        return;
    }
    let landlock_settings = "sandbox.isolation = 'landlock'";
    assert_eq!(
        run_agent_with_settings(landlock_settings).await,
        "create change link rename remove "
    );
    let disabled_settings = format!("{landlock_settings}\nsandbox.shared_memory = false");
    assert_eq!(run_agent_with_settings(&disabled_settings).await, "");
}

#[tokio::test]
async fn a_runtime_folder_in_shared_memory_prevents_its_use() {
    if skip_without_shared_memory() {
        return;
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let settings = format!("runtime_dir = '{}'", folder.path().join("run").display());
    let landlock_agent = agent_config("sandbox.isolation = 'landlock'");
    // A rule for the folder would open the service's own files in it.
    assert_eq!(
        run_agent_with_setup(Setup::with_server_settings(&settings, &landlock_agent)).await,
        ""
    );
}

#[tokio::test]
async fn a_workspace_in_shared_memory_stays_read_only() {
    if skip_without_shared_memory() {
        return;
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let workspace = folder.path().display();
    let script = "echo x > made 2>/dev/null && echo changed; exit 0";
    let agents = format!(
        "[agents.one]\ncommand = 'sh'\nargs = ['-c', '{script}']\nworking_dir = '{workspace}'\n\
         sandbox.isolation = 'landlock'\n"
    );
    assert_eq!(run_agent_with_setup(Setup::new(&agents)).await, "");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_wrapped_agent_has_a_shared_memory_of_its_own() {
    if skip_without_shared_memory() || skip_without_requirement("bubblewrap") {
        return;
    }
    let folder = Path::new("/dev/shm");
    let foreign_file = tempfile::NamedTempFile::new_in(folder).unwrap();
    let foreign_path = foreign_file.path().display();
    let own_path = folder.join(format!("own-{}", std::process::id()));
    let script =
        format!("echo x > {} && test ! -e {foreign_path} && echo alone", own_path.display());
    let agents = format!(
        "[agents.one]\ncommand = 'sh'\nargs = ['-c', '{script}']\nsandbox.isolation = 'bubblewrap'\n"
    );
    let service = ServiceProcess::start(&agents).await;
    assert_eq!(task_outcome(&service.send("one", "x").await), completed_outcome("alone\n"));
    assert!(fs::metadata(own_path).is_err(), "it is not that of the machine");
}

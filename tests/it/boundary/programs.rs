//! Programs that the service starts outside of every sandbox, and other ways to the same file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{CONFINED_SETTINGS, write_private_file};
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

async fn boundary_status(service: &ServiceProcess) -> Value {
    service.fetch_agent_status("one").await["boundary"].clone()
}

/// An agent that could rewrite the program of alerts would run a program without a sandbox.
#[tokio::test]
async fn an_agent_does_not_change_the_program_of_alerts() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let script = "echo changed > HERE/site/alert 2>/dev/null || echo refused";
    let text = format!(
        "[alerts]\ncommand = ['HERE/site/alert']\n[agents.one]\ncommand = 'sh'\nargs = ['-c', '{script}']\n\
         working_dir = 'HERE/site'\n{CONFINED_SETTINGS}\n"
    );
    let new_setup = || {
        let setup = Setup::new(&text);
        fs::create_dir_all(setup.test_folder().join("site")).unwrap();
        setup.with_executable("site/alert", "#!/bin/sh\n")
    };
    let service = new_setup().start().await;
    assert_eq!(boundary_status(&service).await, json!({"level": "mount-namespace"}));
    assert_eq!(task_outcome(&service.send("one", "go").await), completed_outcome("refused\n"));
    // Landlock cannot except a file from a folder that the agent may change.
    let (_, output) = new_setup().without_bubblewrap().try_start().await.err().unwrap();
    assert!(output.stderr.contains("change the service's configuration"), "{}", output.stderr);
}

#[tokio::test]
async fn an_alert_program_that_others_can_write_stops_the_start() {
    let setup = Setup::new("[alerts]\ncommand = ['HERE/alert']\n[agents.one]\ncommand = 'cat'\n");
    let setup = setup.with_executable("alert", "#!/bin/sh\n");
    fs::set_permissions(setup.test_folder().join("alert"), fs::Permissions::from_mode(0o777))
        .unwrap();
    let (_, output) = setup.try_start().await.err().unwrap();
    let message = "alert is writable by other users; run `chmod go-w ";
    assert!(output.stderr.contains(message), "{}", output.stderr);
}

/// The folder with the secret is mounted a second time, and there it is closed to the agent too.
#[tokio::test]
async fn a_second_mount_of_a_secret_file_is_closed_too() {
    if skip_without_requirement("root")
        || skip_without_requirement("bubblewrap")
        || skip_without_requirement("Landlock 6")
    {
        return;
    }
    let script = "cat HERE/alias/key HERE/secrets/key 2>/dev/null; echo closed";
    let agents = |settings: &str| {
        format!(
            "[agents.one]\ncommand = 'sh'\nargs = ['-c', '{script}']\nworking_dir = 'HERE/site'\n{settings}\n\
             [agents.keyed]\ncommand = 'cat'\nenv_file.API_KEY = 'HERE/secrets/key'\n"
        )
    };
    for settings in ["", "access = 'read-write'"] {
        let setup = Setup::new(&agents(settings));
        let test_folder = setup.test_folder().to_owned();
        for folder in ["secrets", "alias", "site"] {
            fs::create_dir_all(test_folder.join(folder)).unwrap();
        }
        write_private_file(&test_folder.join("secrets/key"), "first-secret-value\n");
        let mount = "mount --bind \"$0/secrets\" \"$0/alias\" && exec \"$@\"";
        let args = ["unshare", "--mount", "sh", "-c", mount, test_folder.to_str().unwrap()];
        let service = setup.with_launcher(&args).start().await;
        assert_eq!(
            task_outcome(&service.send("one", "go").await),
            completed_outcome("closed\n"),
            "{settings}"
        );
        assert_ne!(boundary_status(&service).await["level"], "none");
    }
}

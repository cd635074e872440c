//! Programs that exist and may be executed, but not by their user or in their sandbox.

use std::fs;
use std::os::unix::fs::symlink;

use crate::harness::client::{failed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

/// Scripts, each with its interpreter in a hidden folder.
const SCRIPTS_WITH_INTERPRETERS: [(&str, &str); 3] =
    [("script", "shell"), ("env-script", "shell"), ("nested-script", "direct")];

/// The message of a task whose program was not started.
async fn expect_start_failure(service: &ServiceProcess, agent: &str) -> String {
    let task = service.send(agent, "x").await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-not-started"), "{agent}: {task}");
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_that_the_sandbox_hides_is_named() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let agent_config = |(program, _): (&str, &str)| {
        format!(
            "[agents.{program}]\ncommand = 'HERE/{program}'\nsandbox.hidden = ['HERE/tools']\n\
             env.PATH = 'HERE/tools:/usr/bin:/bin'\n"
        )
    };
    let setup = Setup::new(&SCRIPTS_WITH_INTERPRETERS.map(agent_config).concat());
    let folder = setup.test_folder().join("tools");
    fs::create_dir(&folder).unwrap();
    symlink("/bin/sh", folder.join("shell")).unwrap();
    let folder = folder.display().to_string();
    let setup = setup
        .with_executable("script", &format!("#!{folder}/shell\n"))
        .with_executable("env-script", "#!/usr/bin/env shell\n")
        .with_executable("tools/direct", "#!/bin/sh\n")
        .with_executable("nested-script", &format!("#!{folder}/direct\n"));
    let config = setup.write_config().display().to_string();
    let check_output = setup.run_command(&["check", &config], "").await;
    let warning = |name: &str| format!("warning: agents.{name}.sandbox.hidden[0]");
    assert!(check_output.stderr.contains(&warning("script")), "{check_output:?}");
    let service = setup.start().await;
    for (program, interpreter) in SCRIPTS_WITH_INTERPRETERS {
        let expected = format!(
            "the program cannot be executed: its sandbox hides its interpreter, `{interpreter}`, because of \
             `sandbox.hidden`, or as a file of the service"
        );
        assert_eq!(expect_start_failure(&service, program).await, expected);
    }
}

#[tokio::test]
async fn a_user_that_may_not_execute_its_program_is_named() {
    if skip_without_requirement("root") {
        return;
    }
    // The folder of a test is closed to other users.
    let agent = "[agents.own]\ncommand = 'HERE/own'\nuser = 'daemon'\nworking_dir = '/'\n";
    let service = Setup::new(agent).with_executable("own", "#!/bin/sh\n").start().await;
    let expected = "the user of the program (`user`) may not execute it or its interpreter, or may not enter its \
                    working folder or a folder of theirs";
    assert_eq!(expect_start_failure(&service, "own").await, expected);
}

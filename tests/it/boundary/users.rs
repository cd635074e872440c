//! Agents that run as users of their own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{attack, hostile_setup};
use crate::harness::client::{completed_outcome, task_outcome, task_state};
use crate::harness::{Setup, fake_agent_config, poll_until};
use crate::read_only::skip_without_requirement;

/// An account that every Debian machine has, and that owns nothing.
pub(super) const AGENT_USER_AND_ID: (&str, u32) = ("daemon", 1);

/// Opens the folder of a test to other users, as a workspace of theirs would be.
pub(super) fn with_open_folder(setup: Setup) -> Setup {
    for path in [
        setup.test_folder().parent().unwrap(),
        setup.test_folder(),
        &setup.test_folder().join("hostile"),
    ] {
        if path.exists() {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    setup
}

/// It runs without groups and rights, in the home of its account.
#[tokio::test]
async fn an_agent_runs_as_its_user() {
    if skip_without_requirement("root") {
        return;
    }
    let script = "id -u; id -G; grep CapEff /proc/self/status; echo $HOME $USER; touch $TMPDIR/x";
    for settings in ["", "sandbox.enforce = false\nenv.TMPDIR = '/tmp'"] {
        let agent = format!(
            "[agents.one]\nuser = '{}'\ncommand = 'sh'\nargs = ['-c', '{script}']\n\
             working_dir = '/'\n{settings}\n",
            AGENT_USER_AND_ID.0
        );
        let service = with_open_folder(Setup::new(&agent)).start().await;
        let task = service.send("one", "go").await;
        let expected = "1\n1\nCapEff:\t0000000000000000\n/usr/sbin daemon\n";
        assert_eq!(task_outcome(&task), completed_outcome(expected), "{settings}");
        assert_eq!(service.fetch_agent_status("one").await["boundary"]["level"], "own-user");
    }
}

/// The agent's user owns the files of its request, and the service reads the files that the agent created.
#[tokio::test]
async fn input_files_belong_to_the_user_of_the_agent() {
    if skip_without_requirement("root") {
        return;
    }
    let agent = format!(
        "[agents.one]\nuser = '{}'\ncommand = 'sort'\ninput = 'file'\noutput = 'file'\n\
         args = ['-o', '{{{{ output_file }}}}', '{{{{ input_file }}}}']\nworking_dir = '/'\n",
        AGENT_USER_AND_ID.0
    );
    let service = with_open_folder(Setup::new(&agent)).start().await;
    assert_eq!(task_outcome(&service.send("one", "b\na\n").await), completed_outcome("a\nb\n"));
}

#[tokio::test]
async fn an_agent_of_another_user_reaches_nothing() {
    if skip_without_requirement("root") {
        return;
    }
    // Without a domain it shares the network of the machine, of which abstract sockets are a part.
    let abstract_socket_methods = ["connect to an abstract socket"];
    for (access, successful) in [
        ("access = 'read-write'", &[][..]),
        ("", &[]),
        ("sandbox.enforce = false", &abstract_socket_methods),
    ] {
        let settings = format!("user = '{}'\n{access}", AGENT_USER_AND_ID.0);
        attack(with_open_folder(hostile_setup(&settings)))
            .await
            .expect_attack_result(successful, "own-user", &[])
            .await;
    }
}

/// Each agent has its own number of the range, also after a restart, and its own home.
#[tokio::test]
async fn a_dynamic_user_is_stable_and_exclusive() {
    if skip_without_requirement("root") {
        return;
    }
    let agent = |id: &str| {
        format!(
            "[agents.{id}]\nuser = 'dynamic'\naccess = 'read-write'\nworking_dir = '/'\n\
             command = 'sh'\nargs = ['-c', 'id -u; echo kept >> $HOME/file; cat $HOME/file']\n"
        )
    };
    let agents = format!("{}{}", agent("one"), agent("two"));
    let setup = Setup::with_server_settings("agent_users = '61184-61199'", &agents);
    let mut service = with_open_folder(setup).start().await;
    let tasks = [service.send("one", "x").await, service.send("two", "x").await];
    let users =
        tasks.map(|task| task_outcome(&task).1.lines().next().unwrap().parse::<u32>().unwrap());
    assert!(users[0] != users[1] && users.iter().all(|uid| (61184..=61199).contains(uid)));
    let home = service.setup.test_folder().join("state/algonius/homes/one");
    let metadata = fs::metadata(&home).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (users[0], 0o700));
    service.kill9().await;
    service.start_again().await;
    let output = task_outcome(&service.send("one", "x").await);
    assert_eq!(output, completed_outcome(&format!("{}\nkept\nkept\n", users[0])));
}

/// The program of another user is killed, and continues across a kill of the service, like any other program.
#[tokio::test]
async fn a_program_of_another_user_is_held_and_killed() {
    if skip_without_requirement("root") {
        return;
    }
    let script = "trap \"\" TERM; while :; do sleep 0.1; done";
    let agent = format!(
        "[agents.one]\nuser = '{}'\ncommand = 'sh'\nargs = ['-c', '{script}']\nworking_dir = '/'\n\
         stop_grace = 0.1\n",
        AGENT_USER_AND_ID.0
    );
    let mut service = with_open_folder(Setup::new(&agent)).start().await;
    let id = service.start_task("one", "x").await;
    // A program that is still being started at a kill is not held.
    poll_until("a program that runs", async || {
        (service.fetch_execution(&id).await["state"] == "running").then_some(())
    })
    .await;
    service.kill9().await;
    service.start_again().await;
    assert_eq!(task_state(&service.cancel("one", &id).await), "canceled");
    let env_entry = format!("ALGONIUS_EXECUTION_ID={id}");
    assert_eq!(crate::harness::processes::pids_with_env(&env_entry), Vec::<i32>::new());
}

#[tokio::test]
async fn user_errors_are_reported() {
    let check_errors = async |settings: &str| {
        let setup = Setup::new(&fake_agent_config("one", "echo", settings));
        let config = setup.write_config().display().to_string();
        setup.run_command(&["check", &config], "").await.stderr
    };
    for (settings, expected) in [
        ("user = 'no-such-user'", "there is no such user"),
        ("user = 'root'", "must not be root"),
        ("user = 'dynamic'\nhome = 'shared'", "must be \"per-agent\""),
        ("user = 'dynamic'", "needs a range of users"),
    ] {
        let stderr = check_errors(settings).await;
        assert!(stderr.contains(expected), "{settings}: {stderr}");
    }
    let setup =
        Setup::with_server_settings("agent_users = '10-20'", &fake_agent_config("one", "echo", ""));
    let config = setup.write_config().display().to_string();
    let stderr = setup.run_command(&["check", &config], "").await.stderr;
    assert!(stderr.contains("must be two numbers from 1000 on"), "{stderr}");
}

/// A service that may not change users does not run an agent as itself instead.
#[tokio::test]
async fn a_service_without_the_right_refuses_a_user() {
    if skip_without_requirement("root") {
        return;
    }
    let agent = fake_agent_config("one", "echo", &format!("user = '{}'", AGENT_USER_AND_ID.0));
    let setup = Setup::new(&agent).with_unprivileged_user();
    let config = setup.write_config().display().to_string();
    let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
    let output = setup.run_command(&args, "").await;
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert!(output.stderr.contains("may not change users"), "{output:?}");
}

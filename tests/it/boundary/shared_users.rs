//! Two agents that run as the same user.

use std::fs;

use serde_json::{Value, json};

use super::trust::set_mode;
use super::users::{AGENT_USER_AND_ID, with_open_folder};
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

/// Returns a setup with an agent that keeps a file in its home, and one of the same user that reads the file and adds
/// another.
fn setup_with_shared_user(settings: &str) -> Setup {
    let (user, _) = AGENT_USER_AND_ID;
    let agent = |id: &str, script: &str, settings: &str| {
        format!(
            "[agents.{id}]\nuser = '{user}'\nhome = 'per-agent'\nworking_dir = '/'\ncommand = 'sh'\n\
             args = ['-c', '''{script}''']\n{settings}\n"
        )
    };
    let home = "HERE/../service/state/algonius/homes/keeper";
    let intruder = format!(
        "cat {home}/file 2>/dev/null || echo closed; touch {home}/other 2>/dev/null && echo written; true"
    );
    let agents = agent("keeper", "echo private > $HOME/file", "access = 'read-write'")
        + &agent("intruder", &intruder, settings);
    with_open_folder(Setup::new(&agents))
}

async fn intrude(service: &ServiceProcess) -> (String, Value) {
    assert_eq!(task_outcome(&service.send("keeper", "go").await), completed_outcome(""));
    let (state, text) = task_outcome(&service.send("intruder", "go").await);
    assert_eq!(state, "completed");
    (text, service.fetch_agent_status("intruder").await["boundary"].clone())
}

#[tokio::test]
async fn an_agent_with_a_shared_user_has_a_gap() {
    if skip_without_requirement("root") || skip_without_requirement("Landlock 6") {
        return;
    }
    let (open, closed) = ("private\nwritten\n", "closed\n");
    let open_boundary = json!({"level": "own-user", "gaps": ["other-agents"]});
    for (settings, expected) in [
        ("access = 'read-write'", (open, &open_boundary)),
        ("sandbox.enforce = false", (open, &open_boundary)),
        ("", (closed, &json!({"level": "own-user"}))),
    ] {
        let service = setup_with_shared_user(settings).without_bubblewrap().start().await;
        let (text, boundary) = intrude(&service).await;
        assert_eq!((text.as_str(), &boundary), expected, "{settings}");
    }
    let setup = setup_with_shared_user("access = 'read-write'").without_bubblewrap();
    let config = setup.write_config().display().to_string();
    let check = setup.run_command(&["check", &config], "").await;
    let ability = "the agent can reach the files or processes of other agents that run as its user";
    assert!(check.stderr.contains(ability), "{check:?}");
    let doctor = setup.run_command(&["doctor", &config], "").await;
    assert!(doctor.stdout.contains("give each agent a user of its own"), "{doctor:?}");
    let settings = "access = 'read-write'\nsandbox.required = true";
    let (_, output) =
        setup_with_shared_user(settings).without_bubblewrap().try_start().await.err().unwrap();
    assert!(output.stderr.contains(ability), "{output:?}");
}

#[tokio::test]
async fn bubblewrap_separates_agents_with_a_shared_user() {
    if skip_without_requirement("root") || skip_without_requirement("bubblewrap") {
        return;
    }
    let service = setup_with_shared_user("access = 'read-write'").start().await;
    let (text, boundary) = intrude(&service).await;
    assert_eq!((text.as_str(), boundary), ("closed\n", json!({"level": "own-user"})));
}

/// Bubblewrap runs as the user of the agent, and so cannot mount anything in a closed folder.
#[tokio::test]
async fn bubblewrap_starts_beside_a_closed_configuration() {
    if skip_without_requirement("root") || skip_without_requirement("bubblewrap") {
        return;
    }
    let setup = setup_with_shared_user("access = 'read-write'");
    let closed_folder = setup.test_folder().join("closed");
    fs::create_dir_all(closed_folder.join("inner")).unwrap();
    let config = closed_folder.join("inner/supervisor.toml");
    fs::copy(setup.write_config(), &config).unwrap();
    set_mode(&closed_folder, 0o700);
    let service = setup.with_config_file(&config).start().await;
    let (text, boundary) = intrude(&service).await;
    assert_eq!((text.as_str(), boundary), ("closed\n", json!({"level": "own-user"})));
}

//! Agents that change things in one folder work there one after the other, whatever leads there.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::harness::client::{completed_outcome, task_id, task_outcome, task_state};
use crate::harness::{ServiceProcess, Setup, gated_agent_config, message_params, poll_until};

/// Gated agents that change things, each in a folder below `HERE`.
fn writer_agents_config(agents: &[(&str, &str)]) -> String {
    let writer_config = |(agent_id, folder): &(&str, &str)| {
        gated_agent_config(
            agent_id,
            &format!("access = 'read-write'\nworking_dir = 'HERE/{folder}'"),
        )
    };
    agents.iter().map(writer_config).collect()
}

/// `shared` has a folder in it and a link to it; `other` stands beside it.
async fn start_with_folders(agents: &str) -> ServiceProcess {
    let setup = Setup::new(agents);
    for folder in ["shared/nested", "other"] {
        fs::create_dir_all(setup.test_folder().join(folder)).unwrap();
    }
    symlink(setup.test_folder().join("shared"), setup.test_folder().join("link")).unwrap();
    setup.start().await
}

async fn wait_for_log_line(service: &ServiceProcess, line: &str) {
    poll_until(line, async || {
        service.setup.read_file("log").lines().any(|logged_line| logged_line == line).then_some(())
    })
    .await;
}

#[tokio::test]
async fn agents_that_share_a_workspace_run_in_order_of_arrival() {
    let agents = [("ann", "shared"), ("bob", "shared/nested"), ("cid", "link"), ("dan", "other")];
    let service = start_with_folders(&writer_agents_config(&agents)).await;
    let mut ids = Vec::new();
    for (agent, _) in agents {
        ids.push((agent, service.start_task(agent, agent).await));
        match agent {
            "bob" | "cid" => service.wait_until_in_workspace_queue(agent).await,
            _ => wait_for_log_line(&service, &format!("start {agent}")).await,
        }
    }
    // The agent of the other folder runs meanwhile, so the others had time to start.
    service.setup.open_gate("go-dan");
    wait_for_log_line(&service, "end dan").await;
    service.setup.open_gate("go");
    for (agent, task_id) in &ids {
        let answer = format!("{agent}\n");
        assert_eq!(
            task_outcome(&service.wait_for_task_end(agent, task_id).await),
            completed_outcome(&answer)
        );
    }
    let log = service.setup.read_file("log");
    let shared_folder_lines: Vec<_> = log.lines().filter(|line| !line.ends_with("dan")).collect();
    let expected_lines =
        ["ann", "bob", "cid"].map(|agent| [format!("start {agent}"), format!("end {agent}")]);
    // Agents whose folders overlap run one after the other in these folders
    assert_eq!(shared_folder_lines, expected_lines.concat());
}

#[tokio::test]
async fn a_folder_chosen_by_a_caller_is_a_shared_workspace() {
    let settings = "access = 'read-write'\nworking_dir = 'HERE/other'\noverrides = { working_dirs = ['HERE'] }";
    let agents =
        [gated_agent_config("free", settings), writer_agents_config(&[("ann", "shared")])].concat();
    let mut service = start_with_folders(&agents).await;
    let mut params = message_params("bob");
    let folder = service.setup.test_folder().join("link/nested").display().to_string();
    params["message"]["metadata"] =
        json!({"https://algonius.dev/a2a/ext/overrides/v1": {"workingDirectory": folder}});
    params["configuration"] = json!({"blocking": false});
    service.expect_result("free", "message/send", &params).await;
    wait_for_log_line(&service, "start bob").await;
    let waiting_id = service.start_task("ann", "ann").await;
    service.kill9_with_holder().await;
    service.start_again().await; // What ran is killed and ended, what waited has the folder now.
    wait_for_log_line(&service, "start ann").await;
    params["message"]["messageId"] = json!("again");
    let second_id = task_id(&service.expect_result("free", "message/send", &params).await);
    service.setup.open_gate("go");
    for (agent, task_id) in [("ann", &waiting_id), ("free", &second_id)] {
        assert_eq!(task_state(&service.wait_for_task_end(agent, task_id).await), "completed");
    }
    let log = service.setup.read_file("log");
    assert_eq!(log, "start bob\nstart ann\nend ann\nstart bob\nend bob\n");
}

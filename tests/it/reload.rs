//! The configuration changes while the service runs, and nobody's work is lost by it.

mod concurrent_reloads;

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome, task_state};
use crate::harness::disk::SmallDisk;
use crate::harness::{
    ServiceClient, ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params,
    poll_until,
};

/// A configuration that is read again only when that is asked for.
pub(crate) fn config_without_watch(agents: &str) -> String {
    config_with_server_settings("watch = false", agents)
}

/// A configuration with settings of the server.
fn config_with_server_settings(server_settings: &str, agents: &str) -> String {
    let limits = "[limits]\ntimeout_min = 0.1\nqueue_timeout_min = 0.1\n";
    format!("[pressure]\nenabled = false\n[server]\n{server_settings}\n{limits}{agents}")
}

/// An agent that waits for its gate and answers with this word.
fn gated_answering_agent_config(word: &str) -> String {
    gated_agent_config("one", "max_concurrent = 1")
        .replace("echo \"$word\"\n", &format!("echo \"$word {word}\"\n"))
}

pub(crate) async fn start_service(text: &str) -> ServiceProcess {
    Setup::from_config_text(text).start().await
}

/// Puts another text in the place of the configuration.
pub(crate) fn replace_config(service: &mut ServiceProcess, text: &str) {
    service.setup.set_config_text(text);
    service.setup.write_config();
}

/// Puts another text there, and has it read; what was told.
pub(crate) async fn write_and_reload(service: &mut ServiceProcess, text: &str) -> Value {
    replace_config(service, text);
    let answer = service.post("/api/v1/reload", "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Sends a text and does not wait for the end; the id of the task.
async fn submit_for_id(client: &ServiceClient, agent: &str, text: &str) -> String {
    let mut params = message_params(text);
    params["configuration"] = json!({"blocking": false});
    task_id(&client.expect_result(agent, "message/send", &params).await)
}

async fn wait_for_execution_end(client: &ServiceClient, id: &str) -> Value {
    poll_until("the end", async || {
        let record = client.fetch_execution(id).await;
        record["outcome"].is_string().then_some(record)
    })
    .await
}

fn outcome_and_output(record: &Value) -> (&str, &str) {
    let field_text = |key: &str| record[key].as_str().unwrap_or_default().trim_end();
    (field_text("outcome"), field_text("output"))
}

async fn configuration_status(client: &ServiceClient) -> Value {
    client.get("/status").await.json()["configuration"].take()
}

#[tokio::test]
async fn a_reload_applies_to_queued_but_not_to_running_work() {
    let other_agent = fake_agent_config("two", "echo", "");
    let old_agents = [gated_answering_agent_config("old"), other_agent.clone()].concat();
    let mut service = start_service(&config_without_watch(&old_agents)).await;
    service.send("two", "hello").await;
    let idle_agent_status = async || {
        let other_status = service.fetch_agent_status("two").await;
        other_status["lastExecution"].is_object().then_some(other_status)
    };
    let other_status = poll_until("the rest of the other agent", idle_agent_status).await;
    let running_id = submit_for_id(&service, "one", "a").await;
    service.setup.wait_for_file_text("log", "start a\n").await;
    let waiting_id = submit_for_id(&service, "one", "b").await;
    let new_agents = [gated_answering_agent_config("new"), other_agent].concat();
    let report = write_and_reload(&mut service, &config_without_watch(&new_agents)).await;
    assert_eq!(
        (&report["generation"], &report["applied"]["agents"]),
        (&json!(2), &json!({"added": [], "changed": ["one"], "removed": []}))
    );
    let queued_id = &service.fetch_agent_status("one").await["queued"][0]["id"];
    assert_eq!(*queued_id, json!(waiting_id));
    service.setup.open_gate("go");
    // R-61: Running work keeps its configuration, queued work starts with the new one, and an agent
    // with unchanged tables is unchanged
    let running_record = wait_for_execution_end(&service, &running_id).await;
    assert_eq!(outcome_and_output(&running_record), ("completed", "a old"));
    let waiting_record = wait_for_execution_end(&service, &waiting_id).await;
    assert_eq!(outcome_and_output(&waiting_record), ("completed", "b new"));
    assert_eq!(service.fetch_agent_status("two").await, other_status, "it was touched");
    let repeated_report = service.post("/api/v1/reload", "").await.json();
    assert_eq!(
        (&repeated_report["generation"], &repeated_report["applied"]["agents"]["changed"]),
        (&json!(2), &json!([]))
    );
}

#[tokio::test]
async fn a_removed_agent_finishes_its_work_and_a_new_one_serves() {
    let old_agents =
        [gated_answering_agent_config("old"), fake_agent_config("two", "echo", "")].concat();
    let mut service = start_service(&config_without_watch(&old_agents)).await;
    let running_id = submit_for_id(&service, "one", "a").await;
    service.setup.wait_for_file_text("log", "start a\n").await;
    let waiting_id = submit_for_id(&service, "one", "b").await;
    let new_agents =
        [fake_agent_config("two", "echo", ""), fake_agent_config("three", "echo", "")].concat();
    let report = write_and_reload(&mut service, &config_without_watch(&new_agents)).await;
    let agent_changes = &report["applied"]["agents"];
    assert_eq!(*agent_changes, json!({"added": ["three"], "changed": [], "removed": ["one"]}));
    assert_eq!(task_outcome(&service.send("three", "hello").await), completed_outcome("hello"));
    let refusal = service.expect_refusal("one", "message/send", message_params("c")).await;
    assert_eq!(refusal, (-32053, "agent-removed".to_owned()));
    assert_eq!(task_state(&service.fetch_task("one", &running_id).await), "working");
    assert_eq!(service.fetch_agent_status("one").await["health"], "draining");
    service.setup.open_gate("go");
    // R-62: A removed agent accepts no new work, finishes running and queued work, and then
    // disappears
    let running_record = wait_for_execution_end(&service, &running_id).await;
    assert_eq!(outcome_and_output(&running_record), ("completed", "a old"));
    let waiting_record = wait_for_execution_end(&service, &waiting_id).await;
    assert_eq!(outcome_and_output(&waiting_record), ("completed", "b old"));
    poll_until("the end of the agent", async || {
        let refusal = service.expect_refusal("one", "message/send", message_params("d")).await;
        (refusal.1 == "agent-unknown").then_some(())
    })
    .await;
    let list = service.get("/api/v1/agents").await.json();
    let ids: Vec<_> = list["agents"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["three", "two"]);
}

/// An agent that asks, and never goes on by itself.
const QUESTION_AGENT: &str = r#"
[agents.asking]
command = "sh"
args = ["-c", '''echo '{"type":"input_required","text":"which?"}' ''']
output = "events"
"#;

#[tokio::test]
async fn an_open_question_of_a_removed_agent_is_settled() {
    let agents = [QUESTION_AGENT, &fake_agent_config("two", "echo", "")].concat();
    let mut service = start_service(&config_without_watch(&agents)).await;
    let task = service.send("asking", "hello").await;
    assert_eq!(task_state(&task), "input-required");
    let other_agent = fake_agent_config("two", "echo", "");
    write_and_reload(&mut service, &config_without_watch(&other_agent)).await;
    let record = wait_for_execution_end(&service, &task_id(&task)).await;
    // R-64: An open question of a removed agent is settled
    let end = (&record["outcome"], &record["error"]["code"]);
    assert_eq!(end, (&json!("failed"), &json!("agent-removed")));
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_and_not_applied() {
    let valid_config = config_without_watch(&fake_agent_config("one", "echo", ""));
    let mut service = start_service(&valid_config).await;
    let invalid_config =
        config_without_watch("[agents.two]\ncommand = 'sh'\nmax_concurent = 3\n[tokens.x]\n");
    replace_config(&mut service, &invalid_config);
    let answer = service.post("/api/v1/reload", "").await;
    let report = answer.json();
    assert_eq!((answer.status, &report["code"]), (422, &json!("configuration-rejected")));
    let line = invalid_config.lines().position(|line| line.starts_with("max_con")).unwrap() + 1;
    let error = &report["rejected"][0];
    assert_eq!(
        (&error["file"], &error["line"], &error["column"], &error["key"], &error["hint"]),
        (
            &json!("supervisor.toml"),
            &json!(line),
            &json!(1),
            &json!("agents.two.max_concurent"),
            &json!("did you mean `max_concurrent`?")
        )
    );
    assert_eq!(report["rejected"].as_array().unwrap().len(), 2);
    let reload_output = service.run_command(&["reload"], "").await;
    assert_eq!(reload_output.exit_code, Some(4), "{reload_output:?}");
    assert!(reload_output.stderr.contains(&format!("supervisor.toml:{line}:1: agents.two.max_")));
    let status = configuration_status(&service).await;
    assert_eq!((&status["generation"], &status["rejected"]), (&json!(1), &report["rejected"]));
    // R-66: An invalid configuration changes nothing, and the report has the line and column of the
    // error
    assert_eq!(task_outcome(&service.send("one", "hello").await), completed_outcome("hello"));
    write_and_reload(&mut service, &valid_config).await;
    assert_eq!(configuration_status(&service).await["rejected"], json!([]));
}

#[tokio::test]
async fn settings_that_need_a_restart_are_reported_as_pending() {
    let agents = fake_agent_config("one", "echo", "");
    let mut service = start_service(&config_without_watch(&agents)).await;
    let server_settings =
        "watch = false\nmax_connections = 77\ndata_dir = 'HERE/elsewhere'\nmax_body_bytes = 2048";
    let new_config = config_with_server_settings(server_settings, &agents);
    let report = write_and_reload(&mut service, &new_config).await;
    let pending_keys = ["server.data_dir", "server.token_file", "server.max_connections"];
    // R-67: Settings that need a restart are reported by their keys
    assert_eq!(report["pending"], json!(pending_keys));
    assert_eq!(report["applied"]["settings"], json!(["server.max_body_bytes"]));
    assert_eq!(service.post("/agents/one/v1", &"x".repeat(3000)).await.status, 413);
    assert_eq!(configuration_status(&service).await["pending"], report["pending"]);
    let report = write_and_reload(&mut service, &config_without_watch(&agents)).await;
    assert_eq!(report["pending"], json!([]));
}

#[tokio::test]
async fn sighup_reloads_the_configuration() {
    let agent = fake_agent_config("one", "echo", "");
    let mut service = start_service(&config_without_watch(&agent)).await;
    let both_agents = [agent, fake_agent_config("two", "echo", "")].concat();
    replace_config(&mut service, &config_without_watch(&both_agents));
    service.send_signal(Signal::SIGHUP);
    poll_until("the second generation", async || {
        (configuration_status(&service).await["generation"] == 2).then_some(())
    })
    .await;
    // R-69: The service reloads the configuration on SIGHUP, and when it or a file that it names
    // changes
    assert_eq!(task_outcome(&service.send("two", "hello").await), completed_outcome("hello"));
    assert!(service.stderr_text().contains("configuration read"));
}

#[tokio::test]
async fn a_change_of_the_configuration_or_a_named_file_reloads() {
    let env_file_table = "[agents.one.env_file]\nA_TOKEN = 'HERE/secret'\n";
    let agents = fake_agent_config("one", "env", env_file_table);
    let setup = Setup::from_config_text(&config_with_server_settings("", &agents));
    let secret_file = setup.test_folder().join("secret");
    fs::write(&secret_file, "first-first-first").unwrap();
    let mut service = setup.start().await;
    assert_eq!(configuration_status(&service).await["watched"], true);
    fs::write(&secret_file, "second-second-second").unwrap();
    let wait_for_generation = async |expected: u64| {
        poll_until("a generation", async || {
            (configuration_status(&service).await["generation"] == expected).then_some(())
        })
        .await;
    };
    wait_for_generation(2).await;
    let new_agent = fake_agent_config("two", "echo first-first-first:second-second-second", "");
    let both_agents = [agents, new_agent].concat();
    replace_config(&mut service, &config_with_server_settings("", &both_agents));
    poll_until("the third generation", async || {
        (configuration_status(&service).await["generation"] == 3).then_some(())
    })
    .await;
    // Texts of the agents' environments are masked, those before and those now.
    let task = service.send("two", "first-first-first second-second-second").await;
    let answer = task_outcome(&task).1;
    // R-69: The service reloads the configuration on SIGHUP, and when it or a file that it names
    // changes
    assert!(!answer.contains("first-first") && !answer.contains("second-second"), "{answer}");
}

#[tokio::test]
async fn configured_tokens_change_and_their_owner_keeps_its_tasks() {
    let agents = fake_agent_config("one", "echo", "");
    let token_table = |file: &str| format!("[tokens.ann]\ntoken_file = 'HERE/{file}'\n");
    let setup = Setup::from_config_text(&config_without_watch(&agents));
    for (file, letter) in [("ann", "a"), ("ann-next", "n")] {
        fs::write(setup.test_folder().join(file), letter.repeat(40)).unwrap();
    }
    let mut service = setup.start().await;
    let (ann, next_client) =
        (service.client_with_token(&"a".repeat(40)), service.client_with_token(&"n".repeat(40)));
    assert_eq!(ann.get("/status").await.status, 401);
    let new_config = config_without_watch(&[agents.clone(), token_table("ann")].concat());
    let report = write_and_reload(&mut service, &new_config).await;
    assert_eq!(report["applied"]["tokens"]["added"], json!(["ann"]));
    let task = task_id(&ann.send("one", "hello").await);
    let new_config = config_without_watch(&[agents.clone(), token_table("ann-next")].concat());
    let report = write_and_reload(&mut service, &new_config).await;
    assert_eq!(report["applied"]["tokens"]["changed"], json!(["ann"]));
    assert_eq!(ann.get("/status").await.status, 401);
    assert_eq!(next_client.get("/status").await.status, 200);
    let task = next_client.fetch_task("one", &task).await;
    // R-71: A configured token that is replaced leaves all tasks to its owner
    assert_eq!(task_outcome(&task), completed_outcome("hello"));
    write_and_reload(&mut service, &config_without_watch(&agents)).await;
    assert_eq!(next_client.get("/status").await.status, 401);
}

#[tokio::test]
async fn a_reload_needs_administration_of_all_agents() {
    let agents = fake_agent_config("one", "echo", "");
    let tokens = "[tokens.ann]\ntoken_env = 'ANN'\n[tokens.bob]\ntoken_env = 'BOB'\n\
         scopes = ['admin']\nagents = ['one']\n";
    let setup = Setup::from_config_text(&config_without_watch(&[&agents, tokens].concat()));
    let service = setup.env("ANN", &"a".repeat(40)).env("BOB", &"b".repeat(40)).start().await;
    for token in ["a", "b"] {
        let answer = service.client_with_token(&token.repeat(40)).post("/api/v1/reload", "").await;
        assert_eq!((answer.status, &answer.json()["code"]), (403, &json!("forbidden")));
    }
}

#[tokio::test]
async fn configured_schedules_are_added_changed_and_removed() {
    let schedule_table = |cron: &str| {
        format!(
            "[schedules.beat]\nagent = 'echo'\ncron = '{cron}'\ninput = 'x'\ntimezone = 'UTC'\n"
        )
    };
    let echo_agent = fake_agent_config("echo", "echo", "");
    let mut service = start_service(&config_without_watch(&echo_agent)).await;
    let mut reload_and_list_schedules = async |agents: String| {
        service.setup.set_config_text(&config_without_watch(&agents));
        service.setup.write_config();
        let output = service.run_command(&["reload", "--json"], "").await;
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let schedules = service.get("/api/v1/schedules").await.json();
        let schedules = schedules["schedules"].as_array().unwrap();
        let crons: Vec<_> = schedules.iter().map(|it| it["cron"].clone()).collect();
        (report["applied"]["schedules"].clone(), crons)
    };
    let (changes, crons) =
        reload_and_list_schedules([echo_agent.clone(), schedule_table("0 3 * * *")].concat()).await;
    assert_eq!((&changes["added"], crons), (&json!(["beat"]), vec![json!("0 3 * * *")]));
    let (changes, crons) =
        reload_and_list_schedules([echo_agent.clone(), schedule_table("0 4 * * *")].concat()).await;
    assert_eq!((&changes["changed"], crons), (&json!(["beat"]), vec![json!("0 4 * * *")]));
    let (changes, crons) = reload_and_list_schedules(echo_agent.clone()).await;
    assert_eq!((&changes["removed"], crons.len()), (&json!(["beat"]), 0));
}

#[tokio::test]
async fn a_changed_log_level_applies_at_once() {
    let agents = fake_agent_config("one", "echo", "");
    let mut service = start_service(&config_without_watch(&agents)).await;
    assert_eq!(task_outcome(&service.send("one", "quiet").await), completed_outcome("quiet"));
    assert!(!service.stderr_text().contains("moved"), "{}", service.stderr_text());
    let debug_config = format!("[log]\nlevel = 'debug'\n{}", config_without_watch(&agents));
    let report = write_and_reload(&mut service, &debug_config).await;
    assert_eq!(report["applied"]["settings"], json!(["log.level"]));
    poll_until("a line of the lower level", async || {
        assert_eq!(task_outcome(&service.send("one", "loud").await), completed_outcome("loud"));
        service.stderr_text().contains("moved").then_some(())
    })
    .await;
}

/// Nothing is wrong with the configuration, so who asked is not told that.
#[tokio::test]
async fn a_reload_with_a_full_ledger_fails_and_can_be_repeated() {
    let echo_agent = fake_agent_config("echo", "echo", "");
    let schedule_table = "[schedules.beat]\nagent = 'two'\ncron = '0 3 * * *'\ninput = 'x'\n";
    let setup = Setup::from_config_text(&config_without_watch(&echo_agent));
    let Some(disk) = SmallDisk::mount_for_ledger_or_skip(setup.test_folder(), 16) else { return };
    let (mut service, disk) = (setup.start().await, disk);
    disk.fill();
    poll_until("a ledger that is full", async || {
        // What the write-ahead log has room for is taken still.
        (service.call("echo", "message/send", &message_params("x")).await.status != 200)
            .then_some(())
    })
    .await;
    let new_tables =
        [echo_agent.as_str(), &fake_agent_config("two", "echo", ""), schedule_table].concat();
    replace_config(&mut service, &config_without_watch(&new_tables));
    let refusal = service.post("/api/v1/reload", "").await;
    let problem = refusal.json();
    assert_eq!(
        (refusal.status, &problem["code"]),
        (503, &json!("ledger-unavailable")),
        "{problem}"
    );
    assert!(refusal.header("retry-after").is_some());
    let detail = problem["detail"].as_str().unwrap();
    assert!(!detail.contains("sqlite") && !detail.contains('/'), "{detail}");
    assert_eq!(service.get("/status/agents/two").await.status, 404);
    disk.remove_filler();
    let report = poll_until("room in the ledger", async || {
        let answer = service.post("/api/v1/reload", "").await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(report["applied"]["agents"]["added"], json!(["two"]));
    assert_eq!(report["applied"]["schedules"]["added"], json!(["beat"]));
    assert_eq!(service.get("/api/v1/schedules/beat").await.status, 200);
}

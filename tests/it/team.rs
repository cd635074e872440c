//! Teams: one card, one task and one stream for several agents.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::client::{
    TestResponse, completed_outcome, failed_outcome, json_rpc_request_body, task_id, task_outcome,
    task_state,
};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params,
};

/// Members that add a line each, and a team of them.
const TEAM_CONFIG: &str = r#"
[agents.one]
command = "sh"
args = ["-c", "cat; echo one"]
access = "read-only"
[agents.two]
command = "sh"
args = ["-c", "cat; echo two"]
access = "read-only"
[agents.failing]
command = "sh"
args = ["-c", "cat >&2; exit 3"]
access = "read-only"
[agents.crew]
kind = "team"
team.steps = ["one", { id = "more", agent = "two" }, "one"]
[agents.weak]
kind = "team"
team.steps = ["one", "failing", "two"]
[agents.outer]
kind = "team"
team.steps = ["crew", "two"]
"#;

async fn fetch_tree(service: &ServiceProcess, id: &str) -> Value {
    service.get(&format!("/api/v1/executions/{id}/tree")).await.json()
}

#[tokio::test]
async fn a_team_is_one_agent_with_one_task() {
    let service = ServiceProcess::start(TEAM_CONFIG).await;
    let task = service.send("crew", "zero\n").await;
    assert_eq!(task_outcome(&task), completed_outcome("zero\none\ntwo\none\n"));
    let tree = fetch_tree(&service, &task_id(&task)).await;
    let hops: Vec<_> = tree["hops"].as_array().unwrap().iter().collect();
    let steps_and_agents: Vec<_> = hops.iter().map(|hop| (&hop["step"], &hop["agent"])).collect();
    assert_eq!(
        json!(steps_and_agents),
        json!([["one", "one"], ["more", "two"], ["one-2", "one"]]),
        "{tree}"
    );
    let children = service.get("/api/v1/executions?trigger=hop").await.json();
    assert_eq!(children["executions"].as_array().unwrap().len(), 3);
    // Each hop is an ordinary execution of its member, of the same owner.
    let hop = service.fetch_execution(hops[1]["execution"].as_str().unwrap()).await;
    assert_eq!(hop["madeBy"]["hop"]["parent"], task_id(&task), "{hop}");
    assert_eq!(
        (&hop["input"], &hop["output"]),
        (&json!("zero\none\n"), &json!("zero\none\ntwo\n"))
    );
    let run = service.fetch_execution(&task_id(&task)).await;
    assert_eq!((&hop["owner"], &hop["traceId"]), (&run["owner"], &run["traceId"]));
    let card = service.get("/agents/crew/.well-known/agent-card.json").await.json();
    assert!(card.to_string().contains("Kind of the agent: team."), "{card}");
    assert_eq!(service.fetch_agent_status("crew").await["kind"], "team");
}

#[tokio::test]
async fn a_failing_step_ends_the_run_with_the_answers_so_far() {
    let service = ServiceProcess::start(TEAM_CONFIG).await;
    let task = service.send("weak", "zero\n").await;
    assert_eq!(task_outcome(&task), failed_outcome("member-failed"));
    assert!(!task["status"].to_string().contains("zero"), "text of the member: {task}");
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1, "{task}");
    assert_eq!(artifacts[0]["name"], "hop-1-one");
    assert_eq!(artifacts[0]["parts"][0]["text"], "zero\none\n");
    let tree = fetch_tree(&service, &task_id(&task)).await;
    assert_eq!(
        (&tree["hops"][1]["outcome"], &tree["hops"][1]["code"]),
        (&json!("failed"), &json!("agent-exit"))
    );
    assert_eq!(tree["hops"].as_array().unwrap().len(), 2, "{tree}");
}

#[tokio::test]
async fn a_stream_of_a_team_shows_its_hops() {
    let service = ServiceProcess::start(TEAM_CONFIG).await;
    let body = json_rpc_request_body("message/stream", &message_params("zero"));
    let response = service.post("/agents/crew/v1", &body).await;
    let text = response.body;
    for expected in [
        r#""hop":1"#,
        r#""stage":"planned""#,
        r#""stage":"ended""#,
        r#""agent":"two""#,
        r#""outcome":"completed""#,
    ] {
        assert!(text.contains(expected), "no {expected} in {text}");
    }
    assert!(!text.contains("\"input\""), "the digest of the input is shown: {text}");
}

#[tokio::test]
async fn the_command_line_shows_the_tree_of_a_nested_team() {
    let service = ServiceProcess::start(TEAM_CONFIG).await;
    let task = service.send("outer", "zero\n").await;
    assert_eq!(task_outcome(&task), completed_outcome("zero\none\ntwo\none\ntwo\n"));
    let output = service.run_command(&["tasks", "show", &task_id(&task), "--tree"], "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let lines: Vec<_> = output.stdout.lines().collect();
    let line_starts = [
        "outer completed",
        "├─ 1 crew completed",
        "│  ├─ 1 one completed",
        "│  ├─ 2 more by two completed",
        "│  └─ 3 one-2 by one completed",
        "└─ 2 two completed",
    ];
    assert_eq!(lines.len(), line_starts.len(), "{output:?}");
    for (line, start) in lines.iter().zip(line_starts) {
        assert!(line.starts_with(start), "{line} instead of {start}");
    }
}

#[tokio::test]
async fn a_kill_of_the_service_continues_the_run() {
    let agents = [
        gated_agent_config("one", ""),
        gated_agent_config("two", ""),
        team_config(&["one", "two"]),
    ]
    .concat();
    let mut service = ServiceProcess::start(&agents).await;
    let run_id = service.start_task("crew", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go-ann");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("crew", &run_id).await),
        completed_outcome("ann\n")
    );
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\nstart ann\nend ann\n");
}

#[tokio::test]
async fn a_cancellation_of_a_team_ends_its_member() {
    let agents = [gated_agent_config("one", ""), team_config(&["one"])].concat();
    let service = ServiceProcess::start(&agents).await;
    let run_id = service.start_task("crew", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    assert_eq!(task_state(&service.cancel("crew", &run_id).await), "canceled");
    let tree = fetch_tree(&service, &run_id).await;
    let hop = &tree["hops"][0];
    assert_eq!(
        (&hop["outcome"], &hop["tree"]["state"]),
        (&json!("cancelled"), &json!("cancelled")),
        "{tree}"
    );
}

#[tokio::test]
async fn a_stop_suspends_the_run_until_the_next_start() {
    let agents = [
        gated_agent_config("one", ""),
        gated_agent_config("two", ""),
        team_config(&["one", "two"]),
    ]
    .concat();
    let mut service = ServiceProcess::start(&agents).await;
    let run_id = service.start_task("crew", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_sigterm();
    service.setup.open_gate("go-ann");
    assert!(service.wait_for_exit().await.success());
    // R-135: A stop suspends the run of a team after the step that runs, and the next start continues it
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n", "the next hop waits");
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("crew", &run_id).await),
        completed_outcome("ann\n")
    );
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\nstart ann\nend ann\n");
}

#[tokio::test]
async fn a_run_continues_after_an_upgrade() {
    let agents = [
        gated_agent_config("one", ""),
        gated_agent_config("two", ""),
        team_config(&["one", "two"]),
    ]
    .concat();
    let mut service = ServiceProcess::start(&agents).await;
    let run_id = service.start_task("crew", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_signal(Signal::SIGUSR2);
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    service.start_again().await;
    service.setup.open_gate("go-ann");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("crew", &run_id).await),
        completed_outcome("ann\n")
    );
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\nstart ann\nend ann\n");
}

#[tokio::test]
async fn a_token_of_the_team_needs_no_right_to_the_members() {
    let token = "c".repeat(40);
    let config = format!(
        "[tokens.guest]\ntoken_env = 'GUEST'\nagents = ['crew']\nscopes = ['read', 'run']\n{TEAM_CONFIG}"
    );
    let service = Setup::new(&config).env("GUEST", &token).start().await;
    let guest = service.client_with_token(&token);
    let task = guest.send("crew", "zero\n").await;
    assert_eq!(task_outcome(&task), completed_outcome("zero\none\ntwo\none\n"));
    let tree = guest.get(&format!("/api/v1/executions/{}/tree", task_id(&task))).await.json();
    assert_eq!(tree["hops"].as_array().unwrap().len(), 3, "{tree}");
    // The hops themselves are executions of agents that the token does not name.
    let hop_id = tree["hops"][0]["execution"].as_str().unwrap();
    let refusal_response = guest.get(&format!("/api/v1/executions/{hop_id}")).await;
    assert_eq!(refusal_response.error_code(), "execution-unknown");
}

#[tokio::test]
async fn a_run_is_deleted_with_its_hops_and_not_before_its_end() {
    let members = [fake_agent_config("one", "echo", ""), gated_agent_config("two", "")].concat();
    let service =
        ServiceProcess::start(&format!("{members}{}", team_config(&["one", "two"]))).await;
    let run_id = service.start_task("crew", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let hop_id =
        fetch_tree(&service, &run_id).await["hops"][0]["execution"].as_str().unwrap().to_owned();
    // The run needs the answer of the hop until it has ended.
    let refusal_response = delete_execution(&service, &hop_id).await;
    assert_eq!(
        (refusal_response.status, refusal_response.error_code()),
        (409, "execution-unfinished".to_owned())
    );
    service.setup.open_gate("go-ann");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("crew", &run_id).await),
        completed_outcome("ann\n")
    );
    assert_eq!(delete_execution(&service, &run_id).await.status, 204);
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"], json!([]), "{list}");
}

async fn delete_execution(service: &ServiceProcess, id: &str) -> TestResponse {
    let authorization = format!("Authorization: Bearer {}", service.token);
    service.request(&format!("DELETE /api/v1/executions/{id}"), &[authorization], b"").await
}

/// Returns a team of these members.
fn team_config(members: &[&str]) -> String {
    format!("[agents.crew]\nkind = 'team'\nteam.steps = {members:?}\n")
}

#[tokio::test]
async fn a_step_that_does_not_get_files_is_reported() {
    let agents = r#"
[agents.drawer]
command = "printf"
args = ["%s", '{"type":"artifact","parts":[{"text":"the plan"},{"file":{"text":"x","name":"plan.pdf"}}]}']
output = "events"
access = "read-only"
[agents.reviewer]
command = "cat"
access = "read-only"
[agents.crew]
kind = "team"
team.steps = ["drawer", "reviewer"]
"#;
    let service = ServiceProcess::start(agents).await;
    let task = service.send("crew", "go").await;
    assert_eq!(task_outcome(&task), completed_outcome("the plan"));
    let warnings = &task["metadata"]["warnings"];
    let expected = "the answer before the step `reviewer` has a file or an address, which the step \
                    does not get (1 in all)";
    assert_eq!(warnings, &json!([expected]), "{task}");
}

/// The caller of a team sees only the task of the run.
#[tokio::test]
async fn warnings_and_losses_of_members_are_in_the_task() {
    let agents = r#"
[agents.long]
command = "sh"
args = ["-c", "head -c 3000 /dev/zero | tr '\\0' x"]
max_output_bytes = 1024
[agents.noisy]
command = "sh"
args = ["-c", '''echo '{"type":"text","text":"done"}'; echo '["no event"]' ''']
output = "events"
[agents.crew]
kind = "team"
team.steps = ["noisy", "long"]
[agents.outer]
kind = "team"
team.steps = ["crew"]
"#;
    let service = ServiceProcess::start(agents).await;
    let task = service.send("crew", "go").await;
    assert_eq!(task_outcome(&task).0, "completed");
    let long = service.send("long", "go").await;
    let dropped_bytes = &long["artifacts"][0]["metadata"]["truncated"]["droppedBytes"];
    let noisy = service.send("noisy", "go").await;
    let noisy_warning = noisy["metadata"]["warnings"][0].as_str().unwrap();
    let warnings = [
        format!("step `noisy`: {noisy_warning}"),
        format!("step `long`: {dropped_bytes} bytes of its messages and artifacts were not stored"),
    ];
    assert_eq!(task["metadata"]["warnings"], json!(warnings), "{task}");
    let task = service.send("outer", "go").await;
    let warnings = warnings.map(|warning| format!("step `crew`: {warning}"));
    assert_eq!(task["metadata"]["warnings"], json!(warnings), "{task}");
}

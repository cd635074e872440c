//! Questions of members of teams: the callers of a team see them on its task, and answer them there.

use tokio::net::TcpListener;

use super::*;
use crate::auth_required::receive_push_notification;
use crate::harness::Setup;
use crate::harness::client::{task_id, task_state};
use crate::streams::{open_stream, read_until_text_or_end};
use crate::terminal::Terminal;

/// A team within a team, with an interactive agent as its second member.
const TEAMS: &str = r#"
[agents.first]
command = "cat"
access = "read-only"
[agents.crew]
kind = "team"
team.steps = ["first", "coder"]
[agents.outer]
kind = "team"
team.steps = ["crew", "first"]
"#;

/// Returns the configuration of the teams; the interactive agent has these settings.
fn teams_config(settings: &str) -> String {
    format!("{}{TEAMS}", interactive_agent_config("coder", "acp", settings))
}

/// Returns a message to a task.
fn reply_params(id: &str, text: &str) -> Value {
    let mut params = message_params(text);
    params["message"]["taskId"] = json!(id);
    params
}

/// Sends a request to a team, and returns its task while the question is open.
async fn start_paused_run(client: &ServiceClient, team: &str) -> String {
    let task = client.send(team, TOOL_PROMPT).await;
    assert_eq!(task_state(&task), "input-required", "{task}");
    let text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("coder: ") && text.contains("make test"), "{task}");
    task_id(&task)
}

#[tokio::test]
async fn a_question_of_a_member_is_answered_on_the_task_of_its_team() {
    for (answer, expected_call_count) in [("Yes", 1), ("no", 0)] {
        let service = start_service(&teams_config("")).await;
        let run = start_paused_run(&service, "outer").await;
        let question = wait_for_question(&service, &run).await;
        assert_eq!(question["path"], json!(["outer", "crew", "coder"]), "{question}");
        assert_eq!(question["agent"], "coder", "{question}");
        let tree = service.get(&format!("/api/v1/executions/{run}/tree")).await.json();
        let inner_run = tree["hops"][0]["execution"].as_str().unwrap();
        assert_eq!(
            task_state(&service.fetch_task("crew", inner_run).await),
            "input-required",
            "{tree}"
        );
        assert_eq!(wait_for_question(&service, inner_run).await["id"], question["id"]);
        let refused =
            service.expect_refusal("outer", "message/send", reply_params(&run, "hm")).await;
        assert_eq!(refused.1, "answer-invalid");
        let answer_params = reply_params(&run, answer);
        let ended = service.expect_result("outer", "message/send", &answer_params).await;
        // R-145: A question of a member is one question of each run above it, and one answer at any level continues the run, also after a kill
        assert_eq!(task_outcome(&ended), completed_outcome("done"), "{ended}");
        assert_eq!(tool_call_count(&service), expected_call_count);
        // A client that missed the response repeats the message.
        let repeated = service.expect_result("outer", "message/send", &answer_params).await;
        assert_eq!((task_id(&repeated), tool_call_count(&service)), (run, expected_call_count));
        assert_eq!(fetch_verdicts(&service, "coder").await.len(), 1);
    }
}

#[tokio::test]
async fn an_answer_at_the_member_continues_its_run() {
    let service = start_service(&teams_config("")).await;
    let run = start_paused_run(&service, "outer").await;
    let question = wait_for_question(&service, &run).await;
    let hop = question["execution"].as_str().unwrap();
    let ended = service.expect_result("coder", "message/send", &reply_params(hop, "yes")).await;
    assert_eq!(task_outcome(&ended), completed_outcome("done"), "{ended}");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("outer", &run).await),
        completed_outcome("done")
    );
    assert_eq!(tool_call_count(&service), 1);
}

#[tokio::test]
async fn a_stream_of_a_team_pauses_at_a_question_of_a_member() {
    let service = start_service(&teams_config("")).await;
    let body = json_rpc_request_body("message/stream", &message_params(TOOL_PROMPT));
    let stream_text = service.post("/agents/outer/v1", &body).await.body;
    let last_line = stream_text.lines().rfind(|line| line.starts_with("data: ")).unwrap();
    let last_document: Value =
        serde_json::from_str(last_line.strip_prefix("data: ").unwrap()).unwrap();
    let event = &last_document["result"];
    assert_eq!(
        (&event["status"]["state"], &event["final"]),
        (&json!("input-required"), &json!(true))
    );
    let run = event["taskId"].as_str().unwrap();
    let body = json_rpc_request_body("message/stream", &reply_params(run, "yes"));
    let mut stream = open_stream(&service, "outer", "0.3", &body).await;
    let text = read_until_text_or_end(&mut stream, r#""state":"completed""#).await;
    assert!(text.contains(r#""state":"working""#) && text.contains("done"), "{text}");
    assert_eq!(tool_call_count(&service), 1);
}

#[tokio::test]
async fn a_question_of_a_member_is_pushed_for_the_task_of_its_team() {
    let config = format!("{}[push]\nallow = ['127.0.0.1']\n", teams_config(""));
    let service = start_service(&config).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let mut params = message_params(TOOL_PROMPT);
    params["configuration"] = json!({"pushNotificationConfig": {"url": url}});
    let task = service.expect_result("outer", "message/send", &params).await;
    let notice = receive_push_notification(&listener, "input-required").await;
    let notice: Value = serde_json::from_str(&notice).unwrap();
    assert_eq!((&notice["id"], &notice["status"]), (&task["id"], &task["status"]));
}

#[tokio::test]
async fn a_stream_shows_a_question_that_follows_another_at_once() {
    let service = start_service(&teams_config("")).await;
    let prompt = "[[tool Bash kind=execute command=one]] [[tool Bash kind=execute command=two]] [[say done]]";
    let task = service.send("outer", prompt).await;
    let run = task_id(&task);
    let body = json_rpc_request_body("message/stream", &reply_params(&run, "yes"));
    let mut stream = open_stream(&service, "outer", "0.3", &body).await;
    let text = read_until_text_or_end(&mut stream, r#""final":true"#).await;
    assert!(text.contains("input-required") && text.contains("two"), "{text}");
    let ended = service.expect_result("outer", "message/send", &reply_params(&run, "yes")).await;
    assert_eq!((task_outcome(&ended), tool_call_count(&service)), (completed_outcome("done"), 2));
}

#[tokio::test]
async fn a_question_of_a_member_survives_a_crash() {
    let mut service = start_service(&teams_config("")).await;
    let run = start_paused_run(&service, "outer").await;
    let question = wait_for_question(&service, &run).await;
    service.kill9().await;
    service.start_again().await;
    assert_eq!(task_state(&service.fetch_task("outer", &run).await), "input-required");
    // R-145: A question of a member is one question of each run above it, and one answer at any level continues the run, also after a kill
    assert_eq!(wait_for_question(&service, &run).await["id"], question["id"]);
    let ended = service.expect_result("outer", "message/send", &reply_params(&run, "yes")).await;
    assert_eq!(task_outcome(&ended), completed_outcome("done"), "{ended}");
    assert_eq!(tool_call_count(&service), 1);
}

#[tokio::test]
async fn an_expired_question_of_a_member_continues_or_ends_the_run() {
    for (on_timeout, expected_outcome) in
        [("deny", completed_outcome("done")), ("cancel", failed_outcome("member-failed"))]
    {
        let settings = format!("consent.timeout = \"1s\"\nconsent.on_timeout = \"{on_timeout}\"");
        let service = start_service(&teams_config(&settings)).await;
        let run = service.start_task("outer", TOOL_PROMPT).await;
        assert_eq!(
            task_outcome(&service.wait_for_task_end("outer", &run).await),
            expected_outcome,
            "{on_timeout}"
        );
        assert_eq!(list_interactions(&service, &run, "expired").await.len(), 1, "{on_timeout}");
        assert_eq!(tool_call_count(&service), 0, "{on_timeout}");
    }
}

#[tokio::test]
async fn a_cancelled_run_withdraws_the_question_of_its_member() {
    let service = start_service(&teams_config("")).await;
    let run = start_paused_run(&service, "outer").await;
    let question = wait_for_question(&service, &run).await;
    service.cancel("outer", &run).await;
    assert_eq!(task_state(&service.wait_for_task_end("outer", &run).await), "canceled");
    assert_eq!(fetch_interaction(&service, &question).await["state"], "withdrawn");
}

#[tokio::test]
async fn an_administrator_of_the_team_must_be_a_listed_approver() {
    let tokens = ["a", "b"].map(|letter| letter.repeat(40));
    let config = format!(
        "[tokens.GUEST]\ntoken_env = 'GUEST'\nagents = ['crew']\nscopes = ['read', 'run', 'approve', 'admin']\n\
         [tokens.ANN]\ntoken_env = 'ANN'\nagents = ['coder']\nscopes = ['read', 'approve']\n{}",
        teams_config("consent.approvers = ['ANN']")
    );
    let setup = Setup::new(&config).env("GUEST", &tokens[0]).env("ANN", &tokens[1]);
    let service = setup.start().await;
    std::fs::create_dir(service.setup.test_folder().join("sessions")).unwrap();
    let [guest, ann] = tokens.each_ref().map(|token| service.client_with_token(token));
    let run = start_paused_run(&guest, "crew").await;
    let question = wait_for_question(&guest, &run).await;
    assert_eq!(question["path"], json!(["crew", "coder"]), "{question}");
    let allow = json!({"verdict": "allow"});
    let forbidden = (403, "forbidden".to_owned());
    assert_eq!(answer_question(&guest, &question, &allow).await, forbidden);
    // A token of the member does not learn of the team.
    assert_eq!(fetch_interaction(&ann, &question).await["path"], Value::Null);
    let path = format!("{}/answer", interaction_path(&question));
    let answered_interaction = ann.post(&path, &allow.to_string()).await.json();
    assert_eq!(
        (&answered_interaction["state"], &answered_interaction["path"]),
        (&json!("answered"), &Value::Null)
    );
    assert_eq!(
        task_outcome(&guest.wait_for_task_end("crew", &run).await),
        completed_outcome("done")
    );
}

#[tokio::test]
async fn a_token_of_a_team_covers_the_questions_of_its_members() {
    let tokens = ["a", "b", "c"].map(|letter| letter.repeat(40));
    let token_table = |name: &str, agent: &str, scopes: &str| {
        format!("[tokens.{name}]\ntoken_env = '{name}'\nagents = ['{agent}']\nscopes = {scopes}\n")
    };
    let config = [
        token_table("GUEST", "crew", "['read', 'run', 'approve']"),
        token_table("READER", "crew", "['read', 'run']"),
        token_table("OTHER", "first", "['read', 'approve']"),
        teams_config("consent.approvers = ['owner']"),
    ];
    let setup = Setup::new(&config.concat()).env("GUEST", &tokens[0]);
    let setup = setup.env("READER", &tokens[1]).env("OTHER", &tokens[2]);
    let service = setup.start().await;
    std::fs::create_dir(service.setup.test_folder().join("sessions")).unwrap();
    let [guest, reader, other] = tokens.each_ref().map(|token| service.client_with_token(token));
    let run = start_paused_run(&guest, "crew").await;
    let question = wait_for_question(&guest, &run).await;
    assert_eq!(question["path"], json!(["crew", "coder"]), "{question}");
    let allow = json!({"verdict": "allow"});
    let unknown_refusal = (404, "interaction-unknown".to_owned());
    assert_eq!(answer_question(&other, &question, &allow).await, unknown_refusal);
    assert_eq!(answer_question(&reader, &question, &allow).await, unknown_refusal);
    let own_run = start_paused_run(&reader, "crew").await;
    let own_question = wait_for_question(&reader, &own_run).await;
    let forbidden = (403, "forbidden".to_owned());
    assert_eq!(answer_question(&reader, &own_question, &allow).await, forbidden);
    let ended = guest.expect_result("crew", "message/send", &reply_params(&run, "yes")).await;
    assert_eq!(task_outcome(&ended), completed_outcome("done"), "{ended}");
    assert_eq!(tool_call_count(&service), 1);
}

/// Returns the id of the only question of the service.
async fn fetch_open_question_id(service: &ServiceProcess) -> String {
    let list = service.get("/api/v1/interactions?state=open").await.json();
    list["interactions"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_question_of_a_member_is_answered_at_the_terminal() {
    let service = start_service(&teams_config("")).await;
    let mut terminal = Terminal::start(&service, &format!("send outer '{TOOL_PROMPT}'"));
    let lines = terminal.wait_for_text("  command  make test").await;
    assert!(lines.iter().any(|line| line == "  agent    outer > crew > coder"), "{lines:#?}");
    let tree = service.run_command(&["status"], "").await.stdout;
    assert!(tree.lines().all(|line| !line.trim_end_matches(['│', ' ']).is_empty()), "{tree}");
    let question = fetch_open_question_id(&service).await;
    let output = service.run_command(&["approvals", "show", &question], "").await;
    assert!(output.stdout.contains("agent        outer > crew > coder"), "{output:?}");
    terminal.send_keys("yes\n").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(0), "{screen:#?}");
    assert_eq!(screen.last().unwrap(), "done", "{screen:#?}");
    assert_eq!(tool_call_count(&service), 1);
}

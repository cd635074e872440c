//! The same message is one execution, whatever happens between.

use serde_json::json;

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params,
    message_params_with_id, within_deadline,
};

#[tokio::test]
async fn a_message_sent_three_times_runs_once() {
    let service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let client = service.client.clone();
    let first_caller = tokio::spawn(async move {
        client.expect_result("one", "message/send", &message_params_with_id("m-1", "ann")).await
    });
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let second_task = service.submit("one", message_params_with_id("m-1", "ann")).await;
    service.setup.open_gate("go");
    let first_task = within_deadline("the first answer", first_caller).await.unwrap();
    assert_eq!(task_outcome(&first_task), completed_outcome("ann\n"));
    let third_task =
        service.expect_result("one", "message/send", &message_params_with_id("m-1", "ann")).await;
    assert_eq!(
        (task_id(&second_task), task_id(&third_task)),
        (task_id(&first_task), task_id(&first_task))
    );
    assert_eq!(task_outcome(&third_task), completed_outcome("ann\n"));
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn a_repeated_message_returns_its_one_task() {
    let service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let first_task = service.submit("one", message_params_with_id("m-1", "ann")).await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let client = service.client.clone();
            let send = async move {
                client
                    .expect_result("one", "message/send", &message_params_with_id("m-1", "ann"))
                    .await
            };
            tokio::spawn(send)
        })
        .collect();
    for _ in 0..3 {
        let duplicate = service.submit("one", message_params_with_id("m-1", "ann")).await;
        assert_eq!(task_id(&duplicate), task_id(&first_task));
        let refused = service
            .expect_refusal("one", "message/send", message_params_with_id("m-1", "bob"))
            .await;
        assert_eq!(refused, (-32602, "message-reused".to_owned()));
    }
    service.setup.open_gate("go");
    for caller in callers {
        let task = within_deadline("an answer", caller).await.unwrap();
        assert_eq!(
            (task_id(&task), task_outcome(&task)),
            (task_id(&first_task), completed_outcome("ann\n"))
        );
    }
    for _ in 0..3 {
        let late_task = service
            .expect_result("one", "message/send", &message_params_with_id("m-1", "ann"))
            .await;
        assert_eq!(
            (task_id(&late_task), task_outcome(&late_task)),
            (task_id(&first_task), completed_outcome("ann\n"))
        );
    }
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn a_repeated_message_is_recognized_after_a_restart() {
    let mut service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    service.setup.open_gate("go");
    let first_task =
        service.expect_result("one", "message/send", &message_params_with_id("m-1", "ann")).await;
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    service.start_again().await;
    let second_task =
        service.expect_result("one", "message/send", &message_params_with_id("m-1", "ann")).await;
    assert_eq!(
        (task_id(&second_task), task_outcome(&second_task)),
        (task_id(&first_task), completed_outcome("ann\n"))
    );
    // R-10: The same message from the same caller is the same execution, also after a restart
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn an_idempotency_key_is_known_after_a_restart() {
    let mut service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    service.setup.open_gate("go");
    let send = async |service: &ServiceProcess, key: &str, text: &str| {
        let lines = [format!("Idempotency-Key: {key}")];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let params = message_params(text);
        service.call_with_headers("one", &lines, ("message/send", &params)).await.json()
    };
    let first_response = send(&service, "k-1", "ann").await;
    assert_eq!(task_outcome(&first_response["result"]), completed_outcome("ann\n"));
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    service.start_again().await;
    let second_response = send(&service, "k-1", "ann").await;
    assert_eq!(task_id(&second_response["result"]), task_id(&first_response["result"]));
    let refused = send(&service, "k-1", "bob").await;
    assert_eq!(refused["error"]["data"][0]["metadata"]["code"], "message-reused");
    let other_task = send(&service, "k-2", "ann").await;
    assert_ne!(task_id(&other_task["result"]), task_id(&first_response["result"]));
    let without_key = send(&service, "", "ann").await;
    assert_eq!(without_key["error"]["data"][0]["metadata"]["code"], "invalid-params");
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n".repeat(2));
}

#[tokio::test]
async fn an_equal_message_id_with_another_text_is_refused() {
    let settings = "params.a = '0'\noverrides.params = ['a']";
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", settings)).await;
    let send = async |params| service.expect_refusal("echo", "message/send", params).await;
    service.expect_result("echo", "message/send", &message_params_with_id("m-1", "ann")).await;
    let expected_refusal = (-32602, "message-reused".to_owned());
    assert_eq!(send(message_params_with_id("m-1", "bob")).await, expected_refusal);
    let mut other_message = message_params_with_id("m-1", "ann");
    other_message["message"]["metadata"] =
        json!({"https://algonius.dev/a2a/ext/parameters/v1": {"a": 1}});
    assert_eq!(send(other_message).await, expected_refusal);
}

#[tokio::test]
async fn equal_message_ids_of_other_callers_or_agents_are_distinct() {
    let token = "t".repeat(40);
    let agents =
        [fake_agent_config("echo", "echo", ""), fake_agent_config("copy", "echo", "")].concat();
    let text = format!("{agents}[tokens.ann]\ntoken_env = 'ANN'\n");
    let service = Setup::new(&text).env("ANN", &token).start().await;
    let params = message_params_with_id("m-1", "ann");
    let mut ids = vec![
        task_id(&service.expect_result("echo", "message/send", &params).await),
        task_id(&service.expect_result("copy", "message/send", &params).await),
        task_id(
            &service.client_with_token(&token).expect_result("echo", "message/send", &params).await,
        ),
    ];
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

/// Also when the service already knows the message.
#[tokio::test]
async fn a_caller_without_read_access_learns_of_no_duplicate() {
    let token = "t".repeat(40);
    let text = format!(
        "{}[tokens.ann]\ntoken_env = 'ANN'\nscopes = ['run']\n",
        fake_agent_config("echo", "echo", "")
    );
    let service = Setup::new(&text).env("ANN", &token).start().await;
    let ann = service.client_with_token(&token);
    for _ in 0..4 {
        let refused =
            ann.expect_refusal("echo", "message/send", message_params_with_id("m-1", "ann")).await;
        assert_eq!(refused, (-32001, "execution-unknown".to_owned()));
        service.post("/api/v1/agents/echo/wait?seconds=20", "").await; // Until it has ended.
    }
}

#[tokio::test]
async fn equal_content_within_the_window_runs_once_if_configured() {
    let settings = "dedup = 'content'\ndedup_window = '5m'\nmax_concurrent = 3";
    let service = ServiceProcess::start(&gated_agent_config("one", settings)).await;
    let first_id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let second_id = service.start_task("one", "ann").await;
    let send_in_context = async |context: &str| {
        let mut params = message_params("ann");
        params["message"]["contextId"] = json!(context);
        task_id(&service.submit("one", params).await)
    };
    let third_id = send_in_context("c-1").await;
    service.setup.wait_for_file_text("log", "start ann\nstart ann\n").await;
    assert_eq!(service.fetch_agent_status("one").await["queued"][0]["id"], second_id);
    service.setup.open_gate("go");
    for task in [&first_id, &second_id, &third_id] {
        assert_eq!(
            task_outcome(&service.wait_for_task_end("one", task).await),
            completed_outcome("ann\n")
        );
    }
    // What has completed serves too; a name of its own keeps a request apart.
    let late_task = service.send("one", "ann").await;
    assert_eq!(
        (task_outcome(&late_task), task_id(&late_task) == first_id),
        (completed_outcome("ann\n"), false)
    );
    let detail = service.fetch_execution(&task_id(&late_task)).await;
    assert!(detail["events"].to_string().contains(&first_id), "{detail}");
    assert_eq!(service.setup.read_file("log").matches("start").count(), 2);
    let params = message_params("ann");
    let with_key =
        service.call_with_headers("one", &["Idempotency-Key: k"], ("message/send", &params)).await;
    assert_eq!(task_outcome(&with_key.json()["result"]), completed_outcome("ann\n"));
    assert_eq!(service.setup.read_file("log").matches("start").count(), 3);
}

#[tokio::test]
async fn a_result_that_needed_an_answer_is_not_shared() {
    let agent = r#"
[agents.asking]
command = "sh"
args = ["-c", '''
read word
if [ "$word" = deploy ]; then echo '{"type":"input_required","text":"where?"}'; exit 0; fi
printf '{"type":"text","text":"to %s"}\n' "$word"
''']
output = "events"
dedup = "content"
"#;
    let service = ServiceProcess::start(agent).await;
    let first_task = service.send("asking", "deploy").await;
    let mut answer_params = message_params("staging");
    answer_params["message"]["taskId"] = json!(task_id(&first_task));
    let continued = service.expect_result("asking", "message/send", &answer_params).await;
    assert_eq!(task_outcome(&continued), completed_outcome("to staging"));
    let second = service.send("asking", "deploy").await;
    assert_eq!(second["status"]["state"], "input-required");
}

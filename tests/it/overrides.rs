//! What a caller chooses for one request, as far as its agent lets it.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::client::{
    completed_outcome, failed_outcome, task_id, task_outcome, task_state,
};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, message_params};

const OVERRIDES_EXTENSION_URI: &str = "https://algonius.dev/a2a/ext/overrides/v1";

/// Tells its folder and its branch; asks first when it is told to.
const AGENT: &str = r#"
[agents.placed]
command = "sh"
args = ["-c", '''
read word
if [ "$word" = ask ]; then echo '{"type":"input_required","text":"what?"}'; exit 0; fi
printf '{"type":"text","text":"%s %s"}\n' "$(pwd -P)" "$BRANCH"
''']
output = "events"
env = { BRANCH = "main" }
[agents.placed.overrides]
working_dirs = ["HERE/repos"]
env = ["BRANCH"]
"#;

async fn start_service() -> ServiceProcess {
    let setup = Setup::new(&format!("{AGENT}{}", fake_agent_config("echo", "echo", "")));
    for folder in ["repos/a", "elsewhere"] {
        fs::create_dir_all(setup.test_folder().join(folder)).unwrap();
    }
    symlink(setup.test_folder().join("elsewhere"), setup.test_folder().join("repos/out")).unwrap();
    symlink(setup.test_folder().join("repos/a"), setup.test_folder().join("repos/in")).unwrap();
    setup.start().await
}

/// A message with this choice.
fn message_params_with_overrides(text: &str, overrides: Value) -> Value {
    let mut params = message_params(text);
    params["message"]["metadata"] = json!({ OVERRIDES_EXTENSION_URI: overrides });
    params
}

fn canonical_path(service: &ServiceProcess, name: &str) -> String {
    service.setup.test_folder().canonicalize().unwrap().join(name).display().to_string()
}

/// A place as a caller writes it.
fn path_as_written(service: &ServiceProcess, name: &str) -> String {
    service.setup.test_folder().join(name).display().to_string()
}

#[tokio::test]
async fn a_caller_may_choose_allowed_folders_and_variables() {
    let service = start_service().await;
    let (folder, canonical_folder) =
        (path_as_written(&service, "repos/in"), canonical_path(&service, "repos/a"));
    let overrides = json!({"workingDirectory": folder, "environment": {"BRANCH": "next"}});
    let task = service
        .expect_result("placed", "message/send", &message_params_with_overrides("go", overrides))
        .await;
    assert_eq!(task_outcome(&task), completed_outcome(&format!("{canonical_folder} next")));
    let detail = service.fetch_execution(&task_id(&task)).await;
    assert_eq!(detail["workingDirectory"], folder);
    assert_eq!(detail["environment"], json!({"BRANCH": "next"}));

    let card = service.get("/agents/placed/.well-known/agent-card.json").await;
    assert!(
        card.body.contains(OVERRIDES_EXTENSION_URI) && !card.body.contains("repos"),
        "{}",
        card.body
    );
    let card = service.get("/agents/echo/.well-known/agent-card.json").await;
    assert!(!card.body.contains(OVERRIDES_EXTENSION_URI), "{}", card.body);
}

#[tokio::test]
async fn forbidden_overrides_are_refused_and_outside_links_fail() {
    let service = start_service().await;
    let directory_overrides =
        |name: &str| json!({"workingDirectory": path_as_written(&service, name)});
    for (overrides, code) in [
        (directory_overrides("elsewhere"), "override-refused"),
        (directory_overrides("repos/../elsewhere"), "override-refused"),
        (json!({"workingDirectory": "repos/a"}), "override-refused"),
        (json!({"environment": {"LD_PRELOAD": "/tmp/x.so"}}), "override-refused"),
        (json!({"environment": {"BRANCH": "a\0b"}}), "override-refused"),
        (json!({"environment": {"BRANCH": ["main"]}}), "invalid-params"),
        (json!({"environment": "BRANCH=main"}), "invalid-params"),
        (json!({"workingDirectory": 7}), "invalid-params"),
        (json!({"workDir": "/"}), "invalid-params"),
        (json!([]), "invalid-params"),
    ] {
        let refusal = service.expect_refusal(
            "placed",
            "message/send",
            message_params_with_overrides("go", overrides.clone()),
        );
        assert_eq!(refusal.await, (-32602, code.to_owned()), "{overrides}");
    }
    let refusal = service
        .expect_refusal(
            "echo",
            "message/send",
            message_params_with_overrides("go", directory_overrides("repos/a")),
        )
        .await;
    assert_eq!(refusal.1, "override-refused");
    assert_eq!(service.get("/api/v1/executions").await.json()["executions"], json!([]));

    for name in ["repos/out", "repos/none"] {
        let params = message_params_with_overrides("go", directory_overrides(name));
        let task = service.expect_result("placed", "message/send", &params).await;
        assert_eq!(task_outcome(&task), failed_outcome("override-refused"), "{name}");
        let status_message = task["status"]["message"].to_string();
        assert!(!status_message.contains(&canonical_path(&service, "")), "{status_message}");
    }
}

#[tokio::test]
async fn an_answer_keeps_the_overrides_of_its_task() {
    let mut service = start_service().await;
    let folder = path_as_written(&service, "repos/a");
    let overrides = json!({"workingDirectory": folder, "environment": {"BRANCH": "next"}});
    let task = service
        .expect_result(
            "placed",
            "message/send",
            &message_params_with_overrides("ask", overrides.clone()),
        )
        .await;
    assert_eq!(task_state(&task), "input-required");
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    service.start_again().await;
    let as_answer = |message_id: &str, params: Value| {
        let mut params = params;
        params["message"]["taskId"] = json!(task_id(&task));
        params["message"]["messageId"] = json!(message_id);
        params
    };
    let next_answer = as_answer("again", message_params("ask"));
    let updated_task = service.expect_result("placed", "message/send", &next_answer).await;
    assert_eq!(
        (task_id(&updated_task), task_state(&updated_task)),
        (task_id(&task), "input-required".to_owned())
    );
    let override_params =
        message_params_with_overrides("ask", json!({"environment": {"BRANCH": "third"}}));
    let updated_task =
        service.expect_result("placed", "message/send", &as_answer("anew", override_params)).await;
    assert_eq!(task_state(&updated_task), "input-required");
    let finished_task = service
        .expect_result("placed", "message/send", &as_answer("last", message_params("go")))
        .await;
    assert_eq!(
        task_outcome(&finished_task),
        completed_outcome(&format!("{} third", canonical_path(&service, "repos/a")))
    );

    // The same answer again is the same one; with another choice it is another message.
    let duplicate = service
        .expect_result("placed", "message/send", &as_answer("last", message_params("go")))
        .await;
    assert_eq!(task_id(&duplicate), task_id(&task));
    let changed_answer = as_answer(
        "last",
        message_params_with_overrides("go", json!({"environment": {"BRANCH": "x"}})),
    );
    let refusal = service.expect_refusal("placed", "message/send", changed_answer).await;
    assert_eq!(refusal.1, "message-reused");
}

#[tokio::test]
async fn the_command_line_sets_overrides() {
    let service = start_service().await;
    let folder = path_as_written(&service, "repos/a");
    let arguments = ["send", "placed", "go", "--working-dir", &folder, "--env", "BRANCH=next"];
    let output = service.run_command(&arguments, "").await;
    assert_eq!(
        output.stdout.trim(),
        format!("{} next", canonical_path(&service, "repos/a")),
        "{output:?}"
    );
    let output = service.run_command(&["send", "placed", "go", "--env", "PATH=/tmp"], "").await;
    assert!(output.stderr.contains("override-refused"), "{output:?}");
}

/// The interfaces beside A2A refuse a parameter that callers may not set, by its name.
#[tokio::test]
async fn a_parameter_that_callers_may_not_set_is_refused() {
    let agents = "[agents.two]\ncommand = 'sh'\n\
         args = ['-c', 'echo $0 $1', '{{ param.model }}', '{{ param.style }}']\n\
         params = { model = 'small', style = 'plain' }\noverrides.params = ['style']\n";
    let service = ServiceProcess::start(agents).await;
    let message = |id: &str| {
        json!({"protocol": "a2a", "version": "0.3.0", "id": id, "type": "request",
        "timestamp": "2030-01-31T12:00:00Z",
        "context": {"from": "me", "to": "two", "conversation_id": "c-1", "message_id": id}})
    };
    for (name, is_allowed) in [("model", false), ("unknown", false), ("style", true)] {
        let parameters = json!({ name: "loud" });
        let mut envelope = message(name);
        envelope["payload"] = json!({"method": "execute-agent",
            "params": {"input": "x", "parameters": parameters}});
        let schedule = json!({"id": name, "agent": "two", "cron": "0 4 * * *", "input": "x",
            "timezone": "UTC", "params": parameters});
        for (path, body) in [
            ("/api/v1/executions", json!({"agent": "two", "text": "x", "parameters": parameters})),
            ("/api/v1/schedules", schedule),
            ("/agents/two/v1/message:send", envelope),
        ] {
            let response = service.post(path, &body.to_string()).await;
            let message = format!("the agent has no parameter `{name}` that callers may set");
            assert_eq!(
                response.body.contains("override-refused"),
                !is_allowed,
                "{path} {name}: {}",
                response.body
            );
            assert_eq!(
                response.body.contains(&message),
                !is_allowed,
                "{path} {name}: {}",
                response.body
            );
        }
    }
}

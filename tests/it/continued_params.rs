//! Parameters of a task that requested input: the answer keeps those that it does not set again.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{ServiceProcess, message_params};
use crate::sealed_inputs::{expect_texts_not_stored, simulate_power_cut};

const PARAMETERS_EXTENSION_URI: &str = "https://algonius.dev/a2a/ext/parameters/v1";

/// Requests input until the message is `end`, and then prints its parameters.
const AGENT: &str = r#"
[agents.one]
command = "sh"
args = ["-c", '''
read word
if [ "$word" != end ]; then echo '{"type":"input_required","text":"where?"}'; exit 0; fi
printf '{"type":"text","text":"%s, %s"}\n' "$0" "$1"
''', "{{ param.model }}", "{{ param.style }}"]
output = "events"
params.model = "small"
params.style = "plain"
overrides.params = ["model", "style"]
"#;

fn message_params_with_parameters(text: &str, task: Option<&str>, parameters: &Value) -> Value {
    let mut message = message_params(text);
    message["message"]["metadata"] = json!({ PARAMETERS_EXTENSION_URI: parameters });
    task.into_iter().for_each(|task| message["message"]["taskId"] = json!(task));
    message
}

async fn start_input_required_task(service: &ServiceProcess, parameters: &Value) -> String {
    let task = service
        .expect_result(
            "one",
            "message/send",
            &message_params_with_parameters("go", None, parameters),
        )
        .await;
    assert_eq!(task["status"]["state"], "input-required", "{task}");
    task_id(&task)
}

async fn send_answer(service: &ServiceProcess, id: &str, text: &str, parameters: &Value) -> Value {
    service
        .expect_result(
            "one",
            "message/send",
            &message_params_with_parameters(text, Some(id), parameters),
        )
        .await
}

#[tokio::test]
async fn an_answer_keeps_the_parameters_of_its_task() {
    let service = ServiceProcess::start(AGENT).await;
    for (question_params, answer_params, expected) in [
        (json!({}), json!({}), "small, plain"),
        (json!({"model": "large"}), json!({}), "large, plain"),
        (json!({"model": "large"}), json!({"style": "fine"}), "large, fine"),
        (json!({"model": "large", "style": "fine"}), json!({"model": "tiny"}), "tiny, fine"),
    ] {
        let id = start_input_required_task(&service, &question_params).await;
        let task = send_answer(&service, &id, "end", &answer_params).await;
        assert_eq!(
            task_outcome(&task),
            completed_outcome(expected),
            "{question_params} {answer_params}"
        );
    }
    // The parameters of the second message apply to the third one too.
    let id = start_input_required_task(&service, &json!({"model": "large"})).await;
    send_answer(&service, &id, "more", &json!({"style": "fine"})).await;
    let task = send_answer(&service, &id, "end", &json!({})).await;
    assert_eq!(task_outcome(&task), completed_outcome("large, fine"));
}

#[tokio::test]
async fn a_secret_parameter_is_kept_sealed_or_requested_again() {
    let secret = "jane.doe@mail.example";
    let mut service = ServiceProcess::start(AGENT).await;
    let id = start_input_required_task(&service, &json!({"model": secret})).await;
    service.kill9().await;
    service.start_again().await;
    let task = send_answer(&service, &id, "end", &json!({"style": "fine"})).await;
    assert_eq!(task["status"]["state"], "completed", "{task}");
    let output_text = service.fetch_execution(&id).await["output"].to_string();
    assert!(output_text.contains(", fine") && !output_text.contains("small"), "{output_text}");
    expect_texts_not_stored(&service, &[secret]);
    let id = start_input_required_task(&service, &json!({"model": secret})).await;
    simulate_power_cut(&mut service).await;
    service.start_again().await;
    let reply = service
        .call("one", "message/send", &message_params_with_parameters("end", Some(&id), &json!({})))
        .await;
    let text = reply.json().to_string();
    assert!(text.contains("invalid-params") && text.contains("with the answer: `model`"), "{text}");
    let task = send_answer(&service, &id, "end", &json!({"model": "large"})).await;
    assert_eq!(task_outcome(&task), completed_outcome("large, plain"));
    // A parameter that redaction left unchanged is stored in clear.
    let clear_parameter_message =
        message_params_with_parameters(&format!("go {secret}"), None, &json!({"model": "large"}));
    let id = task_id(&service.expect_result("one", "message/send", &clear_parameter_message).await);
    simulate_power_cut(&mut service).await;
    service.start_again().await;
    let task = send_answer(&service, &id, "end", &json!({})).await;
    assert_eq!(task_outcome(&task), completed_outcome("large, plain"));
}

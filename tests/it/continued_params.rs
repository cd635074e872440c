//! Parameters of a task that requested input: the answer keeps those that it does not set again.

use serde_json::{Value, json};

use crate::harness::client::{completed_with, task_id, task_outcome};
use crate::harness::{Service, message_params};
use crate::sealed_inputs::{expect_nowhere_stored, simulate_power_cut};

const PARAMETERS: &str = "https://algonius.dev/a2a/ext/parameters/v1";

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

fn message(text: &str, task: Option<&str>, params: &Value) -> Value {
    let mut message = message_params(text);
    message["message"]["metadata"] = json!({ PARAMETERS: params });
    task.into_iter().for_each(|task| message["message"]["taskId"] = json!(task));
    message
}

async fn question(service: &Service, params: &Value) -> String {
    let task = service.expect_result("one", "message/send", &message("go", None, params)).await;
    assert_eq!(task["status"]["state"], "input-required", "{task}");
    task_id(&task)
}

async fn answer(service: &Service, id: &str, text: &str, params: &Value) -> Value {
    service.expect_result("one", "message/send", &message(text, Some(id), params)).await
}

#[tokio::test]
async fn an_answer_keeps_the_parameters_of_its_task() {
    let service = Service::start(AGENT).await;
    for (first, second, expected) in [
        (json!({}), json!({}), "small, plain"),
        (json!({"model": "large"}), json!({}), "large, plain"),
        (json!({"model": "large"}), json!({"style": "fine"}), "large, fine"),
        (json!({"model": "large", "style": "fine"}), json!({"model": "tiny"}), "tiny, fine"),
    ] {
        let id = question(&service, &first).await;
        let task = answer(&service, &id, "end", &second).await;
        assert_eq!(task_outcome(&task), completed_with(expected), "{first} {second}");
    }
    // The parameters of the second message apply to the third one too.
    let id = question(&service, &json!({"model": "large"})).await;
    answer(&service, &id, "more", &json!({"style": "fine"})).await;
    let task = answer(&service, &id, "end", &json!({})).await;
    assert_eq!(task_outcome(&task), completed_with("large, fine"));
}

#[tokio::test]
async fn a_secret_parameter_is_kept_sealed_or_requested_again() {
    let secret = "jane.doe@mail.example";
    let mut service = Service::start(AGENT).await;
    let id = question(&service, &json!({"model": secret})).await;
    service.kill9().await;
    service.restart().await;
    let task = answer(&service, &id, "end", &json!({"style": "fine"})).await;
    assert_eq!(task["status"]["state"], "completed", "{task}");
    let printed = service.execution(&id).await["output"].to_string();
    assert!(printed.contains(", fine") && !printed.contains("small"), "{printed}");
    expect_nowhere_stored(&service, &[secret]);
    let id = question(&service, &json!({"model": secret})).await;
    simulate_power_cut(&mut service).await;
    service.restart().await;
    let reply = service.call("one", "message/send", &message("end", Some(&id), &json!({}))).await;
    let text = reply.json().to_string();
    assert!(text.contains("invalid-params") && text.contains("with the answer: `model`"), "{text}");
    let task = answer(&service, &id, "end", &json!({"model": "large"})).await;
    assert_eq!(task_outcome(&task), completed_with("large, plain"));
    // A parameter that redaction left unchanged is stored in clear.
    let clear = message(&format!("go {secret}"), None, &json!({"model": "large"}));
    let id = task_id(&service.expect_result("one", "message/send", &clear).await);
    simulate_power_cut(&mut service).await;
    service.restart().await;
    let task = answer(&service, &id, "end", &json!({})).await;
    assert_eq!(task_outcome(&task), completed_with("large, plain"));
}

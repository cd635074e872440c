//! Files of a message: handed to the program as configured, or refused.

use serde_json::{Value, json};

use crate::harness::ServiceProcess;
use crate::harness::client::{
    completed_outcome, failed_outcome, message_params, task_id, task_outcome, task_state,
};
use crate::harness::mock_model::MockModel;

/// Agents with each delivery and each input method. Each program shows what it received; `read` also prints the files.
const AGENTS: &str = r#"
[agents.silent]
command = "cat"
[agents.closed]
command = "cat"
files = "none"
a2a.input_modes = ["*/*"]
[agents.listed]
command = "sh"
args = ["-c", "cat; for f in $0; do cat $f; done", "{{ files }}"]
[agents.variable]
command = "sh"
args = ["-c", "cat; printf %s \"$ALGONIUS_FILES\""]
files = "list"
[agents.prompted]
command = "sh"
args = ["-c", "tee text; sed -n 's/^- //p' text | cut -d ' ' -f 1 | xargs cat"]
working_dir = "HERE/home"
access = "read-write"
files = "prompt"
[agents.prompted-file]
command = "cat"
args = ["{{ input_file }}"]
input = "file"
files = "prompt"
[agents.prompted-argument]
command = "printf"
args = ["%s", "{{ input }}"]
input = "args"
files = "prompt"
[agents.open-crew]
kind = "team"
team.steps = ["prompted"]
[agents.closed-crew]
kind = "team"
team.steps = ["silent"]
"#;

/// Returns the parameters of `message/send` with a text and a file, whose text is `hello`.
fn params_with_file(text: &str) -> Value {
    let file = json!({"name": "build.log", "mimeType": "text/plain", "bytes": "aGVsbG8="});
    params_with_part(text, json!({"kind": "file", "file": file}))
}

fn params_with_part(text: &str, part: Value) -> Value {
    let mut params = message_params(text);
    params["message"]["parts"].as_array_mut().unwrap().push(part);
    params
}

async fn send_and_read_answer(service: &ServiceProcess, agent: &str, params: &Value) -> String {
    let task = service.expect_result(agent, "message/send", params).await;
    let (state, text) = task_outcome(&task);
    assert_eq!(state, "completed", "{agent}: {task}");
    text
}

#[tokio::test]
async fn an_agent_without_delivery_refuses_every_file() {
    let service = ServiceProcess::start(AGENTS).await;
    let file_with_uri = json!({"uri": "https://example.com/a.txt", "mimeType": "text/plain"});
    let params_with_file_uri =
        params_with_part("look", json!({"kind": "file", "file": file_with_uri}));
    let image = json!({"name": "a.png", "mimeType": "image/png", "bytes": "aGVsbG8="});
    let params_with_image = params_with_part("look", json!({"kind": "file", "file": image}));
    for agent in ["silent", "closed"] {
        for params in
            [params_with_file("look"), params_with_file_uri.clone(), params_with_image.clone()]
        {
            let refusal = service.expect_refusal(agent, "message/send", params).await;
            assert_eq!(refusal, (-32005, "content-type-unsupported".to_owned()), "{agent}");
        }
    }
    let parts = json!([{"text": "look"}, {"raw": "aGVsbG8=", "mediaType": "text/plain"}]);
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": parts});
    let body = json!({ "message": message }).to_string();
    let headers = [
        format!("Authorization: Bearer {}", service.token),
        "A2A-Version: 1.0".to_owned(),
        "Content-Type: application/json".to_owned(),
    ];
    let path = "POST /agents/silent/v1/message:send";
    let refused_response = service.request(path, &headers, body.as_bytes()).await;
    assert!(
        refused_response.json().to_string().contains("content-type-unsupported"),
        "{}",
        refused_response.json()
    );
    let body = json!({"agent": "silent", "parts": parts}).to_string();
    let refused_response = service.post("/api/v1/executions", &body).await;
    assert_eq!(
        refused_response.json()["code"],
        "content-type-unsupported",
        "{}",
        refused_response.json()
    );
    let executions = service.get("/api/v1/executions").await.json();
    assert_eq!(executions["executions"], json!([]), "a refused message leaves no execution");
}

#[tokio::test]
async fn a_program_gets_its_files_as_configured() {
    let service = ServiceProcess::start(AGENTS).await;
    let params = params_with_file("look ");
    assert_eq!(send_and_read_answer(&service, "listed", &params).await, "look hello");
    let files_json = send_and_read_answer(&service, "variable", &params_with_file("")).await;
    let listed_files: Value = serde_json::from_str(&files_json).unwrap();
    assert_eq!(
        (&listed_files[0]["name"], &listed_files[0]["mediaType"]),
        (&json!("build.log"), &json!("text/plain"))
    );
    assert!(
        listed_files[0]["path"].as_str().unwrap().ends_with("/files/1-build.log"),
        "{listed_files}"
    );
    for agent in ["prompted", "prompted-file", "prompted-argument"] {
        let text = send_and_read_answer(&service, agent, &params_with_file("look")).await;
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..3], ["look", "", "The message has these files:"], "{agent}: {text}");
        let path = lines[3].strip_prefix("- /").unwrap();
        let is_read = agent == "prompted";
        let expected_end = if is_read { " (text/plain)hello" } else { " (text/plain)" };
        assert!(path.ends_with(&format!("/files/1-build.log{expected_end}")), "{agent}: {text}");
        // Without files the text stays as it is.
        assert_eq!(
            send_and_read_answer(&service, agent, &message_params("look")).await,
            "look",
            "{agent}"
        );
    }
}

#[tokio::test]
async fn a_team_hands_files_to_members_that_take_them() {
    let service = ServiceProcess::start(AGENTS).await;
    let text = send_and_read_answer(&service, "open-crew", &params_with_file("look")).await;
    assert!(text.ends_with("/files/1-build.log (text/plain)hello"), "{text}");
    let task = service.submit("closed-crew", params_with_file("look")).await;
    let ended_task = service.wait_for_task_end("closed-crew", &task_id(&task)).await;
    assert_eq!(task_outcome(&ended_task), failed_outcome("member-failed"), "{ended_task}");
    assert!(
        ended_task.to_string().contains("was refused with `content-type-unsupported`"),
        "{ended_task}"
    );
}

#[tokio::test]
async fn files_that_wait_are_refused_after_the_delivery_is_removed() {
    let agent = "[agents.one]\ncommand = 'sh'\nmax_concurrent = 1\nqueue_depth = 5\nfiles = 'list'\n\
                 args = ['-c', 'cat; until [ -e HERE/go ]; do sleep 0.05; done']\n";
    let mut service = ServiceProcess::start(agent).await;
    let running_task = service.submit("one", message_params("first")).await;
    let waiting_task = service.submit("one", params_with_file("second")).await;
    assert_eq!(task_state(&waiting_task), "submitted", "{running_task} {waiting_task}");
    service.kill9().await;
    let config = std::fs::read_to_string(service.setup.write_config()).unwrap();
    service.setup.set_config_text(&config.replace("files = 'list'", "files = 'none'"));
    service.start_again().await;
    service.setup.open_gate("go");
    let ended_task = service.wait_for_task_end("one", &task_id(&waiting_task)).await;
    assert_eq!(task_outcome(&ended_task), failed_outcome("input-rejected"), "{ended_task}");
}

#[tokio::test]
async fn a_cognitive_agent_refuses_files() {
    let model = MockModel::start(&[]);
    let agents = format!(
        "[models.local]\nbase_url = '{}'\n[agents.thinker]\nkind = 'cognitive'\n\
         layer = 'perceptual'\nmodel_id = 'local/mock-1'\n",
        model.base_url()
    );
    let service = ServiceProcess::start(&agents).await;
    let refusal = service.expect_refusal("thinker", "message/send", params_with_file("look")).await;
    assert_eq!(refusal, (-32005, "content-type-unsupported".to_owned()));
}

#[tokio::test]
async fn an_acp_agent_gets_only_files_that_it_accepts() {
    let agent = |id: &str, kinds: &str| {
        format!(
            "[agents.{id}]\ncommand = 'FAKE'\nargs = ['acp']\nprotocol = 'acp'\n\
             a2a.input_modes = ['*/*']\nenv.\"F\\u0041KE_ACP_PROMPTS\" = '{kinds}'\n\
             env.\"F\\u0041KE_ACP_LOG\" = 'HERE/{id}'\nsandbox.writable = ['HERE']\n"
        )
    };
    let service =
        ServiceProcess::start(&(agent("plain", "") + &agent("rich", "embeddedContext,image")))
            .await;
    let image = json!({"name": "a b.png", "mimeType": "image/png", "bytes": "aGVsbG8="});
    let params_with_image = params_with_part("look", json!({"kind": "file", "file": image}));
    let zip_file = json!({"name": "a.zip", "mimeType": "application/zip", "bytes": "/wA="});
    let params_with_zip_file = params_with_part("look", json!({"kind": "file", "file": zip_file}));
    let params_with_text_file = params_with_file("look");
    // A file of text is a text for every agent.
    let task = service.expect_result("plain", "message/send", &params_with_text_file).await;
    let expected = "ECHO: look\nattachment:///build.log:\nhello";
    assert_eq!(task_outcome(&task), completed_outcome(expected));
    for params in [&params_with_image, &params_with_zip_file] {
        let task = service.expect_result("plain", "message/send", params).await;
        assert_eq!(task_outcome(&task), failed_outcome("input-rejected"), "{task}");
    }
    for params in [&params_with_text_file, &params_with_image, &params_with_zip_file] {
        let task = service.expect_result("rich", "message/send", params).await;
        assert_eq!(task_outcome(&task), completed_outcome("ECHO: look"), "{task}");
    }
    let log = service.setup.read_file("rich");
    for block in ["\"type\":\"image\"", "\"text\":\"hello\"", "\"blob\":\"/wA=\""] {
        assert!(log.contains(block), "{block}: {log}");
    }
}

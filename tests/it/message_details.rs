//! Metadata, references and accepted output modes of a message: handed to the agent, or refused.

use serde_json::{Value, json};

use crate::harness::ServiceProcess;
use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{ServiceClient, Setup, message_params};
use crate::sealed_inputs::expect_texts_not_stored;

/// Prints the variables of the message, one in each line.
const SHOW_VARIABLES_SCRIPT: &str = r#"cat > /dev/null; printf '%s\n' "$A2A_METADATA" "$A2A_REQUEST_METADATA" "$A2A_EXTENSIONS" "$A2A_REFERENCE_TASK_IDS" "$A2A_ACCEPTED_OUTPUT_MODES" "$A2A_PARTS" "$ALGONIUS_PARAMS" "$A2A_REQUESTED_EXTENSIONS""#;

const PARAMETERS_EXTENSION_URI: &str = "https://algonius.dev/a2a/ext/parameters/v1";

fn agents_config() -> String {
    format!(
        "[agents.shown]\ncommand = 'sh'\nargs = ['-c', '''{SHOW_VARIABLES_SCRIPT}''']\n\
         params.style = 'plain'\noverrides.params = ['style']\n\
         a2a.output_modes = ['text/plain', 'text/html']\n\
         [agents.templates]\ncommand = 'printf'\nargs = ['%s\\n', '{{{{ metadata }}}}', \
         '{{{{ request_metadata }}}}', '{{{{ extensions }}}}', '{{{{ reference_task_ids }}}}', \
         '{{{{ accepted_output_modes }}}}', '{{{{ parts }}}}']\n"
    )
}

/// Returns the members of a request in the form of this version, with the texts that the agent must receive.
fn params_and_expected_values(version: &str) -> (Value, [Value; 6]) {
    let (role, kind) = if version == "1.0" { ("ROLE_USER", None) } else { ("user", Some("text")) };
    let metadata = json!({"b": [1, "é"], "a": {"x": null}});
    let part_metadata = json!({"page": 3});
    let mut part = json!({"text": "look", "metadata": part_metadata});
    kind.into_iter().for_each(|kind| part["kind"] = json!(kind));
    let mut message_metadata = metadata.clone();
    message_metadata[PARAMETERS_EXTENSION_URI] = json!({"style": "fine"});
    let message = json!({
        "messageId": uuid::Uuid::new_v4(), "role": role, "parts": [part],
        "metadata": message_metadata, "extensions": ["urn:one", "urn:two"],
        "referenceTaskIds": ["earlier", "01a2"],
    });
    let modes = json!(["image/png", "text/plain"]);
    let params = json!({
        "message": message, "metadata": {"trace": "t-1"},
        "configuration": {"acceptedOutputModes": modes},
    });
    let parts = json!([{"kind": "text", "metadata": part_metadata}]);
    let references = json!(["earlier", "01a2"]);
    let extensions = json!(["urn:one", "urn:two"]);
    (params, [metadata, json!({"trace": "t-1"}), extensions, references, modes, parts])
}

/// Returns the JSON values of an answer, one in each line; null for an empty line.
fn parse_json_lines(text: &str) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or(Value::Null);
    text.lines().map(read).collect()
}

async fn send_and_read_answer(
    client: &ServiceClient,
    agent: &str,
    method: &str,
    params: &Value,
) -> String {
    let result = client.expect_result(agent, method, params).await;
    let task = if method == "SendMessage" { &result["task"] } else { &result };
    let text = task.pointer("/artifacts/0/parts/0/text");
    text.unwrap_or_else(|| panic!("{agent}: {result}")).as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_program_gets_metadata_and_references() {
    let service = ServiceProcess::start(&agents_config()).await;
    for (version, method) in [("0.3", "message/send"), ("1.0", "SendMessage")] {
        let (mut params, expected) = params_and_expected_values(version);
        let lines =
            parse_json_lines(&send_and_read_answer(&service, "shown", method, &params).await);
        assert_eq!(lines[..6], expected, "{version}");
        assert_eq!(lines[6], json!({"style": "fine"}), "{version}");
        params["message"]["messageId"] = json!(uuid::Uuid::new_v4());
        params["message"]["metadata"].as_object_mut().unwrap().remove(PARAMETERS_EXTENSION_URI);
        let lines =
            parse_json_lines(&send_and_read_answer(&service, "templates", method, &params).await);
        assert_eq!(lines, expected, "{version}");
    }
    // Without them there is no variable, and a template is empty.
    let plain =
        send_and_read_answer(&service, "shown", "message/send", &message_params("look")).await;
    assert_eq!(plain, "\n\n\n\n\n\n{\"style\":\"plain\"}\n\n");
    let plain =
        send_and_read_answer(&service, "templates", "message/send", &message_params("look")).await;
    assert_eq!(plain, "\n\n\n\n\n\n");
}

#[tokio::test]
async fn metadata_arrives_over_http_of_both_versions() {
    let service = ServiceProcess::start(&agents_config()).await;
    for (version, path) in
        [("0.3", "/agents/shown/v1/message:send"), ("1.0", "/agents/shown/v1/message:send")]
    {
        let (mut params, expected) = params_and_expected_values("1.0");
        if version == "0.3" {
            let parts = params["message"]["parts"].take();
            params["message"].as_object_mut().unwrap().remove("parts");
            params["message"]["content"] = parts;
            params["configuration"]["blocking"] = json!(true);
        }
        let headers = [
            format!("Authorization: Bearer {}", service.token),
            format!("A2A-Version: {version}"),
            "Content-Type: application/json".to_owned(),
        ];
        let body = params.to_string();
        let response = service.request(&format!("POST {path}"), &headers, body.as_bytes()).await;
        let document = response.json();
        let text = document.pointer("/task/artifacts/0/parts/0/text").and_then(Value::as_str);
        let lines = parse_json_lines(text.unwrap_or_else(|| panic!("{version}: {document}")));
        assert_eq!(lines[..6], expected, "{version}");
    }
}

#[tokio::test]
async fn metadata_of_a_waiting_message_survives_a_crash() {
    let agents = "[redaction]\npatterns = [{ name = 'account', regex = '^ACCT-[0-9]{8}$' }]\n\
                  [agents.one]\ncommand = 'sh'\nmax_concurrent = 1\nqueue_depth = 5\n\
                  args = ['-c', 'cat; until [ -e HERE/go ]; do sleep 0.05; done; printf %s \"$A2A_METADATA\" | wc -c']\n";
    let mut service = ServiceProcess::start(agents).await;
    service.start_task("one", "first ").await;
    // A text that looks like a secret is stored nowhere in clear.
    let token = format!("gh{}_{}", 'p', "Zk3vQ8nR1tLx7WdYb5HcJ2mPf9Us4GaE6oTi");
    // A pattern sees each text without the quotes and escapes of JSON.
    let account = "one\nACCT-12345678";
    let mut waiting_tasks = Vec::new();
    for value in ["plain", &token, account] {
        let mut params = message_params("look ");
        params["message"]["metadata"] = json!({ "mine": value });
        waiting_tasks.push((value, task_id(&service.submit("one", params).await)));
    }
    expect_texts_not_stored(&service, &[&token, "ACCT-12345678"]);
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go");
    for (value, id) in waiting_tasks {
        let ended_task = service.wait_for_task_end("one", &id).await;
        // The length shows that the program got the original text.
        let length = json!({ "mine": value }).to_string().len();
        assert_eq!(
            task_outcome(&ended_task),
            completed_outcome(&format!("look {length}\n")),
            "{ended_task}"
        );
        let metadata = &ended_task["history"][0]["metadata"];
        let expected = if value == "plain" { json!({ "mine": value }) } else { Value::Null };
        assert_eq!(*metadata, expected, "{ended_task}");
    }
}

#[tokio::test]
async fn the_same_message_with_other_metadata_is_a_conflict() {
    let service = ServiceProcess::start(&agents_config()).await;
    let mut params = message_params("look");
    params["message"]["metadata"] = json!({"a": 1});
    let first_task = service.expect_result("shown", "message/send", &params).await;
    let second_task = service.expect_result("shown", "message/send", &params).await;
    assert_eq!(first_task["id"], second_task["id"]);
    params["metadata"] = json!({"attempt": 2});
    let third_task = service.expect_result("shown", "message/send", &params).await;
    assert_eq!(first_task["id"], third_task["id"], "the request may have other metadata");
    params["message"]["metadata"] = json!({"a": 2});
    let (_, code) = service.expect_refusal("shown", "message/send", params).await;
    assert_eq!(code, "message-reused");
}

#[tokio::test]
async fn a_field_without_effect_is_refused() {
    let service = ServiceProcess::start(&agents_config()).await;
    let expect_refusal_code = async |version: &str, change: &dyn Fn(&mut Value)| {
        let mut params = params_and_expected_values(version).0;
        change(&mut params);
        let method = if version == "1.0" { "SendMessage" } else { "message/send" };
        service.expect_refusal("shown", method, params).await.1
    };
    for version in ["0.3", "1.0"] {
        let set_unsupported_modes = |params: &mut Value| {
            params["configuration"]["acceptedOutputModes"] =
                json!(["image/png", "application/pdf"]);
        };
        assert_eq!(
            expect_refusal_code(version, &set_unsupported_modes).await,
            "content-type-unsupported",
            "{version}"
        );
        let misplace_parameters = |params: &mut Value| {
            params["metadata"] = json!({ PARAMETERS_EXTENSION_URI: {"style": "x"} });
        };
        assert_eq!(
            expect_refusal_code(version, &misplace_parameters).await,
            "invalid-params",
            "{version}"
        );
        let key = "https://algonius.dev/a2a/ext/interactions/v1";
        let add_unrequested_extension =
            |params: &mut Value| params["message"]["metadata"] = json!({ key: {"answers": []} });
        assert_eq!(
            expect_refusal_code(version, &add_unrequested_extension).await,
            "invalid-params",
            "{version}"
        );
        let set_too_long_metadata =
            |params: &mut Value| params["metadata"] = json!({"a": "x".repeat(70_000)});
        assert_eq!(
            expect_refusal_code(version, &set_too_long_metadata).await,
            "invalid-params",
            "{version}"
        );
    }
    let set_other_tenant = |params: &mut Value| params["tenant"] = json!("templates");
    assert_eq!(expect_refusal_code("1.0", &set_other_tenant).await, "invalid-params");
    let mut params_with_own_tenant = params_and_expected_values("1.0").0;
    params_with_own_tenant["tenant"] = json!("shown");
    send_and_read_answer(&service, "shown", "SendMessage", &params_with_own_tenant).await;
}

#[tokio::test]
async fn the_other_versions_word_for_waiting_counts_too() {
    let agents = "[agents.one]\ncommand = 'sh'\n\
                  args = ['-c', 'until [ -e HERE/go ]; do sleep 0.05; done']\n";
    let service = ServiceProcess::start(agents).await;
    let mut params = message_params("first");
    params["configuration"] = json!({"returnImmediately": true});
    let task = service.expect_result("one", "message/send", &params).await;
    assert!(matches!(task["status"]["state"].as_str(), Some("submitted" | "working")), "{task}");
    let mut params = params_and_expected_values("1.0").0;
    params["message"]["metadata"] = json!({});
    params["configuration"] = json!({"blocking": false});
    let task = service.expect_result("one", "SendMessage", &params).await;
    let state = task["task"]["status"]["state"].as_str();
    assert!(matches!(state, Some("TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING")), "{task}");
    service.setup.open_gate("go");
}

#[tokio::test]
async fn a_team_hands_metadata_to_its_first_member() {
    let crew = "[agents.crew]\nkind = 'team'\nteam.steps = ['shown', 'echo']\n\
                [agents.echo]\ncommand = 'cat'\n";
    let service = ServiceProcess::start(&format!("{}{crew}", agents_config())).await;
    let (mut params, mut expected) = params_and_expected_values("0.3");
    params["message"]["metadata"].as_object_mut().unwrap().remove(PARAMETERS_EXTENSION_URI);
    let lines =
        parse_json_lines(&send_and_read_answer(&service, "crew", "message/send", &params).await);
    expected[4] = Value::Null; // The answer of the first member is not the answer to the caller.
    assert_eq!(lines[..6], expected);
}

#[tokio::test]
async fn a_remote_agent_gets_metadata_and_references() {
    let other_service = ServiceProcess::start(&agents_config()).await;
    for (version, binding, path) in [
        ("1.0", "jsonrpc", "/v1"),
        ("1.0", "http+json", "/v1"),
        ("0.3", "jsonrpc", "/v1"),
        ("0.3", "http+json", ""),
    ] {
        let url = format!("http://{}/agents/shown{path}", other_service.address);
        let agents = format!(
            "[agents.far]\nkind = 'remote'\nretry.max = 0\n[agents.far.remote]\nurl = '{url}'\n\
             version = '{version}'\nbinding = '{binding}'\ntoken_env = 'OTHER_TOKEN'\n"
        );
        let service = Setup::new(&agents).env("OTHER_TOKEN", &other_service.token).start().await;
        let (mut params, mut expected) = params_and_expected_values("0.3");
        params["message"]["contextId"] = json!("c");
        params["message"]["metadata"].as_object_mut().unwrap().remove(PARAMETERS_EXTENSION_URI);
        let header = ["X-A2A-Extensions: urn:asked"];
        let call = ("message/send", &params);
        let first_task =
            service.call_with_headers("far", &header, call).await.json()["result"].take();
        let lines =
            parse_json_lines(first_task["artifacts"][0]["parts"][0]["text"].as_str().unwrap());
        expected[3] = Value::Null; // The other service knows none of these tasks.
        assert_eq!(lines[..6], expected, "{version} {binding}");
        assert_eq!(lines[7], json!(["urn:asked"]), "{version} {binding}");
        assert!(first_task["metadata"].to_string().contains("ids of 2 tasks"), "{first_task}");
        // The previous task of the conversation has an id there.
        params["message"]["messageId"] = json!(uuid::Uuid::new_v4());
        params["message"]["referenceTaskIds"] = json!([first_task["id"]]);
        let task = service.expect_result("far", "message/send", &params).await;
        let lines = parse_json_lines(task["artifacts"][0]["parts"][0]["text"].as_str().unwrap());
        if (version, binding) == ("0.3", "http+json") {
            assert_eq!(lines[3], Value::Null);
            assert!(task["metadata"].to_string().contains("have no references"), "{task}");
            continue;
        }
        let remote_id = lines[3][0].as_str().unwrap();
        assert_ne!(remote_id, first_task["id"].as_str().unwrap());
        assert_eq!(
            other_service.fetch_execution(remote_id).await["agent"],
            "shown",
            "{version} {binding}"
        );
    }
}

//! Secrets reach the agent, and nothing that is kept or written.

use serde_json::Value;

use crate::harness::client::{task_id, task_outcome};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, message_params};

/// Letters and digits that look random and are the same in every run.
fn pseudo_random_text(mut seed: u64, length: usize) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut next_letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(letters[usize::try_from(seed >> 33).unwrap() % letters.len()])
    };
    (0..length).map(|_| next_letter()).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn secret_agents_config() -> String {
    let tee_agent =
        "[agents.keeper]\ncommand = 'tee'\nargs = ['HERE/got']\nsandbox.writable = ['HERE']\n";
    let env_settings = "[agents.env.env_from]\nSERVICE_API_KEY = 'GIVEN'\n";
    [
        tee_agent,
        &fake_agent_config("env", "env", env_settings),
        &fake_agent_config("exit", "exit 3 key:GIVEN", ""),
    ]
    .concat()
}

async fn expect_not_stored(service: &ServiceProcess, secret: &str) {
    assert!(!contains(&service.setup.read_ledger_files(), secret), "{secret} is in the ledger");
    assert!(!service.stderr_text().contains(secret), "{secret} is in the log");
    let list = service.get("/api/v1/executions").await.json();
    for entry in list["executions"].as_array().unwrap() {
        let record = service.fetch_execution(entry["id"].as_str().unwrap()).await;
        assert!(!record.to_string().contains(secret), "{secret} is in {record}");
    }
}

#[tokio::test]
async fn a_secret_in_a_message_reaches_the_agent_but_no_storage() {
    let setup = Setup::new(&secret_agents_config())
        .env("GIVEN", &pseudo_random_text(1, 40))
        .env("RUST_LOG", "trace");
    let service = setup.start().await;
    let secrets = [
        format!("{}{}", "gh", format_args!("p_{}", pseudo_random_text(2, 36))),
        format!("{}{}", "AK", format_args!("IA{}", pseudo_random_text(3, 16).to_uppercase())),
        format!("{}{}", "sk-", format_args!("ant-api03-{}", pseudo_random_text(4, 80))),
        format!("{}@{}.example", pseudo_random_text(5, 9).to_lowercase(), "mail"),
    ];
    for secret in &secrets {
        let text = format!("use {secret} for this");
        let task = service.send("keeper", &text).await;
        assert_eq!(task_outcome(&task).0, "completed");
        assert_eq!(service.setup.read_file("got"), text);
        let task_text = service.fetch_task("keeper", &task_id(&task)).await.to_string();
        assert!(!task_text.contains(secret.as_str()), "{task_text}");
        expect_not_stored(&service, secret).await;
    }
}

#[tokio::test]
async fn a_configured_secret_in_the_output_is_masked() {
    let secret = pseudo_random_text(6, 30);
    let setup = Setup::new(&secret_agents_config()).env("GIVEN", &secret).env("RUST_LOG", "trace");
    let service = setup.start().await;
    let (_, answer) = task_outcome(&service.send("env", "").await);
    assert!(answer.contains("SERVICE_API_KEY=") && !answer.contains(&secret), "{answer}");
    expect_not_stored(&service, &secret).await;
}

/// Prints a configured secret in two halves, each in an event of its own that goes on with a report.
const SPLIT_SECRET_AGENT: &str = r#"
[agents.cutter]
command = "sh"
args = ["-c", '''
head=$(printf %.13s "$SERVICE_API_KEY")
printf '{"type":"artifact","id":"report","text":"begun\\nthe key is %s","last":false}\n' "$head"
echo '{"type":"status","text":"half way"}'
printf '{"type":"artifact","id":"report","append":true,"text":"%s, yes"}\n' "${SERVICE_API_KEY#"$head"}"
''']
output = "events"
[agents.cutter.env_from]
SERVICE_API_KEY = "GIVEN"
"#;

#[tokio::test]
async fn a_secret_split_across_artifact_chunks_is_masked() {
    let secret = pseudo_random_text(9, 30);
    let setup = Setup::new(SPLIT_SECRET_AGENT).env("GIVEN", &secret).env("RUST_LOG", "trace");
    let service = setup.start().await;
    let stream_response = service.call("cutter", "message/stream", &message_params("go")).await;
    let events: Vec<Value> = stream_response
        .body
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let artifact_updates = events.iter().map(|event| &event["result"]);
    let artifact_updates = artifact_updates.filter(|event| event["kind"] == "artifact-update");
    let chunks: Vec<_> = artifact_updates
        .map(|event| {
            let text = event.pointer("/artifact/parts/0/text").and_then(Value::as_str);
            (text.unwrap_or_default(), event["lastChunk"].as_bool().unwrap_or_default())
        })
        .collect();
    let artifact_text: String = chunks.iter().map(|(text, _)| *text).collect();
    assert_eq!(chunks.iter().map(|(_, last)| *last).collect::<Vec<_>>(), [false, true]);
    assert!(
        artifact_text.starts_with("begun\nthe key is ") && artifact_text.ends_with(", yes"),
        "{artifact_text}"
    );
    let task = service.fetch_task("cutter", events[0]["result"]["id"].as_str().unwrap()).await;
    assert_eq!(task_outcome(&task), ("completed".to_owned(), artifact_text.clone()));
    let (head, tail) = secret.split_at(13);
    assert!(!artifact_text.contains(head) && !artifact_text.contains(tail), "{artifact_text}");
    expect_not_stored(&service, &secret).await;
}

#[tokio::test]
async fn a_bearer_token_is_stored_as_its_hash_only() {
    let token = pseudo_random_text(7, 40);
    let config = [secret_agents_config(), "[tokens.ann]\ntoken_env = 'ANN'\n".to_owned()].concat();
    let setup = Setup::new(&config).env("GIVEN", &pseudo_random_text(1, 40)).env("ANN", &token);
    let service = setup.env("RUST_LOG", "trace").start().await;
    let ann = service.client_with_token(&token);
    ann.send("keeper", &format!("my token is {token}")).await;
    assert!(service.setup.read_file("got").contains(&token));
    expect_not_stored(&service, &token).await;
    expect_not_stored(&service, &service.token).await;
}

/// It runs with the secret, and never with a mask in its place.
#[tokio::test]
async fn a_queued_message_with_a_secret_runs_whole_after_a_kill() {
    let secret = format!("{}{}", "gh", format_args!("p_{}", pseudo_random_text(8, 36)));
    let agent = crate::harness::gated_agent_config("one", "access = 'read-write'");
    let mut service = ServiceProcess::start(&agent).await;
    let running_id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let waiting_id = service.start_task("one", &secret).await;
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go");
    service.wait_for_task_end("one", &running_id).await;
    let task = service.wait_for_task_end("one", &waiting_id).await;
    let (state, answer) = task_outcome(&task);
    assert!(state == "completed" && !answer.contains(&secret), "{task}");
    let expected_log = format!("start ann\nend ann\nstart {secret}\nend {secret}\n");
    assert_eq!(service.setup.read_file("log"), expected_log);
    expect_not_stored(&service, &secret).await;
}

/// Prints what two patterns match, in pieces, to both outputs; fails when it is asked to.
const REDACTION_PATTERN_AGENTS: &str = r#"
[agents.staff]
command = "sh"
args = ["-c", '''
read word
printf 'our EMP-12'; printf '3456 met deep sea '; printf 'blue\n%s\n' "$word"
echo "warned EMP-654321" >&2
[ "$word" != fail ]
''']
[agents.teller]
command = "printf"
args = ['{"type":"text","text":"EMP-777"}\n{"type":"text","text":"888, yes"}\n{"type":"failed","message":"lost EMP-999000"}\n']
output = "events"
[redaction]
pii = true
patterns = [
  { name = "staff", regex = "EMP-[0-9]{6}", keep = 4 },
  { name = "ship", regex = "deep [a-z]{1,9} blue" },
]
secret_files = ["HERE/words"]
"#;

fn setup_with_redaction_patterns() -> Setup {
    let setup = Setup::new(REDACTION_PATTERN_AGENTS).env("RUST_LOG", "trace");
    setup.with_executable("words", "a sentence that nobody may read\n")
}

#[tokio::test]
async fn configured_patterns_are_masked_everywhere() {
    let service = setup_with_redaction_patterns().start().await;
    let task = service.send("staff", "EMP-111222 called +49 30 1234567").await;
    let (state, answer) = task_outcome(&task);
    assert_eq!(
        (state.as_str(), answer.as_str()),
        ("completed", "our EMP-*** met ***\nEMP-*** called ***\n")
    );
    let stream_response =
        service.call("staff", "message/stream", &message_params("say EMP-333444")).await;
    assert!(stream_response.body.contains("say EMP-***"), "{}", stream_response.body);
    let failed_task = service.send("staff", "fail").await;
    assert_eq!(task_outcome(&failed_task).0, "failed");
    let event_task = service.send("teller", "a sentence that nobody may read").await;
    assert!(event_task.to_string().contains("lost EMP-***"), "{event_task}");
    let list = service.get("/api/v1/executions").await.body;
    for secret in [
        "EMP-111222",
        "EMP-123456",
        "EMP-654321",
        "EMP-333444",
        "777888",
        "EMP-999000",
        "deep sea",
        "30 1234567",
        "nobody may",
    ] {
        assert!(
            ![&stream_response.body, &list].iter().any(|text| text.contains(secret)),
            "{secret}"
        );
        expect_not_stored(&service, secret).await;
    }
}

#[tokio::test]
async fn redact_masks_with_the_patterns_of_a_configuration() {
    let setup = setup_with_redaction_patterns();
    let file = setup.write_config().display().to_string();
    let text = "EMP-123456 is a sentence that nobody may read\nof 078-05-1120";
    let redact_output = setup.run_command(&["redact", "--config", &file], text).await;
    assert_eq!(
        (redact_output.exit_code, redact_output.stdout.as_str()),
        (Some(0), "EMP-*** is ***\nof ***")
    );
    let plain_output = setup.run_command(&["redact"], text).await;
    assert_eq!((plain_output.exit_code, plain_output.stdout.as_str()), (Some(0), text));
    let broken_output = setup.run_command(&["redact", "--config", "no-such-file"], text).await;
    assert_eq!((broken_output.exit_code, broken_output.stdout.as_str()), (Some(4), ""));
}

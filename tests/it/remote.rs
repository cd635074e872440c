//! Agents of another service: two real services, of which one calls the other in each version and binding.

mod call_loops;
mod conversations;
mod faults;

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome, task_state};
use crate::harness::{ServiceProcess, Setup, message_params, poll_until};
use crate::streams::{open_stream, read_until_text_or_end};

/// Agent ids of the caller, with the version and the binding of each, and the path of the interface at the other
/// service.
const REMOTE_AGENTS: [(&str, &str, &str, &str); 4] = [
    ("new-rpc", "1.0", "jsonrpc", "/v1"),
    ("new-http", "1.0", "http+json", "/v1"),
    ("old-rpc", "0.3", "jsonrpc", "/v1"),
    ("old-http", "0.3", "http+json", ""),
];

/// Agent of the other service. It writes its answer in two pieces: the second one after the file `HERE/go-WORD` is
/// there. It fails, refuses, makes an artifact, asks or starts anew for the words of that name.
const WORKER_AGENT: &str = r#"
[agents.worker]
command = "sh"
args = ["-c", '''
read word
echo "start $word" >> HERE/log
case "$word" in
  fail) echo '{"type":"failed","message":"no such order"}'; exit 0;;
  reject) echo '{"type":"rejected","message":"not my trade"}'; exit 0;;
  ask) echo '{"type":"input_required","text":"which colour?"}'; exit 0;;
  again) if [ -e HERE/tried ]; then printf '{"type":"text","text":"second try"}\n'; exit 0; fi
    touch HERE/tried; printf '{"type":"text","text":"first try, half"}\n'; exit 75;;
  make) echo '{"type":"artifact","id":"sheet","name":"sheet.csv","file":{"name":"sheet.csv","text":"a,b"}}'; exit 0;;
esac
printf '{"type":"text","text":"first %s, "}\n' "$word"
until [ -e HERE/go ] || [ -e "HERE/go-$word" ]; do sleep 0.05; done
printf '{"type":"text","text":"then the rest"}\n'
echo "end $word" >> HERE/log
''']
output = "events"
sandbox.writable = ['HERE']
transient_exit_codes = [75]
retry.base = 0.01
"#;

/// Returns the configuration of one remote agent.
fn remote_agent_config(id: &str, url: &str, settings: &str) -> String {
    format!(
        "[agents.{id}]\nkind = 'remote'\nretry.max = 0\n[agents.{id}.remote]\nurl = '{url}'\n{settings}\n"
    )
}

/// Returns the configuration of all ways to an agent of another service, with the token in a variable.
fn remote_agents_config(
    remote_service: &ServiceProcess,
    agent: &str,
    token_variable: &str,
) -> String {
    let agent_config = |(id, version, binding, path): &(&str, &str, &str, &str)| {
        let url = format!("http://{}/agents/{agent}{path}", remote_service.address);
        let settings =
            format!("version = '{version}'\nbinding = '{binding}'\ntoken_env = '{token_variable}'");
        remote_agent_config(id, &url, &settings)
    };
    REMOTE_AGENTS.iter().map(agent_config).collect()
}

/// Starts both services: the caller, and the one that has the worker.
async fn start_caller_and_remote() -> (ServiceProcess, ServiceProcess) {
    let remote_service = ServiceProcess::start(WORKER_AGENT).await;
    let setup = Setup::new(&remote_agents_config(&remote_service, "worker", "OTHER_TOKEN"));
    let caller = setup.env("OTHER_TOKEN", &remote_service.token).start().await;
    (caller, remote_service)
}

#[tokio::test]
async fn a_remote_agent_answers_in_each_version_and_binding() {
    let (caller, remote_service) = start_caller_and_remote().await;
    remote_service.setup.open_gate("go");
    for (id, ..) in REMOTE_AGENTS {
        let task = caller.send(id, id).await;
        assert_eq!(
            task_outcome(&task),
            completed_outcome(&format!("first {id}, then the rest")),
            "{id}"
        );
    }
}

#[tokio::test]
async fn remote_text_is_streamed_before_the_remote_end() {
    let (caller, remote_service) = start_caller_and_remote().await;
    for (id, ..) in REMOTE_AGENTS {
        let body = crate::harness::json_rpc_request_body("message/stream", &message_params(id));
        let mut stream = open_stream(&caller, id, "0.3", &body).await;
        let first_text = read_until_text_or_end(&mut stream, "first").await;
        assert!(first_text.contains(&format!("first {id}")), "{id}: {first_text}");
        assert!(!remote_service.setup.read_file("log").contains(&format!("end {id}")), "{id}");
        remote_service.setup.open_gate(&format!("go-{id}"));
        let remaining_events = read_until_text_or_end(&mut stream, "\"final\":true").await;
        assert!(
            remaining_events.contains("rest\"") && remaining_events.contains("completed"),
            "{id}: {remaining_events}"
        );
    }
}

#[tokio::test]
async fn cancelling_a_task_cancels_the_remote_task() {
    let (caller, remote_service) = start_caller_and_remote().await;
    let mut log = String::new();
    for (id, ..) in REMOTE_AGENTS {
        let task = caller.start_task(id, id).await;
        log.push_str(&format!("start {id}\n"));
        remote_service.setup.wait_for_file_text("log", &log).await;
        assert_eq!(task_state(&caller.cancel(id, &task).await), "canceled", "{id}");
        let executions = remote_service.get("/api/v1/executions").await.json();
        assert_eq!(executions["executions"][0]["state"], "cancelled", "{id}: {executions}");
    }
}

#[tokio::test]
async fn the_remote_outcome_is_the_outcome() {
    let (caller, _remote_service) = start_caller_and_remote().await;
    for (id, ..) in REMOTE_AGENTS {
        let task = caller.send(id, "fail").await;
        assert_eq!(task_outcome(&task), failed_outcome("agent-reported"), "{id}");
        let text = task.pointer("/status/message/parts/0/text").and_then(Value::as_str).unwrap();
        assert!(text.contains("no such order"), "{id}: {text}");
        let task = caller.send(id, "reject").await;
        assert_eq!(
            task_outcome(&task),
            ("rejected".to_owned(), "agent-rejected".to_owned()),
            "{id}"
        );
        let task = caller.send(id, "make").await;
        let part = &task["artifacts"][0]["parts"][0];
        assert_eq!(part["file"]["bytes"], "YSxi", "{id}: {task}");
        assert_eq!(part["file"]["name"], "sheet.csv", "{id}: {task}");
    }
}

#[tokio::test]
async fn an_answer_restarted_remotely_replaces_the_old_one() {
    let (caller, remote_service) = start_caller_and_remote().await;
    for (id, ..) in REMOTE_AGENTS {
        _ = std::fs::remove_file(remote_service.setup.test_folder().join("tried"));
        let task = caller.send(id, "again").await;
        assert_eq!(task_outcome(&task), completed_outcome("second try"), "{id}: {task}");
    }
}

#[tokio::test]
async fn the_kind_of_an_agent_is_shown() {
    let (caller, remote_service) = start_caller_and_remote().await;
    assert_eq!(caller.fetch_agent_status("new-rpc").await["kind"], "remote");
    assert_eq!(remote_service.fetch_agent_status("worker").await["kind"], "program");
    let agent_detail = caller.get("/api/v1/agents/old-http").await.json();
    assert_eq!(agent_detail["kind"], "remote");
    let card = caller.get("/agents/new-rpc/.well-known/agent-card.json").await.json();
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    let is_kind_extension =
        |extension: &&Value| extension["uri"] == "https://algonius.dev/a2a/ext/kind/v1";
    assert_eq!(
        extensions.iter().find(is_kind_extension).unwrap()["description"],
        "Kind of the agent: remote."
    );
    let output = caller.run_command(&["agents", "show", "new-rpc"], "").await;
    assert!(output.stdout.contains("kind          remote"), "{output:?}");
    for label in ["sandbox", "boundary", "resources"] {
        assert!(!output.stdout.contains(label), "{output:?}");
    }
    let status_output = caller.run_command(&["status"], "").await;
    assert!(status_output.stdout.contains("kind remote"), "{status_output:?}");
    assert!(!status_output.stdout.contains("boundary"), "{status_output:?}");
    let check_output = caller.run_command(&["check"], "").await;
    assert_eq!(check_output.exit_code, Some(0), "{check_output:?}");
}

/// Facts about processes: a program has all of them, and a remote agent has none.
#[tokio::test]
async fn a_remote_agent_shows_no_facts_about_processes() {
    let (caller, remote_service) = start_caller_and_remote().await;
    let process_keys = |document: &Value| {
        let keys = ["enforcement", "isolation", "boundary", "resources", "program"];
        keys.into_iter().filter(|key| document.get(key).is_some()).collect::<Vec<_>>()
    };
    let program_keys = process_keys(&remote_service.fetch_agent_status("worker").await);
    assert!(program_keys.starts_with(&["enforcement"]) && program_keys.contains(&"boundary"));
    assert!(process_keys(&caller.fetch_agent_status("new-rpc").await).is_empty());
    for path in ["/api/v1/agents/new-rpc", "/api/v1/agents/old-http"] {
        let detail = caller.get(path).await.json();
        assert!(
            process_keys(&detail).is_empty() && process_keys(&detail["status"]).is_empty(),
            "{detail}"
        );
    }
    let extensions_text = async |service: &ServiceProcess, agent: &str| {
        let card = service.get(&format!("/agents/{agent}/.well-known/agent-card.json")).await;
        card.json().pointer("/capabilities/extensions").unwrap().to_string()
    };
    let (program_extensions, remote_extensions) = (
        extensions_text(&remote_service, "worker").await,
        extensions_text(&caller, "new-rpc").await,
    );
    for extension in ["ext/stderr/v1", "ext/isolation/v1"] {
        assert!(
            program_extensions.contains(extension) && !remote_extensions.contains(extension),
            "{program_extensions} {remote_extensions}"
        );
    }
}

#[tokio::test]
async fn a_remote_token_is_never_shown() {
    let (caller, remote_service) = start_caller_and_remote().await;
    remote_service.setup.open_gate("go");
    // The worker repeats its message, here the token by which it was reached.
    let task = caller.send("new-rpc", &remote_service.token).await;
    assert!(!task.to_string().contains(&remote_service.token), "{task}");
    poll_until("the log", async || (!caller.stderr_text().is_empty()).then_some(())).await;
    assert!(!caller.stderr_text().contains(&remote_service.token));
    let ledger = String::from_utf8_lossy(&caller.setup.read_ledger_files()).into_owned();
    assert!(!ledger.contains(&remote_service.token));
}

/// The metadata of the remote artifact states the losses. It is no part of the answer.
#[tokio::test]
async fn losses_of_a_remote_artifact_are_warnings() {
    let agent = "[agents.worker]\ncommand = 'sh'\nmax_output_bytes = 1024\n\
                 args = ['-c', 'echo password=Hunter22Zq9; head -c 3000 /dev/zero | tr \"\\0\" x']\n";
    let remote_service = ServiceProcess::start(agent).await;
    let setup = Setup::new(&remote_agents_config(&remote_service, "worker", "OTHER_TOKEN"));
    let caller = setup.env("OTHER_TOKEN", &remote_service.token).start().await;
    let remote_task = remote_service.send("worker", "go").await;
    let losses = &remote_task["artifacts"][0]["metadata"];
    assert_eq!(losses["redacted"], 1, "{losses}");
    let dropped_bytes = losses["truncated"]["droppedBytes"].as_u64().unwrap();
    let expected = json!([
        format!(
            "{dropped_bytes} bytes are missing, because the remote service truncated artifact `answer`"
        ),
        "the remote service redacted artifact `answer`, places in all: 1",
    ]);
    for (id, ..) in REMOTE_AGENTS {
        let task = caller.send(id, "go").await;
        assert_eq!(task["metadata"]["warnings"], expected, "{id}: {task}");
    }
}

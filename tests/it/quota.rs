//! Agents whose account has used up what it may, and agents that use up what they may themselves.

use serde_json::Value;

use crate::harness::client::{completed_with, failed_with, task_id, task_outcome, task_state};
use crate::harness::{Service, Setup, message_params, poll_until};

/// Says that its quota is used up, for so many seconds, until the file `HERE/quota` is there; then it
/// answers. Each run leaves a line in `HERE/log`.
fn quota_agent(name: &str, seconds: u32, settings: &str) -> String {
    let script = format!(
        r#"read word; echo "$word" >> HERE/log
if [ -e HERE/quota ]; then echo '{{"type":"text","text":"done"}}'
else echo '{{"type":"failed","category":"quota","message":"limit reached","retry_after":{seconds}}}'; fi"#
    );
    format!(
        "[agents.{name}]\ncommand = 'sh'\nargs = ['-c', \"\"\"{}\"\"\"]\noutput = 'events'\n\
         sandbox.writable = ['HERE']\n{settings}\n",
        script.replace('\\', "\\\\").replace('"', "\\\"")
    )
}

/// The task, once it is deferred because of the quota.
async fn wait_for_quota_deferral(service: &Service, agent: &str, id: &str) -> Value {
    wait_for_deferral(service, (agent, id), "quota-exhausted").await
}

/// The task, once it is deferred for this reason.
async fn wait_for_deferral(service: &Service, (agent, id): (&str, &str), reason: &str) -> Value {
    poll_until("it is deferred", async || {
        let task = service.task(agent, id).await;
        let current_reason = task.pointer("/status/message/metadata/reason");
        current_reason.is_some_and(|current_reason| current_reason == reason).then_some(task)
    })
    .await
}

/// The same account, of which the provider answers with this status, and names a time or does not.
fn refusing_agent(name: &str, status: u16, after: Option<u32>) -> String {
    let seconds = after.unwrap_or_default();
    let agent_config = quota_agent(name, seconds, "");
    let quota_failure = format!(
        r#"\"category\":\"quota\",\"message\":\"limit reached\",\"retry_after\":{seconds}"#
    );
    assert!(agent_config.contains(&quota_failure), "{agent_config}");
    let time = after.map_or(String::new(), |after| format!(r#",\"retry_after\":{after}"#));
    agent_config
        .replace(&quota_failure, &format!(r#"\"status\":{status},\"message\":\"not now\"{time}"#))
}

#[tokio::test]
async fn a_deferred_task_is_shown_and_resumes_after_a_kill() {
    let mut service = Service::start(&quota_agent("one", 6, "")).await;
    let task = service.start_task("one", "ann").await;
    let deferred = wait_for_quota_deferral(&service, "one", &task).await;
    assert_eq!(task_state(&deferred), "working");
    let status = &deferred["status"]["message"];
    assert!(status["metadata"]["until"].is_string(), "{status}");
    let words = status["parts"][0]["text"].as_str().unwrap();
    assert!(words.contains("quota of the agent's account is used up until"), "{words}");
    let agent = service.agent_status("one").await;
    assert_eq!(agent["running"].as_array().unwrap().len(), 0, "{agent}");
    assert_eq!(agent["queued"][0]["reason"], "quota-exhausted");
    service.kill9().await;
    service.setup.open_gate("quota");
    service.restart().await;
    wait_for_quota_deferral(&service, "one", &task).await;
    let credentials = service.get("/status").await.json()["credentials"].clone();
    assert_eq!(
        (&credentials[0]["name"], &credentials[0]["state"]),
        (&"agent:one".into(), &"open".into())
    );
    assert_eq!(task_outcome(&service.wait_for_end("one", &task).await), completed_with("done"));
    assert_eq!(service.setup.read("log"), "ann\nann\n");
}

#[tokio::test]
async fn a_deferred_task_is_cancelled_and_its_account_stays_closed() {
    let shared = "quota.credential = 'team'";
    let agents = [quota_agent("one", 300, shared), quota_agent("two", 300, shared)].concat();
    let service = Service::start(&agents).await;
    let first = service.start_task("one", "ann").await;
    wait_for_quota_deferral(&service, "one", &first).await;
    let second = service.start_task("two", "bob").await;
    wait_for_quota_deferral(&service, "two", &second).await;
    let tasks = service.run_command(&["tasks", "list"], "").await;
    let list = tasks.stdout;
    assert_eq!(list.matches("quota-exhausted").count(), 2, "{list}");
    let metrics = service.get("/metrics").await;
    let page = metrics.body;
    assert!(page.contains("algonius_accounts_blocked{cause=\"quota-exhausted\"} 1"), "{page}");
    for (agent, task) in [("one", &first), ("two", &second)] {
        service.cancel(agent, task).await;
        assert_eq!(task_state(&service.wait_for_end(agent, task).await), "canceled");
    }
    assert_eq!(service.setup.read("log"), "ann\n");
}

#[tokio::test]
async fn a_quota_beyond_the_maximum_wait_fails_at_once() {
    let service = Service::start(&quota_agent("one", 300, "quota.max_wait = '1m'")).await;
    let task = service.send("one", "ann").await;
    assert_eq!(task_outcome(&task), failed_with("quota-exceeded"));
}

/// Counts as many tokens as the message says, then works until it is told to end.
const COUNTING_AGENT: &str = r#"
[agents.counts]
command = "sh"
args = ["-c", """read count; echo '{"type":"usage","input_tokens":'$count',"output_tokens":1,"cost_usd":0.5}'
echo '{"type":"text","text":"counted"}'; [ $count -lt 100 ] || sleep 60"""]
output = "events"
[agents.counts.budget.run]
tokens = 100
[agents.counts.budget.day]
cost_usd = 1.0
"#;

#[tokio::test]
async fn run_and_daily_budgets_hold_over_a_kill() {
    let mut service = Service::start(COUNTING_AGENT).await;
    let task = service.send("counts", "150").await;
    assert_eq!(task_outcome(&task), failed_with("budget-exceeded"));
    let words = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(words, "its budget of 100 tokens is exceeded by 51 tokens");
    assert_eq!(task_outcome(&service.send("counts", "7").await), completed_with("counted"));
    service.kill9().await;
    service.restart().await;
    let refused = service.call("counts", "message/send", &message_params("7")).await.json();
    let error = &refused["error"];
    assert_eq!(
        (&error["code"], &error["data"][0]["metadata"]["code"]),
        (&(-32066).into(), &"budget-exceeded".into())
    );
    assert!(error["data"][0]["metadata"]["until"].is_string(), "{error}");
    let budget = service.agent_status("counts").await["budget"].clone();
    assert_eq!(
        (&budget["spent"]["inputTokens"], &budget["bounds"][0]["remaining"]),
        (&157.into(), &0.into())
    );
    let status = service.run_command(&["status"], "").await;
    let lines = status.stdout;
    assert!(lines.contains("today 1.000000 US dollars of 1.000000 US dollars"), "{lines}");
}

#[tokio::test]
async fn a_deferred_task_reveals_no_secret_of_its_account() {
    let key = "k3y-0f-an-acc0unt-that-n0b0dy-sees";
    let agents = [
        quota_agent("one", 300, "env_from = { API_KEY = 'ACCOUNT' }"),
        quota_agent("two", 300, "env_from = { API_KEY = 'ACCOUNT' }"),
    ];
    let service = Setup::new(&agents.concat()).env("ACCOUNT", key).start().await;
    let first = service.start_task("one", "ann").await;
    wait_for_quota_deferral(&service, "one", &first).await;
    let second = service.start_task("two", "bob").await;
    wait_for_quota_deferral(&service, "two", &second).await;
    let status = service.get("/status").await.json();
    let name = status["credentials"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("key:") && name.len() == 12, "{name}");
    let all = format!("{status}{}{}", service.stderr_text(), service.execution(&first).await);
    assert!(!all.contains(key));
    assert_eq!(task_id(&service.task("one", &first).await), first);
}

/// A credential that is refused is tried again by nobody until somebody says that it was mended.
#[tokio::test]
async fn enabling_an_agent_reopens_its_credential() {
    let refusing_config = quota_agent("one", 300, "").replace("quota\\\"", "authentication\\\"");
    assert!(refusing_config.contains("authentication"), "{refusing_config}");
    let service = Service::start(&refusing_config).await;
    assert_eq!(task_outcome(&service.send("one", "ann").await), failed_with("not-authenticated"));
    let waiting_id = service.start_task("one", "bob").await;
    poll_until("it waits for the credential", async || {
        let execution = service.execution(&waiting_id).await.to_string();
        execution.contains("credential-refused").then_some(())
    })
    .await;
    assert_eq!(
        service.get("/status").await.json()["credentials"][0]["cause"],
        "credential-refused"
    );
    service.setup.open_gate("quota");
    let enabled = service.run_command(&["agents", "enable", "one"], "").await;
    assert_eq!(enabled.exit_code, Some(0), "{enabled:?}");
    assert_eq!(
        task_outcome(&service.wait_for_end("one", &waiting_id).await),
        completed_with("done")
    );
    assert_eq!(service.setup.read("log"), "ann\nbob\n");
    let remaining = service.get("/status").await.json()["credentials"].clone();
    assert!(remaining.as_array().is_none_or(Vec::is_empty), "{remaining}");
}

/// A limit with a short time is waited for so long, and never counts as a quota that is used up.
#[tokio::test]
async fn a_rate_limited_task_shows_its_time_and_is_listed() {
    let service = Service::start(&refusing_agent("one", 429, Some(300))).await;
    let task = service.start_task("one", "ann").await;
    let deferred = wait_for_deferral(&service, ("one", &task), "rate-limited").await;
    assert_eq!(task_state(&deferred), "working");
    let words = deferred["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(words.contains("limits the rate of requests until "), "{words}");
    let entry = service.execution(&task).await;
    assert_eq!(
        (&entry["state"], &entry["queue"]["reason"]),
        (&"waiting".into(), &"rate-limited".into())
    );
    let list = service.run_command(&["tasks", "list"], "").await.stdout;
    assert!(list.contains("waiting") && list.contains("rate-limited until 2"), "{list}");
    assert!(!list.contains("failed"), "{list}");
    let agents = service.run_command(&["agents", "list"], "").await.stdout;
    assert!(agents.contains("1/10 rate-limited until 2"), "{agents}");
    let agents = service.get("/status").await.json();
    assert_eq!(agents["credentials"][0]["cause"], "rate-limited", "{agents}");
    let accounts = service.run_command(&["quota", "list"], "").await.stdout;
    let row = accounts.lines().find(|line| line.contains("agent:one")).unwrap();
    assert!(row.contains("blocked") && row.contains("the rate of requests is limited"), "{row}");
}

/// Without a time the first wait is five seconds; the caller hears of it, and of the time, at once.
#[tokio::test]
async fn a_rate_limit_without_a_time_backs_off_from_five_seconds() {
    let service = Service::start(&refusing_agent("one", 429, None)).await;
    let send = service.run_command(&["send", "one", "ann"], "");
    let open_quota = async {
        poll_until("it has run once", async || {
            service.setup.read("log").contains("ann").then_some(())
        })
        .await;
        service.setup.open_gate("quota");
    };
    let started_at = tokio::time::Instant::now();
    let (sent, ()) = tokio::join!(send, open_quota);
    let elapsed_seconds = started_at.elapsed().as_secs();
    assert_eq!((sent.exit_code, sent.stdout.as_str()), (Some(0), "done"), "{sent:?}");
    assert!(sent.stderr.contains("limits the rate of requests until"), "{sent:?}");
    assert!(sent.stderr.contains("--no-wait"), "{sent:?}");
    assert!(elapsed_seconds >= 4, "answered after {elapsed_seconds} s");
}

/// An overload is no limit of the account: other work of the agent begins meanwhile.
#[tokio::test]
async fn an_overload_defers_the_task_and_closes_no_account() {
    let service = Service::start(&refusing_agent("one", 529, Some(300))).await;
    let task = service.start_task("one", "ann").await;
    wait_for_deferral(&service, ("one", &task), "overloaded").await;
    let accounts = service.get("/api/v1/quota").await.json();
    assert_eq!(accounts["accounts"][0]["state"], "available", "{accounts}");
    service.setup.open_gate("quota");
    assert_eq!(task_outcome(&service.send("one", "bob").await), completed_with("done"));
}

/// An operator who reopens an account wakes what waits for it, hours before its time.
#[tokio::test]
async fn a_reopened_account_resumes_its_tasks_at_once() {
    let service = Service::start(&quota_agent("one", 9000, "")).await;
    let task = service.start_task("one", "ann").await;
    wait_for_quota_deferral(&service, "one", &task).await;
    service.setup.open_gate("quota");
    let unknown = service.run_command(&["quota", "reopen", "nobody"], "").await;
    assert_eq!(unknown.exit_code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("account-unknown"), "{unknown:?}");
    let reopened = service.run_command(&["quota", "reopen", "agent:one"], "").await;
    assert_eq!(reopened.stdout, "account agent:one is available\n", "{reopened:?}");
    assert_eq!(task_outcome(&service.wait_for_end("one", &task).await), completed_with("done"));
}

/// Writes a file that its owner alone can read.
fn write_private(file: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A key that was corrected in its file is noticed without a word of an operator.
#[tokio::test]
async fn a_corrected_key_file_reopens_its_account() {
    let settings = "env_file.API_KEY = 'key'\nquota.credential = 'team'";
    let refusing_config =
        quota_agent("one", 300, settings).replace("quota\\\"", "authentication\\\"");
    let setup = Setup::new(&refusing_config);
    // Without bubblewrap, the agent could change a file in the test's folder, so the service would not watch it.
    let file = setup.sibling_path("key");
    write_private(&file, "wrong-key-of-nobody");
    let service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "ann").await), failed_with("not-authenticated"));
    let blocked = service.get("/api/v1/quota").await.json();
    assert_eq!(blocked["accounts"][0]["cause"], "credential-refused", "{blocked}");
    service.setup.open_gate("quota");
    write_private(&file, "right-key-of-somebody");
    poll_until("the account is available", async || {
        let accounts = service.get("/api/v1/quota").await.json();
        (accounts["accounts"][0]["state"] == "available").then_some(())
    })
    .await;
    assert_eq!(task_outcome(&service.send("one", "bob").await), completed_with("done"));
}

/// A deadline that passes says what the program wrote last, without secrets and folders of the machine.
#[tokio::test]
async fn a_hang_is_reported_with_the_last_output_of_the_program() {
    let agent = "[agents.hangs]\ncommand = 'sh'\n\
         args = ['-c', 'echo connecting to the model >&2; echo \"waiting for $KEY_OF_IT in /srv/deep/place/file.txt\" >&2; sleep 60']\n\
         env_from.KEY_OF_IT = 'ACCOUNT'\n";
    for (setting, code) in
        [("idle_timeout = 1", "idle-timeout"), ("timeout = 1", "execution-timeout")]
    {
        let setup = Setup::new(&format!("{agent}{setting}\n"));
        let service = setup.env("ACCOUNT", "s3cret-of-this-account").start().await;
        let task = service.send("hangs", "hello").await;
        assert_eq!(task_outcome(&task), failed_with(code));
        let words = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(
            words.contains("its last output: connecting to the model / waiting for "),
            "{words}"
        );
        assert!(words.ends_with(".../file.txt") && !words.contains("s3cret"), "{words}");
    }
}

/// A program that repeats requests by itself is stopped when it has reported enough, and is not run again: four
/// attempts of three requests would be twelve.
#[tokio::test]
async fn retries_inside_a_program_are_bounded_and_counted() {
    let agent = "[agents.one]\ncommand = 'sh'\nsandbox.writable = ['HERE']\nretry.base = 0.01\n\
         failures.own_retries.regex = '^Retrying'\n\
         args = ['-c', 'echo run >> HERE/log; for n in 1 2 3 4 5 6; do echo Retrying after error; sleep 0.2; done; exit 75']\n";
    for (max, runs) in [("failures.own_retries.max = 3", 2), ("", 1)] {
        let service = Service::start(&format!("{agent}{max}\n")).await;
        let task = service.send("one", "hello").await;
        assert_eq!(task_outcome(&task), failed_with("agent-transient"));
        let attempts =
            service.execution(&task_id(&task)).await["attempts"].as_array().unwrap().len();
        assert_eq!((service.setup.read("log").lines().count(), attempts), (runs, runs), "{max}");
    }
}

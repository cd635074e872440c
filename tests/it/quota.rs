//! Agents whose account has used up what it may, and agents that use up what they may themselves.

use serde_json::Value;

use crate::harness::client::{
    completed_outcome, failed_outcome, task_id, task_outcome, task_state,
};
use crate::harness::{ServiceProcess, Setup, message_params, poll_until};

/// Says that its quota is used up, for so many seconds, until the file `HERE/quota` is there; then it
/// answers. Each run leaves a line in `HERE/log`.
fn quota_agent_config(name: &str, retry_after_seconds: u32, settings: &str) -> String {
    let script = format!(
        r#"read word; echo "$word" >> HERE/log
if [ -e HERE/quota ]; then echo '{{"type":"text","text":"done"}}'
else echo '{{"type":"failed","category":"quota","message":"limit reached","retry_after":{retry_after_seconds}}}'; fi"#
    );
    format!(
        "[agents.{name}]\ncommand = 'sh'\nargs = ['-c', \"\"\"{}\"\"\"]\noutput = 'events'\n\
         sandbox.writable = ['HERE']\n{settings}\n",
        script.replace('\\', "\\\\").replace('"', "\\\"")
    )
}

/// The task, once it is deferred because of the quota.
async fn wait_for_quota_deferral(service: &ServiceProcess, agent: &str, id: &str) -> Value {
    wait_for_deferral(service, (agent, id), "quota-exhausted").await
}

/// The task, once it is deferred for this reason.
async fn wait_for_deferral(
    service: &ServiceProcess,
    (agent, id): (&str, &str),
    reason: &str,
) -> Value {
    poll_until("it is deferred", async || {
        let task = service.fetch_task(agent, id).await;
        let current_reason = task.pointer("/status/message/metadata/reason");
        current_reason.is_some_and(|current_reason| current_reason == reason).then_some(task)
    })
    .await
}

/// The same account, of which the provider answers with this status, and names a time or does not.
fn refusing_agent_config(name: &str, status: u16, retry_after: Option<u32>) -> String {
    let seconds = retry_after.unwrap_or_default();
    let agent_config = quota_agent_config(name, seconds, "");
    let quota_failure = format!(
        r#"\"category\":\"quota\",\"message\":\"limit reached\",\"retry_after\":{seconds}"#
    );
    assert!(agent_config.contains(&quota_failure), "{agent_config}");
    let retry_after_field =
        retry_after.map_or(String::new(), |after| format!(r#",\"retry_after\":{after}"#));
    agent_config.replace(
        &quota_failure,
        &format!(r#"\"status\":{status},\"message\":\"not now\"{retry_after_field}"#),
    )
}

#[tokio::test]
async fn a_deferred_task_is_shown_and_resumes_after_a_kill() {
    let mut service = ServiceProcess::start(&quota_agent_config("one", 6, "")).await;
    let id = service.start_task("one", "ann").await;
    let deferred_task = wait_for_quota_deferral(&service, "one", &id).await;
    assert_eq!(task_state(&deferred_task), "working");
    let status_message = &deferred_task["status"]["message"];
    assert!(status_message["metadata"]["until"].is_string(), "{status_message}");
    let message_text = status_message["parts"][0]["text"].as_str().unwrap();
    assert!(
        message_text.contains("quota of the agent's account is used up until"),
        "{message_text}"
    );
    let agent = service.fetch_agent_status("one").await;
    assert_eq!(agent["running"].as_array().unwrap().len(), 0, "{agent}");
    assert_eq!(agent["queued"][0]["reason"], "quota-exhausted");
    service.kill9().await;
    service.setup.open_gate("quota");
    service.start_again().await;
    wait_for_quota_deferral(&service, "one", &id).await;
    let credentials = service.get("/status").await.json()["credentials"].clone();
    assert_eq!(
        (&credentials[0]["name"], &credentials[0]["state"]),
        (&"agent:one".into(), &"open".into())
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        completed_outcome("done")
    );
    assert_eq!(service.setup.read_file("log"), "ann\nann\n");
}

#[tokio::test]
async fn a_deferred_task_is_cancelled_and_its_account_stays_closed() {
    let shared_settings = "quota.credential = 'team'";
    let agents = [
        quota_agent_config("one", 300, shared_settings),
        quota_agent_config("two", 300, shared_settings),
    ]
    .concat();
    let service = ServiceProcess::start(&agents).await;
    let first_id = service.start_task("one", "ann").await;
    wait_for_quota_deferral(&service, "one", &first_id).await;
    let second_id = service.start_task("two", "bob").await;
    wait_for_quota_deferral(&service, "two", &second_id).await;
    let list_output = service.run_command(&["tasks", "list"], "").await;
    let list = list_output.stdout;
    assert_eq!(list.matches("quota-exhausted").count(), 2, "{list}");
    let metrics = service.get("/metrics").await;
    let page = metrics.body;
    assert!(page.contains("algonius_accounts_blocked{cause=\"quota-exhausted\"} 1"), "{page}");
    for (agent, task) in [("one", &first_id), ("two", &second_id)] {
        service.cancel(agent, task).await;
        assert_eq!(task_state(&service.wait_for_task_end(agent, task).await), "canceled");
    }
    assert_eq!(service.setup.read_file("log"), "ann\n");
}

#[tokio::test]
async fn a_quota_beyond_the_maximum_wait_fails_at_once() {
    let service =
        ServiceProcess::start(&quota_agent_config("one", 300, "quota.max_wait = '1m'")).await;
    let task = service.send("one", "ann").await;
    assert_eq!(task_outcome(&task), failed_outcome("quota-exceeded"));
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
    let mut service = ServiceProcess::start(COUNTING_AGENT).await;
    let task = service.send("counts", "150").await;
    assert_eq!(task_outcome(&task), failed_outcome("budget-exceeded"));
    let message_text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(message_text, "its budget of 100 tokens is exceeded by 51 tokens");
    assert_eq!(task_outcome(&service.send("counts", "7").await), completed_outcome("counted"));
    service.kill9().await;
    service.start_again().await;
    let refusal = service.call("counts", "message/send", &message_params("7")).await.json();
    let error = &refusal["error"];
    assert_eq!(
        (&error["code"], &error["data"][0]["metadata"]["code"]),
        (&(-32066).into(), &"budget-exceeded".into())
    );
    assert!(error["data"][0]["metadata"]["until"].is_string(), "{error}");
    let budget = service.fetch_agent_status("counts").await["budget"].clone();
    assert_eq!(
        (&budget["spent"]["inputTokens"], &budget["bounds"][0]["remaining"]),
        (&157.into(), &0.into())
    );
    let status_output = service.run_command(&["status"], "").await;
    let status_text = status_output.stdout;
    assert!(
        status_text.contains("today 1.000000 US dollars of 1.000000 US dollars"),
        "{status_text}"
    );
}

#[tokio::test]
async fn a_deferred_task_reveals_no_secret_of_its_account() {
    let key = "k3y-0f-an-acc0unt-that-n0b0dy-sees";
    let agents = [
        quota_agent_config("one", 300, "env_from = { API_KEY = 'ACCOUNT' }"),
        quota_agent_config("two", 300, "env_from = { API_KEY = 'ACCOUNT' }"),
    ];
    let service = Setup::new(&agents.concat()).env("ACCOUNT", key).start().await;
    let first_id = service.start_task("one", "ann").await;
    wait_for_quota_deferral(&service, "one", &first_id).await;
    let second_id = service.start_task("two", "bob").await;
    wait_for_quota_deferral(&service, "two", &second_id).await;
    let status = service.get("/status").await.json();
    let name = status["credentials"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("key:") && name.len() == 12, "{name}");
    let public_text =
        format!("{status}{}{}", service.stderr_text(), service.fetch_execution(&first_id).await);
    assert!(!public_text.contains(key));
    assert_eq!(task_id(&service.fetch_task("one", &first_id).await), first_id);
}

/// A credential that is refused is tried again by nobody until somebody says that it was mended.
#[tokio::test]
async fn enabling_an_agent_reopens_its_credential() {
    let refusing_config =
        quota_agent_config("one", 300, "").replace("quota\\\"", "authentication\\\"");
    assert!(refusing_config.contains("authentication"), "{refusing_config}");
    let service = ServiceProcess::start(&refusing_config).await;
    assert_eq!(
        task_outcome(&service.send("one", "ann").await),
        failed_outcome("not-authenticated")
    );
    let waiting_id = service.start_task("one", "bob").await;
    poll_until("it waits for the credential", async || {
        let execution = service.fetch_execution(&waiting_id).await.to_string();
        execution.contains("credential-refused").then_some(())
    })
    .await;
    assert_eq!(
        service.get("/status").await.json()["credentials"][0]["cause"],
        "credential-refused"
    );
    service.setup.open_gate("quota");
    let enable_output = service.run_command(&["agents", "enable", "one"], "").await;
    assert_eq!(enable_output.exit_code, Some(0), "{enable_output:?}");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &waiting_id).await),
        completed_outcome("done")
    );
    assert_eq!(service.setup.read_file("log"), "ann\nbob\n");
    let remaining_credentials = service.get("/status").await.json()["credentials"].clone();
    assert!(remaining_credentials.as_array().is_none_or(Vec::is_empty), "{remaining_credentials}");
}

/// A limit with a short time is waited for so long, and never counts as a quota that is used up.
#[tokio::test]
async fn a_rate_limited_task_shows_its_time_and_is_listed() {
    let service = ServiceProcess::start(&refusing_agent_config("one", 429, Some(300))).await;
    let id = service.start_task("one", "ann").await;
    let deferred_task = wait_for_deferral(&service, ("one", &id), "rate-limited").await;
    assert_eq!(task_state(&deferred_task), "working");
    let message_text = deferred_task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(message_text.contains("limits the rate of requests until "), "{message_text}");
    let execution = service.fetch_execution(&id).await;
    assert_eq!(
        (&execution["state"], &execution["queue"]["reason"]),
        (&"waiting".into(), &"rate-limited".into())
    );
    let list = service.run_command(&["tasks", "list"], "").await.stdout;
    assert!(list.contains("waiting") && list.contains("rate-limited until 2"), "{list}");
    assert!(!list.contains("failed"), "{list}");
    let agents = service.run_command(&["agents", "list"], "").await.stdout;
    assert!(agents.contains("1/10 rate-limited until 2"), "{agents}");
    let status = service.get("/status").await.json();
    assert_eq!(status["credentials"][0]["cause"], "rate-limited", "{status}");
    let accounts = service.run_command(&["quota", "list"], "").await.stdout;
    let row = accounts.lines().find(|line| line.contains("agent:one")).unwrap();
    assert!(row.contains("blocked") && row.contains("the rate of requests is limited"), "{row}");
}

/// Without a time the first wait is five seconds; the caller hears of it, and of the time, at once.
#[tokio::test]
async fn a_rate_limit_without_a_time_backs_off_from_five_seconds() {
    let service = ServiceProcess::start(&refusing_agent_config("one", 429, None)).await;
    let send = service.run_command(&["send", "one", "ann"], "");
    let open_quota = async {
        poll_until("it has run once", async || {
            service.setup.read_file("log").contains("ann").then_some(())
        })
        .await;
        service.setup.open_gate("quota");
    };
    let started_at = tokio::time::Instant::now();
    let (send_output, ()) = tokio::join!(send, open_quota);
    let elapsed_seconds = started_at.elapsed().as_secs();
    assert_eq!(
        (send_output.exit_code, send_output.stdout.as_str()),
        (Some(0), "done"),
        "{send_output:?}"
    );
    assert!(send_output.stderr.contains("limits the rate of requests until"), "{send_output:?}");
    assert!(send_output.stderr.contains("--no-wait"), "{send_output:?}");
    assert!(elapsed_seconds >= 4, "answered after {elapsed_seconds} s");
}

/// An overload is no limit of the account: other work of the agent begins meanwhile.
#[tokio::test]
async fn an_overload_defers_the_task_and_closes_no_account() {
    let service = ServiceProcess::start(&refusing_agent_config("one", 529, Some(300))).await;
    let id = service.start_task("one", "ann").await;
    wait_for_deferral(&service, ("one", &id), "overloaded").await;
    let accounts = service.get("/api/v1/quota").await.json();
    assert_eq!(accounts["accounts"][0]["state"], "available", "{accounts}");
    service.setup.open_gate("quota");
    assert_eq!(task_outcome(&service.send("one", "bob").await), completed_outcome("done"));
}

/// An operator who reopens an account wakes what waits for it, hours before its time.
#[tokio::test]
async fn a_reopened_account_resumes_its_tasks_at_once() {
    let service = ServiceProcess::start(&quota_agent_config("one", 9000, "")).await;
    let id = service.start_task("one", "ann").await;
    wait_for_quota_deferral(&service, "one", &id).await;
    service.setup.open_gate("quota");
    let refused_output = service.run_command(&["quota", "reopen", "nobody"], "").await;
    assert_eq!(refused_output.exit_code, Some(1), "{refused_output:?}");
    assert!(refused_output.stderr.contains("account-unknown"), "{refused_output:?}");
    let reopen_output = service.run_command(&["quota", "reopen", "agent:one"], "").await;
    assert_eq!(reopen_output.stdout, "account agent:one is available\n", "{reopen_output:?}");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        completed_outcome("done")
    );
}

/// Writes a file that its owner alone can read.
fn write_private_file(file: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A key that was corrected in its file is noticed without a word of an operator.
#[tokio::test]
async fn a_corrected_key_file_reopens_its_account() {
    let settings = "env_file.API_KEY = 'key'\nquota.credential = 'team'";
    let refusing_config =
        quota_agent_config("one", 300, settings).replace("quota\\\"", "authentication\\\"");
    let setup = Setup::new(&refusing_config);
    // Without bubblewrap, the agent could change a file in the test's folder, so the service would not watch it.
    let file = setup.config_sibling_path("key");
    write_private_file(&file, "wrong-key-of-nobody");
    let service = setup.start().await;
    assert_eq!(
        task_outcome(&service.send("one", "ann").await),
        failed_outcome("not-authenticated")
    );
    let blocked_accounts = service.get("/api/v1/quota").await.json();
    assert_eq!(
        blocked_accounts["accounts"][0]["cause"], "credential-refused",
        "{blocked_accounts}"
    );
    service.setup.open_gate("quota");
    write_private_file(&file, "right-key-of-somebody");
    poll_until("the account is available", async || {
        let accounts = service.get("/api/v1/quota").await.json();
        (accounts["accounts"][0]["state"] == "available").then_some(())
    })
    .await;
    assert_eq!(task_outcome(&service.send("one", "bob").await), completed_outcome("done"));
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
        assert_eq!(task_outcome(&task), failed_outcome(code));
        let message_text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(
            message_text.contains("its last output: connecting to the model / waiting for "),
            "{message_text}"
        );
        assert!(
            message_text.ends_with(".../file.txt") && !message_text.contains("s3cret"),
            "{message_text}"
        );
    }
}

/// A program that repeats requests by itself is stopped when it has reported enough, and is not run again: four
/// attempts of three requests would be twelve.
#[tokio::test]
async fn retries_inside_a_program_are_bounded_and_counted() {
    let agent = "[agents.one]\ncommand = 'sh'\nsandbox.writable = ['HERE']\nretry.base = 0.01\n\
         failures.own_retries.regex = '^Retrying'\n\
         args = ['-c', 'echo run >> HERE/log; for n in 1 2 3 4 5 6; do echo Retrying after error; sleep 0.2; done; exit 75']\n";
    for (max_setting, expected_attempts) in [("failures.own_retries.max = 3", 2), ("", 1)] {
        let service = ServiceProcess::start(&format!("{agent}{max_setting}\n")).await;
        let task = service.send("one", "hello").await;
        assert_eq!(task_outcome(&task), failed_outcome("agent-transient"));
        let attempt_count =
            service.fetch_execution(&task_id(&task)).await["attempts"].as_array().unwrap().len();
        assert_eq!(
            (service.setup.read_file("log").lines().count(), attempt_count),
            (expected_attempts, expected_attempts),
            "{max_setting}"
        );
    }
}

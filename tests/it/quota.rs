//! Agents whose account has used up what it may, and agents that use up what they may themselves.

use serde_json::Value;

use crate::harness::door::{completed, failed, id, outcome, state};
use crate::harness::{Service, Setup, message, until};

/// Says that its quota is used up, for so many seconds, until the file `HERE/quota` is there; then it
/// answers. Each run leaves a line in `HERE/log`.
fn account(name: &str, seconds: u32, settings: &str) -> String {
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

/// The task, once it is parked.
async fn parked(service: &Service, agent: &str, id: &str) -> Value {
    until("it is parked", async || {
        let task = service.task(agent, id).await;
        let reason =
            task.pointer("/status/message/metadata/reason") == Some(&"quota-used-up".into());
        reason.then_some(task)
    })
    .await
}

#[tokio::test]
async fn what_is_parked_is_shown_so_and_goes_on_after_a_kill_when_its_time_has_come() {
    let mut service = Service::start(&account("one", 6, "")).await;
    let task = service.begin("one", "ann").await;
    let shown = parked(&service, "one", &task).await;
    assert_eq!(state(&shown), "working");
    let status = &shown["status"]["message"];
    assert!(status["metadata"]["until"].is_string(), "{status}");
    let words = status["parts"][0]["text"].as_str().unwrap();
    assert!(words.contains("quota of the agent's account is used up until"), "{words}");
    let agent = service.agent("one").await;
    assert_eq!(agent["running"].as_array().unwrap().len(), 0, "{agent}");
    assert_eq!(agent["queued"][0]["reason"], "quota-used-up");
    service.kill9().await;
    service.setup.open("quota");
    service.restart().await;
    parked(&service, "one", &task).await;
    let credentials = service.get("/status").await.json()["credentials"].clone();
    assert_eq!(
        (&credentials[0]["name"], &credentials[0]["state"]),
        (&"agent:one".into(), &"open".into())
    );
    assert_eq!(outcome(&service.ended("one", &task).await), completed("done"));
    assert_eq!(service.setup.read("log"), "ann\nann\n");
}

#[tokio::test]
async fn what_is_parked_is_called_off_and_its_account_keeps_the_other_agent_waiting() {
    let shared = "quota.credential = 'team'";
    let agents = [account("one", 300, shared), account("two", 300, shared)].concat();
    let service = Service::start(&agents).await;
    let first = service.begin("one", "ann").await;
    parked(&service, "one", &first).await;
    let second = service.begin("two", "bob").await;
    parked(&service, "two", &second).await;
    let tasks = service.command(&["tasks", "list"], "").await;
    let list = tasks.stdout;
    assert_eq!(list.matches("quota-used-up").count(), 2, "{list}");
    let metrics = service.get("/metrics").await;
    let page = metrics.body;
    assert!(page.contains("algonius_credentials_shut{cause=\"used-up\"} 1"), "{page}");
    for (agent, task) in [("one", &first), ("two", &second)] {
        service.cancel(agent, task).await;
        assert_eq!(state(&service.ended(agent, task).await), "canceled");
    }
    assert_eq!(service.setup.read("log"), "ann\n");
}

#[tokio::test]
async fn what_lasts_longer_than_it_may_fails_at_once_and_says_so() {
    let service = Service::start(&account("one", 300, "quota.park_max = '1m'")).await;
    let task = service.send("one", "ann").await;
    assert_eq!(outcome(&task), failed("quota-exceeded"));
}

/// Counts as many tokens as the message says, then works until it is told to end.
const COUNTS: &str = r#"
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
async fn a_run_beyond_its_budget_is_stopped_and_a_day_that_is_used_up_takes_nothing_also_after_a_kill()
 {
    let mut service = Service::start(COUNTS).await;
    let task = service.send("counts", "150").await;
    assert_eq!(outcome(&task), failed("budget-exceeded"));
    let words = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(words, "its budget of 100 tokens is exceeded by 51 tokens");
    assert_eq!(outcome(&service.send("counts", "7").await), completed("counted"));
    service.kill9().await;
    service.restart().await;
    let refused = service.call("counts", "message/send", &message("7")).await.json();
    let error = &refused["error"];
    assert_eq!(
        (&error["code"], &error["data"]["code"]),
        (&(-32066).into(), &"budget-exceeded".into())
    );
    assert!(error["data"]["until"].is_string(), "{error}");
    let budget = service.agent("counts").await["budget"].clone();
    assert_eq!(
        (&budget["spent"]["inputTokens"], &budget["bounds"][0]["left"]),
        (&157.into(), &0.into())
    );
    let status = service.command(&["status"], "").await;
    let lines = status.stdout;
    assert!(lines.contains("today 1.000000 US dollars of 1.000000 US dollars"), "{lines}");
}

#[tokio::test]
async fn what_a_parked_one_and_its_account_wait_for_is_let_go_by_no_secret() {
    let key = "k3y-0f-an-acc0unt-that-n0b0dy-sees";
    let agents = [
        account("one", 300, "env_from = { API_KEY = 'ACCOUNT' }"),
        account("two", 300, "env_from = { API_KEY = 'ACCOUNT' }"),
    ];
    let service = Setup::new(&agents.concat()).env("ACCOUNT", key).start().await;
    let first = service.begin("one", "ann").await;
    parked(&service, "one", &first).await;
    let second = service.begin("two", "bob").await;
    parked(&service, "two", &second).await;
    let status = service.get("/status").await.json();
    let name = status["credentials"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("key:") && name.len() == 12, "{name}");
    let all = format!("{status}{}{}", service.said(), service.execution(&first).await);
    assert!(!all.contains(key));
    assert_eq!(id(&service.task("one", &first).await), first);
}

/// A credential that is refused is tried again by nobody until somebody says that it was mended.
#[tokio::test]
async fn whoever_switches_an_agent_on_has_mended_its_credential() {
    let refused = account("one", 300, "").replace("quota\\\"", "authentication\\\"");
    assert!(refused.contains("authentication"), "{refused}");
    let service = Service::start(&refused).await;
    assert_eq!(outcome(&service.send("one", "ann").await), failed("not-authenticated"));
    let waits = service.begin("one", "bob").await;
    until("it waits for the credential", async || {
        let told = service.execution(&waits).await.to_string();
        told.contains("credential-refused").then_some(())
    })
    .await;
    assert_eq!(service.get("/status").await.json()["credentials"][0]["cause"], "refused");
    service.setup.open("quota");
    let on = service.command(&["agents", "enable", "one"], "").await;
    assert_eq!(on.code, Some(0), "{on:?}");
    assert_eq!(outcome(&service.ended("one", &waits).await), completed("done"));
    assert_eq!(service.setup.read("log"), "ann\nbob\n");
    let left = service.get("/status").await.json()["credentials"].clone();
    assert!(left.as_array().is_none_or(Vec::is_empty), "{left}");
}

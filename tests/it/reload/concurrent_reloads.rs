//! Many reloads while many ask.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{config_without_watch, start_service, write_and_reload};
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceClient, fake_agent_config, message_params};

const CALLER_COUNT: usize = 8;
const MESSAGES_PER_CALLER: usize = 25;
const RELOAD_COUNT: usize = 30;

/// Each round of it says something else about everything that can be changed.
fn round_config(number: usize) -> String {
    let settings = [
        "max_concurrent = 3\nqueue_depth = 300",
        "max_concurrent = 9\nqueue_depth = 250\ndescription = 'another'",
        "max_concurrent = 1\nqueue_depth = 200\nheartbeat = 7",
    ];
    let passing_agent = if number.is_multiple_of(2) {
        fake_agent_config("passing", "echo", "")
    } else {
        String::new()
    };
    let steady_agent = fake_agent_config("steady", "echo", "queue_depth = 300");
    let lively_agent = fake_agent_config("lively", "echo", settings[number % settings.len()]);
    config_without_watch(&[steady_agent, lively_agent, passing_agent].concat())
}

/// Sends its messages one after the other, and waits for each; what it was answered, by the message.
async fn send_messages(client: ServiceClient, caller: usize) -> Vec<(String, u16, Value)> {
    let mut answers = Vec::new();
    for number in 0..MESSAGES_PER_CALLER {
        let agent = ["steady", "lively"][(caller + number) % 2];
        let message_text = format!("{caller} {number}");
        let answer = client.call(agent, "message/send", &message_params(&message_text)).await;
        answers.push((message_text, answer.status, answer.json()));
    }
    answers
}

#[tokio::test]
async fn thirty_reloads_under_load_lose_and_refuse_no_request() {
    let mut service = start_service(&round_config(0)).await;
    let mut callers = JoinSet::new();
    for caller in 0..CALLER_COUNT {
        callers.spawn(send_messages(service.client.clone(), caller));
    }
    let mut generations = Vec::new();
    for number in 1..=RELOAD_COUNT {
        let report = write_and_reload(&mut service, &round_config(number)).await;
        assert_eq!(report["rejected"], json!([]));
        generations.push(report["generation"].as_u64().unwrap());
        // The storm shall last as long as the calls: some time passes between its blasts.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let expected: Vec<u64> = (2..=RELOAD_COUNT as u64 + 1).collect();
    assert_eq!(generations, expected);
    let mut message_texts_by_id: BTreeMap<String, String> = BTreeMap::new();
    for (message_text, status, document) in callers.join_all().await.into_iter().flatten() {
        let task = &document["result"];
        // Many reloads under load lose and refuse no request
        assert_eq!(
            (status, task_outcome(task)),
            (200, completed_outcome(&message_text)),
            "{document}"
        );
        message_texts_by_id.insert(task["id"].as_str().unwrap().to_owned(), message_text);
    }
    assert_eq!(message_texts_by_id.len(), CALLER_COUNT * MESSAGES_PER_CALLER);
    for id in message_texts_by_id.keys() {
        let record = service.fetch_execution(id).await;
        let events = record["events"].as_array().unwrap();
        let end_count = events.iter().filter(|event| event["data"]["to"] == "completed").count();
        assert_eq!((&record["outcome"], end_count), (&json!("completed"), 1), "{record}");
    }
    let status = service.get("/status").await.json();
    assert!(status["agents"].as_array().unwrap().iter().all(|agent| agent["restarts"] == 0));
}

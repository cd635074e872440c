//! Streams: events in order, taken up again where they were left.

use serde_json::{Value, json};

use crate::harness::door::{Answer, completed, id, outcome};
use crate::harness::{Service, gated, message};

const CURSOR: &str = "https://algonius.dev/a2a/ext/event-cursor/v1";

/// The events of a stream: the number of each, and its document.
fn events(answer: &Answer) -> Vec<(u64, Value)> {
    assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{answer:?}");
    let lines = answer.body.lines();
    let (mut number, mut events) = (0, Vec::new());
    for line in lines {
        if let Some(text) = line.strip_prefix("id: ") {
            number = text.parse().unwrap();
        } else if let Some(text) = line.strip_prefix("data: ") {
            let document: Value = serde_json::from_str(text).unwrap();
            events.push((number, document["result"].clone()));
        }
    }
    events
}

#[tokio::test]
async fn a_stream_is_taken_up_after_any_of_its_events_also_after_a_restart() {
    let mut service = Service::start(&gated("one", "")).await;
    service.setup.open("go");
    let told = events(&service.call("one", "message/stream", &message("ann")).await);
    let (_, task) = &told[0];
    let (task, last) = (json!({"id": task["id"]}), told.last().unwrap().1.clone());
    assert_eq!((&last["kind"], &last["final"]), (&json!("status-update"), &json!(true)));
    service.sigterm();
    assert!(service.exit().await.success());
    service.restart().await;
    for (place, (number, _)) in told.iter().enumerate() {
        let line = format!("Last-Event-ID: {number}");
        let resubscribe = ("tasks/resubscribe", &task);
        let rest = service.call_with("one", &[line.as_str()], resubscribe).await;
        let rest: Vec<_> = events(&rest).into_iter().map(|(_, event)| event).collect();
        // Who knows the end is told it once more, and nothing else.
        let next = (place + 1).min(told.len() - 1);
        let expected: Vec<_> = told[next..].iter().map(|(_, event)| event.clone()).collect();
        assert_eq!(rest, expected, "after {number}");
    }
    let whole = events(&service.call("one", "tasks/resubscribe", &task).await);
    assert_eq!(outcome(&whole[0].1), completed("ann\n"));
    assert_eq!(id(&whole[0].1), task["id"]);
}

#[tokio::test]
async fn events_tell_their_own_numbers_to_those_who_use_the_extension() {
    let service = Service::start(&gated("one", "")).await;
    service.setup.open("go");
    let card = service.get("/agents/one/.well-known/agent-card.json").await.json();
    let offered = card["capabilities"]["extensions"].as_array().unwrap();
    assert!(offered.iter().any(|one| one["uri"] == CURSOR && one["required"] != true), "{card}");

    for header in ["A2A-Extensions", "X-A2A-Extensions"] {
        let line = format!("{header}: urn:of-others, {CURSOR}");
        let params = message("ann");
        let stream = ("message/stream", &params);
        let answer = service.call_with("one", &[line.as_str()], stream).await;
        assert_eq!(answer.header(&header.to_lowercase()), Some(CURSOR));
        for (number, event) in events(&answer) {
            assert_eq!(event["metadata"][CURSOR], number.to_string(), "{event}");
        }
    }
    let plain = service.call("one", "message/stream", &message("ann")).await;
    assert_eq!(plain.header("a2a-extensions"), None);
    assert!(!plain.body.contains(CURSOR));
}

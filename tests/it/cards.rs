//! The cards of the agents, at every place where clients look for them.

use serde_json::json;

use crate::harness::door::{completed, outcome};
use crate::harness::{Service, Setup, ask, fake, message};

const PLACES: [&str; 3] = [
    "/.well-known/agent-card.json",
    "/agents/echo/.well-known/agent-card.json",
    "/agents/echo/v1/.well-known/agent-card.json",
];

fn agents() -> String {
    let settings = "name = 'Echo'\ndescription = 'Says it again.'\nversion = '2.1'";
    [fake("echo", "echo", settings), fake("other", "echo", "access = 'read-write'")].concat()
}

#[tokio::test]
async fn the_card_stands_at_three_places_open_to_everybody_and_leads_to_the_door() {
    let service = Setup::server("default_agent = 'echo'", &agents()).start().await;
    let mut cards = Vec::new();
    for place in PLACES {
        let answer = service.request(&format!("GET {place}"), &[], b"").await;
        assert_eq!(answer.status, 200, "{place}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let head = service.request(&format!("HEAD {place}"), &[], b"").await;
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{place}");
        assert_eq!(head.header("content-length"), answer.header("content-length"));
        cards.push(answer.json());
    }
    assert!(cards.iter().all(|card| *card == cards[0]));
    let card = &cards[0];
    for (name, value) in [
        ("protocolVersion", json!("0.3.0")),
        ("name", json!("Echo")),
        ("description", json!("Says it again.")),
        ("version", json!("2.1")),
        ("preferredTransport", json!("JSONRPC")),
        ("security", json!([{"bearer": []}])),
    ] {
        assert_eq!(card[name], value, "{name}");
    }
    let base = format!("http://{}", service.address);
    let path = card["url"].as_str().and_then(|url| url.strip_prefix(&base)).unwrap();
    let answer = service.post(path, &ask("message/send", &message("hello"))).await;
    assert_eq!(outcome(&answer.json()["result"]), completed("hello"));
}

#[tokio::test]
async fn cards_can_be_closed_and_are_then_shown_to_those_with_a_token() {
    let server = "default_agent = 'echo'\npublic_card = false";
    let service = Setup::server(server, &agents()).start().await;
    for place in PLACES {
        assert_eq!(service.request(&format!("GET {place}"), &[], b"").await.status, 401);
        assert_eq!(service.request(&format!("HEAD {place}"), &[], b"").await.status, 401);
        assert_eq!(service.get(place).await.json()["name"], "Echo", "{place}");
    }
}

#[tokio::test]
async fn without_a_default_agent_the_host_has_no_card() {
    let service = Service::start(&agents()).await;
    let answer = service.request(&format!("GET {}", PLACES[0]), &[], b"").await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("agent-unknown")));
}

#[tokio::test]
async fn the_directory_names_the_doors_and_cards_of_all_agents() {
    let service = Service::start(&agents()).await;
    let list = service.get("/api/v1/agents").await.json();
    let base = format!("http://{}/agents/other", service.address);
    let other = &list["agents"][1];
    assert_eq!((&other["id"], &other["access"]), (&json!("other"), &json!("read-write")));
    assert_eq!(list["agents"][0]["access"], "read-only");
    assert_eq!(other["url"], format!("{base}/v1"));
    assert_eq!(other["card"], format!("{base}/.well-known/agent-card.json"));
}

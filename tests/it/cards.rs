//! The cards of the agents, at every place where clients look for them.

use serde_json::json;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, json_rpc_request_body, message_params,
};

const CARD_PATHS: [&str; 3] = [
    "/.well-known/agent-card.json",
    "/agents/echo/.well-known/agent-card.json",
    "/agents/echo/v1/.well-known/agent-card.json",
];

fn agents_config() -> String {
    let settings = "name = 'Echo'\ndescription = 'Says it again.'\nversion = '2.1'";
    [
        fake_agent_config("echo", "echo", settings),
        fake_agent_config("other", "echo", "access = 'read-write'"),
    ]
    .concat()
}

#[tokio::test]
async fn the_public_card_has_three_paths_and_a_working_url() {
    let service =
        Setup::with_server_settings("default_agent = 'echo'", &agents_config()).start().await;
    let mut cards = Vec::new();
    for path in CARD_PATHS {
        let answer = service.request(&format!("GET {path}"), &[], b"").await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let head = service.request(&format!("HEAD {path}"), &[], b"").await;
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
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
    let answer =
        service.post(path, &json_rpc_request_body("message/send", &message_params("hello"))).await;
    assert_eq!(task_outcome(&answer.json()["result"]), completed_outcome("hello"));
}

#[tokio::test]
async fn private_cards_need_a_token() {
    let server_settings = "default_agent = 'echo'\npublic_card = false";
    let service = Setup::with_server_settings(server_settings, &agents_config()).start().await;
    for path in CARD_PATHS {
        assert_eq!(service.request(&format!("GET {path}"), &[], b"").await.status, 401);
        assert_eq!(service.request(&format!("HEAD {path}"), &[], b"").await.status, 401);
        assert_eq!(service.get(path).await.json()["name"], "Echo", "{path}");
    }
}

#[tokio::test]
async fn without_a_default_agent_the_host_has_no_card() {
    let service = ServiceProcess::start(&agents_config()).await;
    let answer = service.request(&format!("GET {}", CARD_PATHS[0]), &[], b"").await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("agent-unknown")));
}

#[tokio::test]
async fn the_directory_lists_urls_and_cards_of_all_agents() {
    let service = ServiceProcess::start(&agents_config()).await;
    let list = service.get("/api/v1/agents").await.json();
    let base = format!("http://{}/agents/other", service.address);
    let other_agent = &list["agents"][1];
    assert_eq!(
        (&other_agent["id"], &other_agent["access"]),
        (&json!("other"), &json!("read-write"))
    );
    assert_eq!(list["agents"][0]["access"], "read-only");
    assert_eq!(other_agent["url"], format!("{base}/v1"));
    assert_eq!(other_agent["card"], format!("{base}/.well-known/agent-card.json"));
}

/// The ways in that a card lists, each as `binding version`.
fn card_interfaces(card: &serde_json::Value) -> Vec<String> {
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let field =
        |interface: &serde_json::Value, name: &str| interface[name].as_str().unwrap().to_owned();
    interfaces
        .iter()
        .map(|interface| {
            format!(
                "{} {}",
                field(interface, "protocolBinding"),
                field(interface, "protocolVersion")
            )
        })
        .collect()
}

#[tokio::test]
async fn clients_of_1_0_find_every_interface_of_both_versions() {
    let service =
        Setup::with_server_settings("default_agent = 'echo'", &agents_config()).start().await;
    let all_interfaces =
        ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3", "GRPC 0.3"];
    for version in [None, Some("A2A-Version: 1.0".to_owned())] {
        let headers: Vec<_> = version.into_iter().collect();
        let card = service.request(&format!("GET {}", CARD_PATHS[0]), &headers, b"").await.json();
        assert_eq!(card_interfaces(&card), all_interfaces, "{card}");
        let base = format!("http://{}/agents/echo", service.address);
        let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
        let urls: Vec<_> = interfaces.map(|interface| interface["url"].as_str().unwrap()).collect();
        let (rpc, host) = (format!("{base}/v1"), service.address.to_string());
        assert_eq!(urls, [&rpc, &rpc, &host, &rpc, &base, &host]);
    }
    // An agent that no client of 0.3 can name over gRPC does not list that.
    let other_card_line = "GET /agents/other/.well-known/agent-card.json";
    let card = service.request(other_card_line, &[], b"").await.json();
    assert_eq!(card_interfaces(&card), all_interfaces[..5], "{card}");
}

#[tokio::test]
async fn a_binding_can_be_served_without_being_published() {
    let settings = "a2a.card_bindings = ['jsonrpc', 'http+json']";
    let setup = Setup::with_server_settings(
        "default_agent = 'echo'",
        &fake_agent_config("echo", "echo", settings),
    );
    let service = setup.start().await;
    let card = service.request(&format!("GET {}", CARD_PATHS[0]), &[], b"").await.json();
    let expected = ["JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3"];
    assert_eq!(card_interfaces(&card), expected, "{card}");
    assert!(!card.to_string().contains("GRPC"), "{card}");
    let extended =
        service.expect_result("echo", "agent/getAuthenticatedExtendedCard", &json!({})).await;
    assert!(!extended.to_string().contains("GRPC"), "{extended}");
    // The interface is available nevertheless, and operators see it.
    let status = service.get("/a2a/status").await.json();
    assert!(status["agents"][0]["interfaces"].to_string().contains("grpc"), "{status}");
}

#[tokio::test]
async fn configured_card_details_are_shown_in_both_versions() {
    let provider = "[server.provider]\norganization = 'Us'\nurl = 'https://us.example'\n";
    let settings = "a2a.documentation_url = 'https://us.example/docs'\n\
                    a2a.icon_url = 'https://us.example/icon.png'\n\
                    skills = [{ id = 'x', examples = ['do x'], input_modes = ['image/*'], \
                    output_modes = ['text/html'] }]";
    let agents =
        [fake_agent_config("echo", "echo", settings), fake_agent_config("other", "echo", "")]
            .concat();
    let service = Setup::new(&format!("{agents}{provider}")).start().await;
    let fetch_card = async |agent: &str, headers: &[String]| {
        let line = format!("GET /agents/{agent}/.well-known/agent-card.json");
        service.request(&line, headers, b"").await.json()
    };
    let headers_1_0 = ["A2A-Version: 1.0".to_owned()];
    let cards = [fetch_card("echo", &[]).await, fetch_card("echo", &headers_1_0).await];
    let extended =
        service.expect_result("echo", "agent/getAuthenticatedExtendedCard", &json!({})).await;
    for card in cards.into_iter().chain([extended]) {
        let provider = json!({"organization": "Us", "url": "https://us.example"});
        assert_eq!(card["provider"], provider, "{card}");
        assert_eq!(card["documentationUrl"], "https://us.example/docs", "{card}");
        assert_eq!(card["iconUrl"], "https://us.example/icon.png", "{card}");
        let skill = &card["skills"][0];
        assert_eq!(skill["examples"], json!(["do x"]), "{card}");
        assert_eq!(skill["inputModes"], json!(["image/*"]), "{card}");
        assert_eq!(skill["outputModes"], json!(["text/html"]), "{card}");
    }
    let other_card = fetch_card("other", &headers_1_0).await;
    assert_eq!(other_card["provider"]["organization"], "Us", "{other_card}");
    assert!(
        other_card.get("iconUrl").is_none() && other_card["skills"][0].get("examples").is_none()
    );
}

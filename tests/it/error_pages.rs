//! Errors carry the address of their page, and the service and the command line have all pages.

use algonius_actors::model::code::Code;

use crate::harness::{ServiceProcess, Setup, fake_agent_config};

const BROWSER_HEADER: &str = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n";

/// Opens an address of the service without a token, as a host that the service does not know.
async fn fetch_page(service: &ServiceProcess, address: &str, accept_header: &str) -> String {
    let path = address.strip_prefix(&format!("http://{}", service.address));
    let path = path.unwrap_or_else(|| panic!("no address of the service: {address}"));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: foreign.example\r\n{accept_header}Connection: close\r\n\r\n"
    );
    String::from_utf8(service.send_raw(request.as_bytes()).await).unwrap()
}

#[tokio::test]
async fn the_page_of_an_error_can_be_opened() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    for (path, code) in
        [("/api/v1/agents/nobody", "agent-unknown"), ("/api/v1/nothing", "path-unknown")]
    {
        let page_url = service.get(path).await.json()["page"].as_str().unwrap().to_owned();
        let html = fetch_page(&service, &page_url, BROWSER_HEADER).await;
        assert!(
            html.starts_with("HTTP/1.1 200") && html.contains(&format!("<h1>{code}</h1>")),
            "{html}"
        );
        assert!(html.contains("content-security-policy: default-src 'none'"), "{html}");
        let markdown = fetch_page(&service, &page_url, "").await;
        assert!(markdown.contains("content-type: text/markdown"), "{markdown}");
        assert!(markdown.contains(&format!("# {code}\n")), "{markdown}");
    }
    let answer = service.call("nobody", "tasks/get", &serde_json::json!({"id": "x"})).await.json();
    let page_url = answer["error"]["data"][0]["metadata"]["page"].as_str().unwrap();
    assert!(fetch_page(&service, page_url, "").await.contains("# agent-unknown"), "{answer}");
    let list =
        fetch_page(&service, &format!("http://{}/errors", service.address), BROWSER_HEADER).await;
    for code in Code::ALL {
        assert!(list.contains(&format!("/errors/{code}\">{code}</a>")), "{code}: {list}");
    }
    // Clients that read Markdown follow its links as they are.
    let linked_page =
        fetch_page(&service, &format!("http://{}/errors/queue-full.md", service.address), "").await;
    assert!(
        linked_page.contains("# queue-full\n") && linked_page.contains("vary: accept"),
        "{linked_page}"
    );
    let unknown =
        fetch_page(&service, &format!("http://{}/errors/nonsense", service.address), "").await;
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
}

#[tokio::test]
async fn a_reload_changes_the_url_of_the_error_pages() {
    let agents = fake_agent_config("echo", "echo", "");
    let mut service =
        Setup::with_server_settings("public_url = 'https://one.example/base'", &agents)
            .start()
            .await;
    let fetch_page_url = async |service: &ServiceProcess| {
        service.get("/api/v1/agents/nobody").await.json()["page"].as_str().unwrap().to_owned()
    };
    assert_eq!(fetch_page_url(&service).await, "https://one.example/base/errors/agent-unknown");
    let list =
        fetch_page(&service, &format!("http://{}/errors", service.address), BROWSER_HEADER).await;
    assert!(list.contains("href=\"https://one.example/base/errors/agent-unknown\""), "{list}");
    let config = service.setup.write_config().to_owned();
    let text = std::fs::read_to_string(&config).unwrap().replace("one.example", "two.example");
    service.setup.set_config_text(&text);
    service.setup.write_config();
    assert_eq!(service.post("/api/v1/reload", "").await.status, 200);
    assert_eq!(fetch_page_url(&service).await, "https://two.example/base/errors/agent-unknown");
}

#[tokio::test]
async fn the_command_line_explains_every_code() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    for code in [Code::QueueFull, Code::Internal] {
        let output = service.run_command(&["explain", code.as_str()], "").await;
        assert_eq!((output.stdout.as_str(), output.exit_code), (code.page(), Some(0)));
    }
    let list = service.run_command(&["explain"], "").await.stdout;
    assert!(Code::ALL.iter().all(|code| list.contains(code.as_str())), "{list}");
    let unknown = service.run_command(&["explain", "queue-ful"], "").await;
    assert!(
        unknown.exit_code == Some(4) && unknown.stderr.contains("did you mean `queue-full`?"),
        "{}",
        unknown.stderr
    );
}

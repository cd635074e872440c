//! Questions that a person answers at the terminal, in `algonius send`.

use super::*;
use crate::terminal::Terminal;

/// Starts a service whose agent requests permission for its tool calls.
async fn start_interactive_service() -> ServiceProcess {
    start_service(&interactive_agent_config("coder", "acp", "")).await
}

/// Starts `algonius send` with this prompt, which contains no single quote.
fn send_at_terminal(service: &ServiceProcess, prompt: &str) -> Terminal {
    Terminal::start(service, &format!("send coder '{prompt}'"))
}

/// Returns the open question of the service.
async fn fetch_open_question(service: &ServiceProcess) -> Value {
    let list = service.get("/api/v1/interactions?state=open").await.json();
    let [question] = list["interactions"].as_array().unwrap().as_slice() else { panic!("{list}") };
    question.clone()
}

#[tokio::test]
async fn a_tool_call_is_allowed_or_denied_at_the_terminal() {
    let service = start_interactive_service().await;
    for (answer_keys, expected_call_count, verdict) in [("yes\n", 1, "allow"), ("n\n", 1, "deny")] {
        let mut terminal = send_at_terminal(&service, TOOL_PROMPT);
        let lines = terminal.wait_for_text("  command  make test").await;
        assert!(lines.iter().any(|line| line == "Allow Bash: make test"), "{lines:#?}");
        terminal.send_keys("yes please\n").await;
        terminal.wait_for_text("answer: `yes` allows this call, `no` denies it").await;
        terminal.send_keys(answer_keys).await;
        let (code, screen) = terminal.wait_for_exit().await;
        assert_eq!(code, Some(0), "{screen:#?}");
        assert_eq!(screen.last().unwrap(), "done", "{screen:#?}");
        assert_eq!(tool_call_count(&service), expected_call_count, "{answer_keys}");
        let decisions = fetch_verdicts(&service, "coder").await;
        assert_eq!(
            decisions.last(),
            Some(&recorded_verdict(verdict, "principal")),
            "{answer_keys}"
        );
    }
}

#[tokio::test]
async fn each_of_two_questions_is_asked_at_the_terminal() {
    let service = start_interactive_service().await;
    let mut terminal = send_at_terminal(&service, "[[ask-twice first second]] [[say done]]");
    terminal.wait_for_text("  command  first").await;
    terminal.send_keys("no\n").await;
    terminal.wait_for_text("  command  second").await;
    terminal.send_keys("yes\n").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(0), "{screen:#?}");
    let tool_call_log = service.setup.read_file("ran");
    assert!(
        tool_call_log.trim_end().ends_with("second") && tool_call_log.lines().count() == 1,
        "{tool_call_log}"
    );
}

#[tokio::test]
async fn a_form_is_filled_at_the_terminal() {
    let service = start_interactive_service().await;
    let mut terminal = send_at_terminal(&service, "[[form Branch? name=string]]");
    terminal.wait_for_text("  schema   ").await;
    terminal.send_keys("main\n").await;
    terminal.wait_for_text("answer: a JSON object with a member for each field").await;
    // The schema requires a text, so the service refuses this one, and the question stays open.
    terminal.send_keys("{\"name\": 7}\n").await;
    terminal.wait_for_text("must be of the type").await;
    // What is typed before the question appears again answers nothing.
    terminal.wait_for_lines("  schema   ", 2).await;
    terminal.send_keys("{\"name\": \"main\"}\n").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(0), "{screen:#?}");
    assert_eq!(screen.last().unwrap(), r#"FORM: {"name":"main"}"#, "{screen:#?}");
}

#[tokio::test]
async fn a_line_typed_before_the_question_answers_nothing() {
    let service = start_interactive_service().await;
    let prompt = r#"[[wait 1]] [[tool Bash command="make test"]] [[say done]]"#;
    let mut terminal = send_at_terminal(&service, prompt);
    terminal.wait_for_text("working (").await;
    terminal.send_keys("yes\n").await;
    terminal.wait_for_text("  command  make test").await;
    terminal.send_keys("no\n").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!((code, tool_call_count(&service)), (Some(0), 0), "{screen:#?}");
    assert_eq!(fetch_verdicts(&service, "coder").await, [recorded_verdict("deny", "principal")]);
}

/// Creates a token with these rights; returns the option that uses it.
async fn create_token_file_option(service: &ServiceProcess, scopes: &[&str]) -> String {
    let token_request = json!({"name": scopes.concat(), "scopes": scopes}).to_string();
    let created = service.post("/api/v1/tokens", &token_request).await.json();
    let token_file = service.setup.test_folder().join(scopes.concat());
    std::fs::write(&token_file, created["token"].as_str().unwrap()).unwrap();
    format!("--token-file {}", token_file.display())
}

#[tokio::test]
async fn a_caller_without_the_right_waits_for_an_approver() {
    let service = start_interactive_service().await;
    let arguments = create_token_file_option(&service, &["run", "read"]).await;
    let mut terminal =
        Terminal::start(&service, &format!("send coder '{TOOL_PROMPT}' {arguments}"));
    terminal.wait_for_text("  command  make test").await;
    terminal.send_keys("yes\n").await;
    terminal.wait_for_text("approve").await;
    let question = fetch_open_question(&service).await;
    assert_eq!(tool_call_count(&service), 0);
    let allow = json!({"verdict": "allow"});
    assert_eq!(answer_question(&service, &question, &allow).await, answered_response());
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!((code, tool_call_count(&service)), (Some(0), 1), "{screen:#?}");
}

#[tokio::test]
async fn a_refused_message_asks_nothing_at_the_terminal() {
    let service = start_interactive_service().await;
    let arguments = create_token_file_option(&service, &["read"]).await;
    let terminal = Terminal::start(&service, &format!("send coder '{TOOL_PROMPT}' {arguments}"));
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(2), "{screen:#?}");
    assert!(screen.iter().any(|line| line.contains("(forbidden)")), "{screen:#?}");
}

#[tokio::test]
async fn a_question_answered_elsewhere_leaves_the_terminal() {
    let service = start_interactive_service().await;
    let prompt = r#"[[tool Bash command=one]] [[tool Bash command=two]] [[say done]]"#;
    let mut terminal = send_at_terminal(&service, prompt);
    terminal.wait_for_text("  command  one").await;
    let question = fetch_open_question(&service).await;
    let deny = json!({"verdict": "deny"});
    assert_eq!(answer_question(&service, &question, &deny).await, answered_response());
    terminal.wait_for_text("the question is no longer open").await;
    // The next question is a question of its own.
    terminal.wait_for_text("  command  two").await;
    terminal.send_keys("yes\n").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(0), "{screen:#?}");
    let tool_call_log = service.setup.read_file("ran");
    assert!(
        tool_call_log.trim_end().ends_with("two") && tool_call_log.lines().count() == 1,
        "{tool_call_log}"
    );
}

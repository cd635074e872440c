//! Conversations with programs that end with their answers: what was said before is known, once, in
//! its order, and not to others.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::client::{completed_outcome, task_id, task_outcome, task_state};
use crate::harness::{
    ServiceClient, ServiceProcess, json_rpc_request_body, message_params, poll_until,
};

/// The fake program that remembers, told to resume by its own id.
fn chat_agent_config(options: &str, settings: &str, session_settings: &str) -> String {
    format!(
        "[agents.chat]\ncommand = 'FAKE'\nargs = ['chat', 'HERE/memory'{options}]\n\
         sandbox.writable = ['HERE']\n{settings}\n[agents.chat.session]\n\
         resume_args = ['--resume', '{{{{ session_id }}}}']\n{session_settings}\n"
    )
}

/// It tells its id on standard error.
fn session_regex_agent_config() -> String {
    chat_agent_config(
        "",
        "",
        "regex = 'session: (\\S+)'\nunknown_session_regex = 'no such session'",
    )
}

async fn start_with_memory_folder(agents: &str) -> ServiceProcess {
    let service = ServiceProcess::start(agents).await;
    std::fs::create_dir(service.setup.test_folder().join("memory")).unwrap();
    service
}

/// The parameters of a message of this conversation.
fn message_params_in_context(context: &str, text: &str) -> Value {
    let mut params = message_params(text);
    params["message"]["contextId"] = json!(context);
    params
}

async fn send_in_context(client: &ServiceClient, context: &str, text: &str) -> Value {
    client.expect_result("chat", "message/send", &message_params_in_context(context, text)).await
}

/// What the service said in the stream of a message.
async fn stream_answer(client: &ServiceClient, context: &str, text: &str) -> String {
    let body = json_rpc_request_body("message/stream", &message_params_in_context(context, text));
    client.post("/agents/chat/v1", &body).await.body
}

#[tokio::test]
async fn a_conversation_resumes_after_a_restart_in_isolation() {
    for agent in [
        session_regex_agent_config(),
        chat_agent_config(", '--events'", "output = 'events'", "unknown_session_exit_codes = [3]"),
        chat_agent_config("", "", "new_args = ['--new', '{{ uuid }}']"),
    ] {
        let mut service = start_with_memory_folder(&agent).await;
        assert_eq!(
            task_outcome(&send_in_context(&service, "c", "one").await),
            completed_outcome("one")
        );
        assert_eq!(
            task_outcome(&send_in_context(&service, "c", "two").await),
            completed_outcome("one two")
        );
        assert_eq!(
            task_outcome(&send_in_context(&service, "d", "tea").await),
            completed_outcome("tea"),
            "another context"
        );
        service.send_sigterm();
        assert!(service.wait_for_exit().await.success());
        service.start_again().await;
        assert_eq!(
            task_outcome(&send_in_context(&service, "c", "three").await),
            completed_outcome("one two three")
        );
        service.kill9().await;
        service.start_again().await;
        assert_eq!(
            task_outcome(&send_in_context(&service, "c", "four").await),
            completed_outcome("one two three four")
        );
        assert_eq!(
            task_outcome(&send_in_context(&service, "d", "milk").await),
            completed_outcome("tea milk")
        );
    }
}

#[tokio::test]
async fn conversations_of_different_callers_are_separate() {
    let service = start_with_memory_folder(&session_regex_agent_config()).await;
    let created_token =
        service.post("/api/v1/tokens", &json!({"name": "ann"}).to_string()).await.json();
    let ann = service.client_with_token(created_token["token"].as_str().unwrap());
    assert_eq!(
        task_outcome(&send_in_context(&service, "c", "mine").await),
        completed_outcome("mine")
    );
    assert_eq!(task_outcome(&send_in_context(&ann, "c", "hers").await), completed_outcome("hers"));
    assert_eq!(
        task_outcome(&send_in_context(&service, "c", "too").await),
        completed_outcome("mine too")
    );
}

#[tokio::test]
async fn a_lost_session_is_replaced_once_and_reported() {
    for unknown_session_setting in
        ["unknown_session_regex = 'no such session'", "unknown_session_exit_codes = [3]"]
    {
        let service = start_with_memory_folder(&chat_agent_config(
            "",
            "",
            &format!("regex = 'session: (\\S+)'\n{unknown_session_setting}"),
        ))
        .await;
        send_in_context(&service, "c", "one").await;
        let memory = service.setup.test_folder().join("memory");
        let entries = std::fs::read_dir(&memory).unwrap().flatten();
        let session_files =
            entries.filter(|file| file.file_name().to_string_lossy().starts_with("ses"));
        session_files.for_each(|file| std::fs::remove_file(file.path()).unwrap());
        let stream_text = stream_answer(&service, "c", "two").await;
        assert!(stream_text.contains(r#""continuity":"lost""#), "{stream_text}");
        assert_eq!(
            stream_text.matches("is lost: the agent does not know it").count(),
            1,
            "{stream_text}"
        );
        assert!(
            stream_text.contains(r#""text":"two""#) && !stream_text.contains("no such session"),
            "{stream_text}"
        );
        assert_eq!(
            task_outcome(&send_in_context(&service, "c", "three").await),
            completed_outcome("two three")
        );
        let expected_log = "start one\nend one\nstart two\nend two\nstart three\nend three\n";
        assert_eq!(service.setup.read_file("memory/log"), expected_log);
    }
}

#[tokio::test]
async fn a_failed_program_keeps_its_session_and_is_not_rerun() {
    let service = start_with_memory_folder(&session_regex_agent_config()).await;
    send_in_context(&service, "c", "one").await;
    assert_eq!(task_state(&send_in_context(&service, "c", "fail").await), "failed");
    assert_eq!(
        task_outcome(&send_in_context(&service, "c", "two").await),
        completed_outcome("one two")
    );
    assert_eq!(service.setup.read_file("memory/log").matches("start fail").count(), 1);
}

#[tokio::test]
async fn messages_of_one_conversation_run_in_order() {
    let service = start_with_memory_folder(&session_regex_agent_config()).await;
    let first_id = task_id(&service.submit("chat", message_params_in_context("c", "gate-a")).await);
    service.setup.wait_for_file_text("memory/log", "start gate-a\n").await;
    let second_id = task_id(&service.submit("chat", message_params_in_context("c", "two")).await);
    let third_id = task_id(&service.submit("chat", message_params_in_context("c", "three")).await);
    poll_until("its place is told", async || {
        let execution = service.fetch_execution(&second_id).await.to_string();
        execution.contains("conversation-busy").then_some(())
    })
    .await;
    assert_eq!(
        task_outcome(&send_in_context(&service, "d", "beside").await),
        completed_outcome("beside")
    );
    assert_eq!(service.setup.read_file("memory/log"), "start gate-a\nstart beside\nend beside\n");
    service.setup.open_gate("memory/gate-a");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("chat", &first_id).await),
        completed_outcome("gate-a")
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("chat", &third_id).await),
        completed_outcome("gate-a two three")
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("chat", &second_id).await),
        completed_outcome("gate-a two")
    );
}

#[tokio::test]
async fn a_session_is_forgotten_with_its_last_task_or_by_age() {
    let service = start_with_memory_folder(&session_regex_agent_config()).await;
    let task = send_in_context(&service, "c", "one").await;
    let deletion = service.run_command(&["tasks", "delete", &task_id(&task)], "").await;
    assert_eq!(deletion.exit_code, Some(0), "{deletion:?}");
    let stream_text = stream_answer(&service, "c", "two").await;
    assert!(
        stream_text.contains(r#""text":"two""#) && !stream_text.contains("continuity"),
        "{stream_text}"
    );

    let service = start_with_memory_folder(
        &session_regex_agent_config()
            .replace("unknown_session_regex", "ttl = 0.1\nunknown_session_regex"),
    )
    .await;
    send_in_context(&service, "c", "one").await;
    let sent_at = Instant::now();
    poll_until("the end of its time", async || (sent_at.elapsed().as_millis() > 150).then_some(()))
        .await;
    let stream_text = stream_answer(&service, "c", "two").await;
    assert!(stream_text.contains("it was idle for too long"), "{stream_text}");
    assert!(stream_text.contains(r#""text":"two""#), "{stream_text}");
    assert!(stream_text.contains(r#""continuity":"lost""#), "{stream_text}");
}

#[tokio::test]
async fn a_secret_like_session_id_is_resumed_and_stored_encrypted() {
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let agent =
        chat_agent_config(&format!(", '--new', '{secret}'"), "", "regex = 'session: (\\S+)'");
    let service = start_with_memory_folder(&agent).await;
    send_in_context(&service, "c", "one").await;
    // Resumed, the option that was given for a new one counts less.
    assert_eq!(
        task_outcome(&send_in_context(&service, "c", "two").await),
        completed_outcome("one two")
    );
    let ledger = service.setup.read_ledger_files();
    assert!(!ledger.windows(secret.len()).any(|part| part == secret.as_bytes()), "in the ledger");
    assert!(!service.stderr_text().contains(secret), "in the log");
}

#[tokio::test]
async fn a_program_that_outlives_the_service_keeps_its_session() {
    let mut service =
        start_with_memory_folder(&chat_agent_config("", "", "new_args = ['--new', '{{ uuid }}']"))
            .await;
    let first_id = task_id(&service.submit("chat", message_params_in_context("c", "gate-a")).await);
    service.setup.wait_for_file_text("memory/log", "start gate-a\n").await;
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("memory/gate-a");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("chat", &first_id).await),
        completed_outcome("gate-a")
    );
    assert_eq!(
        task_outcome(&send_in_context(&service, "c", "two").await),
        completed_outcome("gate-a two")
    );
}

/// A program that counts all tokens of its session, and is asked for the second time.
#[tokio::test]
async fn usage_of_earlier_turns_of_a_session_is_not_counted_again() {
    let service = ServiceProcess::start(
        r#"
[agents.chat]
command = "sh"
args = ["-c", '''
if [ "$1" = s-1 ]; then count=9; else count=4; fi
echo '{"type":"session","id":"s-1"}'
echo "{\"type\":\"usage\",\"input_tokens\":$count,\"cumulative\":true}"
echo '{"type":"text","text":"ok"}'
''', "chat"]
output = "events"
[agents.chat.session]
resume_args = ["{{ session_id }}"]
"#,
    )
    .await;
    for expected in [4, 5] {
        let task = send_in_context(&service, "c", "hello").await;
        let record = service.fetch_execution(&task_id(&task)).await;
        assert_eq!(record["attempts"][0]["used"]["input_tokens"], expected, "{record}");
    }
}

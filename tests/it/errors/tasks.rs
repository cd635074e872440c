//! Ends of tasks that did not succeed, as they are looked up.

use std::fs;

use algonius_actors::model::code::Code;

use super::{CANARY, ErrorRequest, RequestKind, assert_snapshot};
use crate::harness::client::{task_id, task_state};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params, poll_until,
};
use crate::sealed_inputs::runtime_key_file;

async fn assert_task_snapshot(
    service: &ServiceProcess,
    (agent, task): (&str, &str),
    scenario: &str,
    code: Code,
) {
    let request = ErrorRequest::new(service, agent, RequestKind::Get(task.to_owned()));
    assert_snapshot(service, scenario, code, &request.send_over_all_transports(service).await);
}

/// A shell with this script.
fn shell_agent_config(id: &str, script: &str, settings: &str) -> String {
    format!("[agents.{id}]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\n{settings}\n")
}

const EXITING_AGENTS: &str = "[agents.exits]\ncommand = 'sh'\nargs = ['-c', 'cat >&2; exit 7']\n\
                              [agents.dies]\ncommand = 'sh'\nargs = ['-c', 'kill -9 $$']\n";

#[tokio::test]
async fn program_failures_are_the_same_on_every_interface() {
    // Words of the caller go in, and to standard error: they are in no error.
    let agents = [
        EXITING_AGENTS.to_owned(),
        shell_agent_config("silent", "true", "success.require_output = true"),
        shell_agent_config("elsewhere", "echo '{}'", "success.json_pointer = '/answer'"),
        shell_agent_config("wrong", "echo ERROR: lost", "success.fail_regex = '^ERROR'"),
        shell_agent_config("flaky", "exit 75", "retry.base = 0.01"),
        shell_agent_config("slow", "sleep 600", "timeout = 0.3\nstop_grace = 0.1"),
        shell_agent_config("mute", "sleep 600", "idle_timeout = 1\nstop_grace = 0.1"),
        shell_agent_config(
            "crowd",
            "sleep 600 & wait",
            "resources = { processes = 1, group = 'off' }",
        ),
        shell_agent_config(
            "asks",
            "printf 'Go on? [y/N] '; sleep 600",
            "prompt_silence = 0.3\nstop_grace = 0.1",
        ),
        fake_agent_config("reports", "events failed:agent:no-luck", "output = 'events'"),
        shell_agent_config(
            "rejects",
            r#"echo '{"type":"rejected","message":"not mine"}'"#,
            "output = 'events'",
        ),
        shell_agent_config("hopeless", "exit 9", "failures.permanent.exit_codes = [9]"),
        shell_agent_config(
            "refused",
            r#"echo '{"type":"failed","message":"no key","status":401}'"#,
            "output = 'events'",
        ),
        "[agents.args]\ncommand = 'printf'\nargs = ['{{ input }}']\ninput = 'args'\n".to_owned(),
    ];
    let service = ServiceProcess::start(&agents.concat()).await;
    for (agent, scenario, code) in [
        ("exits", "agent-exit", Code::Exit),
        ("dies", "agent-killed", Code::Killed),
        ("silent", "empty-answer", Code::EmptyAnswer),
        ("elsewhere", "answer-missing", Code::AnswerMissing),
        ("wrong", "failure-pattern", Code::FailPattern),
        ("flaky", "agent-transient", Code::TransientFailure),
        ("slow", "execution-timeout", Code::Timeout),
        ("mute", "idle-timeout", Code::IdleTimeout),
        ("crowd", "resources-exceeded", Code::ResourcesExceeded),
        ("asks", "interactive-input", Code::Interactive),
        ("reports", "agent-reported", Code::Reported),
        ("rejects", "agent-rejected", Code::Rejected),
        ("hopeless", "agent-permanent", Code::PermanentFailure),
        ("refused", "not-authenticated", Code::NotAuthenticated),
    ] {
        let task = service.send(agent, CANARY).await;
        assert_task_snapshot(&service, (agent, &task_id(&task)), scenario, code).await;
    }
    let task = service.send("args", &format!("{CANARY}\0")).await;
    assert_task_snapshot(
        &service,
        ("args", &task_id(&task)),
        "input-rejected",
        Code::InputRejected,
    )
    .await;
}

#[tokio::test]
async fn incomplete_output_fails_the_same_way_on_every_interface() {
    let agents = [
        shell_agent_config("early", r#"echo '{"type":"turn.started"}'"#, "output = 'codex-jsonl'"),
        shell_agent_config("unreadable", r#"echo '{"type":"text'"#, "output = 'events'"),
        shell_agent_config(
            "heavy",
            r#"printf '{"type":"artifact","text":"%s"}\n' "$(head -c 5000 /dev/zero | tr '\0' x)""#,
            "output = 'events'\nmax_output_bytes = 4096",
        ),
        shell_agent_config(
            "denied",
            r#"echo '{"type":"permission_denied","tool":"write"}'"#,
            "output = 'events'\nsuccess.require_output = true",
        ),
    ];
    let service = ServiceProcess::start(&agents.concat()).await;
    for (agent, scenario, code) in [
        ("early", "ended-early", Code::EndedEarly),
        ("unreadable", "output-unreadable", Code::OutputUnreadable),
        ("heavy", "output-too-large", Code::OutputTooLarge),
        ("denied", "denied", Code::Denied),
    ] {
        let task = service.send(agent, CANARY).await;
        assert_task_snapshot(&service, (agent, &task_id(&task)), scenario, code).await;
    }
}

#[tokio::test]
async fn failed_success_checks_are_the_same_on_every_interface() {
    let agents = [
        shell_agent_config("promises", "echo done", "success.artifact = 'report.md'"),
        shell_agent_config("chats", "echo Sure: {}", "success.schema = '{}'"),
        shell_agent_config("botches", "echo done", "success.check = ['sh', '-c', 'exit 3']"),
    ];
    let service = ServiceProcess::start(&agents.concat()).await;
    for (agent, scenario, code) in [
        ("promises", "artifact-missing", Code::ArtifactMissing),
        ("chats", "schema-mismatch", Code::SchemaMismatch),
        ("botches", "check-failed", Code::CheckFailed),
    ] {
        let task = service.send(agent, CANARY).await;
        assert_task_snapshot(&service, (agent, &task_id(&task)), scenario, code).await;
    }
}

#[tokio::test]
async fn start_failures_are_the_same_on_every_interface() {
    let agents = "[agents.gone]\ncommand = 'HERE/gone'\n[agents.odd]\ncommand = 'HERE/odd'\n";
    let setup = Setup::new(agents).with_executable("odd", "#!/nowhere/sh\n");
    let service = setup.start().await;
    let task = service.send("odd", CANARY).await;
    assert_task_snapshot(
        &service,
        ("odd", &task_id(&task)),
        "interpreter-missing",
        Code::NotStarted,
    )
    .await;
    let unavailable_answers = ErrorRequest::new_message(&service, "gone", CANARY)
        .send_over_all_transports(&service)
        .await;
    assert_snapshot(&service, "agent-unavailable", Code::AgentUnavailable, &unavailable_answers);
}

#[tokio::test]
async fn cancelled_and_unknown_tasks_are_the_same_on_every_interface() {
    let agents =
        [gated_agent_config("one", "access = 'read-write'"), fake_agent_config("echo", "echo", "")]
            .concat();
    let service = ServiceProcess::start(&agents).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.cancel("one", &id).await;
    service.wait_for_task_end("one", &id).await;
    assert_task_snapshot(&service, ("one", &id), "execution-cancelled", Code::Cancelled).await;
    let cancel_request = ErrorRequest::new(&service, "one", RequestKind::Cancel(id));
    assert_snapshot(
        &service,
        "execution-ended",
        Code::ExecutionEnded,
        &cancel_request.send_over_all_transports(&service).await,
    );
    let unknown_id = uuid::Uuid::now_v7().to_string();
    assert_task_snapshot(
        &service,
        ("echo", &unknown_id),
        "execution-unknown",
        Code::ExecutionUnknown,
    )
    .await;
}

#[tokio::test]
async fn interruptions_are_the_same_on_every_interface() {
    let settings = "access = 'read-write'\nqueue_timeout = 0.2\nworking_dir = '/usr/share'";
    let other_folder = "access = 'read-write'\nworking_dir = 'HERE/home'";
    let agents =
        [gated_agent_config("line", settings), gated_agent_config("one", other_folder)].concat();
    let mut service = ServiceProcess::start(&agents).await;
    service.start_task("line", "ann").await;
    let waiting_id = service.start_task("line", "bob").await;
    let task = service.wait_for_task_end("line", &waiting_id).await;
    assert_eq!(task_state(&task), "rejected");
    assert_task_snapshot(
        &service,
        ("line", &waiting_id),
        "queue-timeout-of-a-task",
        Code::QueueTimeout,
    )
    .await;
    let running_id = service.start_task("one", "cid").await;
    poll_until("the start", async || {
        service.setup.read_file("log").contains("start cid").then_some(())
    })
    .await;
    // An input with a secret is sealed, so a queued execution with such an input cannot run without the key.
    let secret = format!("password={}", "Xk29fQ8vLm4T7wRz");
    let waiting_id = task_id(&service.submit("one", message_params(&secret)).await);
    service.kill9_with_holder().await;
    fs::remove_file(runtime_key_file(&service.setup)).unwrap();
    service.start_again().await;
    assert_task_snapshot(&service, ("one", &running_id), "interrupted", Code::Interrupted).await;
    assert_task_snapshot(
        &service,
        ("one", &waiting_id),
        "interrupted-not-run",
        Code::InterruptedNotRun,
    )
    .await;
}

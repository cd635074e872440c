//! Refusals of a request for new work, before there is a task.

use std::fs;

use super::{CANARY, Code, ErrorRequest, RequestKind, assert_snapshot};
use crate::harness::disk::SmallDisk;
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params,
    message_params_with_id, poll_until,
};

/// One that runs alone, and lets nobody wait.
const SETTINGS_WITHOUT_QUEUE: &str = "access = 'read-write'\nqueue_depth = 0";

#[tokio::test]
async fn authentication_errors_are_the_same_on_every_interface() {
    let agents =
        [fake_agent_config("one", "echo", ""), fake_agent_config("two", "echo", "")].concat();
    let tokens = "[tokens.ann]\ntoken_env = 'ANN'\nagents = ['one']\n";
    let ann_token = "a".repeat(32);
    // Each of the seven ways is one failure of the token.
    let setup = Setup::new(&format!("{agents}{tokens}[lockout]\nfailures = 7\n"));
    let service = setup.env("ANN", &ann_token).start().await;
    let request = ErrorRequest::new_message(&service, "two", CANARY).with_token(&ann_token);
    assert_snapshot(
        &service,
        "forbidden",
        Code::Forbidden,
        &request.send_over_all_transports(&service).await,
    );
    let invalid_token = "w".repeat(40);
    let request = ErrorRequest::new_message(&service, "one", CANARY).with_token(&invalid_token);
    assert_snapshot(
        &service,
        "unauthenticated",
        Code::Unauthenticated,
        &request.send_over_all_transports(&service).await,
    );
    assert_snapshot(
        &service,
        "locked-out",
        Code::LockedOut,
        &request.send_over_all_transports(&service).await,
    );
}

#[tokio::test]
async fn agent_refusals_are_the_same_on_every_interface() {
    let agents = [
        fake_agent_config("off", "echo", "enabled = false"),
        fake_agent_config("small", "echo", "max_input_bytes = 10"),
        fake_agent_config("echo", "echo", ""),
        fake_agent_config("images", "echo", "a2a.input_modes = ['image/*']"),
        fake_agent_config("quiet", "echo", "a2a.push = false"),
        fake_agent_config(
            "asked",
            "echo",
            "a2a.rate_limit = { requests_per_second = 0.001, burst = 1 }",
        ),
        fake_agent_config("new", "echo", "a2a.versions = ['1.0']"),
        fake_agent_config("sender", "echo", "a2a.methods = ['send']"),
    ];
    let service =
        Setup::with_server_settings("max_body_bytes = 4096", &agents.concat()).start().await;
    service.send("asked", "the only one").await;
    service
        .expect_result(
            "echo",
            "message/send",
            &message_params_with_id("used-before", "other words"),
        )
        .await;
    let request_of = |agent: &str, kind: RequestKind| ErrorRequest::new(&service, agent, kind);
    let send_kind = || RequestKind::Send(CANARY.to_owned());
    let long_message = RequestKind::Send(CANARY.repeat(500));
    for (scenario, code, request) in [
        ("agent-unknown", Code::AgentUnknown, request_of("nobody", send_kind())),
        ("agent-disabled", Code::AgentDisabled, request_of("off", send_kind())),
        ("input-too-large", Code::InputTooLarge, request_of("small", send_kind())),
        ("body-too-large", Code::BodyTooLarge, request_of("echo", long_message)),
        ("content-type", Code::ContentType, request_of("images", send_kind())),
        (
            "push-unsupported",
            Code::PushUnsupported,
            request_of("quiet", RequestKind::SendWithPushConfig(CANARY.to_owned())),
        ),
        ("rate-limited", Code::RateLimited, request_of("asked", send_kind())),
        (
            "override-refused",
            Code::OverrideRefused,
            request_of("echo", RequestKind::SendWithOverride(CANARY.to_owned())),
        ),
        (
            "param-refused",
            Code::OverrideRefused,
            request_of("echo", RequestKind::SendWithParam(CANARY.to_owned())),
        ),
        (
            "message-reused",
            Code::MessageReused,
            request_of("echo", RequestKind::SendRepeated(CANARY.to_owned())),
        ),
        (
            "message-missing",
            Code::InvalidParams,
            request_of("echo", RequestKind::SendWithoutMessage),
        ),
        (
            "version-unsupported",
            Code::VersionUnsupported,
            request_of("echo", send_kind()).with_header("a2a-version", "2.0"),
        ),
    ] {
        assert_snapshot(
            &service,
            scenario,
            code,
            &request.send_over_all_transports(&service).await,
        );
    }
    let mut answers = request_of("sender", RequestKind::Get("x".to_owned()))
        .send_over_all_transports(&service)
        .await;
    answers.pop(); // The command line sends its request to the service, not to the agent.
    assert_snapshot(&service, "operation-unsupported", Code::Unsupported, &answers);
}

#[tokio::test]
async fn capacity_errors_are_the_same_on_every_interface() {
    let agents = [
        gated_agent_config("full", SETTINGS_WITHOUT_QUEUE),
        gated_agent_config("slow", "access = 'read-write'\nqueue_timeout = 0.2"),
    ];
    let mut service = ServiceProcess::start(&agents.concat()).await;
    for agent in ["full", "slow"] {
        service.start_task(agent, &format!("ann-{agent}")).await;
    }
    let request = ErrorRequest::new_message(&service, "full", CANARY);
    assert_snapshot(
        &service,
        "queue-full",
        Code::QueueFull,
        &request.send_over_all_transports(&service).await,
    );
    let request = ErrorRequest::new_message(&service, "slow", CANARY);
    assert_snapshot(
        &service,
        "queue-timeout",
        Code::QueueTimeout,
        &request.send_over_all_transports(&service).await,
    );
    service.send_sigterm();
    poll_until("the drain", async || {
        let answer = service.call("full", "message/send", &message_params("x")).await;
        answer.body.contains("draining").then_some(())
    })
    .await;
    let request = ErrorRequest::new_message(&service, "full", CANARY);
    assert_snapshot(
        &service,
        "draining",
        Code::Draining,
        &request.send_over_all_transports(&service).await,
    );
    service.kill9().await;
}

#[tokio::test]
async fn pressure_errors_are_the_same_on_every_interface() {
    let pressure = "[pressure]\nmin_disk_free_bytes = 1_000_000_000_000_000_000\n";
    let service =
        ServiceProcess::start(&format!("{}{pressure}", fake_agent_config("echo", "echo", "")))
            .await;
    let request = ErrorRequest::new_message(&service, "echo", CANARY);
    assert_snapshot(
        &service,
        "pressure",
        Code::Pressure,
        &request.send_over_all_transports(&service).await,
    );

    let agent = fake_agent_config("echo", "echo", "");
    let setup = Setup::new(&format!("{agent}\n[pressure]\nenabled = false\n"));
    let Some(disk) = SmallDisk::mount_for_ledger_or_skip(setup.test_folder(), 16) else { return };
    let (service, disk) = (setup.start().await, disk);
    disk.fill();
    poll_until("a refusal", async || {
        // What the write-ahead log has room for is taken still.
        (service.call("echo", "message/send", &message_params("x")).await.status != 200)
            .then_some(())
    })
    .await;
    let request = ErrorRequest::new_message(&service, "echo", CANARY);
    assert_snapshot(
        &service,
        "ledger-unavailable",
        Code::LedgerUnavailable,
        &request.send_over_all_transports(&service).await,
    );
}

#[tokio::test]
async fn an_unready_service_refuses_alike_on_every_interface() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let run_folder = fs::canonicalize(service.setup.test_folder().join("run")).unwrap();
    fs::rename(&run_folder, run_folder.with_file_name("aside")).unwrap();
    while fs::write(&run_folder, "").is_err() {
        // The service has created the folder again; not even root can create one in a file.
        fs::remove_dir_all(&run_folder).unwrap_or_default();
    }
    poll_until("the refusal", async || {
        let response = service.call("echo", "message/send", &message_params("x")).await;
        (response.error_code() == "service-unready").then_some(())
    })
    .await;
    let request = ErrorRequest::new_message(&service, "echo", CANARY);
    let responses = request.send_over_all_transports(&service).await;
    assert_snapshot(&service, "service-unready", Code::ServiceUnready, &responses);
}

//! Tests of the delivery over plain HTTP.

use super::*;
use crate::push::webhook_client::WebhookRequest;

#[tokio::test]
async fn each_visible_event_is_pushed_once_in_order_per_version() {
    let harness = PushHarness::new(policy()).await;
    let (mut v0_3_receiver, mut v1_0_receiver) =
        (TestReceiver::with_responses(&[]).await, TestReceiver::with_responses(&[]).await);
    let id = harness.accept_execution().await;
    harness
        .registry
        .register(target(id, ProtocolVersion::V0_3, &v0_3_receiver.url()), 0)
        .await
        .unwrap();
    let second = PushTarget {
        id: "second".to_owned(),
        ..target(id, ProtocolVersion::V1_0, &v1_0_receiver.url())
    };
    harness.registry.register(second, 0).await.unwrap();
    harness.start_with_artifact(id).await;
    assert_eq!(v0_3_receiver.next_bodies(2).await, ["0.3 2", "0.3 4"]);
    harness.end_execution(id).await;
    assert_eq!(v0_3_receiver.next_bodies(1).await, ["0.3 6"]);
    assert_eq!(v1_0_receiver.next_bodies(2).await, ["1.0 2", "1.0 6"]);
    harness.wait_until_no_open_target().await;
    assert!(
        v0_3_receiver.receives_nothing_more().await && v1_0_receiver.receives_nothing_more().await
    );
}

#[tokio::test]
async fn a_push_carries_its_headers() {
    let harness = PushHarness::new(policy()).await;
    let (mut v0_3_receiver, mut v1_0_receiver) =
        (TestReceiver::with_responses(&[]).await, TestReceiver::with_responses(&[]).await);
    for (receiver, version) in
        [(&v0_3_receiver, ProtocolVersion::V0_3), (&v1_0_receiver, ProtocolVersion::V1_0)]
    {
        let id = harness.run_execution().await;
        harness.registry.register(target(id, version, &receiver.url()), 0).await.unwrap();
    }
    let (v0_3_request, v1_0_request) =
        (v0_3_receiver.next_request().await, v1_0_receiver.next_request().await);
    assert!(
        v0_3_request.head.starts_with("POST /hook?key=url-canary HTTP/1.1\r\n"),
        "{v0_3_request:?}"
    );
    assert_eq!(v0_3_request.header("content-type"), Some("application/json"));
    assert_eq!(v1_0_request.header("content-type"), Some("application/a2a+json"));
    for (request, receiver) in [(v0_3_request, v0_3_receiver), (v1_0_request, v1_0_receiver)] {
        assert_eq!(request.header("host"), Some(&*receiver.address.to_string()));
        assert_eq!(request.header("authorization"), Some("Bearer credentials-canary"));
        assert_eq!(request.header("x-a2a-notification-token"), Some("token-canary"));
        let traceparent = request.header("traceparent").unwrap_or_default();
        assert_eq!(traceparent.get(..36), Some("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
        assert_eq!((traceparent.len(), request.header("tracestate")), (55, Some("a=b")));
    }
}

#[tokio::test]
async fn a_failing_receiver_gets_the_same_push_again_in_order() {
    let harness = PushHarness::new(policy()).await;
    let mut receiver = TestReceiver::with_responses(&[SERVER_ERROR, SERVER_ERROR]).await;
    let id = harness.run_execution().await;
    let started_at = tokio::time::Instant::now();
    harness.registry.register(target(id, ProtocolVersion::V0_3, &receiver.url()), 0).await.unwrap();
    assert_eq!(receiver.next_bodies(5).await, ["0.3 2", "0.3 2", "0.3 2", "0.3 4", "0.3 6"]);
    assert!(started_at.elapsed() >= Duration::from_secs(1 + 2), "{:?}", started_at.elapsed());
}

#[tokio::test]
async fn undelivered_pushes_are_sent_after_a_restart() {
    let harness = PushHarness::new(policy()).await;
    let mut receiver = TestReceiver::with_responses(&[OK, SERVER_ERROR]).await;
    let id = harness.accept_execution().await;
    harness.registry.register(target(id, ProtocolVersion::V0_3, &receiver.url()), 0).await.unwrap();
    harness.start_with_artifact(id).await;
    assert_eq!(receiver.next_bodies(2).await, ["0.3 2", "0.3 4"]);
    let harness = harness.restart().await;
    assert_eq!(receiver.next_bodies(1).await, ["0.3 4"]);
    harness.end_execution(id).await;
    assert_eq!(receiver.next_bodies(1).await, ["0.3 6"]);
    harness.wait_until_no_open_target().await;
    let harness = harness.restart().await;
    assert!(receiver.receives_nothing_more().await);
    drop(harness);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let harness = PushHarness::new(policy()).await;
    let mut redirect_target = TestReceiver::with_responses(&[]).await;
    let head = format!(
        "HTTP/1.1 307 There\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        redirect_target.url()
    );
    let mut receiver = TestReceiver::with_responses(&[ReceiverResponse::Head(head.leak())]).await;
    let id = harness.run_execution().await;
    harness.registry.register(target(id, ProtocolVersion::V0_3, &receiver.url()), 0).await.unwrap();
    assert_eq!(receiver.next_bodies(2).await, ["0.3 2", "0.3 2"]);
    assert!(redirect_target.receives_nothing_more().await);
}

#[tokio::test]
async fn a_slow_receiver_times_out_and_blocks_no_other() {
    let harness = PushHarness::new(policy()).await;
    let mut slow = TestReceiver::with_responses(&[ReceiverResponse::Silence]).await;
    let mut responsive = TestReceiver::with_responses(&[]).await;
    for receiver in [&slow, &responsive] {
        let id = harness.run_execution().await;
        harness
            .registry
            .register(target(id, ProtocolVersion::V0_3, &receiver.url()), 0)
            .await
            .unwrap();
    }
    let started_at = tokio::time::Instant::now();
    assert_eq!(responsive.next_bodies(3).await, ["0.3 2", "0.3 4", "0.3 6"]);
    assert_eq!(slow.next_bodies(2).await, ["0.3 2", "0.3 2"]);
    assert!(started_at.elapsed() < Duration::from_secs(15));
}

/// The address is checked at the registration and again before each request: here the operator has removed the
/// permission after the registration.
#[tokio::test]
async fn a_private_address_is_refused_at_registration_and_delivery() {
    let closed_policy =
        DeliveryPolicy { allowed_networks: Vec::new(), allows_http: true, ..policy() };
    let harness = PushHarness::new(closed_policy).await;
    let mut receiver = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    let urls = [receiver.url(), format!("http://localhost:{}/", receiver.address.port())];
    for url in urls {
        let target = target(id, ProtocolVersion::V0_3, &url);
        let refusal = harness.registry.register(target.clone(), 0).await.unwrap_err();
        assert_eq!(refusal.code, Code::InvalidParams);
        assert_eq!(
            harness.store.register(target, 0, MAX_TARGETS).await.unwrap(),
            RegistrationResult::Registered
        );
        harness.registry.wakeup.notify_one();
        assert!(receiver.receives_nothing_more().await, "{url}");
    }
}

#[tokio::test]
async fn plain_http_is_allowed_for_listed_addresses_only() {
    let listed_policy = policy();
    let webhook_client = WebhookClient::new(listed_policy).unwrap();
    let target_at_address =
        target(ExecutionId::generate(), ProtocolVersion::V0_3, "http://8.8.8.8:9/");
    let refusal = webhook_client
        .send(&WebhookRequest::for_notification(&target_at_address, Vec::new(), None))
        .await
        .unwrap_err();
    assert!(matches!(refusal, webhook_client::WebhookError::BlockedAddress), "{refusal}");
}

#[tokio::test]
async fn a_deleted_target_gets_no_more_pushes() {
    let harness = PushHarness::new(policy()).await;
    let mut receiver = TestReceiver::with_responses(&[SERVER_ERROR]).await;
    let id = harness.run_execution().await;
    harness.registry.register(target(id, ProtocolVersion::V0_3, &receiver.url()), 0).await.unwrap();
    assert_eq!(receiver.next_bodies(1).await, ["0.3 2"]);
    assert!(harness.registry.delete(id, "first").await.unwrap());
    assert!(receiver.receives_nothing_more().await);
}

#[tokio::test]
async fn an_unreachable_receiver_is_given_up_and_blocks_no_other() {
    let harness = PushHarness::new(DeliveryPolicy {
        max_retry_duration: Duration::from_millis(500),
        ..policy()
    })
    .await;
    let unreachable_url = TestReceiver::with_responses(&[]).await.url(); // Nobody listens there any more.
    let mut receiver = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    harness
        .registry
        .register(target(id, ProtocolVersion::V0_3, &unreachable_url), 0)
        .await
        .unwrap();
    let other =
        PushTarget { id: "other".to_owned(), ..target(id, ProtocolVersion::V0_3, &receiver.url()) };
    harness.registry.register(other, 0).await.unwrap();
    assert_eq!(receiver.next_bodies(3).await.len(), 3);
    harness.wait_until_no_open_target().await;
}

#[tokio::test]
async fn secrets_are_not_in_the_data_directory() {
    let harness = PushHarness::new(policy()).await;
    let mut receiver = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    let registered_target = target(id, ProtocolVersion::V0_3, &receiver.url());
    assert!(!format!("{registered_target:?}").contains("canary"));
    harness.registry.register(registered_target.clone(), 0).await.unwrap();
    assert_eq!(receiver.next_bodies(3).await.len(), 3);
    assert_eq!(harness.registry.get(id, "first").await.unwrap(), Some(registered_target));
    let mut table_file_count = 0;
    for file in std::fs::read_dir(harness.folder.path().join("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let contains_text =
            |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!["canary", "127.0.0.1"].iter().any(|text| contains_text(text)));
        table_file_count += usize::from(contains_text("push_targets"));
    }
    assert!(table_file_count > 0, "the tables were looked at");
}

#[tokio::test]
async fn invalid_header_values_are_refused_without_an_echo() {
    let harness = PushHarness::new(policy()).await;
    let receiver = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    let valid_target = target(id, ProtocolVersion::V0_3, &receiver.url());
    let credentials = |scheme: &str, text: &str| PushCredentials {
        scheme: scheme.to_owned(),
        credentials: Some(Secret(text.to_owned())),
    };
    for authentication in [
        credentials("Bearer", "canary\r\nx-evil: 1"),
        credentials("Bearer", " canary"),
        credentials("Bearer", &"canary".repeat(1000)),
        credentials("Bearer canary", "x"),
        credentials("", "canary"),
    ] {
        let target = PushTarget { authentication: Some(authentication), ..valid_target.clone() };
        let refusal = harness.registry.register(target, 0).await.unwrap_err();
        assert_eq!(refusal.code, Code::InvalidParams);
        assert!(!refusal.message.contains("canary"), "{refusal}");
    }
    let token = Some(Secret("canary\n".to_owned()));
    assert!(
        harness.registry.validate_target(&PushTarget { token, ..valid_target.clone() }).is_err()
    );
    for number in 0..MAX_TARGETS {
        let target = PushTarget {
            id: number.to_string(),
            registration_id: Uuid::new_v4(),
            ..valid_target.clone()
        };
        harness.registry.register(target, 9).await.unwrap();
    }
    assert_eq!(
        harness.registry.register(valid_target, 9).await.unwrap_err().code,
        Code::InvalidParams
    );
}

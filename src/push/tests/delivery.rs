//! Tests of the delivery over plain HTTP.

use super::*;
use crate::push::webhook_client::WebhookRequest;

#[tokio::test]
async fn each_visible_event_is_pushed_once_in_order_per_version() {
    let harness = PushHarness::new(policy()).await;
    let (mut old, mut new) =
        (TestReceiver::with_responses(&[]).await, TestReceiver::with_responses(&[]).await);
    let id = harness.accept_execution().await;
    harness.registry.set(target(id, ProtocolVersion::V0_3, &old.url()), 0).await.unwrap();
    let second =
        PushTarget { id: "second".to_owned(), ..target(id, ProtocolVersion::V1_0, &new.url()) };
    harness.registry.set(second, 0).await.unwrap();
    harness.start_execution(id).await;
    assert_eq!(old.next_bodies(2).await, ["0.3 2", "0.3 4"]);
    harness.end_execution(id).await;
    assert_eq!(old.next_bodies(1).await, ["0.3 6"]);
    assert_eq!(new.next_bodies(2).await, ["1.0 2", "1.0 6"]);
    harness.wait_until_no_open_target().await;
    assert!(old.receives_nothing_more().await && new.receives_nothing_more().await);
}

#[tokio::test]
async fn a_push_carries_its_headers() {
    let harness = PushHarness::new(policy()).await;
    let (mut old, mut new) =
        (TestReceiver::with_responses(&[]).await, TestReceiver::with_responses(&[]).await);
    for (listener, version) in [(&old, ProtocolVersion::V0_3), (&new, ProtocolVersion::V1_0)] {
        let id = harness.run_execution().await;
        harness.registry.set(target(id, version, &listener.url()), 0).await.unwrap();
    }
    let (old_request, new_request) = (old.next_request().await, new.next_request().await);
    assert!(
        old_request.head.starts_with("POST /hook?key=url-canary HTTP/1.1\r\n"),
        "{old_request:?}"
    );
    assert_eq!(old_request.header("content-type"), Some("application/json"));
    assert_eq!(new_request.header("content-type"), Some("application/a2a+json"));
    for (request, listener) in [(old_request, old), (new_request, new)] {
        assert_eq!(request.header("host"), Some(&*listener.address.to_string()));
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
    let mut listener = TestReceiver::with_responses(&[SERVER_ERROR, SERVER_ERROR]).await;
    let id = harness.run_execution().await;
    let started_at = tokio::time::Instant::now();
    harness.registry.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    assert_eq!(listener.next_bodies(5).await, ["0.3 2", "0.3 2", "0.3 2", "0.3 4", "0.3 6"]);
    assert!(started_at.elapsed() >= Duration::from_secs(1 + 2), "{:?}", started_at.elapsed());
}

#[tokio::test]
async fn undelivered_pushes_are_sent_after_a_restart() {
    let harness = PushHarness::new(policy()).await;
    let mut listener = TestReceiver::with_responses(&[OK, SERVER_ERROR]).await;
    let id = harness.accept_execution().await;
    harness.registry.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    harness.start_execution(id).await;
    assert_eq!(listener.next_bodies(2).await, ["0.3 2", "0.3 4"]);
    let harness = harness.restart().await;
    assert_eq!(listener.next_bodies(1).await, ["0.3 4"]);
    harness.end_execution(id).await;
    assert_eq!(listener.next_bodies(1).await, ["0.3 6"]);
    harness.wait_until_no_open_target().await;
    let harness = harness.restart().await;
    assert!(listener.receives_nothing_more().await);
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
    let mut listener = TestReceiver::with_responses(&[ReceiverResponse::Head(head.leak())]).await;
    let id = harness.run_execution().await;
    harness.registry.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    assert_eq!(listener.next_bodies(2).await, ["0.3 2", "0.3 2"]);
    assert!(redirect_target.receives_nothing_more().await);
}

#[tokio::test]
async fn a_slow_receiver_times_out_and_blocks_no_other() {
    let harness = PushHarness::new(policy()).await;
    let mut slow = TestReceiver::with_responses(&[ReceiverResponse::Silence]).await;
    let mut responsive = TestReceiver::with_responses(&[]).await;
    for listener in [&slow, &responsive] {
        let id = harness.run_execution().await;
        harness.registry.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
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
    let mut listener = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    let urls = [listener.url(), format!("http://localhost:{}/", listener.address.port())];
    for url in urls {
        let target = target(id, ProtocolVersion::V0_3, &url);
        let refused = harness.registry.set(target.clone(), 0).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidParams);
        assert_eq!(
            harness.store.register(target, 0, MAX_TARGETS).await.unwrap(),
            RegistrationResult::Registered
        );
        harness.registry.wakeup.notify_one();
        assert!(listener.receives_nothing_more().await, "{url}");
    }
}

#[tokio::test]
async fn plain_http_is_allowed_for_listed_addresses_only() {
    let listed_policy = policy();
    let webhook_client = WebhookClient::new(listed_policy).unwrap();
    let target_at_address =
        target(ExecutionId::generate(), ProtocolVersion::V0_3, "http://8.8.8.8:9/");
    let refused = webhook_client
        .send(&WebhookRequest::for_notification(&target_at_address, Vec::new(), None))
        .await
        .unwrap_err();
    assert!(matches!(refused, webhook_client::WebhookError::BlockedAddress), "{refused}");
}

#[tokio::test]
async fn a_deleted_target_gets_no_more_pushes() {
    let harness = PushHarness::new(policy()).await;
    let mut listener = TestReceiver::with_responses(&[SERVER_ERROR]).await;
    let id = harness.run_execution().await;
    harness.registry.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    assert_eq!(listener.next_bodies(1).await, ["0.3 2"]);
    assert!(harness.registry.delete(id, "first").await.unwrap());
    assert!(listener.receives_nothing_more().await);
}

#[tokio::test]
async fn an_unreachable_receiver_is_given_up_and_blocks_no_other() {
    let harness =
        PushHarness::new(DeliveryPolicy { max_age: Duration::from_millis(500), ..policy() }).await;
    let unreachable_url = TestReceiver::with_responses(&[]).await.url(); // Nobody listens there any more.
    let mut listener = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    harness.registry.set(target(id, ProtocolVersion::V0_3, &unreachable_url), 0).await.unwrap();
    let other =
        PushTarget { id: "other".to_owned(), ..target(id, ProtocolVersion::V0_3, &listener.url()) };
    harness.registry.set(other, 0).await.unwrap();
    assert_eq!(listener.next_bodies(3).await.len(), 3);
    harness.wait_until_no_open_target().await;
}

#[tokio::test]
async fn secrets_are_not_in_the_data_directory() {
    let harness = PushHarness::new(policy()).await;
    let mut listener = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    let original = target(id, ProtocolVersion::V0_3, &listener.url());
    assert!(!format!("{original:?}").contains("canary"));
    harness.registry.set(original.clone(), 0).await.unwrap();
    assert_eq!(listener.next_bodies(3).await.len(), 3);
    assert_eq!(harness.registry.get(id, "first").await.unwrap(), Some(original));
    let mut matching_files = 0;
    for file in std::fs::read_dir(harness.folder.path().join("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let contains_text =
            |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!["canary", "127.0.0.1"].iter().any(|text| contains_text(text)));
        matching_files += usize::from(contains_text("push_targets"));
    }
    assert!(matching_files > 0, "the tables were looked at");
}

#[tokio::test]
async fn invalid_header_values_are_refused_without_an_echo() {
    let harness = PushHarness::new(policy()).await;
    let listener = TestReceiver::with_responses(&[]).await;
    let id = harness.run_execution().await;
    let valid = target(id, ProtocolVersion::V0_3, &listener.url());
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
        let target = PushTarget { authentication: Some(authentication), ..valid.clone() };
        let refused = harness.registry.set(target, 0).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidParams);
        assert!(!refused.message.contains("canary"), "{refused}");
    }
    let token = Some(Secret("canary\n".to_owned()));
    assert!(harness.registry.check(&PushTarget { token, ..valid.clone() }).is_err());
    for number in 0..MAX_TARGETS {
        let target =
            PushTarget { id: number.to_string(), registration_id: Uuid::new_v4(), ..valid.clone() };
        harness.registry.set(target, 9).await.unwrap();
    }
    assert_eq!(harness.registry.set(valid, 9).await.unwrap_err().code, Code::InvalidParams);
}

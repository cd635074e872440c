//! Tests of the delivery over plain HTTP.

use super::*;
use crate::push::webhook_client::WebhookRequest;

#[tokio::test]
async fn each_visible_event_is_pushed_once_in_order_per_version() {
    let world = World::new(policy()).await;
    let (mut old, mut new) = (Listener::playing(&[]).await, Listener::playing(&[]).await);
    let id = world.accepted().await;
    world.desk.set(target(id, ProtocolVersion::V0_3, &old.url()), 0).await.unwrap();
    let second =
        PushTarget { id: "second".to_owned(), ..target(id, ProtocolVersion::V1_0, &new.url()) };
    world.desk.set(second, 0).await.unwrap();
    world.begun(id).await;
    assert_eq!(old.bodies(2).await, ["0.3 2", "0.3 4"]);
    world.ended(id).await;
    assert_eq!(old.bodies(1).await, ["0.3 6"]);
    assert_eq!(new.bodies(2).await, ["1.0 2", "1.0 6"]);
    world.settled().await;
    assert!(old.is_quiet().await && new.is_quiet().await);
}

#[tokio::test]
async fn a_push_carries_its_headers() {
    let world = World::new(policy()).await;
    let (mut old, mut new) = (Listener::playing(&[]).await, Listener::playing(&[]).await);
    for (listener, version) in [(&old, ProtocolVersion::V0_3), (&new, ProtocolVersion::V1_0)] {
        let id = world.ran().await;
        world.desk.set(target(id, version, &listener.url()), 0).await.unwrap();
    }
    let (old_got, new_got) = (old.next().await, new.next().await);
    assert!(old_got.head.starts_with("POST /hook?key=url-canary HTTP/1.1\r\n"), "{old_got:?}");
    assert_eq!(old_got.header("content-type"), Some("application/json"));
    assert_eq!(new_got.header("content-type"), Some("application/a2a+json"));
    for (got, listener) in [(old_got, old), (new_got, new)] {
        assert_eq!(got.header("host"), Some(&*listener.address.to_string()));
        assert_eq!(got.header("authorization"), Some("Bearer credentials-canary"));
        assert_eq!(got.header("x-a2a-notification-token"), Some("token-canary"));
        let place = got.header("traceparent").unwrap_or_default();
        assert_eq!(place.get(..36), Some("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
        assert_eq!((place.len(), got.header("tracestate")), (55, Some("a=b")));
    }
}

#[tokio::test]
async fn a_failing_receiver_gets_the_same_push_again_in_order() {
    let world = World::new(policy()).await;
    let mut listener = Listener::playing(&[BROKEN, BROKEN]).await;
    let id = world.ran().await;
    let began = tokio::time::Instant::now();
    world.desk.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    assert_eq!(listener.bodies(5).await, ["0.3 2", "0.3 2", "0.3 2", "0.3 4", "0.3 6"]);
    assert!(began.elapsed() >= Duration::from_secs(1 + 2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn undelivered_pushes_are_sent_after_a_restart() {
    let world = World::new(policy()).await;
    let mut listener = Listener::playing(&[OK, BROKEN]).await;
    let id = world.accepted().await;
    world.desk.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    world.begun(id).await;
    assert_eq!(listener.bodies(2).await, ["0.3 2", "0.3 4"]);
    let world = world.restarted().await;
    assert_eq!(listener.bodies(1).await, ["0.3 4"]);
    world.ended(id).await;
    assert_eq!(listener.bodies(1).await, ["0.3 6"]);
    world.settled().await;
    let world = world.restarted().await;
    assert!(listener.is_quiet().await);
    drop(world);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let world = World::new(policy()).await;
    let mut elsewhere = Listener::playing(&[]).await;
    let head =
        format!("HTTP/1.1 307 There\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", elsewhere.url());
    let mut listener = Listener::playing(&[Answer::Head(head.leak())]).await;
    let id = world.ran().await;
    world.desk.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    assert_eq!(listener.bodies(2).await, ["0.3 2", "0.3 2"]);
    assert!(elsewhere.is_quiet().await);
}

#[tokio::test]
async fn a_slow_receiver_times_out_and_blocks_no_other() {
    let world = World::new(policy()).await;
    let mut slow = Listener::playing(&[Answer::Silence]).await;
    let mut quick = Listener::playing(&[]).await;
    for listener in [&slow, &quick] {
        let id = world.ran().await;
        world.desk.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    }
    let began = tokio::time::Instant::now();
    assert_eq!(quick.bodies(3).await, ["0.3 2", "0.3 4", "0.3 6"]);
    assert_eq!(slow.bodies(2).await, ["0.3 2", "0.3 2"]);
    assert!(began.elapsed() < Duration::from_secs(15));
}

/// The address is checked at the registration and again before each request: here the operator has removed the
/// permission after the registration.
#[tokio::test]
async fn a_private_address_is_refused_at_registration_and_delivery() {
    let closed = AddressPolicy { allow: Vec::new(), insecure_http: true, ..policy() };
    let world = World::new(closed).await;
    let mut listener = Listener::playing(&[]).await;
    let id = world.ran().await;
    let ports = [listener.url(), format!("http://localhost:{}/", listener.address.port())];
    for url in ports {
        let target = target(id, ProtocolVersion::V0_3, &url);
        let refused = world.desk.set(target.clone(), 0).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidParams);
        assert_eq!(world.store.set(target, 0, TARGETS).await.unwrap(), Placing::Placed);
        world.desk.wakeup.notify_one();
        assert!(listener.is_quiet().await, "{url}");
    }
}

#[tokio::test]
async fn plain_http_is_allowed_for_listed_addresses_only() {
    let listed = policy();
    let courier = WebhookClient::new(listed).unwrap();
    let one = target(ExecutionId::fresh(), ProtocolVersion::V0_3, "http://8.8.8.8:9/");
    let refused = courier.send(&WebhookRequest::notice(&one, Vec::new(), None)).await.unwrap_err();
    assert!(matches!(refused, webhook_client::CourierError::Forbidden), "{refused}");
}

#[tokio::test]
async fn a_deleted_target_gets_no_more_pushes() {
    let world = World::new(policy()).await;
    let mut listener = Listener::playing(&[BROKEN]).await;
    let id = world.ran().await;
    world.desk.set(target(id, ProtocolVersion::V0_3, &listener.url()), 0).await.unwrap();
    assert_eq!(listener.bodies(1).await, ["0.3 2"]);
    assert!(world.desk.delete(id, "first").await.unwrap());
    assert!(listener.is_quiet().await);
}

#[tokio::test]
async fn an_unreachable_receiver_is_given_up_and_blocks_no_other() {
    let world = World::new(AddressPolicy { max_age: Duration::from_millis(500), ..policy() }).await;
    let gone = Listener::playing(&[]).await.url(); // Nobody listens there any more.
    let mut listener = Listener::playing(&[]).await;
    let id = world.ran().await;
    world.desk.set(target(id, ProtocolVersion::V0_3, &gone), 0).await.unwrap();
    let other =
        PushTarget { id: "other".to_owned(), ..target(id, ProtocolVersion::V0_3, &listener.url()) };
    world.desk.set(other, 0).await.unwrap();
    assert_eq!(listener.bodies(3).await.len(), 3);
    world.settled().await;
}

#[tokio::test]
async fn secrets_are_not_in_the_data_directory() {
    let world = World::new(policy()).await;
    let mut listener = Listener::playing(&[]).await;
    let id = world.ran().await;
    let given = target(id, ProtocolVersion::V0_3, &listener.url());
    assert!(!format!("{given:?}").contains("canary"));
    world.desk.set(given.clone(), 0).await.unwrap();
    assert_eq!(listener.bodies(3).await.len(), 3);
    assert_eq!(world.desk.get(id, "first").await.unwrap(), Some(given));
    let mut read = 0;
    for file in std::fs::read_dir(world.folder.path().join("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!["canary", "127.0.0.1"].iter().any(|text| holds(text)));
        read += usize::from(holds("push_targets"));
    }
    assert!(read > 0, "the tables were looked at");
}

#[tokio::test]
async fn invalid_header_values_are_refused_without_an_echo() {
    let world = World::new(policy()).await;
    let listener = Listener::playing(&[]).await;
    let id = world.ran().await;
    let sound = target(id, ProtocolVersion::V0_3, &listener.url());
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
        let target = PushTarget { authentication: Some(authentication), ..sound.clone() };
        let refused = world.desk.set(target, 0).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidParams);
        assert!(!refused.message.contains("canary"), "{refused}");
    }
    let token = Some(Secret("canary\n".to_owned()));
    assert!(world.desk.check(&PushTarget { token, ..sound.clone() }).is_err());
    for number in 0..TARGETS {
        let target =
            PushTarget { id: number.to_string(), registration: Uuid::new_v4(), ..sound.clone() };
        world.desk.set(target, 9).await.unwrap();
    }
    assert_eq!(world.desk.set(sound, 9).await.unwrap_err().code, Code::InvalidParams);
}

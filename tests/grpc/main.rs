//! A2A over gRPC against a real service with real children, on the one port it has.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod harness;
mod messages;
mod metadata;
mod non_utf8_output;
mod outputs;
mod raw;

use std::sync::Arc;

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;
use algonius_actors::model::access::endpoint_config::{
    Binding, CallerAuth, CardDetails, ProtocolVersion, Provider,
};
use axum::http::StatusCode;
use harness::{Connector, GrpcHarness, READER_TOKEN, http2, id, soon, with};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use messages::{new_answer, new_task, new_text, old_answer, old_task, old_text, reason, send_new};
use tonic::{Code, Request};

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_message_is_answered_and_found_in_both_versions() {
    let world = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let mut client = world.client_of_0_3("service");
    let sent = soon(client.send_message(world.call(old_text("tea")))).await.expect("an answer");
    let sent = old_task(sent.into_inner());
    assert_eq!(sent.status.as_ref().expect("a status").state(), old::TaskState::Completed);
    assert_eq!(old_answer(&sent), "tea");
    let name = format!("tasks/{}", sent.id);
    let asked = old::GetTaskRequest { name, history_length: 0 };
    let found = soon(client.get_task(world.call(asked))).await.expect("a task").into_inner();
    assert_eq!(found, sent);

    let mut client = world.client_of_1_0("service");
    let id = sent.id;
    let sent = soon(client.send_message(world.call(new_text("", "tea")))).await.expect("an answer");
    assert_eq!(new_answer(&new_task(sent.into_inner())), "tea");
    let asked = new::GetTaskRequest { id: id.clone(), ..new::GetTaskRequest::default() };
    let found = soon(client.get_task(world.call(asked))).await.expect("a task").into_inner();
    assert_eq!((&found.id, new_answer(&found)), (&id, "tea"));
    assert_eq!(found.history.len(), 1);
    let none = new::GetTaskRequest { id, history_length: Some(0), ..Default::default() };
    let found = soon(client.get_task(world.call(none))).await.expect("a task").into_inner();
    assert!(found.history.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_requires_authentication_and_continues() {
    let world = GrpcHarness::start(|settings| settings.default_agent = Some(id("guarded"))).await;
    let mut client = world.client_of_0_3("service");
    let sent = soon(client.send_message(world.call(old_text("start")))).await.expect("an answer");
    let sent = old_task(sent.into_inner());
    let status = sent.status.expect("a status");
    assert_eq!(status.state(), old::TaskState::AuthRequired);
    assert_eq!(status.update.expect("a message").content.len(), 2);
    let mut answer = old_text("done");
    answer.request.as_mut().expect("a message").task_id = sent.id;
    let told = soon(client.send_message(world.call(answer))).await.expect("an answer");
    assert_eq!(old_answer(&old_task(told.into_inner())), "done");

    let mut client = world.client_of_1_0("service");
    let call = world.call(new_text("guarded", "start"));
    let sent = soon(client.send_message(call)).await.expect("an answer");
    let sent = new_task(sent.into_inner());
    let status = sent.status.clone().expect("a status");
    assert_eq!(status.state(), new::TaskState::AuthRequired);
    let parts = status.message.expect("a message").parts;
    let url = new::part::Content::Url("https://login.example.org".to_owned());
    assert_eq!(parts[1].content, Some(url));
    let wanted = new::TaskState::AuthRequired.into();
    let list = new::ListTasksRequest { status: wanted, ..new::ListTasksRequest::default() };
    let found = soon(client.list_tasks(world.call(list))).await.expect("a list").into_inner();
    assert_eq!((found.tasks.len(), &found.tasks[0].id), (1, &sent.id));
    let mut answer = new_text("guarded", "done");
    answer.message.as_mut().expect("a message").task_id = sent.id;
    let told = soon(client.send_message(world.call(answer))).await.expect("an answer");
    assert_eq!(new_answer(&new_task(told.into_inner())), "done");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_be_cancelled_once() {
    let world = GrpcHarness::start(|_| {}).await;
    let mut client = world.client_of_1_0("service");
    let mut asked = new_text("slow", "x");
    asked.configuration = Some(new::SendMessageConfiguration {
        return_immediately: true,
        ..new::SendMessageConfiguration::default()
    });
    let task = soon(client.send_message(world.call(asked))).await.expect("an answer");
    let id = new_task(task.into_inner()).id;
    let asked = new::CancelTaskRequest { tenant: "slow".to_owned(), id, metadata: None };
    let task = soon(client.cancel_task(world.call(asked.clone()))).await.expect("a task");
    let state = task.into_inner().status.expect("a status").state();
    assert_eq!(state, new::TaskState::Canceled);
    let again = soon(client.cancel_task(world.call(asked.clone()))).await.expect_err("too late");
    assert_eq!((again.code(), reason(&again)), (Code::FailedPrecondition, NOT_CANCELABLE.into()));

    let name = format!("tasks/{}", asked.id);
    let call = with(world.call(old::CancelTaskRequest { name }), "a2a-agent", "slow");
    let again = soon(world.client_of_0_3("service").cancel_task(call)).await.expect_err("too late");
    assert_eq!(again.code(), Code::FailedPrecondition);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_task_and_closes_with_its_end() {
    let world = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let call = world.call(old_text("tea"));
    let mut events = soon(world.client_of_0_3("service").send_streaming_message(call))
        .await
        .expect("a stream")
        .into_inner();
    let (mut texts, mut last) = (Vec::new(), None);
    while let Some(event) = soon(events.message()).await.expect("an event") {
        use old::stream_response::Payload;
        let event = event.payload.expect("a payload");
        assert_eq!(last.is_none(), matches!(event, Payload::Task(_)));
        if let Payload::ArtifactUpdate(update) = &event {
            texts.extend(update.artifact.clone().into_iter().flat_map(|made| made.parts));
        }
        last = Some(event);
    }
    let Some(old::stream_response::Payload::StatusUpdate(end)) = last else {
        panic!("not an end: {last:?}")
    };
    assert_eq!((end.status.expect("a status").state(), end.r#final), (OLD_COMPLETED, true));
    assert_eq!(texts[0].part, Some(old::part::Part::Text("tea".to_owned())));

    let call = world.call(new_text("", "tea"));
    let mut events = soon(world.client_of_1_0("service").send_streaming_message(call))
        .await
        .expect("a stream")
        .into_inner();
    let mut last = None;
    while let Some(event) = soon(events.message()).await.expect("an event") {
        use new::stream_response::Payload;
        let event = event.payload.expect("a payload");
        assert_eq!(last.is_none(), matches!(event, Payload::Task(_)));
        last = Some(event);
    }
    let Some(new::stream_response::Payload::StatusUpdate(end)) = last else {
        panic!("not an end: {last:?}")
    };
    assert_eq!(end.status.expect("a status").state(), new::TaskState::Completed);
    world.stop().await;
}

const OLD_COMPLETED: old::TaskState = old::TaskState::Completed;

const NOT_CANCELABLE: &str = "TASK_NOT_CANCELABLE";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_chosen_by_tenant_metadata_host_or_default() {
    let world = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    assert_eq!(send_new(&world, "slow.example.org", "Greet", Some("slow")).await, "hello you");
    assert_eq!(send_new(&world, "slow.example.org", "", Some("Greet")).await, "hello you");
    assert_eq!(send_new(&world, "greet.example.org:80", "", None).await, "hello you");
    assert_eq!(send_new(&world, "127.0.0.1:80", "", None).await, "you");
    assert_eq!(send_new(&world, "other.example.org", "", None).await, "you");
    assert_eq!(send_new(&world, "greet.example.org", "nobody", None).await, "NotFound");
    assert_eq!(send_new(&world, "greet.example.org", "", Some("nobody")).await, "NotFound");

    let call = with(world.call(old_text("you")), "a2a-agent", "Greet");
    let sent = soon(world.client_of_0_3("service").send_message(call)).await.expect("an answer");
    assert_eq!(old_answer(&old_task(sent.into_inner())), "hello you");
    let sent =
        soon(world.client_of_0_3("greet.localhost").send_message(world.call(old_text("you"))))
            .await;
    assert_eq!(old_answer(&old_task(sent.expect("an answer").into_inner())), "hello you");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_agent_names_the_ways_to_choose_one() {
    let world = GrpcHarness::start(|settings| settings.default_agent = None).await;
    let call = world.call(old_text("you"));
    let status =
        soon(world.client_of_0_3("service").send_message(call)).await.expect_err("no agent");
    assert_eq!(status.code(), Code::NotFound);
    for way in ["tenant", "a2a-agent", "host", "default"] {
        assert!(status.message().contains(way), "{}", status.message());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_call_needs_one_valid_token_with_its_scope() {
    let world = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let good = format!("Bearer {}", world.token);
    for tokens in [vec![], vec!["Bearer x"], vec![&*good, &*good]] {
        let mut call = Request::new(new_text("", "x"));
        for token in &tokens {
            call = with(call, "authorization", token);
        }
        let status =
            soon(world.client_of_1_0("service").send_message(call)).await.expect_err("kept out");
        assert_eq!(status.code(), Code::Unauthenticated, "{} tokens", tokens.len());
        assert_eq!(status.message(), "valid credentials are required");
    }
    let reader = format!("Bearer {READER_TOKEN}");
    let call = with(Request::new(old_text("x")), "authorization", &reader);
    let status =
        soon(world.client_of_0_3("service").send_message(call)).await.expect_err("may not run");
    assert_eq!(status.code(), Code::PermissionDenied);
    let asked = new::GetTaskRequest { tenant: "slow".to_owned(), ..Default::default() };
    let call = with(Request::new(asked), "authorization", &reader);
    let status =
        soon(world.client_of_1_0("service").get_task(call)).await.expect_err("another agent");
    assert_eq!(status.code(), Code::PermissionDenied);
    let call = with(Request::new(old::GetAgentCardRequest {}), "authorization", &reader);
    let card = soon(world.client_of_0_3("service").get_agent_card(call))
        .await
        .expect("a card")
        .into_inner();
    assert_eq!((&*card.name, &*card.protocol_version), ("Echo", "0.3.0"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_card_shows_its_details_and_may_omit_grpc() {
    let provider = || Provider { organization: "Us".to_owned(), url: "https://us".to_owned() };
    let world = GrpcHarness::start(|settings| {
        settings.default_agent = Some(id("echo"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == id("echo")) {
            let spec = Arc::make_mut(&mut agent.spec);
            spec.profile.skills[0].examples = vec!["do".to_owned()];
            let a2a_exposure = Arc::make_mut(&mut spec.a2a_exposure);
            a2a_exposure.card_bindings = vec![Binding::JsonRpc];
            a2a_exposure.details = CardDetails {
                provider: Some(provider()),
                documentation_url: Some("https://us/docs".to_owned()),
                icon_url: None,
            };
        }
    })
    .await;
    let mut client = world.client_of_0_3("service");
    let call = world.call(old::GetAgentCardRequest::default());
    let card = soon(client.get_agent_card(call)).await.expect("a card").into_inner();
    let ways: Vec<_> = card.additional_interfaces.iter().map(|way| &*way.transport).collect();
    assert_eq!((card.preferred_transport.as_str(), ways), ("JSONRPC", vec!["JSONRPC"]));
    let named = card.provider.expect("a provider");
    assert_eq!((named.organization, named.url), ("Us".to_owned(), "https://us".to_owned()));
    assert_eq!((card.documentation_url.as_str(), card.icon_url.as_str()), ("https://us/docs", ""));
    assert_eq!(card.skills[0].examples, ["do"]);

    let mut client = world.client_of_1_0("service");
    let call = world.call(new::GetExtendedAgentCardRequest::default());
    let card = soon(client.get_extended_agent_card(call)).await.expect("a card").into_inner();
    let ways = card.supported_interfaces.iter();
    let ways: Vec<_> = ways.map(|way| (&*way.protocol_binding, &*way.protocol_version)).collect();
    assert_eq!(ways, [("JSONRPC", "1.0"), ("JSONRPC", "0.3")]);
    assert_eq!(card.provider.expect("a provider").organization, "Us");
    assert_eq!((card.documentation_url.as_deref(), card.icon_url), (Some("https://us/docs"), None));
    assert_eq!(card.skills[0].examples, ["do"]);

    let sent = soon(client.send_message(world.call(new_text("", "tea")))).await.expect("an answer");
    assert_eq!(new_answer(&new_task(sent.into_inner())), "tea");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_method_is_unimplemented() {
    let world = GrpcHarness::start(|_| {}).await;
    let client = http2(world.running.address());
    for path in ["/lf.a2a.v1.A2AService/SingMessage", "/nobody.v1.Service/Method", "/status"] {
        let request = axum::http::Request::post(format!("http://service{path}"))
            .header("content-type", "application/grpc")
            .header("authorization", format!("Bearer {}", world.token))
            .body(tonic::body::Body::empty())
            .expect("a request");
        let response = soon(client.request(request)).await.expect("a response");
        let headers = response.headers();
        let number = (Code::Unimplemented as i32).to_string();
        assert_eq!(headers["grpc-status"], number, "{path} {headers:?}");
        assert_eq!(headers["content-type"], "application/grpc", "{path}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_works_for_its_agent_however_it_is_addressed() {
    let world = GrpcHarness::start(|settings| {
        settings.default_agent = Some(id("echo"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == id("Greet")) {
            let a2a_exposure = Arc::make_mut(&mut Arc::make_mut(&mut agent.spec).a2a_exposure);
            a2a_exposure.credential = CallerAuth::ApiKey("x-api-key".to_owned());
        }
    })
    .await;
    let call = |tenant| with(Request::new(new_text(tenant, "you")), "x-api-key", &world.token);
    let mut client = world.client_of_1_0("service");
    assert!(soon(client.send_message(call("Greet"))).await.is_ok());
    assert!(soon(client.send_message(with(call(""), "a2a-agent", "Greet"))).await.is_ok());
    let status = soon(client.send_message(call(""))).await.expect_err("another door");
    assert_eq!(status.code(), Code::Unauthenticated);
    let wrong = with(Request::new(new_text("Greet", "you")), "x-api-key", "x");
    let status = soon(client.send_message(wrong)).await.expect_err("a wrong key");
    assert_eq!(status.code(), Code::Unauthenticated);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_not_offered_over_grpc_are_refused() {
    let world = GrpcHarness::start(|settings| {
        for agent in &mut settings.agents {
            let spec = Arc::make_mut(&mut agent.spec);
            let a2a_exposure = Arc::make_mut(&mut spec.a2a_exposure);
            match spec.id.as_str() {
                "echo" => a2a_exposure.bindings.retain(|binding| *binding != Binding::Grpc),
                _ => a2a_exposure.versions.retain(|version| *version != ProtocolVersion::V0_3),
            }
        }
    })
    .await;
    let call = world.call(new_text("echo", "x"));
    let status =
        soon(world.client_of_1_0("service").send_message(call)).await.expect_err("no way in");
    assert_eq!(reason(&status), "UNSUPPORTED_OPERATION");
    let call = with(world.call(old_text("x")), "a2a-agent", "Greet");
    let status =
        soon(world.client_of_0_3("service").send_message(call)).await.expect_err("only 1.0");
    assert_eq!(reason(&status), "VERSION_NOT_SUPPORTED");
    assert!(status.message().starts_with("VersionNotSupportedError: "));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_errors_have_their_grpc_codes() {
    let world = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let (mut old, mut new) = (world.client_of_0_3("service"), world.client_of_1_0("service"));
    let unknown = uuid::Uuid::now_v7().to_string();

    let asked = new::GetTaskRequest { id: unknown, ..Default::default() };
    let status = soon(new.get_task(world.call(asked))).await.expect_err("no task");
    assert_eq!((status.code(), reason(&status)), (Code::NotFound, "TASK_NOT_FOUND".into()));

    let asked = old::GetTaskRequest { name: "x".to_owned(), history_length: 0 };
    let status = soon(old.get_task(world.call(asked))).await.expect_err("no name");
    assert_eq!(status.code(), Code::InvalidArgument);

    let asked = new::SendMessageRequest::default();
    let status = soon(new.send_message(world.call(asked))).await.expect_err("no message");
    assert_eq!(status.code(), Code::InvalidArgument);

    let call = with(world.call(new_text("", "x")), "a2a-version", "2.0");
    let status = soon(new.send_message(call)).await.expect_err("another version");
    let unsupported = "VERSION_NOT_SUPPORTED".to_owned();
    assert_eq!((status.code(), reason(&status)), (Code::FailedPrecondition, unsupported));
    let call = with(world.call(new_text("", "x")), "a2a-version", "1.0");
    assert!(soon(new.send_message(call)).await.is_ok());

    let large = "x".repeat(200_000);
    let status = soon(old.send_message(world.call(old_text(&large)))).await.expect_err("too much");
    assert_eq!(status.code(), Code::ResourceExhausted);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_not_grpc_are_unaffected() {
    let world = GrpcHarness::start(|_| {}).await;
    let address = world.running.address();
    let one: Client<_, Empty<bytes::Bytes>> =
        Client::builder(TokioExecutor::new()).build(Connector(address));
    let two = Client::builder(TokioExecutor::new()).http2_only(true).build(Connector(address));
    for client in [one, two] {
        for (path, expected) in [
            ("/nope", StatusCode::NOT_FOUND),
            ("/a2a.v1.Other/SendMessage", StatusCode::NOT_FOUND),
            ("/a2a.v1.A2AService/SendMessage", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("/lf.a2a.v1.A2AService/SendMessage", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("/health", StatusCode::OK),
        ] {
            let answer = soon(client.get(format!("http://x{path}").parse().expect("a path"))).await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.status(), expected, "{path}");
            assert!(
                !soon(answer.into_body().collect()).await.expect("a body").to_bytes().is_empty()
            );
        }
    }
    world.stop().await;
}

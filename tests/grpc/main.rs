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
use harness::{Connector, GrpcHarness, READER_TOKEN, http2, id, timed, with};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use messages::{new_answer, new_task, new_text, old_answer, old_task, old_text, reason, send_new};
use tonic::{Code, Request};

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_message_is_answered_and_found_in_both_versions() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let mut client = grpc.client_of_0_3("service");
    let sent = timed(client.send_message(grpc.call(old_text("tea")))).await.expect("an answer");
    let sent = old_task(sent.into_inner());
    assert_eq!(sent.status.as_ref().expect("a status").state(), old::TaskState::Completed);
    assert_eq!(old_answer(&sent), "tea");
    let name = format!("tasks/{}", sent.id);
    let request = old::GetTaskRequest { name, history_length: 0 };
    let found = timed(client.get_task(grpc.call(request))).await.expect("a task").into_inner();
    assert_eq!(found, sent);

    let mut client = grpc.client_of_1_0("service");
    let id = sent.id;
    let sent = timed(client.send_message(grpc.call(new_text("", "tea")))).await.expect("an answer");
    assert_eq!(new_answer(&new_task(sent.into_inner())), "tea");
    let request = new::GetTaskRequest { id: id.clone(), ..new::GetTaskRequest::default() };
    let found = timed(client.get_task(grpc.call(request))).await.expect("a task").into_inner();
    assert_eq!((&found.id, new_answer(&found)), (&id, "tea"));
    assert_eq!(found.history.len(), 1);
    let none = new::GetTaskRequest { id, history_length: Some(0), ..Default::default() };
    let found = timed(client.get_task(grpc.call(none))).await.expect("a task").into_inner();
    assert!(found.history.is_empty());
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_requires_authentication_and_continues() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(id("guarded"))).await;
    let mut client = grpc.client_of_0_3("service");
    let sent = timed(client.send_message(grpc.call(old_text("start")))).await.expect("an answer");
    let sent = old_task(sent.into_inner());
    let status = sent.status.expect("a status");
    assert_eq!(status.state(), old::TaskState::AuthRequired);
    assert_eq!(status.update.expect("a message").content.len(), 2);
    let mut answer = old_text("done");
    answer.request.as_mut().expect("a message").task_id = sent.id;
    let response = timed(client.send_message(grpc.call(answer))).await.expect("an answer");
    assert_eq!(old_answer(&old_task(response.into_inner())), "done");

    let mut client = grpc.client_of_1_0("service");
    let call = grpc.call(new_text("guarded", "start"));
    let sent = timed(client.send_message(call)).await.expect("an answer");
    let sent = new_task(sent.into_inner());
    let status = sent.status.clone().expect("a status");
    assert_eq!(status.state(), new::TaskState::AuthRequired);
    let parts = status.message.expect("a message").parts;
    let url = new::part::Content::Url("https://login.example.org".to_owned());
    assert_eq!(parts[1].content, Some(url));
    let status = new::TaskState::AuthRequired.into();
    let list = new::ListTasksRequest { status, ..new::ListTasksRequest::default() };
    let found = timed(client.list_tasks(grpc.call(list))).await.expect("a list").into_inner();
    assert_eq!((found.tasks.len(), &found.tasks[0].id), (1, &sent.id));
    let mut answer = new_text("guarded", "done");
    answer.message.as_mut().expect("a message").task_id = sent.id;
    let response = timed(client.send_message(grpc.call(answer))).await.expect("an answer");
    assert_eq!(new_answer(&new_task(response.into_inner())), "done");
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_be_cancelled_once() {
    let grpc = GrpcHarness::start(|_| {}).await;
    let mut client = grpc.client_of_1_0("service");
    let mut request = new_text("slow", "x");
    request.configuration = Some(new::SendMessageConfiguration {
        return_immediately: true,
        ..new::SendMessageConfiguration::default()
    });
    let task = timed(client.send_message(grpc.call(request))).await.expect("an answer");
    let id = new_task(task.into_inner()).id;
    let request = new::CancelTaskRequest { tenant: "slow".to_owned(), id, metadata: None };
    let task = timed(client.cancel_task(grpc.call(request.clone()))).await.expect("a task");
    let state = task.into_inner().status.expect("a status").state();
    assert_eq!(state, new::TaskState::Canceled);
    let error = timed(client.cancel_task(grpc.call(request.clone()))).await.expect_err("too late");
    assert_eq!((error.code(), reason(&error)), (Code::FailedPrecondition, NOT_CANCELABLE.into()));

    let name = format!("tasks/{}", request.id);
    let call = with(grpc.call(old::CancelTaskRequest { name }), "a2a-agent", "slow");
    let error = timed(grpc.client_of_0_3("service").cancel_task(call)).await.expect_err("too late");
    assert_eq!(error.code(), Code::FailedPrecondition);
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_task_and_closes_with_its_end() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let call = grpc.call(old_text("tea"));
    let mut events = timed(grpc.client_of_0_3("service").send_streaming_message(call))
        .await
        .expect("a stream")
        .into_inner();
    let (mut texts, mut last) = (Vec::new(), None);
    while let Some(event) = timed(events.message()).await.expect("an event") {
        use old::stream_response::Payload;
        let event = event.payload.expect("a payload");
        assert_eq!(last.is_none(), matches!(event, Payload::Task(_)));
        if let Payload::ArtifactUpdate(update) = &event {
            texts.extend(update.artifact.clone().into_iter().flat_map(|artifact| artifact.parts));
        }
        last = Some(event);
    }
    let Some(old::stream_response::Payload::StatusUpdate(end)) = last else {
        panic!("not an end: {last:?}")
    };
    assert_eq!((end.status.expect("a status").state(), end.r#final), (OLD_COMPLETED, true));
    assert_eq!(texts[0].part, Some(old::part::Part::Text("tea".to_owned())));

    let call = grpc.call(new_text("", "tea"));
    let mut events = timed(grpc.client_of_1_0("service").send_streaming_message(call))
        .await
        .expect("a stream")
        .into_inner();
    let mut last = None;
    while let Some(event) = timed(events.message()).await.expect("an event") {
        use new::stream_response::Payload;
        let event = event.payload.expect("a payload");
        assert_eq!(last.is_none(), matches!(event, Payload::Task(_)));
        last = Some(event);
    }
    let Some(new::stream_response::Payload::StatusUpdate(end)) = last else {
        panic!("not an end: {last:?}")
    };
    assert_eq!(end.status.expect("a status").state(), new::TaskState::Completed);
    grpc.stop().await;
}

const OLD_COMPLETED: old::TaskState = old::TaskState::Completed;

const NOT_CANCELABLE: &str = "TASK_NOT_CANCELABLE";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_chosen_by_tenant_metadata_host_or_default() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    assert_eq!(send_new(&grpc, "slow.example.org", "Greet", Some("slow")).await, "hello you");
    assert_eq!(send_new(&grpc, "slow.example.org", "", Some("Greet")).await, "hello you");
    assert_eq!(send_new(&grpc, "greet.example.org:80", "", None).await, "hello you");
    assert_eq!(send_new(&grpc, "127.0.0.1:80", "", None).await, "you");
    assert_eq!(send_new(&grpc, "other.example.org", "", None).await, "you");
    assert_eq!(send_new(&grpc, "greet.example.org", "nobody", None).await, "NotFound");
    assert_eq!(send_new(&grpc, "greet.example.org", "", Some("nobody")).await, "NotFound");

    let call = with(grpc.call(old_text("you")), "a2a-agent", "Greet");
    let sent = timed(grpc.client_of_0_3("service").send_message(call)).await.expect("an answer");
    assert_eq!(old_answer(&old_task(sent.into_inner())), "hello you");
    let sent =
        timed(grpc.client_of_0_3("greet.localhost").send_message(grpc.call(old_text("you")))).await;
    assert_eq!(old_answer(&old_task(sent.expect("an answer").into_inner())), "hello you");
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_agent_names_the_ways_to_choose_one() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = None).await;
    let call = grpc.call(old_text("you"));
    let status =
        timed(grpc.client_of_0_3("service").send_message(call)).await.expect_err("no agent");
    assert_eq!(status.code(), Code::NotFound);
    for source in ["tenant", "a2a-agent", "host", "default"] {
        assert!(status.message().contains(source), "{}", status.message());
    }
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_call_needs_one_valid_token_with_its_scope() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let authorization = format!("Bearer {}", grpc.token);
    for tokens in [vec![], vec!["Bearer x"], vec![&*authorization, &*authorization]] {
        let mut call = Request::new(new_text("", "x"));
        for token in &tokens {
            call = with(call, "authorization", token);
        }
        let status =
            timed(grpc.client_of_1_0("service").send_message(call)).await.expect_err("kept out");
        assert_eq!(status.code(), Code::Unauthenticated, "{} tokens", tokens.len());
        assert_eq!(status.message(), "valid credentials are required");
    }
    let reader = format!("Bearer {READER_TOKEN}");
    let call = with(Request::new(old_text("x")), "authorization", &reader);
    let status =
        timed(grpc.client_of_0_3("service").send_message(call)).await.expect_err("may not run");
    assert_eq!(status.code(), Code::PermissionDenied);
    let request = new::GetTaskRequest { tenant: "slow".to_owned(), ..Default::default() };
    let call = with(Request::new(request), "authorization", &reader);
    let status =
        timed(grpc.client_of_1_0("service").get_task(call)).await.expect_err("another agent");
    assert_eq!(status.code(), Code::PermissionDenied);
    let call = with(Request::new(old::GetAgentCardRequest {}), "authorization", &reader);
    let card = timed(grpc.client_of_0_3("service").get_agent_card(call))
        .await
        .expect("a card")
        .into_inner();
    assert_eq!((&*card.name, &*card.protocol_version), ("Echo", "0.3.0"));
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_card_shows_its_details_and_may_omit_grpc() {
    let provider = || Provider { organization: "Us".to_owned(), url: "https://us".to_owned() };
    let grpc = GrpcHarness::start(|settings| {
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
    let mut client = grpc.client_of_0_3("service");
    let call = grpc.call(old::GetAgentCardRequest::default());
    let card = timed(client.get_agent_card(call)).await.expect("a card").into_inner();
    let bindings: Vec<_> =
        card.additional_interfaces.iter().map(|entry| &*entry.transport).collect();
    assert_eq!((card.preferred_transport.as_str(), bindings), ("JSONRPC", vec!["JSONRPC"]));
    let named = card.provider.expect("a provider");
    assert_eq!((named.organization, named.url), ("Us".to_owned(), "https://us".to_owned()));
    assert_eq!((card.documentation_url.as_str(), card.icon_url.as_str()), ("https://us/docs", ""));
    assert_eq!(card.skills[0].examples, ["do"]);

    let mut client = grpc.client_of_1_0("service");
    let call = grpc.call(new::GetExtendedAgentCardRequest::default());
    let card = timed(client.get_extended_agent_card(call)).await.expect("a card").into_inner();
    let bindings = card.supported_interfaces.iter();
    let bindings: Vec<_> =
        bindings.map(|entry| (&*entry.protocol_binding, &*entry.protocol_version)).collect();
    assert_eq!(bindings, [("JSONRPC", "1.0"), ("JSONRPC", "0.3")]);
    assert_eq!(card.provider.expect("a provider").organization, "Us");
    assert_eq!((card.documentation_url.as_deref(), card.icon_url), (Some("https://us/docs"), None));
    assert_eq!(card.skills[0].examples, ["do"]);

    let sent = timed(client.send_message(grpc.call(new_text("", "tea")))).await.expect("an answer");
    assert_eq!(new_answer(&new_task(sent.into_inner())), "tea");
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_method_is_unimplemented() {
    let grpc = GrpcHarness::start(|_| {}).await;
    let client = http2(grpc.running.address());
    for path in ["/lf.a2a.v1.A2AService/SingMessage", "/nobody.v1.Service/Method", "/status"] {
        let request = axum::http::Request::post(format!("http://service{path}"))
            .header("content-type", "application/grpc")
            .header("authorization", format!("Bearer {}", grpc.token))
            .body(tonic::body::Body::empty())
            .expect("a request");
        let response = timed(client.request(request)).await.expect("a response");
        let headers = response.headers();
        let number = (Code::Unimplemented as i32).to_string();
        assert_eq!(headers["grpc-status"], number, "{path} {headers:?}");
        assert_eq!(headers["content-type"], "application/grpc", "{path}");
    }
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_works_for_its_agent_however_it_is_addressed() {
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(id("echo"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == id("Greet")) {
            let a2a_exposure = Arc::make_mut(&mut Arc::make_mut(&mut agent.spec).a2a_exposure);
            a2a_exposure.credential = CallerAuth::ApiKey("x-api-key".to_owned());
        }
    })
    .await;
    let call = |tenant| with(Request::new(new_text(tenant, "you")), "x-api-key", &grpc.token);
    let mut client = grpc.client_of_1_0("service");
    assert!(timed(client.send_message(call("Greet"))).await.is_ok());
    assert!(timed(client.send_message(with(call(""), "a2a-agent", "Greet"))).await.is_ok());
    let status = timed(client.send_message(call(""))).await.expect_err("another door");
    assert_eq!(status.code(), Code::Unauthenticated);
    let wrong = with(Request::new(new_text("Greet", "you")), "x-api-key", "x");
    let status = timed(client.send_message(wrong)).await.expect_err("a wrong key");
    assert_eq!(status.code(), Code::Unauthenticated);
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_not_offered_over_grpc_are_refused() {
    let grpc = GrpcHarness::start(|settings| {
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
    let call = grpc.call(new_text("echo", "x"));
    let status =
        timed(grpc.client_of_1_0("service").send_message(call)).await.expect_err("no way in");
    assert_eq!(reason(&status), "UNSUPPORTED_OPERATION");
    let call = with(grpc.call(old_text("x")), "a2a-agent", "Greet");
    let status =
        timed(grpc.client_of_0_3("service").send_message(call)).await.expect_err("only 1.0");
    assert_eq!(reason(&status), "VERSION_NOT_SUPPORTED");
    assert!(status.message().starts_with("VersionNotSupportedError: "));
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_errors_have_their_grpc_codes() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(id("echo"))).await;
    let (mut old, mut new) = (grpc.client_of_0_3("service"), grpc.client_of_1_0("service"));
    let unknown = uuid::Uuid::now_v7().to_string();

    let request = new::GetTaskRequest { id: unknown, ..Default::default() };
    let status = timed(new.get_task(grpc.call(request))).await.expect_err("no task");
    assert_eq!((status.code(), reason(&status)), (Code::NotFound, "TASK_NOT_FOUND".into()));

    let request = old::GetTaskRequest { name: "x".to_owned(), history_length: 0 };
    let status = timed(old.get_task(grpc.call(request))).await.expect_err("no name");
    assert_eq!(status.code(), Code::InvalidArgument);

    let request = new::SendMessageRequest::default();
    let status = timed(new.send_message(grpc.call(request))).await.expect_err("no message");
    assert_eq!(status.code(), Code::InvalidArgument);

    let call = with(grpc.call(new_text("", "x")), "a2a-version", "2.0");
    let status = timed(new.send_message(call)).await.expect_err("another version");
    let unsupported = "VERSION_NOT_SUPPORTED".to_owned();
    assert_eq!((status.code(), reason(&status)), (Code::FailedPrecondition, unsupported));
    let call = with(grpc.call(new_text("", "x")), "a2a-version", "1.0");
    assert!(timed(new.send_message(call)).await.is_ok());

    let large = "x".repeat(200_000);
    let status = timed(old.send_message(grpc.call(old_text(&large)))).await.expect_err("too much");
    assert_eq!(status.code(), Code::ResourceExhausted);
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_not_grpc_are_unaffected() {
    let grpc = GrpcHarness::start(|_| {}).await;
    let address = grpc.running.address();
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
            let answer =
                timed(client.get(format!("http://x{path}").parse().expect("a path"))).await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.status(), expected, "{path}");
            assert!(
                !timed(answer.into_body().collect()).await.expect("a body").to_bytes().is_empty()
            );
        }
    }
    grpc.stop().await;
}

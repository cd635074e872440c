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
mod raw_answers;
mod refused_calls;

use std::sync::Arc;

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;
use algonius_actors::model::access::endpoint_config::{
    Binding, CallerAuth, CardDetails, ProviderOrganization,
};
use axum::http::StatusCode;
use harness::{FixedAddressConnector, GrpcHarness, agent_id, with_metadata, within_step_timeout};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use messages::{
    answer_text_0_3, answer_text_1_0, error_reason, message_request_0_3, message_request_1_0,
    send_and_read_text_or_code, task_0_3, task_1_0,
};
use tonic::{Code, Request};

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_message_is_answered_and_found_in_both_versions() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("echo"))).await;
    let mut client = grpc.client_of_0_3("service");
    let task = within_step_timeout(
        client.send_message(grpc.authorized_request(message_request_0_3("tea"))),
    )
    .await
    .expect("an answer");
    let task = task_0_3(task.into_inner());
    assert_eq!(task.status.as_ref().expect("a status").state(), old::TaskState::Completed);
    assert_eq!(answer_text_0_3(&task), "tea");
    let name = format!("tasks/{}", task.id);
    let request = old::GetTaskRequest { name, history_length: 0 };
    let found = within_step_timeout(client.get_task(grpc.authorized_request(request)))
        .await
        .expect("a task")
        .into_inner();
    assert_eq!(found, task);

    let mut client = grpc.client_of_1_0("service");
    let id = task.id;
    let task = within_step_timeout(
        client.send_message(grpc.authorized_request(message_request_1_0("", "tea"))),
    )
    .await
    .expect("an answer");
    assert_eq!(answer_text_1_0(&task_1_0(task.into_inner())), "tea");
    let request = new::GetTaskRequest { id: id.clone(), ..new::GetTaskRequest::default() };
    let found = within_step_timeout(client.get_task(grpc.authorized_request(request)))
        .await
        .expect("a task")
        .into_inner();
    assert_eq!((&found.id, answer_text_1_0(&found)), (&id, "tea"));
    assert_eq!(found.history.len(), 1);
    let request_without_history =
        new::GetTaskRequest { id, history_length: Some(0), ..Default::default() };
    let found =
        within_step_timeout(client.get_task(grpc.authorized_request(request_without_history)))
            .await
            .expect("a task")
            .into_inner();
    assert!(found.history.is_empty());
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_requires_authentication_and_continues() {
    let grpc =
        GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("guarded"))).await;
    let mut client = grpc.client_of_0_3("service");
    let task = within_step_timeout(
        client.send_message(grpc.authorized_request(message_request_0_3("start"))),
    )
    .await
    .expect("an answer");
    let task = task_0_3(task.into_inner());
    let status = task.status.expect("a status");
    assert_eq!(status.state(), old::TaskState::AuthRequired);
    assert_eq!(status.update.expect("a message").content.len(), 2);
    let mut answer = message_request_0_3("done");
    answer.request.as_mut().expect("a message").task_id = task.id;
    let response = within_step_timeout(client.send_message(grpc.authorized_request(answer)))
        .await
        .expect("an answer");
    assert_eq!(answer_text_0_3(&task_0_3(response.into_inner())), "done");

    let mut client = grpc.client_of_1_0("service");
    let call = grpc.authorized_request(message_request_1_0("guarded", "start"));
    let task = within_step_timeout(client.send_message(call)).await.expect("an answer");
    let task = task_1_0(task.into_inner());
    let status = task.status.clone().expect("a status");
    assert_eq!(status.state(), new::TaskState::AuthRequired);
    let parts = status.message.expect("a message").parts;
    let url = new::part::Content::Url("https://login.example.org".to_owned());
    assert_eq!(parts[1].content, Some(url));
    let status = new::TaskState::AuthRequired.into();
    let request = new::ListTasksRequest { status, ..new::ListTasksRequest::default() };
    let task_list = within_step_timeout(client.list_tasks(grpc.authorized_request(request)))
        .await
        .expect("a list")
        .into_inner();
    assert_eq!((task_list.tasks.len(), &task_list.tasks[0].id), (1, &task.id));
    let mut answer = message_request_1_0("guarded", "done");
    answer.message.as_mut().expect("a message").task_id = task.id;
    let response = within_step_timeout(client.send_message(grpc.authorized_request(answer)))
        .await
        .expect("an answer");
    assert_eq!(answer_text_1_0(&task_1_0(response.into_inner())), "done");
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_be_cancelled_once() {
    let grpc = GrpcHarness::start(|_| {}).await;
    let mut client = grpc.client_of_1_0("service");
    let mut request = message_request_1_0("slow", "x");
    request.configuration = Some(new::SendMessageConfiguration {
        return_immediately: true,
        ..new::SendMessageConfiguration::default()
    });
    let task = within_step_timeout(client.send_message(grpc.authorized_request(request)))
        .await
        .expect("an answer");
    let id = task_1_0(task.into_inner()).id;
    let request = new::CancelTaskRequest { tenant: "slow".to_owned(), id, metadata: None };
    let task = within_step_timeout(client.cancel_task(grpc.authorized_request(request.clone())))
        .await
        .expect("a task");
    let state = task.into_inner().status.expect("a status").state();
    assert_eq!(state, new::TaskState::Canceled);
    let error = within_step_timeout(client.cancel_task(grpc.authorized_request(request.clone())))
        .await
        .expect_err("too late");
    assert_eq!(
        (error.code(), error_reason(&error)),
        (Code::FailedPrecondition, NOT_CANCELABLE.into())
    );

    let name = format!("tasks/{}", request.id);
    let call = with_metadata(
        grpc.authorized_request(old::CancelTaskRequest { name }),
        "a2a-agent",
        "slow",
    );
    let error = within_step_timeout(grpc.client_of_0_3("service").cancel_task(call))
        .await
        .expect_err("too late");
    assert_eq!(error.code(), Code::FailedPrecondition);
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_task_and_closes_with_its_end() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("echo"))).await;
    let call = grpc.authorized_request(message_request_0_3("tea"));
    let mut events =
        within_step_timeout(grpc.client_of_0_3("service").send_streaming_message(call))
            .await
            .expect("a stream")
            .into_inner();
    let (mut parts, mut last) = (Vec::new(), None);
    while let Some(event) = within_step_timeout(events.message()).await.expect("an event") {
        use old::stream_response::Payload;
        let event = event.payload.expect("a payload");
        assert_eq!(last.is_none(), matches!(event, Payload::Task(_)));
        if let Payload::ArtifactUpdate(update) = &event {
            parts.extend(update.artifact.clone().into_iter().flat_map(|artifact| artifact.parts));
        }
        last = Some(event);
    }
    let Some(old::stream_response::Payload::StatusUpdate(end)) = last else {
        panic!("not an end: {last:?}")
    };
    assert_eq!((end.status.expect("a status").state(), end.r#final), (COMPLETED_0_3, true));
    assert_eq!(parts[0].part, Some(old::part::Part::Text("tea".to_owned())));

    let call = grpc.authorized_request(message_request_1_0("", "tea"));
    let mut events =
        within_step_timeout(grpc.client_of_1_0("service").send_streaming_message(call))
            .await
            .expect("a stream")
            .into_inner();
    let mut last = None;
    while let Some(event) = within_step_timeout(events.message()).await.expect("an event") {
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

const COMPLETED_0_3: old::TaskState = old::TaskState::Completed;

const NOT_CANCELABLE: &str = "TASK_NOT_CANCELABLE";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_chosen_by_tenant_metadata_host_or_default() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("echo"))).await;
    assert_eq!(
        send_and_read_text_or_code(&grpc, "slow.example.org", "Greet", Some("slow")).await,
        "hello you"
    );
    assert_eq!(
        send_and_read_text_or_code(&grpc, "slow.example.org", "", Some("Greet")).await,
        "hello you"
    );
    assert_eq!(
        send_and_read_text_or_code(&grpc, "greet.example.org:80", "", None).await,
        "hello you"
    );
    assert_eq!(send_and_read_text_or_code(&grpc, "127.0.0.1:80", "", None).await, "you");
    assert_eq!(send_and_read_text_or_code(&grpc, "other.example.org", "", None).await, "you");
    assert_eq!(
        send_and_read_text_or_code(&grpc, "greet.example.org", "nobody", None).await,
        "NotFound"
    );
    assert_eq!(
        send_and_read_text_or_code(&grpc, "greet.example.org", "", Some("nobody")).await,
        "NotFound"
    );

    let call =
        with_metadata(grpc.authorized_request(message_request_0_3("you")), "a2a-agent", "Greet");
    let response = within_step_timeout(grpc.client_of_0_3("service").send_message(call))
        .await
        .expect("an answer");
    assert_eq!(answer_text_0_3(&task_0_3(response.into_inner())), "hello you");
    let response = within_step_timeout(
        grpc.client_of_0_3("greet.localhost")
            .send_message(grpc.authorized_request(message_request_0_3("you"))),
    )
    .await;
    assert_eq!(answer_text_0_3(&task_0_3(response.expect("an answer").into_inner())), "hello you");
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_card_shows_its_details_and_may_omit_grpc() {
    let provider =
        || ProviderOrganization { organization: "Us".to_owned(), url: "https://us".to_owned() };
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(agent_id("echo"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == agent_id("echo")) {
            let spec = Arc::make_mut(&mut agent.spec);
            spec.profile.skills[0].examples = vec!["do".to_owned()];
            let endpoint_config = Arc::make_mut(&mut spec.endpoint_config);
            endpoint_config.card_bindings = vec![Binding::JsonRpc];
            endpoint_config.card_details = CardDetails {
                provider: Some(provider()),
                documentation_url: Some("https://us/docs".to_owned()),
                icon_url: None,
            };
        }
    })
    .await;
    let mut client = grpc.client_of_0_3("service");
    let call = grpc.authorized_request(old::GetAgentCardRequest::default());
    let card = within_step_timeout(client.get_agent_card(call)).await.expect("a card").into_inner();
    let bindings: Vec<_> =
        card.additional_interfaces.iter().map(|entry| &*entry.transport).collect();
    assert_eq!((card.preferred_transport.as_str(), bindings), ("JSONRPC", vec!["JSONRPC"]));
    let provider = card.provider.expect("a provider");
    assert_eq!((provider.organization, provider.url), ("Us".to_owned(), "https://us".to_owned()));
    assert_eq!((card.documentation_url.as_str(), card.icon_url.as_str()), ("https://us/docs", ""));
    assert_eq!(card.skills[0].examples, ["do"]);

    let mut client = grpc.client_of_1_0("service");
    let call = grpc.authorized_request(new::GetExtendedAgentCardRequest::default());
    let card = within_step_timeout(client.get_extended_agent_card(call))
        .await
        .expect("a card")
        .into_inner();
    let bindings = card.supported_interfaces.iter();
    let bindings: Vec<_> =
        bindings.map(|entry| (&*entry.protocol_binding, &*entry.protocol_version)).collect();
    assert_eq!(bindings, [("JSONRPC", "1.0"), ("JSONRPC", "0.3")]);
    assert_eq!(card.provider.expect("a provider").organization, "Us");
    assert_eq!((card.documentation_url.as_deref(), card.icon_url), (Some("https://us/docs"), None));
    assert_eq!(card.skills[0].examples, ["do"]);

    let response = within_step_timeout(
        client.send_message(grpc.authorized_request(message_request_1_0("", "tea"))),
    )
    .await
    .expect("an answer");
    assert_eq!(answer_text_1_0(&task_1_0(response.into_inner())), "tea");
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_works_for_its_agent_however_it_is_addressed() {
    let grpc = GrpcHarness::start(|settings| {
        settings.default_agent = Some(agent_id("echo"));
        for agent in settings.agents.iter_mut().filter(|agent| agent.spec.id == agent_id("Greet")) {
            let endpoint_config =
                Arc::make_mut(&mut Arc::make_mut(&mut agent.spec).endpoint_config);
            endpoint_config.caller_auth = CallerAuth::ApiKeyHeader("x-api-key".to_owned());
        }
    })
    .await;
    let call = |tenant| {
        with_metadata(Request::new(message_request_1_0(tenant, "you")), "x-api-key", &grpc.token)
    };
    let mut client = grpc.client_of_1_0("service");
    assert!(within_step_timeout(client.send_message(call("Greet"))).await.is_ok());
    assert!(
        within_step_timeout(client.send_message(with_metadata(call(""), "a2a-agent", "Greet")))
            .await
            .is_ok()
    );
    let status =
        within_step_timeout(client.send_message(call(""))).await.expect_err("another agent");
    assert_eq!(status.code(), Code::Unauthenticated);
    let wrong_key_request =
        with_metadata(Request::new(message_request_1_0("Greet", "you")), "x-api-key", "x");
    let status =
        within_step_timeout(client.send_message(wrong_key_request)).await.expect_err("a wrong key");
    assert_eq!(status.code(), Code::Unauthenticated);
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_not_grpc_are_unaffected() {
    let grpc = GrpcHarness::start(|_| {}).await;
    let address = grpc.service.address();
    let http1_client: Client<_, Empty<bytes::Bytes>> =
        Client::builder(TokioExecutor::new()).build(FixedAddressConnector(address));
    let http2_client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build(FixedAddressConnector(address));
    for client in [http1_client, http2_client] {
        for (path, expected) in [
            ("/nope", StatusCode::NOT_FOUND),
            ("/a2a.v1.Other/SendMessage", StatusCode::NOT_FOUND),
            ("/a2a.v1.A2AService/SendMessage", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("/lf.a2a.v1.A2AService/SendMessage", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("/health", StatusCode::OK),
        ] {
            let answer =
                within_step_timeout(client.get(format!("http://x{path}").parse().expect("a path")))
                    .await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.status(), expected, "{path}");
            assert!(
                !within_step_timeout(answer.into_body().collect())
                    .await
                    .expect("a body")
                    .to_bytes()
                    .is_empty()
            );
        }
    }
    grpc.stop().await;
}

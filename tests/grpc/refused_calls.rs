//! Calls over gRPC that are refused, and the codes and reasons of their errors.

use std::sync::Arc;

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;
use algonius_actors::model::access::endpoint_config::{Binding, ProtocolVersion};
use tonic::{Code, Request};

use crate::harness::{
    GrpcHarness, READER_TOKEN, agent_id, http2_client, with_metadata, within_step_timeout,
};
use crate::messages::{error_reason, message_request_0_3, message_request_1_0};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_agent_names_the_ways_to_choose_one() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = None).await;
    let call = grpc.authorized_request(message_request_0_3("you"));
    let status = within_step_timeout(grpc.client_of_0_3("service").send_message(call))
        .await
        .expect_err("no agent");
    assert_eq!(status.code(), Code::NotFound);
    for source in ["tenant", "a2a-agent", "host", "default"] {
        assert!(status.message().contains(source), "{}", status.message());
    }
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grpc_call_needs_one_valid_token_with_its_scope() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("echo"))).await;
    let authorization = format!("Bearer {}", grpc.token);
    for tokens in [vec![], vec!["Bearer x"], vec![&*authorization, &*authorization]] {
        let mut call = Request::new(message_request_1_0("", "x"));
        for token in &tokens {
            call = with_metadata(call, "authorization", token);
        }
        let status = within_step_timeout(grpc.client_of_1_0("service").send_message(call))
            .await
            .expect_err("kept out");
        assert_eq!(status.code(), Code::Unauthenticated, "{} tokens", tokens.len());
        assert_eq!(status.message(), "valid credentials are required");
    }
    let reader = format!("Bearer {READER_TOKEN}");
    let call = with_metadata(Request::new(message_request_0_3("x")), "authorization", &reader);
    let status = within_step_timeout(grpc.client_of_0_3("service").send_message(call))
        .await
        .expect_err("may not run");
    assert_eq!(status.code(), Code::PermissionDenied);
    let request = new::GetTaskRequest { tenant: "slow".to_owned(), ..Default::default() };
    let call = with_metadata(Request::new(request), "authorization", &reader);
    let status = within_step_timeout(grpc.client_of_1_0("service").get_task(call))
        .await
        .expect_err("another agent");
    assert_eq!(status.code(), Code::PermissionDenied);
    let call = with_metadata(Request::new(old::GetAgentCardRequest {}), "authorization", &reader);
    let card = within_step_timeout(grpc.client_of_0_3("service").get_agent_card(call))
        .await
        .expect("a card")
        .into_inner();
    assert_eq!((&*card.name, &*card.protocol_version), ("Echo", "0.3.0"));
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_method_is_unimplemented() {
    let grpc = GrpcHarness::start(|_| {}).await;
    let client = http2_client(grpc.service.address());
    for path in ["/lf.a2a.v1.A2AService/SingMessage", "/nobody.v1.Service/Method", "/status"] {
        let request = axum::http::Request::post(format!("http://service{path}"))
            .header("content-type", "application/grpc")
            .header("authorization", format!("Bearer {}", grpc.token))
            .body(tonic::body::Body::empty())
            .expect("a request");
        let response = within_step_timeout(client.request(request)).await.expect("a response");
        let headers = response.headers();
        let number = (Code::Unimplemented as i32).to_string();
        assert_eq!(headers["grpc-status"], number, "{path} {headers:?}");
        assert_eq!(headers["content-type"], "application/grpc", "{path}");
    }
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_not_offered_over_grpc_are_refused() {
    let grpc = GrpcHarness::start(|settings| {
        for agent in &mut settings.agents {
            let spec = Arc::make_mut(&mut agent.spec);
            let endpoint_config = Arc::make_mut(&mut spec.endpoint_config);
            match spec.id.as_str() {
                "echo" => endpoint_config.bindings.retain(|binding| *binding != Binding::Grpc),
                _ => endpoint_config.versions.retain(|version| *version != ProtocolVersion::V0_3),
            }
        }
    })
    .await;
    let call = grpc.authorized_request(message_request_1_0("echo", "x"));
    let status = within_step_timeout(grpc.client_of_1_0("service").send_message(call))
        .await
        .expect_err("no way in");
    assert_eq!(error_reason(&status), "UNSUPPORTED_OPERATION");
    let call =
        with_metadata(grpc.authorized_request(message_request_0_3("x")), "a2a-agent", "Greet");
    let status = within_step_timeout(grpc.client_of_0_3("service").send_message(call))
        .await
        .expect_err("only 1.0");
    assert_eq!(error_reason(&status), "VERSION_NOT_SUPPORTED");
    assert!(status.message().starts_with("VersionNotSupportedError: "));
    grpc.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_errors_have_their_grpc_codes() {
    let grpc = GrpcHarness::start(|settings| settings.default_agent = Some(agent_id("echo"))).await;
    let (mut client_0_3, mut client_1_0) =
        (grpc.client_of_0_3("service"), grpc.client_of_1_0("service"));
    let unknown_id = uuid::Uuid::now_v7().to_string();

    let request = new::GetTaskRequest { id: unknown_id, ..Default::default() };
    let status = within_step_timeout(client_1_0.get_task(grpc.authorized_request(request)))
        .await
        .expect_err("no task");
    assert_eq!((status.code(), error_reason(&status)), (Code::NotFound, "TASK_NOT_FOUND".into()));

    let request = old::GetTaskRequest { name: "x".to_owned(), history_length: 0 };
    let status = within_step_timeout(client_0_3.get_task(grpc.authorized_request(request)))
        .await
        .expect_err("no name");
    assert_eq!(status.code(), Code::InvalidArgument);

    let request = new::SendMessageRequest::default();
    let status = within_step_timeout(client_1_0.send_message(grpc.authorized_request(request)))
        .await
        .expect_err("no message");
    assert_eq!(status.code(), Code::InvalidArgument);

    let call =
        with_metadata(grpc.authorized_request(message_request_1_0("", "x")), "a2a-version", "2.0");
    let status =
        within_step_timeout(client_1_0.send_message(call)).await.expect_err("another version");
    let expected_reason = "VERSION_NOT_SUPPORTED".to_owned();
    assert_eq!((status.code(), error_reason(&status)), (Code::FailedPrecondition, expected_reason));
    let call =
        with_metadata(grpc.authorized_request(message_request_1_0("", "x")), "a2a-version", "1.0");
    assert!(within_step_timeout(client_1_0.send_message(call)).await.is_ok());

    let large = "x".repeat(200_000);
    let status = within_step_timeout(
        client_0_3.send_message(grpc.authorized_request(message_request_0_3(&large))),
    )
    .await
    .expect_err("too much");
    assert_eq!(status.code(), Code::ResourceExhausted);
    grpc.stop().await;
}

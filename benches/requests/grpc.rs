//! The same requests over gRPC, with the generated client.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use a2a::a2a_service_client::A2aServiceClient;
use algonius_a2a::grpc::proto::lf_a2a_v1 as a2a;
use algonius_gauge::load::unique_number;
use algonius_gauge::run::{OperationTimes, nanoseconds};
use algonius_gauge::service::Service;
use algonius_gauge::spawn::plain_text;
use axum::http::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::Instant;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, body::Body};

use super::MESSAGE_BYTES;

type Http2Client = Client<GrpcConnector, Body>;

/// Caller with one connection for all requests in flight.
#[derive(Clone)]
pub(crate) struct GrpcCaller {
    client: A2aServiceClient<Http2Client>,
    credential: AsciiMetadataValue,
    text: String,
}

impl GrpcCaller {
    pub(crate) fn new(service: &Service) -> Self {
        let builder = &mut Client::builder(TokioExecutor::new());
        let channel = builder.http2_only(true).build(GrpcConnector(service.address));
        let origin = format!("http://{}", service.address).parse().expect("an address");
        let credential = format!("Bearer {}", service.token).parse().expect("a token");
        let client = A2aServiceClient::with_origin(channel, origin);
        Self { client, credential, text: plain_text(MESSAGE_BYTES) }
    }

    /// Sends with this many requests in flight for this time.
    pub(crate) async fn run(&mut self, in_flight: usize, duration: Duration) -> OperationTimes {
        self.send().await; // Opens the connection before the first measured request.
        let (run_started_at, times) = (Instant::now(), Rc::new(RefCell::new(Vec::new())));
        let tasks = LocalSet::new();
        for _ in 0..in_flight {
            let (mut caller, times) = (self.clone(), Rc::clone(&times));
            tasks.spawn_local(async move {
                while run_started_at.elapsed() < duration {
                    let request_started_at = Instant::now();
                    caller.send().await;
                    times.borrow_mut().push(nanoseconds(request_started_at.elapsed()));
                }
            });
        }
        tasks.await;
        OperationTimes::new(times.take(), run_started_at.elapsed())
    }

    async fn send(&mut self) {
        let content = Some(a2a::part::Content::Text(self.text.clone()));
        let message = a2a::Message {
            message_id: format!("{:016x}", unique_number()),
            role: a2a::Role::User.into(),
            parts: vec![a2a::Part { content, ..Default::default() }],
            ..Default::default()
        };
        let body = a2a::SendMessageRequest { message: Some(message), ..Default::default() };
        let mut request = Request::new(body);
        request.metadata_mut().insert("authorization", self.credential.clone());
        request.metadata_mut().insert("a2a-agent", AsciiMetadataValue::from_static("cat"));
        let answer = self.client.send_message(request).await.expect("an answer").into_inner();
        let Some(a2a::send_message_response::Payload::Task(task)) = answer.payload else {
            unreachable!("an agent answers with a task")
        };
        let state = task.status.map(|status| status.state());
        assert_eq!(state, Some(a2a::TaskState::Completed));
    }
}

/// Connector to the service.
#[derive(Clone)]
struct GrpcConnector(SocketAddr);

impl tower::Service<Uri> for GrpcConnector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = self.0;
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}

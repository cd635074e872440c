//! A service of its own for each test, and clients that reach it by any name.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use algonius_a2a::grpc::proto::a2a_v1 as old;
use algonius_a2a::grpc::proto::lf_a2a_v1 as new;
use algonius_actors::model::access::principal::{NewToken, Right, Scope};
use algonius_supervisor::config::{self, Settings};
use algonius_supervisor::platform::clock::WallClock;
use algonius_supervisor::{RunningService, start_with_clock};
use algonius_warden::process_holders::HolderCommand;
use axum::http::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use new::a2a_service_client::A2aServiceClient as NewClient;
use old::a2a_service_client::A2aServiceClient as OldClient;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;

/// Longer than any step takes.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// May only read, and only `echo`.
pub(crate) const READER_TOKEN: &str = "reader-reader-reader-reader-reader";

pub(crate) const CONFIG: &str = r#"
# How busy the machine is that runs the stories concerns none of them.
[pressure]
enabled = false

[server]
listen = "127.0.0.1:0"
data_dir = "data"
runtime_dir = "run"
token_file = "token"
max_body_bytes = 100000
allowed_hosts = ["*"]

[agents.echo]
name = "Echo"
description = "Repeats."
command = "cat"

[agents.Greet]
name = "Greet"
description = "Greets."
command = "printf"
args = ["hello %s", "{{ input }}"]
input = "args"

[agents.env]
command = "env"

[agents.flood]
name = "Flood"
description = "Says more than it may."
command = "sh"
args = ["-c", "yes 123456789 | head -n 10000"]
max_output_bytes = 10000

[agents.lines]
name = "Lines"
description = "Waits between its lines for the file that it is told."
command = "sh"
args = ["-c", "read gate; echo one; echo err one >&2; until [ -e \"$gate\" ]; do sleep 0.01; done; echo two"]
[agents.guarded]
command = "sh"
args = ["-c", '''
read -r word || true
case "$word" in
start) echo '{"type":"auth_required","text":"sign in","url":"https://login.example.org"}' ;;
*) printf '{"type":"text","text":"%s"}\n' "$word" ;;
esac
''']
output = "events"

[agents.slow]
name = "Slow"
description = "Takes its time."
command = "sleep"
args = ["600"]
"#;

/// A service of its own, in a folder of its own.
pub(crate) struct GrpcHarness {
    pub(crate) service: RunningService,
    pub(crate) token: String,
    _folder: TempDir,
}

impl GrpcHarness {
    pub(crate) async fn start(configure: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config_file = folder.path().join("supervisor.toml");
        std::fs::write(&config_file, CONFIG).expect("the configuration is written");
        let env = |name: &str| std::env::var_os(name);
        let mut settings =
            config::load(&config_file, &env).expect("a sound configuration").settings;
        settings.callers.tokens.push(NewToken {
            name: "reader".to_owned(),
            hash: Sha256::digest(READER_TOKEN).into(),
            scope: Scope { rights: vec![Right::Read], agents: Some(vec![agent_id("echo")]) },
            expires_at: None,
        });
        configure(&mut settings);
        let running_service = start_with_clock(
            settings,
            Arc::new(WallClock),
            HolderCommand::new(env!("CARGO_BIN_EXE_algonius")),
        )
        .await
        .expect("the service starts");
        let token = std::fs::read_to_string(folder.path().join("token")).expect("a token");
        Self { service: running_service, token: token.trim().to_owned(), _folder: folder }
    }

    pub(crate) fn client_of_0_3(&self, host: &str) -> OldClient<GrpcHttp2Client> {
        OldClient::with_origin(http2_client(self.service.address()), origin(host))
    }

    pub(crate) fn client_of_1_0(&self, host: &str) -> NewClient<GrpcHttp2Client> {
        NewClient::with_origin(http2_client(self.service.address()), origin(host))
    }

    /// A call with the operator's token.
    pub(crate) fn authorized_request<T>(&self, message: T) -> Request<T> {
        with_metadata(Request::new(message), "authorization", &format!("Bearer {}", self.token))
    }

    pub(crate) async fn stop(self) {
        self.service.stop(Duration::ZERO).await;
    }
}

pub(crate) fn agent_id(id: &str) -> algonius_actors::model::id::AgentId {
    algonius_actors::model::id::AgentId::new(id).expect("an id")
}

pub(crate) fn origin(host: &str) -> Uri {
    format!("http://{host}").parse().expect("an address")
}

pub(crate) fn with_metadata<T>(
    mut request: Request<T>,
    name: &'static str,
    value: &str,
) -> Request<T> {
    let value: AsciiMetadataValue = value.parse().expect("plain text");
    request.metadata_mut().append(name, value);
    request
}

pub(crate) type TcpIo = TokioIo<TcpStream>;
pub(crate) type GrpcHttp2Client = Client<FixedAddressConnector, tonic::body::Body>;

/// Connects to the service, whatever name it is called by.
#[derive(Clone)]
pub(crate) struct FixedAddressConnector(pub(crate) SocketAddr);

impl tower::Service<Uri> for FixedAddressConnector {
    type Response = TcpIo;
    type Error = std::io::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = std::io::Result<TcpIo>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = self.0;
        Box::pin(async move { TcpStream::connect(address).await.map(TokioIo::new) })
    }
}

pub(crate) fn http2_client(address: SocketAddr) -> GrpcHttp2Client {
    Client::builder(TokioExecutor::new()).http2_only(true).build(FixedAddressConnector(address))
}

/// Result of the work, which must end within the time limit of a step.
pub(crate) async fn within_step_timeout<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(STEP_TIMEOUT, work).await.expect("in time")
}

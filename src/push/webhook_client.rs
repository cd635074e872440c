//! Webhook client: resolves the host name once, and connects only to an address that it has checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::execution::trace::TraceContext;
use algonius_actors::model::push::{PushTarget, Secret};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::DeliveryPolicy;
use super::address_policy::{is_in_any_network, is_public};
use super::url::{ReceiverHost, ReceiverUrl};

/// Maximum size of a response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Maximum size of a response body that is read before the connection is closed, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Maximum time for the response body.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of addresses of one name that are tried.
const MAX_TRIED_ADDRESSES: usize = 4;

/// Header with the token of a registration.
const TOKEN_HEADER: &str = "x-a2a-notification-token";

/// Delivery error. Each message completes the sentence "the push notification failed: ...". No message contains a path,
/// a query or a credential.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The address is malformed.
    #[error("the address is malformed")]
    MalformedAddress,
    /// The host name cannot be resolved.
    #[error("the host name cannot be resolved")]
    NameResolution(#[source] io::Error),
    /// The policy allows none of the addresses.
    #[error("host resolves to a blocked address")]
    BlockedAddress,
    /// The connection cannot be established.
    #[error("the connection failed")]
    Connect(#[source] io::Error),
    /// The receiver does not use HTTP.
    #[error("the receiver did not respond with HTTP")]
    Http(#[from] hyper::Error),
    /// The receiver returned a redirect.
    #[error("redirects are not followed")]
    Redirect,
    /// The receiver returned an error status.
    #[error("the receiver responded with {0}")]
    ErrorStatus(StatusCode),
    /// The receiver did not respond in time.
    #[error("the receiver did not respond in time")]
    Timeout,
}

/// Request to a webhook.
#[derive(Debug, Clone)]
pub struct WebhookRequest {
    /// Address of the receiver, which may contain a key.
    pub url: Secret,
    /// Media type of the body.
    pub media_type: &'static str,
    /// Additional headers.
    pub headers: Vec<(String, Secret)>,
    /// Body of the request.
    pub body: Bytes,
}

impl WebhookRequest {
    /// Creates the request for a notification to a target, with a trace context.
    pub(super) fn for_notification(
        target: &PushTarget,
        body: Vec<u8>,
        trace: Option<&TraceContext>,
    ) -> Self {
        let media_type = match target.version {
            ProtocolVersion::V0_3 => "application/json",
            ProtocolVersion::V1_0 => "application/a2a+json",
        };
        let mut headers = Vec::new();
        if let Some(auth) = &target.authentication
            && let Some(credentials) = &auth.credentials
        {
            let authorization = Secret(format!("{} {}", auth.scheme, credentials.0));
            headers.push((header::AUTHORIZATION.to_string(), authorization));
        }
        headers.extend(target.token.clone().map(|token| (TOKEN_HEADER.to_owned(), token)));
        headers.extend(trace.into_iter().flat_map(trace_headers));
        Self { url: target.url.clone(), media_type, headers, body: body.into() }
    }
}

/// Returns a trace context as headers.
fn trace_headers(trace: &TraceContext) -> impl Iterator<Item = (String, Secret)> {
    let headers = [("traceparent", trace.traceparent()), ("tracestate", trace.tracestate.clone())];
    let nonempty_headers = headers.into_iter().filter(|(_, text)| !text.is_empty());
    nonempty_headers.map(|(name, text)| (name.to_owned(), Secret(text)))
}

/// HTTP client for webhooks under one policy.
pub struct WebhookClient {
    policy: DeliveryPolicy,
    tls: TlsConnector,
}

impl WebhookClient {
    /// Creates a client that trusts the built-in authorities and those of its policy.
    ///
    /// # Errors
    /// Fails when TLS cannot be set up, or a certificate of the policy is not that of an authority.
    pub fn new(policy: DeliveryPolicy) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for certificate in &policy.certificate_authorities {
            roots.add(certificate.clone())?;
        }
        Self::with_roots(policy, roots)
    }

    /// Creates a client that trusts only these authorities.
    pub(super) fn with_roots(
        policy: DeliveryPolicy,
        roots: RootCertStore,
    ) -> Result<Self, rustls::Error> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { policy, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Sends a request. The request is delivered if the receiver responds with a success status.
    ///
    /// # Errors
    /// Fails if the request is not delivered.
    pub async fn send(&self, webhook_request: &WebhookRequest) -> Result<(), WebhookError> {
        let send_future = Box::pin(self.connect_and_send(webhook_request));
        tokio::time::timeout(self.policy.timeout, send_future)
            .await
            .unwrap_or(Err(WebhookError::Timeout))
    }

    async fn connect_and_send(&self, webhook_request: &WebhookRequest) -> Result<(), WebhookError> {
        let receiver = ReceiverUrl::parse(&webhook_request.url.0)
            .map_err(|_spelling| WebhookError::MalformedAddress)?;
        let request =
            build_http_request(webhook_request, &receiver).ok_or(WebhookError::MalformedAddress)?;
        let stream = self.connect(&receiver).await?;
        if !receiver.is_secure {
            return send_and_check_status(stream, request).await;
        }
        let name = server_name(&receiver.host).ok_or(WebhookError::MalformedAddress)?;
        let stream = self.tls.connect(name, stream).await.map_err(WebhookError::Connect)?;
        send_and_check_status(stream, request).await
    }

    /// Connects to one of the checked addresses; no name is resolved after the check.
    async fn connect(&self, receiver: &ReceiverUrl) -> Result<TcpStream, WebhookError> {
        let addresses: Vec<IpAddr> = match &receiver.host {
            ReceiverHost::Address(address) => vec![*address],
            ReceiverHost::Name(name) => {
                let addresses = tokio::net::lookup_host((name.as_str(), receiver.port)).await;
                addresses
                    .map_err(WebhookError::NameResolution)?
                    .map(|address| address.ip())
                    .collect()
            }
        };
        let mut result = Err(WebhookError::BlockedAddress);
        let is_allowed = |address: &IpAddr| self.is_allowed_address(*address, receiver.is_secure);
        for address in addresses.into_iter().filter(is_allowed).take(MAX_TRIED_ADDRESSES) {
            // The connection uses the number that was checked, never the name.
            let address = SocketAddr::new(address.to_canonical(), receiver.port);
            result = TcpStream::connect(address).await.map_err(WebhookError::Connect);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn is_allowed_address(&self, address: IpAddr, is_secure: bool) -> bool {
        let is_permitted_public = is_public(address) && (is_secure || self.policy.allows_http);
        is_permitted_public || is_in_any_network(address, &self.policy.allowed_networks)
    }
}

/// True if the text can be the value of a header.
pub(super) fn is_header_value(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok() && text.trim() == text
}

fn build_http_request(
    webhook_request: &WebhookRequest,
    receiver: &ReceiverUrl,
) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&receiver.path_and_query)
        .header(header::HOST, receiver.authority())
        .header(header::USER_AGENT, concat!("algonius/", env!("CARGO_PKG_VERSION")))
        .header(header::CONTENT_TYPE, webhook_request.media_type)
        .header(header::CONNECTION, "close");
    for (name, value) in &webhook_request.headers {
        request = request.header(name, sensitive_header_value(value)?);
    }
    request.body(Full::new(webhook_request.body.clone())).ok()
}

fn sensitive_header_value(text: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&text.0).ok()?;
    // Keeps the value out of the debug output of the HTTP library.
    value.set_sensitive(true);
    Some(value)
}

fn server_name(host: &ReceiverHost) -> Option<ServerName<'static>> {
    match host {
        ReceiverHost::Address(address) => {
            Some(ServerName::IpAddress(address.to_canonical().into()))
        }
        ReceiverHost::Name(name) => ServerName::try_from(name.clone()).ok(),
    }
}

/// Sends a request and checks the status of the response. The content of the response is discarded.
async fn send_and_check_status<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<(), WebhookError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    // The receiver is not trusted: an endless head must not fill the memory.
    builder.max_buf_size(MAX_HEAD_BYTES);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let mut connections = JoinSet::new(); // Ends with this call, however it ends.
    connections.spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    _ = tokio::time::timeout(BODY_TIMEOUT, discard_body(response)).await; // The status is enough.
    if status.is_success() {
        Ok(())
    } else if status.is_redirection() {
        Err(WebhookError::Redirect)
    } else {
        Err(WebhookError::ErrorStatus(status))
    }
}

async fn discard_body(response: Response<Incoming>) {
    let (mut body, mut read_bytes) = (response.into_body(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        read_bytes += frame.data_ref().map_or(0, Bytes::len);
        if read_bytes > MAX_BODY_BYTES {
            return;
        }
    }
}

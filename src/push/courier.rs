//! Brings one notice to one receiver: looks its name up once, connects to exactly what was judged.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::exposure::Version;
use algonius_actors::model::push::{PushTarget, Secret};
use algonius_actors::model::trace::Trace;
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

use super::Policy;
use super::address::{is_listed, is_public};
use super::url::{Host, Receiver};

/// The most that is kept of the head of an answer, in bytes.
const HEAD: usize = 64 * 1024;

/// The most that is read of the body of an answer, in bytes, before the connection is cut.
const BODY: usize = 64 * 1024;

/// How long the body of an answer may take.
const LEAVE: Duration = Duration::from_secs(1);

/// The most addresses of one name that are tried.
const ADDRESSES: usize = 4;

/// Carries the token of a registration.
const TOKEN: &str = "x-a2a-notification-token";

/// Each message completes the sentence "the notice did not arrive: ...". None repeats a path, a query or a
/// credential.
#[derive(Debug, thiserror::Error)]
pub enum CourierError {
    /// It is spelled wrongly.
    #[error("its address is not one to send to")]
    Address,
    /// The name leads nowhere.
    #[error("its name was not found")]
    Name(#[source] io::Error),
    /// The policy forbids it.
    #[error("its name leads to no address that may be told")]
    Forbidden,
    /// Nobody is there.
    #[error("it could not be connected to")]
    Connect(#[source] io::Error),
    /// It speaks something else.
    #[error("it did not speak HTTP")]
    Http(#[from] hyper::Error),
    /// It leads elsewhere.
    #[error("it asked to go elsewhere, which is not done")]
    Redirect,
    /// It refused.
    #[error("it answered {0}")]
    Answer(StatusCode),
    /// It was too slow.
    #[error("it did not answer in time")]
    Late,
}

/// What is brought, and to whom.
#[derive(Debug, Clone)]
pub struct Letter {
    /// The address, which may hold a key.
    pub url: Secret,
    /// The media type of the body.
    pub media: &'static str,
    /// Further headers.
    pub headers: Vec<(String, Secret)>,
    /// What is said.
    pub body: Bytes,
}

impl Letter {
    /// A notice for a target, sent from a place in a trace.
    pub(super) fn notice(target: &PushTarget, body: Vec<u8>, trace: Option<&Trace>) -> Self {
        let media = match target.version {
            Version::V0_3 => "application/json",
            Version::V1_0 => "application/a2a+json",
        };
        let mut headers = Vec::new();
        if let Some(given) = &target.authentication
            && let Some(credentials) = &given.credentials
        {
            let authorization = Secret(format!("{} {}", given.scheme, credentials.0));
            headers.push((header::AUTHORIZATION.to_string(), authorization));
        }
        headers.extend(target.token.clone().map(|token| (TOKEN.to_owned(), token)));
        headers.extend(trace.into_iter().flat_map(places));
        Self { url: target.url.clone(), media, headers, body: body.into() }
    }
}

/// A place in a trace, as headers.
fn places(trace: &Trace) -> impl Iterator<Item = (String, Secret)> {
    let place = [("traceparent", trace.traceparent()), ("tracestate", trace.state.clone())];
    let said = place.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| (name.to_owned(), Secret(text)))
}

/// Sends letters under one policy.
pub struct Courier {
    policy: Policy,
    tls: TlsConnector,
}

impl Courier {
    /// A courier that trusts the usual authorities.
    ///
    /// # Errors
    /// When TLS cannot be set up, which is a fault of the build.
    pub fn new(policy: Policy) -> Result<Self, rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Self::trusting(policy, roots)
    }

    /// A courier that trusts these authorities.
    pub(super) fn trusting(policy: Policy, roots: RootCertStore) -> Result<Self, rustls::Error> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { policy, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Brings a letter. It has arrived when the receiver answers with a status of success.
    ///
    /// # Errors
    /// When it has not.
    pub async fn bring(&self, letter: &Letter) -> Result<(), CourierError> {
        let brought = Box::pin(self.exchange(letter));
        tokio::time::timeout(self.policy.timeout, brought).await.unwrap_or(Err(CourierError::Late))
    }

    async fn exchange(&self, letter: &Letter) -> Result<(), CourierError> {
        let receiver = Receiver::parse(&letter.url.0).map_err(|_spelling| CourierError::Address)?;
        let request = request(letter, &receiver).ok_or(CourierError::Address)?;
        let stream = self.connect(&receiver).await?;
        if !receiver.is_secure {
            return converse(stream, request).await;
        }
        let name = server_name(&receiver.host).ok_or(CourierError::Address)?;
        let stream = self.tls.connect(name, stream).await.map_err(CourierError::Connect)?;
        converse(stream, request).await
    }

    /// Connects to one of the addresses that were judged; nothing is looked up again after that.
    async fn connect(&self, receiver: &Receiver) -> Result<TcpStream, CourierError> {
        let found: Vec<IpAddr> = match &receiver.host {
            Host::Number(address) => vec![*address],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), receiver.port)).await;
                found.map_err(CourierError::Name)?.map(|found| found.ip()).collect()
            }
        };
        let mut result = Err(CourierError::Forbidden);
        let may = |address: &IpAddr| self.may_be_told(*address, receiver.is_secure);
        for address in found.into_iter().filter(may).take(ADDRESSES) {
            let address = SocketAddr::new(address.to_canonical(), receiver.port);
            result = TcpStream::connect(address).await.map_err(CourierError::Connect);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn may_be_told(&self, address: IpAddr, is_secure: bool) -> bool {
        let is_good = is_public(address) && (is_secure || self.policy.insecure_http);
        is_good || is_listed(address, &self.policy.allow)
    }
}

/// Whether a text can be the value of a header.
pub(super) fn fits_a_header(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok() && text.trim() == text
}

fn request(letter: &Letter, receiver: &Receiver) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&receiver.path)
        .header(header::HOST, receiver.authority())
        .header(header::USER_AGENT, concat!("algonius/", env!("CARGO_PKG_VERSION")))
        .header(header::CONTENT_TYPE, letter.media)
        .header(header::CONNECTION, "close");
    for (name, value) in &letter.headers {
        request = request.header(name, sensitive(value)?);
    }
    request.body(Full::new(letter.body.clone())).ok()
}

fn sensitive(text: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&text.0).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Number(address) => Some(ServerName::IpAddress(address.to_canonical().into())),
        Host::Name(name) => ServerName::try_from(name.clone()).ok(),
    }
}

/// Sends a request and judges the answer. What the receiver has to say beyond its status is
/// thrown away.
async fn converse<S>(stream: S, request: Request<Full<Bytes>>) -> Result<(), CourierError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let mut driven = JoinSet::new(); // Ends with this call, however it ends.
    driven.spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    _ = tokio::time::timeout(LEAVE, discard(response)).await; // The status has said it all.
    if status.is_success() {
        Ok(())
    } else if status.is_redirection() {
        Err(CourierError::Redirect)
    } else {
        Err(CourierError::Answer(status))
    }
}

async fn discard(response: Response<Incoming>) {
    let (mut body, mut read) = (response.into_body(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > BODY {
            return;
        }
    }
}

//! Takes connections: at most so many, none that stays silent, none that drips its head, none that
//! leaves what it is sent unread; in the clear or over TLS.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::ServiceExt;
use axum::extract::Request;
use axum_server::Handle;
use axum_server::accept::Accept;
use hyper_util::rt::TokioTimer;
use nix::sys::resource::{Resource, getrlimit};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::changing::Latest;
use super::counted::Counted;
use super::opening::{Opening, Stream};
use crate::tls::Certificates;

/// How an open door is shut.
pub type Latch = Handle<SocketAddr>;

/// Bounds on connections.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at once; further ones are closed at once.
    pub connections: usize,
    /// How long a connection may stay silent at first, and how long a handshake and a head may take.
    pub head: Duration,
    /// How long a connection may leave what it is sent unread.
    pub unread: Duration,
}

/// The longest head of a request, and the most of an answer that waits to be written.
const BUFFER: usize = 64 << 10;

/// Serves until the handle says stop; over TLS alone where there are certificates.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: std::net::TcpListener,
    certificates: Option<Certificates>,
    paths: Latest,
    bounds: Bounds,
    handle: Latch,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let bounds = Bounds { connections: affordable(bounds.connections), ..bounds };
    let places = Arc::new(Semaphore::new(bounds.connections));
    let door = Doorkeeper { places, certificates, bounds };
    let mut server = axum_server::from_tcp(listener)?.handle(handle).acceptor(door);
    let http = server.http_builder();
    http.http1().timer(TokioTimer::new()).header_read_timeout(bounds.head).max_buf_size(BUFFER);
    http.http2().timer(TokioTimer::new()).max_concurrent_streams(200);
    http.http2().keep_alive_interval(Duration::from_secs(20));
    let service = ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(paths);
    server.serve(service).await
}

/// As many connections as wanted, unless the system does not let us have so many files: a quarter of
/// those is for the ledger and for the pipes of programs.
fn affordable(wanted: usize) -> usize {
    let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    let most = (files - files / 4).max(1);
    if most < wanted {
        tracing::warn!(wanted, most, "fewer connections than wanted: too few files may be open");
    }
    wanted.min(most)
}

/// Lets connections in.
#[derive(Clone)]
struct Doorkeeper {
    places: Arc<Semaphore>,
    certificates: Option<Certificates>,
    bounds: Bounds,
}

impl<S: Send + 'static> Accept<TcpStream, S> for Doorkeeper {
    type Stream = Opening;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Opening, S)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let (places, bounds) = (Arc::clone(&self.places), self.bounds);
        let certificates = self.certificates.clone();
        Box::pin(async move {
            let full = |_| io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections");
            let place = places.try_acquire_owned().map_err(full)?;
            stream.set_nodelay(true)?;
            let stream = Counted::new(stream, place, bounds.unread);
            let stream: Box<dyn Stream> = match certificates {
                Some(certificates) => secured(stream, &certificates, bounds.head).await?,
                None => Box::new(stream),
            };
            Ok((Opening::new(stream, bounds.head), service))
        })
    }
}

/// Agrees upon TLS in time. Whoever speaks something else is cut, and not worth a line of the log:
/// anybody can knock.
async fn secured(
    stream: Counted,
    certificates: &Certificates,
    time: Duration,
) -> io::Result<Box<dyn Stream>> {
    let agreed = TlsAcceptor::from(certificates.current()).accept(stream);
    Ok(Box::new(tokio::time::timeout(time, agreed).await??))
}

//! Listener: accepts connections up to a limit. Closes a connection that stays silent, that sends its head too
//! slowly, or that does not read its responses. Connections are plain or use TLS.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use algonius_actors::decide::access::connections::ConnectionTable;
use axum::http::Request;
use axum::response::Response;
use axum_server::Handle;
use axum_server::accept::Accept;
use hyper::body::Incoming;
use hyper_util::rt::TokioTimer;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{self, Backlog};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use super::connections::{ConnectionLimiter, ConnectionService};
use super::counted_connection::CountedConnection;
use super::protocol_detect::{ByteStream, ProtocolSniffer};
use crate::platform::tls::WatchedTlsConfig;

/// Handle for the shutdown of the listener.
pub type ShutdownHandle = Handle<SocketAddr>;

/// Limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct ListenLimits {
    /// Maximum number of open connections.
    pub max_connections: usize,
    /// Maximum initial silence of a connection, and maximum duration of a handshake and of a request head.
    pub header_timeout: Duration,
    /// Maximum time for which a connection may leave sent bytes unread.
    pub write_timeout: Duration,
}

/// Maximum size of a request head, and of the part of a response that waits to be written, in bytes.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// Maximum pause between two accepted connections.
const MAX_ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Number of attempts to bind an address, over about two seconds.
const BIND_ATTEMPTS: u32 = 100;

/// Pause between two attempts to bind an address.
const BIND_PAUSE: Duration = Duration::from_millis(20);

/// Binds an address. A child process that another service was about to start holds a copy of the listener from its
/// `fork` to its `execve`, also after that service has crashed, so an address in use is tried again for a short time.
///
/// # Errors
/// Fails if the address remains in use, or is not available.
pub(crate) async fn bind_with_retry(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    for _ in 1..BIND_ATTEMPTS {
        match std::net::TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => sleep(BIND_PAUSE).await,
            result => return result,
        }
    }
    std::net::TcpListener::bind(address)
}

/// Serves until the handle requests the shutdown; only over TLS if there are certificates.
///
/// # Errors
/// Fails if the listener fails.
pub async fn serve<S>(
    listener: std::net::TcpListener,
    certificates: Option<WatchedTlsConfig>,
    service: S,
    limits: ListenLimits,
    handle: ShutdownHandle,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    // Tokio takes over a socket as it is; a blocking one would stop a thread of the runtime.
    listener.set_nonblocking(true)?;
    // If the queue has no room for a connection, its client retries a second later. The standard library
    // requests a queue of 128.
    socket::listen(&listener, Backlog::MAXCONN)?;
    // The limit of files belongs to the process, so it is read when the listener starts and not with the
    // configuration.
    let connections = ConnectionLimiter::new(limit_by_open_files(limits.max_connections));
    let service_factory =
        ServiceFactory { service, connections: connections.clone(), deadline: None };
    let acceptor = Acceptor { connections, certificates, limits };
    let mut server = axum_server::from_tcp(listener)?.handle(handle).acceptor(acceptor);
    let http_builder = server.http_builder();
    // Without a size hyper lets the buffer of one connection grow to about 400 KB.
    http_builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(MAX_BUFFER_BYTES);
    http_builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(200)
        // Buffer of each stream, which fills if the client permits more data than it reads. The default is 400 KiB.
        .max_send_buf_size(MAX_BUFFER_BYTES);
    // A client that vanished sends no end of the connection. Unanswered pings are the only sign of it on a silent
    // stream.
    http_builder.http2().keep_alive_interval(Duration::from_secs(20));
    server.serve(service_factory).await
}

/// Returns the configured number of connections, limited by the number of files that the system allows: a quarter of
/// those files is reserved for the ledger and for the pipes of programs.
fn limit_by_open_files(configured: usize) -> usize {
    let open_files = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let open_files = usize::try_from(open_files).unwrap_or(usize::MAX);
    let limit = (open_files - open_files / 4).max(1);
    // Connections that are being closed still hold a file each.
    let limit = limit.saturating_sub(ConnectionTable::max_excess(limit)).max(1);
    if limit < configured {
        tracing::warn!(
            configured,
            limit,
            "connection limit reduced: too few open files are allowed"
        );
    }
    configured.min(limit)
}

/// Factory that passes the service to each connection, once there is room for the connection.
struct ServiceFactory<S> {
    service: S,
    connections: ConnectionLimiter,
    /// End of the wait for room.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S: Clone> Service<SocketAddr> for ServiceFactory<S> {
    type Response = S;
    type Error = Infallible;
    type Future = Ready<Result<S, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.connections.poll_capacity(context).is_pending() {
            // Displaced connections are closed within microseconds. A connection that is not closed does not delay
            // others.
            let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(MAX_ACCEPT_PAUSE)));
            std::task::ready!(deadline.as_mut().poll(context));
        }
        self.deadline = None;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: SocketAddr) -> Self::Future {
        self.connections.count_accepted_connection();
        ready(Ok(self.service.clone()))
    }
}

/// Acceptor of connections: admission and TLS.
#[derive(Clone)]
struct Acceptor {
    connections: ConnectionLimiter,
    certificates: Option<WatchedTlsConfig>,
    limits: ListenLimits,
}

impl<S: Send + 'static> Accept<TcpStream, S> for Acceptor {
    type Stream = ProtocolSniffer;
    type Service = ConnectionService<S>;
    type Future =
        Pin<Box<dyn Future<Output = io::Result<(ProtocolSniffer, ConnectionService<S>)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Self { connections, certificates, limits } = self.clone();
        Box::pin(async move {
            let too_many_connections =
                || io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections");
            // Admission precedes TLS, so that a connection without a place costs no handshake.
            let (entry, connection) =
                connections.admit(&stream).ok_or_else(too_many_connections)?;
            // Events of a stream are small; Nagle's algorithm would hold each one until the client acknowledges the
            // one before.
            stream.set_nodelay(true)?;
            let stream =
                CountedConnection::new(stream, (entry, connection.clone()), limits.write_timeout);
            let stream: Box<dyn ByteStream> = match certificates {
                // The timeout of a request head starts after the handshake, so the handshake has one of its own.
                Some(certificates) => {
                    accept_tls(stream, &certificates, limits.header_timeout).await?
                }
                None => Box::new(stream),
            };
            Ok((
                ProtocolSniffer::new(stream, limits.header_timeout),
                ConnectionService { service, connection },
            ))
        })
    }
}

/// Completes the TLS handshake within the time limit. A client that does not use TLS is disconnected without a log
/// line, because anybody can connect.
async fn accept_tls(
    stream: CountedConnection,
    certificates: &WatchedTlsConfig,
    time_limit: Duration,
) -> io::Result<Box<dyn ByteStream>> {
    let handshake = TlsAcceptor::from(certificates.current()).accept(stream);
    Ok(Box::new(tokio::time::timeout(time_limit, handshake).await??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupy_address() -> (std::net::TcpListener, SocketAddr) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_becomes_free_is_bound() {
        let (listener, address) = occupy_address();
        let release = async {
            // In the time of the test, so that at least one attempt fails.
            sleep(BIND_PAUSE * 3).await;
            drop(listener);
        };
        let (bound, ()) = tokio::join!(bind_with_retry(address), release);
        assert_eq!(bound.unwrap().local_addr().unwrap(), address);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_remains_in_use_is_refused() {
        let (_listener, address) = occupy_address();
        assert_eq!(bind_with_retry(address).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}

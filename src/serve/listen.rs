//! Takes connections: at most so many, none that stays silent, none that drips its head.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use hyper_util::rt::TokioTimer;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::counted::Counted;

/// Bounds on connections.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at once; further ones are closed at once.
    pub connections: usize,
    /// How long a connection may stay silent at first, and how long a head may take.
    pub head: Duration,
}

/// Serves until the handle says stop.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    bounds: Bounds,
    handle: Handle<SocketAddr>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let door = Doorkeeper { places: Arc::new(Semaphore::new(bounds.connections)), bounds };
    let mut server = axum_server::from_tcp(listener)?.handle(handle).acceptor(door);
    let http = server.http_builder();
    http.http1().timer(TokioTimer::new()).header_read_timeout(bounds.head);
    http.http2().timer(TokioTimer::new()).max_concurrent_streams(200);
    http.http2().keep_alive_interval(Duration::from_secs(20));
    server.serve(router.into_make_service_with_connect_info::<SocketAddr>()).await
}

/// Lets connections in.
#[derive(Clone)]
struct Doorkeeper {
    places: Arc<Semaphore>,
    bounds: Bounds,
}

impl<S: Send + 'static> Accept<TcpStream, S> for Doorkeeper {
    type Stream = Counted;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Counted, S)>> + Send>>;

    /// A connection that sends nothing is closed: the version of HTTP is sniffed without a timer.
    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let (places, head) = (Arc::clone(&self.places), self.bounds.head);
        Box::pin(async move {
            let full = |_| io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections");
            let place = places.try_acquire_owned().map_err(full)?;
            stream.set_nodelay(true)?;
            let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "no first byte");
            timeout(head, stream.peek(&mut [0])).await.map_err(silent)??;
            Ok((Counted::new(stream, place), service))
        })
    }
}

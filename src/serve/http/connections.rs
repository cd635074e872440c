//! Open connections: their limit, their principals, and the choice of the connection that is closed in favor of a
//! new one.
#![expect(
    clippy::disallowed_types,
    reason = "the lock is held for a few instructions, also where a socket is dropped, and never across a wait"
)]

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use algonius_actors::decide::access::connections::{
    ConnectionAdmission, ConnectionId, ConnectionTable,
};
use algonius_actors::decide::access::lockout::ClientNetwork;
use algonius_actors::model::id::PrincipalId;
use axum::http::Request;
use nix::sys::socket::{MsgFlags, Shutdown, recv, shutdown};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::Service;

/// Minimum interval between two log lines about the limit.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of accepted connections that are not yet admitted and of displaced connections that are not yet
/// closed.
const MAX_PENDING_CONNECTIONS: usize = 8;

/// Table of the open connections. Cheap to clone.
#[derive(Clone)]
pub struct ConnectionLimiter(Arc<Mutex<ConnectionRegistry>>);

struct ConnectionRegistry {
    table: ConnectionTable,
    max_connections: usize,
    /// Descriptor of each open socket. Each entry is removed before its socket is closed, so that no entry refers to
    /// another file with the same number.
    sockets: HashMap<ConnectionId, RawFd>,
    /// Number of accepted connections that are not yet admitted.
    pending_count: usize,
    /// Waker of the acceptor, while it waits because accepted connections are still being processed.
    acceptor_waker: Option<Waker>,
    counts: LimitEventCounts,
}

/// Counts since the last log line.
#[derive(Default)]
struct LimitEventCounts {
    closed: u64,
    refused: u64,
    logged_at: Option<Instant>,
}

/// Entry of one connection in the table. Dropping it removes the entry.
pub struct ConnectionEntry {
    id: ConnectionId,
    connections: ConnectionLimiter,
}

/// Connection, as its requests see it. Cheap to clone.
#[derive(Clone)]
pub struct ClientConnection(Arc<ConnectionState>);

struct ConnectionState {
    id: ConnectionId,
    address: SocketAddr,
    connections: ConnectionLimiter,
    is_authenticated: AtomicBool,
    lingers: AtomicBool,
}

/// Returns the network from which a connection or a request comes.
#[must_use]
pub fn client_network(address: IpAddr) -> ClientNetwork {
    match address {
        IpAddr::V4(address) => ClientNetwork::V4(address.octets()),
        IpAddr::V6(address) => ClientNetwork::from_v6(address.octets()),
    }
}

impl ConnectionLimiter {
    /// Creates a table for this number of connections.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(ConnectionRegistry {
            table: ConnectionTable::new(limit),
            max_connections: limit,
            sockets: HashMap::new(),
            pending_count: 0,
            acceptor_waker: None,
            counts: LimitEventCounts::default(),
        })))
    }

    /// Returns ready when the next connection may be accepted. Until then further connections wait in the queue of
    /// the kernel: if they were accepted faster than displaced connections are closed, the service would have to
    /// refuse them.
    pub fn poll_capacity(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut registry = self.lock_registry();
        if registry.pending_count + registry.table.closing_count() < MAX_PENDING_CONNECTIONS {
            return Poll::Ready(());
        }
        registry.acceptor_waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Records an accepted connection that will be admitted soon.
    pub fn count_accepted_connection(&self) {
        self.lock_registry().pending_count += 1;
    }

    /// Admits a connection and closes another one if the limit is reached; returns `None` if the connection cannot
    /// be admitted.
    #[must_use]
    pub fn admit(&self, stream: &TcpStream) -> Option<(ConnectionEntry, ClientConnection)> {
        let address = stream.peer_addr();
        let mut registry = self.lock_registry();
        // The acceptor counts the connection before this call, also one that fails below.
        registry.pending_count = registry.pending_count.saturating_sub(1);
        registry.wake_acceptor();
        let address = address.ok()?; // A client that has disconnected has no address.
        let ConnectionRegistry { table, sockets, .. } = &mut *registry;
        let id = match table.admit(client_network(address.ip()), |id| has_unread_bytes(sockets, id))
        {
            ConnectionAdmission::Admitted(id) => id,
            ConnectionAdmission::Displaces(id, displaced_id) => {
                registry.close(displaced_id);
                registry.record_limit_event(address, |counts| counts.closed += 1);
                id
            }
            ConnectionAdmission::Refused => {
                registry.record_limit_event(address, |counts| counts.refused += 1);
                return None;
            }
        };
        registry.sockets.insert(id, stream.as_raw_fd());
        drop(registry);
        let (is_authenticated, lingers) = (AtomicBool::new(false), AtomicBool::new(false));
        let state =
            ConnectionState { id, address, connections: self.clone(), is_authenticated, lingers };
        Some((ConnectionEntry { id, connections: self.clone() }, ClientConnection(Arc::new(state))))
    }

    fn lock_registry(&self) -> MutexGuard<'_, ConnectionRegistry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if received bytes wait to be read. This function queries the kernel, because the runtime learns
/// about the bytes later, and a busy runtime learns last.
fn has_unread_bytes(sockets: &HashMap<ConnectionId, RawFd>, id: ConnectionId) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    sockets.get(&id).is_some_and(|socket| matches!(recv(*socket, &mut [0], flags), Ok(1..)))
}

impl ConnectionRegistry {
    fn wake_acceptor(&mut self) {
        if let Some(acceptor) = self.acceptor_waker.take() {
            acceptor.wake(); // It looks again whether there is room.
        }
    }

    /// Shuts a connection down. Its task reads the end of the stream and drops the socket.
    fn close(&self, id: ConnectionId) {
        if let Some(socket) = self.sockets.get(&id) {
            _ = shutdown(*socket, Shutdown::Both); // The other side may have closed it already.
        }
    }

    /// Counts an event, and logs a line unless the last line is recent.
    fn record_limit_event(
        &mut self,
        address: SocketAddr,
        count: impl FnOnce(&mut LimitEventCounts),
    ) {
        count(&mut self.counts);
        let now = Instant::now();
        if self
            .counts
            .logged_at
            .is_some_and(|logged_at| now.duration_since(logged_at) < LOG_INTERVAL)
        {
            return;
        }
        // One line for each refusal would let an attacker fill the log.
        let LimitEventCounts { closed, refused, .. } = std::mem::take(&mut self.counts);
        self.counts.logged_at = Some(now);
        let (limit, share) = (self.max_connections, self.table.fair_share());
        tracing::warn!(
            client = %address.ip(),
            closed,
            refused,
            limit,
            unauthenticated_limit_per_address = share,
            "connection limit reached: closing connections that have not authenticated"
        );
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        let mut registry = self.connections.lock_registry();
        // This runs before the socket is closed, because the entry is the first field of its connection. Afterwards
        // the kernel may give the same number to another file, which `close` would shut down.
        registry.table.remove(self.id);
        registry.sockets.remove(&self.id);
        registry.wake_acceptor();
    }
}

impl ClientConnection {
    /// Returns the address of the peer.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Records that a request on the connection was authenticated.
    pub fn assign_principal(&self, principal: PrincipalId) {
        // Only the first request needs the lock.
        if !self.0.is_authenticated.swap(true, Ordering::Relaxed) {
            self.0.connections.lock_registry().table.assign_principal(self.0.id, principal);
        }
    }

    /// Makes the close of the connection linger: a response was sent before the body of its request was read.
    pub fn set_lingering(&self) {
        self.0.lingers.store(true, Ordering::Relaxed);
    }

    /// Returns true if the close of the connection discards further input for a short time.
    #[must_use]
    pub fn lingers(&self) -> bool {
        self.0.lingers.load(Ordering::Relaxed)
    }
}

/// Service for the requests of one connection: each request gets the [`ClientConnection`] as an extension.
#[derive(Clone)]
pub struct ConnectionService<S> {
    pub(super) service: S,
    pub(super) connection: ClientConnection,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for ConnectionService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        request.extensions_mut().insert(self.connection.clone());
        self.service.call(request)
    }
}

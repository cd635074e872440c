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

use super::caller_budget::CallerBudget;
use super::response_transfer::{ResponseTransfers, response_budget};

/// Minimum interval between two log lines about the limit.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of accepted connections that are not yet admitted and of displaced connections that are not yet
/// closed.
const MAX_PENDING_CONNECTIONS: usize = 8;

/// Table of the open connections. Cheap to clone.
#[derive(Clone)]
pub struct ConnectionLimiter {
    registry: Arc<Mutex<ConnectionRegistry>>,
    response_budget: CallerBudget,
}

struct ConnectionRegistry {
    table: ConnectionTable,
    max_connections: usize,
    /// Open sockets. Each entry is removed before its socket is closed, so that no entry refers to another file with
    /// the same number.
    sockets: HashMap<ConnectionId, OpenSocket>,
    /// Number of accepted connections that are not yet admitted.
    pending_count: usize,
    /// Waker of the acceptor, while it waits because accepted connections are still being processed.
    acceptor_waker: Option<Waker>,
    counts: LimitEventCounts,
}

/// Open socket of a connection.
struct OpenSocket {
    descriptor: RawFd,
    /// True if a request was read from the connection.
    has_request: bool,
}

/// Counts since the last log line.
#[derive(Default)]
struct LimitEventCounts {
    closed: u64,
    refused: u64,
    last_client: Option<IpAddr>,
    logged_at: Option<Instant>,
    is_log_scheduled: bool,
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
    transfers: Arc<ResponseTransfers>,
    has_request: AtomicBool,
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
        let registry = ConnectionRegistry {
            table: ConnectionTable::new(limit),
            max_connections: limit,
            sockets: HashMap::new(),
            pending_count: 0,
            acceptor_waker: None,
            counts: LimitEventCounts::default(),
        };
        Self { registry: Arc::new(Mutex::new(registry)), response_budget: response_budget() }
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
        let network = client_network(address.ip());
        let id = match table.admit(network, |id| has_unread_first_request(sockets, id)) {
            ConnectionAdmission::Admitted(id) => id,
            ConnectionAdmission::Displaces(id, displaced_id) => {
                registry.close(displaced_id);
                registry.counts.closed += 1;
                self.schedule_log(&mut registry.counts, address);
                id
            }
            ConnectionAdmission::Refused => {
                registry.counts.refused += 1;
                self.schedule_log(&mut registry.counts, address);
                return None;
            }
        };
        let socket = OpenSocket { descriptor: stream.as_raw_fd(), has_request: false };
        registry.sockets.insert(id, socket);
        drop(registry);
        let state = ConnectionState {
            id,
            address,
            connections: self.clone(),
            transfers: Arc::new(ResponseTransfers::new(self.response_budget.clone())),
            has_request: AtomicBool::new(false),
            is_authenticated: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
        };
        Some((ConnectionEntry { id, connections: self.clone() }, ClientConnection(Arc::new(state))))
    }

    /// Schedules the next log line. One line for each event would let an attacker fill the log.
    fn schedule_log(&self, counts: &mut LimitEventCounts, client: SocketAddr) {
        counts.last_client = Some(client.ip());
        if std::mem::replace(&mut counts.is_log_scheduled, true) {
            return;
        }
        let next_log =
            counts.logged_at.map_or_else(Instant::now, |logged_at| logged_at + LOG_INTERVAL);
        let limiter = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(next_log).await;
            limiter.lock_registry().log_limit_events();
        });
    }

    fn lock_registry(&self) -> MutexGuard<'_, ConnectionRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if the first bytes of a connection wait to be read. This function queries the kernel, because the
/// runtime learns about the bytes later, and a busy runtime learns last.
fn has_unread_first_request(sockets: &HashMap<ConnectionId, OpenSocket>, id: ConnectionId) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    // Later requests do not count: a client that sends many and reads no response would never be displaced.
    sockets
        .get(&id)
        .filter(|socket| !socket.has_request)
        .is_some_and(|socket| matches!(recv(socket.descriptor, &mut [0], flags), Ok(1..)))
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
            _ = shutdown(socket.descriptor, Shutdown::Both); // The other side may have closed it already.
        }
    }

    /// Logs one line for the events since the last line.
    fn log_limit_events(&mut self) {
        let LimitEventCounts { closed, refused, last_client, .. } =
            std::mem::take(&mut self.counts);
        self.counts.logged_at = Some(Instant::now());
        let (limit, share) = (self.max_connections, self.table.fair_share());
        tracing::warn!(
            client = last_client.map(tracing::field::display),
            closed,
            refused,
            limit,
            unauthenticated_limit_per_address = share,
            "connection limit reached"
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

    /// Returns the responses in transfer on the connection.
    #[must_use]
    pub fn transfers(&self) -> &Arc<ResponseTransfers> {
        &self.0.transfers
    }

    /// Records that a request was read from the connection.
    fn record_request(&self) {
        // Only the first request needs the lock.
        if !self.0.has_request.swap(true, Ordering::Relaxed) {
            let mut registry = self.0.connections.lock_registry();
            if let Some(socket) = registry.sockets.get_mut(&self.0.id) {
                socket.has_request = true;
            }
        }
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
        self.connection.record_request();
        request.extensions_mut().insert(self.connection.clone());
        self.service.call(request)
    }
}

//! Notifications to systemd about the state of the service, if systemd requests them (`NOTIFY_SOCKET`).

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr as UnixSocketAddr, UnixDatagram};

/// Variable that names the socket. Only this process uses it: a process holder starts without variables, and an
/// agent's variables are on an allow-list.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Sender of the notifications. Without a socket it does nothing.
pub(crate) struct SystemdNotifier {
    socket_address: Option<UnixSocketAddr>,
}

impl SystemdNotifier {
    /// Creates the sender for the socket that the environment names.
    pub(crate) fn from_env() -> Self {
        let name = std::env::var_os(NOTIFY_SOCKET).filter(|name| !name.is_empty());
        let socket_address = name.and_then(|name| {
            let parsed = parse_socket_name(&name);
            parsed
                .inspect_err(|error| tracing::warn!(%error, "{NOTIFY_SOCKET} names no socket"))
                .ok()
        });
        Self { socket_address }
    }

    /// Reports that the service accepts connections at this address.
    pub(crate) fn notify_ready(&self, scheme: &str, address: SocketAddr) {
        self.send(&format!("READY=1\nSTATUS=serves on {scheme}://{address}\n"));
    }

    /// Reports that the service drains and stops.
    pub(crate) fn notify_stopping(&self) {
        self.send("STOPPING=1\nSTATUS=draining\n");
    }

    /// Sends the text in one datagram, as the protocol requires.
    fn send(&self, text: &str) {
        let Some(socket_address) = &self.socket_address else { return };
        let send_result = UnixDatagram::unbound()
            .and_then(|socket| socket.send_to_addr(text.as_bytes(), socket_address).map(|_| ()));
        if let Err(error) = send_result {
            tracing::warn!(%error, "failed to notify systemd");
        }
    }
}

/// Parses a path or, after `@`, an abstract name.
fn parse_socket_name(name: &OsStr) -> io::Result<UnixSocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => UnixSocketAddr::from_abstract_name(name),
        None => UnixSocketAddr::from_pathname(name),
    }
}

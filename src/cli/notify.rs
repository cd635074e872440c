//! Tells systemd how the service is, where systemd has asked to be told (`NOTIFY_SOCKET`).

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr as Place, UnixDatagram};

/// Variable that names the socket. It is for this process alone: the warden begins with no variables
/// at all, and an agent's are on an allow-list.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Who is told. Where nobody has asked, nobody is.
pub(super) struct Notifier {
    place: Option<Place>,
}

impl Notifier {
    /// Whoever the environment of this process names.
    pub(super) fn of_environment() -> Self {
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        let place = named.and_then(|name| {
            let found = place(&name);
            found.inspect_err(|error| tracing::warn!(%error, "{VARIABLE} names no socket")).ok()
        });
        Self { place }
    }

    /// The door is open, here.
    pub(super) fn ready(&self, scheme: &str, address: SocketAddr) {
        self.tell(&format!("READY=1\nSTATUS=serves on {scheme}://{address}\n"));
    }

    /// It ends, and what runs may finish.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining\n");
    }

    /// In one datagram, as the protocol has it.
    fn tell(&self, words: &str) {
        let Some(place) = &self.place else { return };
        let sent = UnixDatagram::unbound()
            .and_then(|socket| socket.send_to_addr(words.as_bytes(), place).map(|_| ()));
        if let Err(error) = sent {
            tracing::warn!(%error, "systemd could not be told");
        }
    }
}

/// A path, or after `@` a name without one.
fn place(name: &OsStr) -> io::Result<Place> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => Place::from_abstract_name(name),
        None => Place::from_pathname(name),
    }
}

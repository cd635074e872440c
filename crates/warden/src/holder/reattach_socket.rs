//! Reattachment socket for the next supervisor after the one that started this process holder is gone.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, getsockopt, listen,
    socket, sockopt::PeerCredentials,
};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{UnlinkatFlags, chdir, fchdir, geteuid, unlinkat};

use super::{ProcessHolder, REATTACH_TOKEN, SUPERVISOR_TOKEN, UNAUTHENTICATED_PEERS_TOKEN};
use crate::process::procfs::has_no_agent_ancestor;
use crate::protocol::frame::{HolderEvent, MIN_SECRET_VERSION, SecretValue};
use crate::protocol::peer_auth::{AuthProgress, HolderKey, UnauthenticatedConnection};

/// Greatest number of peers that have not proved the key; above it the oldest is rejected.
const MAX_UNAUTHENTICATED_PEERS: usize = 8;

/// Socket that only this user may reach, in a folder that only this user may enter.
pub(super) struct ReattachSocket {
    socket: OwnedFd,
    folder: OwnedFd,
    name: String,
    /// Key that a peer has to prove.
    key: HolderKey,
    /// Peers that have not proved the key yet.
    connections: Vec<UnauthenticatedConnection>,
}

impl ReattachSocket {
    /// Binds the socket by its name alone: a whole path may exceed the length of a socket address.
    fn open(folder: OwnedFd, name: String, key: HolderKey) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        fchdir(&folder)?;
        // The socket gets mode 0600 at its creation; a later `chmod` would leave a moment for other users.
        let previous_mask = umask(Mode::from_bits_truncate(0o177));
        let bind_result = bind(socket.as_raw_fd(), &UnixAddr::new(name.as_str())?);
        umask(previous_mask);
        chdir("/")?;
        bind_result?;
        listen(&socket, Backlog::new(8)?)?;
        Ok(Self { socket, folder, name, key, connections: Vec::new() })
    }

    /// Returns the next peer that may prove the key. An agent may run as the same user, so a peer that
    /// descends from this process holder, or from another one of the service, is refused.
    fn accept_peer(&self) -> io::Result<Option<OwnedFd>> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let connection = owned_fd(accept4(self.socket.as_raw_fd(), flags)?);
        let peer = getsockopt(&connection, PeerCredentials)?;
        let is_allowed = peer.uid() == geteuid().as_raw() && has_no_agent_ancestor(peer.pid());
        Ok(is_allowed.then_some(connection))
    }

    /// Accepts the waiting peers, which may then prove the key; turns them away if `is_accepting` is false.
    fn accept_peers(&mut self, is_accepting: bool, epoll: &Epoll) {
        while let Ok(connection) = self.accept_peer() {
            let Some(connection) = connection.filter(|_| is_accepting) else { continue };
            // A peer gets its own descriptor in the event loop, so that a silent one blocks neither the loop nor the
            // others.
            if epoll
                .add(&connection, EpollEvent::new(EpollFlags::EPOLLIN, UNAUTHENTICATED_PEERS_TOKEN))
                .is_ok()
            {
                self.connections.push(UnauthenticatedConnection::new(connection));
            }
            if self.connections.len() > MAX_UNAUTHENTICATED_PEERS {
                self.connections.remove(0);
            }
        }
    }

    /// Continues the authentication of the waiting peers; returns the socket of one that has proved the key.
    fn authenticate_peers(&mut self) -> Option<OwnedFd> {
        let mut authenticated = None;
        for mut connection in std::mem::take(&mut self.connections) {
            match connection.advance_authentication(&self.key) {
                AuthProgress::Pending => self.connections.push(connection),
                AuthProgress::Authenticated => {
                    _ = authenticated.get_or_insert(connection.into_socket());
                }
                AuthProgress::Rejected => {}
            }
        }
        authenticated
    }
}

impl Drop for ReattachSocket {
    fn drop(&mut self) {
        // The folder may be gone; the next supervisor removes a socket at which no process listens.
        _ = unlinkat(&self.folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

impl ProcessHolder {
    /// Opens the reattachment socket, and closes the previous one: its folder was removed. Without a socket no
    /// supervisor can attach, and everything ends in time. A supervisor that needs no socket sends no folder.
    pub(super) fn open_reattach_socket(
        &mut self,
        name: &[u8],
        key: SecretValue,
        fds: Vec<OwnedFd>,
    ) {
        let Some(folder) = fds.into_iter().next() else { return };
        let name = String::from_utf8_lossy(name).into_owned();
        // An invalid key could never be proved.
        let Some(key) = HolderKey::from_secret(key) else { return };
        let Ok(listener) = ReattachSocket::open(folder, name, key) else { return };
        let event = EpollEvent::new(EpollFlags::EPOLLIN, REATTACH_TOKEN);
        if self.epoll.add(&listener.socket, event).is_ok() {
            self.reattach_socket = Some(listener);
        }
    }

    /// Accepts peers that may prove the key, unless there is a supervisor.
    pub(super) fn accept_peers(&mut self) {
        let is_accepting = !self.supervisor.is_connected() && !self.is_ending;
        if let Some(listener) = &mut self.reattach_socket {
            listener.accept_peers(is_accepting, &self.epoll);
        }
    }

    /// Accepts the peer that proves the key as the supervisor, and rejects the others.
    pub(super) fn authenticate_connections(&mut self) {
        let Some(listener) = &mut self.reattach_socket else { return };
        let authenticated = listener.authenticate_peers().filter(|_| !self.is_ending);
        if authenticated.is_some() || self.is_ending {
            listener.connections.clear();
        }
        let Some(socket) = authenticated else { return };
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN, SUPERVISOR_TOKEN);
        if self.epoll.modify(&socket, &mut event).is_ok() {
            self.supervisor.accept_successor(socket);
        }
    }

    /// Lists everything that is held, and leaves the reading to the supervisor.
    pub(super) fn hand_over_programs(&mut self) {
        // Not before this order: until then the holder moves the output itself, and its reattach grace counts.
        self.supervisor.storing_since = None;
        for program_number in self.programs.program_numbers() {
            if !self.supervisor.is_connected() {
                return; // The supervisor was lost during the list.
            }
            // Before the descriptors are sent: two processes that splice from one pipe would mix the order of its
            // bytes.
            self.programs.set_streams_watched(program_number, false, &self.epoll);
            let Some(program) = self.programs.program_mut(program_number) else { continue };
            let event = program.prepare_list_entry(self.supervisor.frame_version);
            self.send_event(event);
        }
        // The peer was checked when its connection was accepted, so it may receive the secret.
        let supports_secrets = self.supervisor.frame_version >= MIN_SECRET_VERSION;
        if let Some(secret) = self.stored_secret.clone().filter(|_| supports_secrets) {
            self.send_event(HolderEvent::StoredSecret { secret });
        }
        self.send_event(HolderEvent::ListFinished);
    }
}

#[expect(unsafe_code, reason = "the system gives a number for what is owned")]
fn owned_fd(fd: i32) -> OwnedFd {
    // SAFETY: the kernel has just opened it for this process, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

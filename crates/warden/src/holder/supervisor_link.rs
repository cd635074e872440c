//! Supervisor of the process holder: the present one, or the wait for the next one.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use tokio::time::Instant;

use super::SUPERVISOR_TOKEN;
use super::held_program::HeldProgram;
use super::programs::HeldPrograms;
use crate::protocol::frame::{FRAME_VERSION, HolderEvent};
use crate::protocol::packet::{Packet, receive_packet, send_packet};

/// Connection to the supervisor, and the time since it was lost.
pub(super) struct SupervisorLink {
    socket: Option<OwnedFd>,
    /// Frame version of the present supervisor.
    pub(super) frame_version: u64,
    /// Events for which the socket had no room.
    pending_events: VecDeque<HolderEvent>,
    /// Time for which the process holder waits for the next supervisor.
    pub(super) reattach_grace: Duration,
    /// Time at which the supervisor was lost. Until the next one reads, the process holder stores the output.
    pub(super) storing_since: Option<Instant>,
    /// True if the supervisor is not the one that started the process holder: then it starts nothing new.
    pub(super) is_successor: bool,
}

/// Outcome of sending the queued events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendResult {
    /// The socket has taken the events, or has no room at present.
    Connected,
    /// The supervisor is gone.
    Disconnected,
}

impl SupervisorLink {
    /// Creates the connection to the supervisor that started the process holder.
    pub(super) fn new(socket: OwnedFd) -> Self {
        let (pending_events, reattach_grace) = (VecDeque::new(), Duration::ZERO);
        let (socket, version) = (Some(socket), FRAME_VERSION);
        Self {
            socket,
            frame_version: version,
            pending_events,
            reattach_grace,
            storing_since: None,
            is_successor: false,
        }
    }

    /// Returns true if a supervisor is connected.
    pub(super) const fn is_connected(&self) -> bool {
        self.socket.is_some()
    }

    /// Accepts a supervisor that has proved the key.
    pub(super) fn accept_successor(&mut self, socket: OwnedFd) {
        (self.socket, self.is_successor) = (Some(socket), true);
    }

    /// Returns the next order; `None` if the supervisor is gone or was never there.
    pub(super) fn receive(&self) -> Option<io::Result<Option<Packet>>> {
        self.socket.as_ref().map(receive_packet)
    }

    /// Forgets the connection after its loss.
    pub(super) fn disconnect(&mut self, epoll: &Epoll) {
        if let Some(socket) = self.socket.take() {
            _ = epoll.delete(socket);
        }
        // The next supervisor gets the present state by `List`, so old events would only contradict it.
        self.pending_events.clear();
        self.storing_since = Some(Instant::now());
    }

    /// Returns the time that is left for the next supervisor; `None` while there is one.
    pub(super) fn remaining_reattach_grace(&self) -> Option<Duration> {
        self.storing_since.map(|lost_at| self.reattach_grace.saturating_sub(lost_at.elapsed()))
    }

    /// Adds an event. Without a supervisor the event is dropped: the list informs the next one.
    pub(super) fn queue_event(&mut self, event: HolderEvent) {
        if self.is_connected() {
            self.pending_events.push_back(event);
        }
    }

    /// Sends queued events as far as the socket has room. The holder must never block on the supervisor.
    pub(super) fn send_events(&mut self, programs: &HeldPrograms, epoll: &Epoll) -> SendResult {
        while let (Some(socket), Some(event)) = (&self.socket, self.pending_events.front()) {
            let fds = match event {
                HolderEvent::ProgramListed { hold_terms, .. } => {
                    programs.get(hold_terms.program_number).map(HeldProgram::reattach_fds)
                }
                _ => None,
            };
            match send_packet(socket, &event.encode(), fds.as_deref().unwrap_or_default()) {
                Ok(()) => _ = self.pending_events.pop_front(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_error) => return SendResult::Disconnected,
            }
        }
        self.update_watched_events(epoll);
        SendResult::Connected
    }

    /// Watches for room only while events are queued: an always writable socket would wake the loop for ever.
    fn update_watched_events(&self, epoll: &Epoll) {
        let mut flags = EpollFlags::EPOLLIN;
        flags.set(EpollFlags::EPOLLOUT, !self.pending_events.is_empty());
        if let Some(socket) = &self.socket {
            _ = epoll.modify(socket.as_fd(), &mut EpollEvent::new(flags, SUPERVISOR_TOKEN));
        }
    }
}

//! Where the next supervisor comes in when the one that started this warden is gone.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::epoll::{EpollEvent, EpollFlags};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, getsockopt, listen,
    socket, sockopt::PeerCredentials,
};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{UnlinkatFlags, chdir, fchdir, geteuid, unlinkat};

use super::super::frame::{Terms, Word};
use super::super::proc::is_apart;
use super::{DOOR, Keeper, LINK};

/// A socket that only this user may reach, in a folder that only this user may enter.
pub(super) struct Door {
    socket: OwnedFd,
    folder: OwnedFd,
    name: String,
}

impl Door {
    /// Bound by its name alone: a whole path may be longer than an address.
    fn open(folder: OwnedFd, name: String) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        fchdir(&folder)?;
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = bind(socket.as_raw_fd(), &UnixAddr::new(name.as_str())?);
        umask(before);
        chdir("/")?;
        bound?;
        listen(&socket, Backlog::new(8)?)?;
        Ok(Self { socket, folder, name })
    }

    /// The next who is allowed in. An agent runs as the same user: what descends from this process
    /// is turned away.
    fn next(&self, me: i32) -> io::Result<Option<OwnedFd>> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let visitor = own(accept4(self.socket.as_raw_fd(), flags)?);
        let peer = getsockopt(&visitor, PeerCredentials)?;
        let is_allowed = peer.uid() == geteuid().as_raw() && is_apart(peer.pid(), me);
        Ok(is_allowed.then_some(visitor))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // The folder may be gone, and the next supervisor clears away what answers nobody.
        _ = unlinkat(&self.folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

impl Keeper {
    /// Opens the door once. Without one nobody comes, and everything ends in time.
    pub(super) fn open_door(&mut self, name: &[u8], fds: Vec<OwnedFd>) {
        let Some(folder) = fds.into_iter().next().filter(|_| self.door.is_none()) else { return };
        let name = String::from_utf8_lossy(name).into_owned();
        let Ok(door) = Door::open(folder, name) else { return };
        let event = EpollEvent::new(EpollFlags::EPOLLIN, DOOR);
        if self.epoll.add(&door.socket, event).is_ok() {
            self.door = Some(door);
        }
    }

    /// Takes who comes as the supervisor, unless there is one.
    pub(super) fn admit(&mut self) {
        while let Some(door) = &self.door {
            match door.next(self.me) {
                Ok(Some(visitor)) if self.link.is_none() && !self.is_ending => {
                    let event = EpollEvent::new(EpollFlags::EPOLLIN, LINK);
                    if self.epoll.add(&visitor, event).is_ok() {
                        (self.link, self.is_adopted) = (Some(visitor), true);
                    }
                }
                Ok(_turned_away) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return,
            }
        }
    }

    /// Tells all that is held, and leaves the reading to the supervisor.
    pub(super) fn list(&mut self) {
        self.lost = None;
        let slots: Vec<_> = self.held.keys().copied().collect();
        for slot in slots {
            if self.link.is_none() {
                return; // It died while it was told.
            }
            self.watch_streams(slot, false);
            let Some(held) = self.held.get(&slot) else { continue };
            let (terms, pid) = (Terms::clone(&held.terms), held.pid.unsigned_abs().into());
            self.say(Word::Held { terms, pid, end: held.end });
        }
        self.say(Word::Listed);
    }
}

#[expect(unsafe_code, reason = "the system gives a number for what is owned")]
fn own(fd: i32) -> OwnedFd {
    // SAFETY: the kernel has just opened it for this process, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

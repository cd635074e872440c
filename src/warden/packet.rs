//! Packets of a `SOCK_SEQPACKET` socket, with the descriptors that travel in them.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::frame::LONGEST;

/// More descriptors than any frame has.
const MOST: usize = 12;

/// Room for a frame with what stands around a spec in it.
const ROOM: usize = LONGEST + 4096;

/// What arrived.
#[derive(Debug)]
pub(super) struct Packet {
    /// The frame.
    pub(super) frame: Vec<u8>,
    /// Its descriptors, as far as this process had room for them.
    pub(super) fds: Vec<OwnedFd>,
}

/// Two ends that are connected, closed on exec and never waited for.
///
/// # Errors
/// When the process may not open more.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?)
}

/// Sends a frame whole or not at all, without waiting.
///
/// # Errors
/// `WouldBlock` when there is no room now; anything else when the other side is gone.
pub(super) fn send(socket: &impl AsFd, frame: &[u8], fds: &[RawFd]) -> io::Result<()> {
    let control = [ControlMessage::ScmRights(fds)];
    let control = if fds.is_empty() { &[][..] } else { &control[..] };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let (socket, frame) = (socket.as_fd().as_raw_fd(), [IoSlice::new(frame)]);
    match sendmsg::<()>(socket, &frame, control, flags, None) {
        // So many descriptors are on their way that no more may be sent for now.
        Err(Errno::ETOOMANYREFS | Errno::ENOBUFS) => Err(io::ErrorKind::WouldBlock.into()),
        sent => Ok(sent.map(|_| ())?),
    }
}

/// Receives a frame without waiting; `None` when the other side is gone.
///
/// # Errors
/// `WouldBlock` when nothing is there.
pub(super) fn receive(socket: &impl AsFd) -> io::Result<Option<Packet>> {
    let mut frame = vec![0; ROOM];
    let mut control = nix::cmsg_space!([RawFd; MOST]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let (length, fds) = {
        let mut parts = [IoSliceMut::new(&mut frame)];
        let socket = socket.as_fd().as_raw_fd();
        let message = recvmsg::<()>(socket, &mut parts, Some(&mut control), flags);
        let message = match message {
            Err(Errno::ECONNRESET) => return Ok(None),
            message => message?,
        };
        let fds = message.cmsgs()?.flat_map(owned).collect();
        (message.bytes, fds)
    };
    frame.truncate(length);
    Ok((length > 0).then_some(Packet { frame, fds }))
}

/// Lets the runtime watch a descriptor.
///
/// # Errors
/// When it cannot be watched.
#[expect(unsafe_code, reason = "the runtime knows a descriptor by its number")]
pub(super) fn watch(fd: Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    // SAFETY: the descriptor is owned by what is handed over, which cannot be exchanged behind the
    // `Arc`, so its number stays its own until the watching ends.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

#[expect(unsafe_code, reason = "descriptors that arrive are numbers until they are owned")]
fn owned(message: ControlMessageOwned) -> Vec<OwnedFd> {
    let ControlMessageOwned::ScmRights(fds) = message else { return Vec::new() };
    // SAFETY: the kernel has just opened these for this process, and nobody else knows them.
    fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Seek, Write};
    use std::os::fd::AsRawFd;

    use super::{pair, receive, send};

    #[test]
    fn a_frame_arrives_with_its_descriptors_and_an_end_is_seen() {
        let (one, other) = pair().unwrap();
        assert_eq!(receive(&other).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"hello").unwrap();
        send(&one, b"frame", &[file.as_raw_fd()]).unwrap();
        send(&one, b"next", &[]).unwrap();
        let packet = receive(&other).unwrap().unwrap();
        assert_eq!((packet.frame.as_slice(), packet.fds.len()), (&b"frame"[..], 1));
        let mut same = std::fs::File::from(packet.fds.into_iter().next().unwrap());
        same.rewind().unwrap();
        let mut text = String::new();
        same.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        assert_eq!(receive(&other).unwrap().unwrap().frame, b"next");
        drop(one);
        assert!(receive(&other).unwrap().is_none());
    }

    #[test]
    fn a_full_socket_is_told_and_does_not_wait() {
        let (one, _other) = pair().unwrap();
        let full = (0..10_000).find_map(|_| send(&one, &[0; 4096], &[]).err()).unwrap();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }
}

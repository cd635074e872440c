//! Packets of a `SOCK_SEQPACKET` socket, with the descriptors that travel in them.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::frame::LONGEST;

/// Room for the control messages of a frame, in words: more descriptors than any frame has.
const CONTROL: usize = 16;

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

/// Receives a frame without waiting; `None` when the other side is gone. A process that may not open
/// more gets the frame with fewer descriptors: an order that cannot be obeyed is better than a line
/// that is lost.
///
/// # Errors
/// `WouldBlock` when nothing is there.
#[expect(
    unsafe_code,
    reason = "the safe wrapper gives none of the descriptors where some are cut off"
)]
pub(super) fn receive(socket: &impl AsFd) -> io::Result<Option<Packet>> {
    // Not filled with zeros first: that took longer than all the rest of a packet.
    let mut frame: Vec<u8> = Vec::with_capacity(ROOM);
    let mut control = [0_u64; CONTROL];
    let mut part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: ROOM };
    // SAFETY: all zero is a header without an address; the parts that are named live longer than
    // the call, and have these lengths; the room for control messages is aligned as they are. So many
    // bytes of the frame as the call says were written by it.
    let (length, fds) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        (header.msg_control, header.msg_controllen) =
            (control.as_mut_ptr().cast(), size_of_val(&control));
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        let read = libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, flags);
        let length = match Errno::result(read) {
            Err(Errno::ECONNRESET) => return Ok(None),
            read => usize::try_from(read?).unwrap_or_default(),
        };
        frame.set_len(length.min(ROOM));
        (length, arrived(&header))
    };
    Ok((length > 0).then_some(Packet { frame, fds }))
}

/// The descriptors that came with a message, as far as they came.
#[expect(unsafe_code, reason = "descriptors that arrive are numbers until they are owned")]
unsafe fn arrived(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled the header and what it names. It has just opened each of these
    // for this process, and nobody else knows them.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = message.as_ref() {
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                let bytes = found.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let count = bytes / size_of::<RawFd>();
                fds.extend((0..count).map(|n| OwnedFd::from_raw_fd(data.add(n).read_unaligned())));
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    fds
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

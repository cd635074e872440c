//! Packets of a `SOCK_SEQPACKET` socket, with their descriptors.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::frame::MAX_FRAME_BYTES;

/// Room for the control messages of a frame in words: for more descriptors than any frame has.
const CONTROL_BUFFER_WORDS: usize = 16;

/// Room for a frame in bytes, including the fields around a spec.
const FRAME_BUFFER_BYTES: usize = MAX_FRAME_BYTES + 4096;

/// Received packet.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Frame of the packet.
    pub(crate) frame: Vec<u8>,
    /// Descriptors of the packet, as far as this process had room for them.
    pub(crate) fds: Vec<OwnedFd>,
}

/// Returns two connected ends, close-on-exec and non-blocking.
///
/// # Errors
/// Fails if the process may not open more files.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?)
}

/// Sends a frame whole or not at all, without waiting.
///
/// # Errors
/// `WouldBlock` if there is no room now; another error if the other side is gone.
pub(crate) fn send_packet(socket: &impl AsFd, frame: &[u8], fds: &[RawFd]) -> io::Result<()> {
    let control = [ControlMessage::ScmRights(fds)];
    let control = if fds.is_empty() { &[][..] } else { &control[..] };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let (socket, frame) = (socket.as_fd().as_raw_fd(), [IoSlice::new(frame)]);
    match sendmsg::<()>(socket, &frame, control, flags, None) {
        // The limit of descriptors in flight is reached for now.
        Err(Errno::ETOOMANYREFS | Errno::ENOBUFS) => Err(io::ErrorKind::WouldBlock.into()),
        sent => Ok(sent.map(|_| ())?),
    }
}

/// Receives a frame without waiting; `None` if the other side is gone. A process at its descriptor limit gets the frame
/// with fewer descriptors: a failed order is better than a lost connection.
///
/// # Errors
/// `WouldBlock` if no packet is pending.
#[expect(
    unsafe_code,
    reason = "the safe wrapper gives none of the descriptors where some are cut off"
)]
pub(crate) fn receive_packet(socket: &impl AsFd) -> io::Result<Option<Packet>> {
    // Not zeroed first: that would take longer than the rest of the call.
    let mut frame: Vec<u8> = Vec::with_capacity(FRAME_BUFFER_BYTES);
    let mut control = [0_u64; CONTROL_BUFFER_WORDS];
    let mut io_vector =
        libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: FRAME_BUFFER_BYTES };
    // SAFETY: all zero is a header without an address; the parts that are named live longer than
    // the call, and have these lengths; the room for control messages is aligned as they are. So many
    // bytes of the frame as the call says were written by it.
    let (length, fds) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut io_vector, 1);
        (header.msg_control, header.msg_controllen) =
            (control.as_mut_ptr().cast(), size_of_val(&control));
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        let read = libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, flags);
        let length = match Errno::result(read) {
            Err(Errno::ECONNRESET) => return Ok(None),
            read => usize::try_from(read?).unwrap_or_default(),
        };
        frame.set_len(length.min(FRAME_BUFFER_BYTES));
        (length, take_received_fds(&header))
    };
    Ok((length > 0).then_some(Packet { frame, fds }))
}

/// Returns the received descriptors of a message.
#[expect(unsafe_code, reason = "descriptors that arrive are numbers until they are owned")]
unsafe fn take_received_fds(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled the header and what it names. It has just opened each of these
    // for this process, and nobody else knows them.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(control_header) = message.as_ref() {
            if (control_header.cmsg_level, control_header.cmsg_type)
                == (libc::SOL_SOCKET, libc::SCM_RIGHTS)
            {
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                let bytes = control_header.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let count = bytes / size_of::<RawFd>();
                fds.extend((0..count).map(|n| OwnedFd::from_raw_fd(data.add(n).read_unaligned())));
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    fds
}

/// Registers a descriptor with the runtime.
///
/// # Errors
/// Fails if the descriptor cannot be watched.
#[expect(unsafe_code, reason = "the runtime knows a descriptor by its number")]
pub(crate) fn register_fd(
    fd: Arc<OwnedFd>,
    interest: Interest,
) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    // SAFETY: the registration owns the descriptor through the `Arc`, and nobody can replace the descriptor in it, so
    // the number stays valid until the registration ends.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Seek, Write};
    use std::os::fd::AsRawFd;

    use super::{receive_packet, send_packet, socket_pair};

    #[test]
    fn a_frame_arrives_with_its_descriptors_and_the_end_is_seen() {
        let (one, other) = socket_pair().unwrap();
        assert_eq!(receive_packet(&other).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"hello").unwrap();
        send_packet(&one, b"frame", &[file.as_raw_fd()]).unwrap();
        send_packet(&one, b"next", &[]).unwrap();
        let packet = receive_packet(&other).unwrap().unwrap();
        assert_eq!((packet.frame.as_slice(), packet.fds.len()), (&b"frame"[..], 1));
        let mut received_file = std::fs::File::from(packet.fds.into_iter().next().unwrap());
        received_file.rewind().unwrap();
        let mut text = String::new();
        received_file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        assert_eq!(receive_packet(&other).unwrap().unwrap().frame, b"next");
        drop(one);
        assert!(receive_packet(&other).unwrap().is_none());
    }

    #[test]
    fn a_full_socket_is_reported_without_blocking() {
        let (one, _other) = socket_pair().unwrap();
        let send_error =
            (0..10_000).find_map(|_| send_packet(&one, &[0; 4096], &[]).err()).unwrap();
        assert_eq!(send_error.kind(), io::ErrorKind::WouldBlock);
    }
}

//! Reattachment to the process holders that an earlier process instance of the service left.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::holder_link::HolderLink;
use super::holder_options::ProcessHolderOptions;
use crate::process::procfs::has_no_agent_ancestor;
use crate::protocol::frame::{FRAME_VERSION, HolderOrder, SecretValue};
use crate::protocol::peer_auth::HolderKey;

/// Time within which a process holder must answer each step of a reattachment: the proof of the key, and the list of
/// its programs.
const REATTACH_REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of attempts: a process holder that has not yet noticed the loss of its supervisor rejects others, so the
/// service retries after a pause.
const MAX_ATTACH_TRIES: u32 = 40;
const ATTACH_RETRY_PAUSE: Duration = Duration::from_millis(25);

/// Returns a socket name that no other process holder has.
pub(crate) fn fresh_socket_name(data_dir_id: Uuid) -> String {
    format!("{}{}.sock", socket_prefix(data_dir_id), Uuid::new_v4().simple())
}

fn socket_prefix(data_dir_id: Uuid) -> String {
    format!("w-{}-", data_dir_id.simple())
}

/// Returns a link to every process holder of this data directory that answers, with its programs.
pub(crate) async fn reattach_holders(
    folder: &OwnedFd,
    options: &ProcessHolderOptions,
    key: &HolderKey,
) -> Vec<Arc<HolderLink>> {
    let (socket_prefix, mut links) = (socket_prefix(options.data_dir_id), Vec::new());
    for name in socket_names(&options.runtime_dir, &socket_prefix) {
        match attach_with_retries(folder, &name, options, key).await {
            Ok(link) => {
                let held = link.programs().len();
                link.set_socket_name(name);
                tracing::info!(pid = link.state().pid, held, "took over process holder");
                links.push(link);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::error!(
                    name,
                    "refused a socket that belongs to an agent or to another user, or whose process does not know \
                     the key of this service"
                );
            }
            Err(error) => {
                tracing::warn!(%error, "process holder of an earlier process instance does not respond");
            }
        }
    }
    links
}

fn socket_names(folder: &Path, prefix: &str) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

async fn attach_with_retries(
    folder: &OwnedFd,
    name: &str,
    options: &ProcessHolderOptions,
    key: &HolderKey,
) -> io::Result<Arc<HolderLink>> {
    let mut last_error = io::ErrorKind::TimedOut.into();
    for _ in 0..MAX_ATTACH_TRIES {
        match attach_once(folder, name, options, key).await {
            Ok(link) => return Ok(link),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // No process listens at this socket any more.
                _ = unlinkat(folder, name, UnlinkatFlags::NoRemoveDir);
                return Err(error);
            }
            Err(error) => last_error = error,
        }
        sleep(ATTACH_RETRY_PAUSE).await; // The process holder detects the loss by itself; no event reports when.
    }
    Err(last_error)
}

async fn attach_once(
    folder: &OwnedFd,
    name: &str,
    options: &ProcessHolderOptions,
    key: &HolderKey,
) -> io::Result<Arc<HolderLink>> {
    // A process holder that does not answer is of an earlier release, which knows no key, or is stopped: a retry would
    // delay the start.
    let authenticated =
        timeout(REATTACH_REPLY_TIMEOUT, key.authenticate(connect_trusted_socket(folder, name)?))
            .await;
    let socket = authenticated.unwrap_or_else(|_| Err(io::ErrorKind::PermissionDenied.into()))?;
    let link = HolderLink::open(socket, options.output_memory.clone())?;
    let reattach_grace_ms = u64::try_from(options.reattach_grace.as_millis()).unwrap_or(u64::MAX);
    let (name, key) = (Vec::new(), SecretValue(Vec::new()));
    link.send_order(
        HolderOrder::Hello { version: FRAME_VERSION, reattach_grace_ms, socket_name: name, key },
        Vec::new(),
    );
    link.send_order(HolderOrder::List, Vec::new());
    match timeout(
        REATTACH_REPLY_TIMEOUT,
        link.wait_until_or_lost(|state| state.has_listed_programs),
    )
    .await
    {
        Ok(state) if state.has_listed_programs => Ok(link),
        Ok(_) => Err(io::ErrorKind::ConnectionAborted.into()),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Connects through the descriptor of the folder: a whole path may exceed the length of a socket address.
pub(crate) fn connect_trusted_socket(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    match connect(socket.as_raw_fd(), &UnixAddr::new(path.as_str())?) {
        Ok(()) if is_trusted_listener(&socket)? => Ok(socket),
        Ok(()) => Err(io::ErrorKind::PermissionDenied.into()),
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Err(io::ErrorKind::ConnectionRefused.into()),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns true if the process that listens at a socket is a process holder of this service. An agent that may write to
/// the runtime folder can create a socket there, and would report programs that it never ran.
fn is_trusted_listener(socket: &OwnedFd) -> io::Result<bool> {
    let peer = getsockopt(socket, PeerCredentials)?;
    Ok(peer.uid() == geteuid().as_raw() && has_no_agent_ancestor(peer.pid()))
}

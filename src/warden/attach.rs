//! Finds the wardens that an earlier life of the service left.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::unistd::{UnlinkatFlags, unlinkat};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::frame::{Order, VERSION};
use super::link::Link;
use super::wardens::Terms;

/// How long a warden may take to tell what it holds.
const PATIENCE: Duration = Duration::from_secs(10);

/// A warden that has not noticed yet that its supervisor is gone turns others away: it is asked
/// again, so many times, after so long.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(25);

/// A name that no other warden has.
pub(super) fn fresh_name(instance: Uuid) -> String {
    format!("{}{}.sock", prefix(instance), Uuid::new_v4().simple())
}

fn prefix(instance: Uuid) -> String {
    format!("w-{}-", instance.simple())
}

/// Every warden of this data directory that answers, with what it holds.
pub(super) async fn all(folder: &OwnedFd, terms: &Terms) -> Vec<Arc<Link>> {
    let (prefix, mut found) = (prefix(terms.instance), Vec::new());
    for name in names(&terms.runtime_dir, &prefix) {
        match attach(folder, &name, terms.patience).await {
            Ok(link) => {
                let held = link.all().len();
                tracing::info!(pid = link.standing().pid, held, "took up a warden");
                found.push(link);
            }
            Err(error) => tracing::warn!(%error, "a warden of an earlier life cannot be asked"),
        }
    }
    found
}

fn names(folder: &Path, prefix: &str) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

async fn attach(folder: &OwnedFd, name: &str, patience: Duration) -> io::Result<Arc<Link>> {
    let mut refused = io::ErrorKind::TimedOut.into();
    for _ in 0..TRIES {
        match visit(folder, name, patience).await {
            Ok(link) => return Ok(link),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Nobody listens there any more.
                _ = unlinkat(folder, name, UnlinkatFlags::NoRemoveDir);
                return Err(error);
            }
            Err(error) => refused = error,
        }
        sleep(PAUSE).await; // The warden learns of it by itself; nothing tells when.
    }
    Err(refused)
}

async fn visit(folder: &OwnedFd, name: &str, patience: Duration) -> io::Result<Arc<Link>> {
    let link = Link::open(open(folder, name)?)?;
    let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    link.order(Order::Hello { version: VERSION, patience, name: Vec::new() }, Vec::new());
    link.order(Order::List, Vec::new());
    match timeout(PATIENCE, link.until(|now| now.is_listed)).await {
        Ok(standing) if standing.is_listed => Ok(link),
        Ok(_) => Err(io::ErrorKind::ConnectionAborted.into()),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// By way of the open folder: a whole path may be longer than an address.
fn open(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    let place = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    match connect(socket.as_raw_fd(), &UnixAddr::new(place.as_str())?) {
        Ok(()) => Ok(socket),
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Err(io::ErrorKind::ConnectionRefused.into()),
        Err(errno) => Err(errno.into()),
    }
}

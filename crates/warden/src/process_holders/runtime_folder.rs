//! Runtime folder of the process holders. The system removes it at a logout if it belongs to a login session, and the
//! service creates it again when it can.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::stat::fstat;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
use nix::unistd::geteuid;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::ProcessHolders;
use super::holder_link::HolderLink;
use super::holder_options::ProcessHolderOptions;
use super::reattach::fresh_socket_name;
use crate::protocol::frame::{FRAME_VERSION, HolderOrder, MIN_SOCKET_RENEWAL_VERSION};
use crate::protocol::peer_auth::HolderKey;

/// Bits of a mode that let other users write.
const NON_OWNER_WRITE_BITS: u32 = 0o022;

/// Bits of a mode without the type of the file.
const MODE_BITS: u32 = 0o7777;

/// Time limit for a process holder that creates its socket again, and pause between two looks for it.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(1);
const SOCKET_POLL_PAUSE: Duration = Duration::from_millis(10);

/// Runtime folder, with the key that the next process instance of the service proves to the process holders.
pub(crate) struct RuntimeFolder {
    path: PathBuf,
    data_dir_id: Uuid,
    reattach_grace_ms: u64,
    key: HolderKey,
    descriptor: watch::Sender<Arc<OwnedFd>>,
}

impl RuntimeFolder {
    /// Creates the folder and the key, or opens those that are there.
    ///
    /// # Errors
    /// Fails if the folder or the key can be neither opened nor created.
    pub(super) fn open(options: &ProcessHolderOptions) -> io::Result<Self> {
        let ProcessHolderOptions { runtime_dir, data_dir_id, reattach_grace, .. } = options;
        DirBuilder::new().recursive(true).mode(0o700).create(runtime_dir)?;
        let descriptor = Arc::new(OwnedFd::from(File::open(runtime_dir)?));
        Ok(Self {
            path: runtime_dir.clone(),
            data_dir_id: *data_dir_id,
            reattach_grace_ms: u64::try_from(reattach_grace.as_millis()).unwrap_or(u64::MAX),
            key: HolderKey::read_or_create(runtime_dir, *data_dir_id)?,
            descriptor: watch::Sender::new(descriptor),
        })
    }

    pub(super) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.descriptor.borrow())
    }

    pub(super) const fn key(&self) -> &HolderKey {
        &self.key
    }

    /// Sends the first order, which opens the socket of a process holder in this folder.
    pub(super) fn send_hello(&self, link: &HolderLink) {
        let name = fresh_socket_name(self.data_dir_id);
        link.set_socket_name(name.clone());
        let hello = HolderOrder::Hello {
            version: FRAME_VERSION,
            reattach_grace_ms: self.reattach_grace_ms,
            socket_name: name.into_bytes(),
            key: self.key.secret(),
        };
        link.send_order(hello, vec![self.descriptor()]);
    }

    /// Returns true if the next process instance of the service will find a process holder.
    fn has_socket(&self, link: &HolderLink) -> bool {
        let socket = link.socket_name().map(|name| self.path.join(name));
        socket.is_some_and(|socket| socket.symlink_metadata().is_ok())
    }

    /// Returns true if the next process instance of the service will find all process holders that created a socket.
    fn has_sockets(&self, links: impl Iterator<Item = Arc<HolderLink>>) -> bool {
        let mut links =
            links.filter(|link| !link.state().is_lost && !link.has_failed_socket_renewal());
        links.all(|link| self.has_socket(&link))
    }

    /// Lets each process holder without a socket create one again.
    async fn renew_sockets(&self, links: impl Iterator<Item = Arc<HolderLink>>) {
        for link in links.filter(|link| !link.is_detached() && !self.has_socket(link)) {
            if !self.renew_socket(&link).await {
                link.record_failed_socket_renewal();
                tracing::warn!(
                    pid = link.state().pid,
                    "a process holder did not create its socket again; its programs end with this process instance of \
                     the service"
                );
            }
        }
    }

    /// Returns the numbers of living programs that continue without the service, and of those that end with it.
    pub(super) fn count_continuing_and_ending(&self, links: &[Arc<HolderLink>]) -> (usize, usize) {
        let (mut continuing, mut ending) = (0, 0);
        for link in links {
            let is_reattachable = self.has_socket(link);
            for program in link.programs().iter().filter(|it| it.state().may_have_live_processes())
            {
                let continues = is_reattachable && !program.ends_with_supervisor();
                *(if continues { &mut continuing } else { &mut ending }) += 1;
            }
        }
        (continuing, ending)
    }

    /// Lets a process holder create a socket again. Returns true if it is there, or needed by nobody.
    async fn renew_socket(&self, link: &HolderLink) -> bool {
        if link.state().frame_version < MIN_SOCKET_RENEWAL_VERSION {
            return false;
        }
        self.send_hello(link);
        let wait_for_socket = async {
            while !self.has_socket(link) && !link.state().is_lost {
                sleep(SOCKET_POLL_PAUSE).await; // No event reports that the file has appeared.
            }
        };
        timeout(SOCKET_TIMEOUT, wait_for_socket).await.is_ok()
    }

    /// Returns true if the folder is at its path, and has the key.
    fn is_in_place_with_key(&self) -> io::Result<bool> {
        let open_stat = fstat(&*self.descriptor())?;
        match fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (open_stat.st_dev, open_stat.st_ino)
                && HolderKey::exists(&self.path, self.data_dir_id)),
            Err(error) if is_not_found(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates the folder again, with the key.
    async fn recreate(&self) -> io::Result<()> {
        let (previous_folder, path, key) = (self.descriptor(), self.path.clone(), self.key.clone());
        let data_dir_id = self.data_dir_id;
        let recreate = move || {
            let folder = reopen_or_recreate_folder(&path, &previous_folder)?;
            key.restore(&path, data_dir_id)?;
            Ok::<_, io::Error>(folder)
        };
        let folder = spawn_blocking(recreate).await.map_err(io::Error::other)??;
        self.descriptor.send_replace(Arc::new(folder));
        Ok(())
    }
}

impl ProcessHolders {
    /// Returns true if the runtime folder is the one in which the process holders have their sockets, and has these and
    /// the key. A process holder that did not create its socket again does not count.
    ///
    /// # Errors
    /// Fails if the folder cannot be examined, for another reason than that it is missing.
    pub fn is_runtime_folder_intact(&self) -> io::Result<bool> {
        let links = self.live_earlier_links().chain(self.current_link_snapshot.borrow().clone());
        Ok(self.runtime_folder.is_in_place_with_key()? && self.runtime_folder.has_sockets(links))
    }

    /// Creates the runtime folder again, with the key and the sockets by which the next process instance of the service
    /// finds the process holders.
    ///
    /// # Errors
    /// Fails if the folder cannot be created, if it leads through a link, if another user can write in it, or if it is
    /// on a disk and was in memory before.
    pub async fn restore_runtime_folder(&self) -> io::Result<()> {
        self.runtime_folder.recreate().await?; // Before the lock, on which each launch waits.
        // A process holder that is started meanwhile may have the old folder; the next check finds that. The lock also
        // delays a hand-over until the sockets are there.
        let current = self.current_link.lock().await;
        self.runtime_folder.renew_sockets(self.live_earlier_links().chain(current.clone())).await;
        Ok(())
    }
}

/// Opens a folder that was open before. If it was removed, creates it again with the same mode: users of agents may
/// have to pass through it.
fn reopen_or_recreate_folder(path: &Path, previous_folder: &OwnedFd) -> io::Result<OwnedFd> {
    let previous_stat = fstat(previous_folder)?;
    let is_same = |found: &Metadata| {
        (found.dev(), found.ino()) == (previous_stat.st_dev, previous_stat.st_ino)
    };
    if fs::metadata(path).is_ok_and(|found| is_same(&found)) {
        return previous_folder.try_clone();
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // Meanwhile another user may have put a link or a folder there, where everybody can: in `/dev/shm`.
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = File::options().read(true).custom_flags(flags).open(path)?;
    let found = folder.metadata()?;
    if found.uid() != geteuid().as_raw() || found.mode() & NON_OWNER_WRITE_BITS != 0 {
        return Err(io::Error::other("another user can write in it"));
    }
    if is_in_memory(previous_folder) && !is_in_memory(&folder) {
        // A key that must not reach a disk would be written there.
        return Err(io::Error::other("it is no longer in memory"));
    }
    folder.set_permissions(Permissions::from_mode(previous_stat.st_mode & MODE_BITS))?;
    Ok(folder.into())
}

fn is_in_memory(folder: &impl AsFd) -> bool {
    fstatfs(folder).is_ok_and(|it| it.filesystem_type() == TMPFS_MAGIC)
}

/// Returns true if the error means that there is no such folder.
fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

//! Start of the process holder for new programs, and its replacement when it is lost.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::timeout;

use super::holder_command::HolderCommand;
use super::holder_link::HolderLink;
use super::{ProcessHolders, RESPONSE_TIMEOUT};
use crate::output::memory_account::OutputMemory;
use crate::process::lost_processes;
use crate::protocol::frame::HolderOrder;
use crate::protocol::packet;

impl ProcessHolders {
    /// Returns the process holder for new programs: the present one, or a replacement.
    pub(super) async fn reuse_or_start_holder(&self) -> io::Result<Arc<HolderLink>> {
        let mut current = self.current_link.lock().await;
        if let Some(link) = current.as_ref().filter(|link| !link.state().is_lost) {
            return Ok(Arc::clone(link));
        }
        // The programs of a lost process holder are children of this process now; nobody can read or settle them.
        if let Some(lost_link) = current.take() {
            lost_processes::clean_up_lost_holder(lost_link.state().pid, self.options.data_dir_id)
                .await;
        }
        let started = self.start_holder().await;
        // Relaxed, because no other data depends on it.
        self.has_failed_start.store(started.is_err(), Ordering::Relaxed);
        let link = started?;
        *current = Some(Arc::clone(&link));
        self.current_link_snapshot.send_replace(Some(Arc::clone(&link)));
        Ok(link)
    }

    /// Starts a process holder if the latest start of one failed. Returns false if that fails too.
    pub async fn retry_failed_start(&self) -> bool {
        !self.has_failed_start.load(Ordering::Relaxed) || self.reuse_or_start_holder().await.is_ok()
    }

    async fn start_holder(&self) -> io::Result<Arc<HolderLink>> {
        let HolderCommand { program, args } = &self.options.command;
        // A socket pair and no path: no other process can connect first.
        let (own_socket, child_socket) = packet::socket_pair()?;
        let mut command = Command::new(program);
        command.arg0("algonius").args(args).env_clear().current_dir("/");
        command.stdin(Stdio::from(child_socket)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        drop(command); // It holds the other end; with it open here, the end of the process holder would go unnoticed.
        let (link, mut child) =
            open_link_or_reap(own_socket, self.options.output_memory.clone(), child)?;
        // The first order, so that the holder knows the version before anything that depends on it.
        self.runtime_folder.send_hello(&link);
        self.send_secret(&link);
        // In a task of its own, because nobody else reaps the process holder.
        let holder_link = Arc::clone(&link);
        tokio::spawn(async move {
            holder_link.wait_until_or_lost(|_| false).await;
            _ = tokio::task::spawn_blocking(move || child.wait()).await;
        });
        let start_result =
            timeout(RESPONSE_TIMEOUT, link.wait_until_or_lost(|state| state.pid.is_some())).await;
        match start_result.is_ok_and(|state| state.pid.is_some()) {
            true => Ok(link),
            false => {
                // It has no program, and may answer later: then nobody would need it.
                link.send_order(HolderOrder::Shutdown, Vec::new());
                Err(io::Error::other("the process holder did not start"))
            }
        }
    }
}

/// Converts the error of a process holder's start for the launch of a program, whose own errors have a system number.
pub(super) fn holder_start_error(error: io::Error) -> io::Error {
    tracing::error!(%error, "failed to start process holder");
    io::Error::new(io::ErrorKind::NotConnected, error)
}

/// Opens the link to a process holder that was just started.
fn open_link_or_reap(
    socket: OwnedFd,
    memory: OutputMemory,
    mut child: Child,
) -> io::Result<(Arc<HolderLink>, Child)> {
    match HolderLink::open(socket, memory) {
        Ok(link) => Ok((link, child)),
        Err(error) => {
            // Its socket is closed, so the process holder ends, and only has to be reaped.
            _ = tokio::task::spawn_blocking(move || child.wait());
            Err(error)
        }
    }
}

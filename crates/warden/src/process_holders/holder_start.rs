//! Start of the process holder for new programs, and its replacement when it is lost.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::time::timeout;

use super::holder_command::HolderCommand;
use super::holder_link::HolderLink;
use super::reattach::fresh_socket_name;
use super::{ProcessHolders, RESPONSE_TIMEOUT};
use crate::process::lost_processes;
use crate::protocol::frame::{FRAME_VERSION, HolderOrder};
use crate::protocol::packet;

impl ProcessHolders {
    /// Returns the process holder for new programs: the present one, or a replacement.
    pub(super) async fn current_holder(&self) -> io::Result<Arc<HolderLink>> {
        let mut current = self.current_link.lock().await;
        if let Some(link) = current.as_ref().filter(|link| !link.state().is_lost) {
            return Ok(Arc::clone(link));
        }
        // The programs of a lost process holder are children of this process now; nobody can read or settle them.
        if let Some(lost_link) = current.take() {
            lost_processes::end_lost_holder(lost_link.state().pid, self.options.instance).await;
        }
        let link = self.start_holder().await?;
        *current = Some(Arc::clone(&link));
        self.current_link_snapshot.send_replace(Some(Arc::clone(&link)));
        Ok(link)
    }

    async fn start_holder(&self) -> io::Result<Arc<HolderLink>> {
        let HolderCommand { program, args } = &self.options.command;
        // A socket pair and no path: no other process can connect first.
        let (own_socket, child_socket) = packet::socket_pair()?;
        let mut command = Command::new(program);
        command.arg0("algonius").args(args).env_clear().current_dir("/");
        command.stdin(Stdio::from(child_socket)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        drop(command); // It holds the other end; with it open here, the end of the process holder would go unnoticed.
        let link = HolderLink::open(own_socket, self.options.memory.clone())?;
        let name = fresh_socket_name(self.options.instance).into_bytes();
        let reattach_grace_ms =
            u64::try_from(self.options.reattach_grace.as_millis()).unwrap_or(u64::MAX);
        let key = self.key.secret();
        // The first order, so that the holder knows the version before anything that depends on it.
        let hello = HolderOrder::Hello { version: FRAME_VERSION, reattach_grace_ms, name, key };
        link.send_order(hello, vec![Arc::clone(&self.runtime_folder)]);
        self.send_secret(&link);
        // In a task of its own, because nobody else reaps the process holder.
        let holder_link = Arc::clone(&link);
        tokio::spawn(async move {
            holder_link.wait_until(|_| false).await;
            _ = tokio::task::spawn_blocking(move || child.wait()).await;
        });
        let start_result =
            timeout(RESPONSE_TIMEOUT, link.wait_until(|state| state.pid.is_some())).await;
        match start_result.is_ok_and(|state| state.pid.is_some()) {
            true => Ok(link),
            false => Err(io::Error::other("the process holder did not start")),
        }
    }
}

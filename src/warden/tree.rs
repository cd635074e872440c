//! A program that lives, as the one who drives it sees it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::resources::{Controllers, Refusals};
use algonius_actors::model::usage::Spent;
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::census::Census;
use super::frame::Order;
use super::group::{Group, end};
use super::link::Link;
use super::program::{Program, Standing};
use super::{Gauge, Spawned, Tree, sweep};

/// Takes a program over from the moment at which its launch was ordered, or at which it was found, by
/// this claim on it.
///
/// # Errors
/// When it could not be started, with the system's error number where it has one.
pub(super) async fn spawned(
    link: Arc<Link>,
    (program, claim): (Arc<Program>, u32),
    census: Arc<Census>,
    group: Option<Arc<Group>>,
) -> io::Result<Spawned> {
    let tree =
        HeldTree { link, program: Arc::clone(&program), claim, census, group, is_over: false };
    let known = program.until(|now| now.pid.is_some() || now.refused.is_some()).await;
    if let Some(errno) = known.refused {
        return Err(tree.refused(io::Error::from_raw_os_error(errno)).await);
    }
    let Some(pid) = known.pid else { return Err(io::ErrorKind::ConnectionAborted.into()) };
    let [stdout, stderr] = program.streams().await?;
    Ok(Spawned {
        pid,
        stdin: None,
        stdout: Box::pin(stdout),
        stderr: Box::pin(stderr),
        ending: Box::pin(program.ending()),
        tree: Box::new(tree),
    })
}

/// How long a warden may take to end what was killed.
const PATIENCE: Duration = Duration::from_secs(20);

struct HeldTree {
    link: Arc<Link>,
    program: Arc<Program>,
    /// By which claim it is driven; a later one has taken it.
    claim: u32,
    census: Arc<Census>,
    /// Where it lives, with all that it started.
    group: Option<Arc<Group>>,
    /// Whether its warden was told to forget it.
    is_over: bool,
}

impl HeldTree {
    /// There is nothing to be ended.
    async fn refused(mut self, error: io::Error) -> io::Error {
        self.is_over = true;
        self.link.release(self.program.slot());
        end(self.group.as_ref()).await;
        error
    }
}

#[async_trait]
impl Tree for HeldTree {
    fn terminate(&self) {
        self.link.order(Order::Terminate { slot: self.program.slot() }, Vec::new());
    }

    fn kill(&self) {
        if self.program.standing().has_survivors() {
            self.link.order(Order::Kill { slot: self.program.slot() }, Vec::new());
            if let Some(group) = self.group.as_ref().filter(|_| !self.link.is_silent()) {
                group.kill();
            }
        }
    }

    fn has_survivors(&self) -> bool {
        self.program.standing().has_survivors()
    }

    fn gauge(&self) -> Gauge {
        let pid = self.program.standing().pid.unwrap_or_default();
        Gauge::of(pid, self.program.label(), Arc::clone(&self.census))
    }

    fn spent(&self) -> Option<Spent> {
        let end = self.program.standing().end.filter(|end| end.peak > 0)?;
        Some(Spent { cpu_ms: end.cpu / 1000, memory_peak: end.peak * 1024 })
    }

    async fn taken(&self) {
        self.program.taken(self.claim).await;
    }

    fn held(&self) -> Controllers {
        self.group.as_ref().map(|group| group.held()).unwrap_or_default()
    }

    fn refusals(&self) -> Refusals {
        self.group.as_ref().map(|group| group.refusals()).unwrap_or_default()
    }

    async fn sweep(&self) -> u64 {
        clear(&self.link, &self.program, self.group.as_ref()).await
    }
}

/// Kills everything of a program, and removes its group; how many had to be killed.
async fn clear(link: &Link, program: &Program, group: Option<&Arc<Group>>) -> u64 {
    // What is left to the next life of the service has its group on.
    let group = group.filter(|group| !group.is_closed() && !link.is_silent());
    if let Some(group) = group {
        group.kill();
    }
    let killed = kill_all(link, program).await;
    end(group.filter(|_| !link.is_silent())).await;
    killed
}

async fn kill_all(link: &Link, program: &Program) -> u64 {
    if !program.standing().has_survivors() {
        return program.standing().cleared.unwrap_or_default();
    }
    link.order(Order::Kill { slot: program.slot() }, Vec::new());
    match timeout(PATIENCE, program.until(|now| now.cleared.is_some())).await {
        Ok(Standing { cleared: Some(killed), undying, .. }) => {
            if undying > 0 {
                tracing::error!(undying, "what an agent started does not die, and is left");
            }
            killed
        }
        Ok(_lost) => sweep::of_label(program.label()).await as u64,
        Err(_elapsed) => {
            tracing::error!(pid = program.standing().pid, "a warden does not end a program");
            0
        }
    }
}

impl Drop for HeldTree {
    fn drop(&mut self) {
        if self.is_over || self.claim != self.program.claims() {
            return;
        }
        let (link, program) = (Arc::clone(&self.link), Arc::clone(&self.program));
        let group = self.group.take().filter(|group| !group.is_closed());
        if !program.standing().has_survivors() && group.is_none() {
            return link.release(program.slot());
        }
        // Where the whole service goes down, the next one takes up what the warden holds.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            clear(&link, &program, group.as_ref()).await;
            link.release(program.slot());
        });
    }
}

//! Starts programs as children of this very process.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use algonius_actors::model::program::Exit;
use async_trait::async_trait;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::AbortHandle;

use super::{Launch, Mark, Spawned, Tree, Warden, sweep};

/// The spawner without a process of its own. What it starts dies with an end that it sees; after
/// a crash of this process, [`super::sweep_instance`] ends the rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

#[async_trait]
impl Warden for Direct {
    async fn launch(&self, launch: Launch) -> io::Result<Spawned> {
        // The starting thread sleeps until the program is loaded, perhaps from a slow disk.
        tokio::task::spawn_blocking(move || start(launch)).await.map_err(io::Error::other)?
    }
}

/// No closure runs between fork and exec, so that the standard library can take its fast path; it
/// opens no descriptor without close-on-exec, and starts the child with an empty signal mask.
fn start(launch: Launch) -> io::Result<Spawned> {
    let mut child = command(&launch).spawn()?;
    let gone = || io::Error::other("a started process has neither id nor pipes");
    let pid = child.id().ok_or_else(gone)?;
    let leader = Pid::from_raw(i32::try_from(pid).map_err(io::Error::other)?);
    let feeding =
        child.stdin.take().map(|pipe| tokio::spawn(feed(pipe, launch.stdin)).abort_handle());
    let group = Arc::new(Group { leader, life: AtomicU8::new(ALIVE), feeding });
    let stdout = child.stdout.take().ok_or_else(gone)?;
    let stderr = child.stderr.take().ok_or_else(gone)?;
    let held = Held { group: Arc::clone(&group), child };
    Ok(Spawned {
        pid,
        stdout: Box::pin(stdout),
        stderr: Box::pin(stderr),
        ending: Box::pin(held.ending()),
        tree: Box::new(DirectTree { group, mark: launch.mark }),
    })
}

fn command(launch: &Launch) -> Command {
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(&launch.env)
        .envs(launch.mark.variables())
        .current_dir(&launch.working_dir)
        .stdin(if launch.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Writes the input and closes the pipe. A program that does not read it has its reasons.
async fn feed(mut pipe: ChildStdin, input: Vec<u8>) {
    if let Err(error) = pipe.write_all(&input).await
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        tracing::warn!(%error, "standard input was not taken");
    }
}

/// The leader was not reaped: its number belongs to it.
const ALIVE: u8 = 0;
/// The leader was reaped while others of its group lived: they keep the number from being given
/// to another process.
const LEADERLESS: u8 = 1;
/// Nothing of the group was left: the number may be anybody's.
const GONE: u8 = 2;

/// A process group, signalled only while its number is known to be its own.
struct Group {
    leader: Pid,
    life: AtomicU8,
    feeding: Option<AbortHandle>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if self.is_there() && killpg(self.leader, signal).is_err() && !self.is_led() {
            self.life.store(GONE, Ordering::Release);
        }
    }

    fn is_led(&self) -> bool {
        self.life.load(Ordering::Acquire) == ALIVE
    }

    /// A group whose leader was reaped has no process of its number; where there is one, the group
    /// has gone and the number was given again.
    fn is_there(&self) -> bool {
        match self.life.load(Ordering::Acquire) {
            ALIVE => true,
            LEADERLESS => {
                !Path::new("/proc").join(self.leader.to_string()).exists()
                    && killpg(self.leader, None).is_ok()
            }
            _ => false,
        }
    }

    /// Takes note, at the moment of the reaping, of whether others of the group live.
    fn reaped(&self) {
        let life = if killpg(self.leader, None).is_ok() { LEADERLESS } else { GONE };
        self.life.store(life, Ordering::Release);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(feeding) = &self.feeding {
            feeding.abort();
        }
    }
}

/// The child with its group, so that whoever lets go of the child ends the group first.
struct Held {
    group: Arc<Group>,
    child: Child,
}

impl Held {
    async fn ending(mut self) -> io::Result<Exit> {
        let status = self.child.wait().await;
        self.group.reaped();
        exit(status?)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.group.is_led() {
            self.group.signal(Signal::SIGKILL);
        }
    }
}

fn exit(status: ExitStatus) -> io::Result<Exit> {
    let code = status.code().map(Exit::Code);
    let exit = code.or_else(|| status.signal().map(Exit::Signal));
    exit.ok_or_else(|| io::Error::other("the program ended neither by itself nor by a signal"))
}

struct DirectTree {
    group: Arc<Group>,
    mark: Mark,
}

#[async_trait]
impl Tree for DirectTree {
    fn terminate(&self) {
        self.group.signal(Signal::SIGTERM);
    }

    fn kill(&self) {
        self.group.signal(Signal::SIGKILL);
    }

    fn has_survivors(&self) -> bool {
        !self.group.is_led() && self.group.is_there()
    }

    async fn sweep(&self) -> usize {
        sweep::sweep(self.mark).await
    }
}

impl Drop for DirectTree {
    fn drop(&mut self) {
        self.kill();
    }
}

//! Process holders of a service: its own for new programs, and those of earlier process instances until their programs
//! have ended.

pub(crate) mod launch_options;
pub(crate) mod link;
pub(crate) mod origin;
pub(crate) mod program;
pub(crate) mod reattach;
pub(crate) mod start;
pub(crate) mod tree;

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::Grouping;
use algonius_actors::model::id::ExecutionId;
use async_trait::async_trait;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

pub use self::launch_options::LaunchOptions;
use self::link::Link;
pub use self::origin::HolderCommand;
use self::program::{Program, UNCLAIMED};
use self::start::{Start, start};
use self::tree::spawned;
use super::confinement::group::{Group, end};
use super::output::memory_account::MemoryUse;
use super::process::process_scan::Census;
use super::process::process_tag::Label;
use super::process::{kill_leftovers, lost_processes};
use super::protocol::frame::{HolderOrder, SecretValue, VERSION};
use super::protocol::packet;
use super::protocol::peer_auth::HolderKey;
use super::startup::can_label;
use super::{ClaimedProgram, Launch, Spawned, Stdin, StdinPipe, Warden};

/// Time within which a process holder must send its first event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Greatest number of concurrent launches: each has up to twelve descriptors in flight.
const LAUNCHES: u32 = 64;

/// Programs that a service has left to the next process instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Number of programs that continue.
    pub going_on: usize,
    /// Number of programs that end, as their agents are configured.
    pub ending: usize,
    /// Time for which the continuing ones wait for the next process instance.
    pub patience: Duration,
}

/// Process holders of a service.
pub struct ProcessHolders {
    terms: LaunchOptions,
    folder: Arc<OwnedFd>,
    /// Key that the next process instance of the service proves to the wardens.
    key: HolderKey,
    own: tokio::sync::Mutex<Option<Arc<Link>>>,
    /// Same link, for callers that cannot wait.
    present: watch::Sender<Option<Arc<Link>>>,
    left: Vec<Arc<Link>>,
    /// Secret that each warden stores in memory for the next process instance of the service.
    secret: OnceLock<Vec<u8>>,
    launches: Semaphore,
    census: Arc<Census>,
}

impl ProcessHolders {
    /// Reattaches the process holders of an earlier process instance, kills processes that no process holder holds, and
    /// starts a process holder.
    ///
    /// # Errors
    /// Fails if no process holder can be started, or if programs cannot be labelled here.
    pub async fn start(terms: LaunchOptions) -> io::Result<Arc<Self>> {
        // Without labels a process that leaves its session could no longer be found and ended.
        if !can_label() {
            return Err(io::Error::other("the hard limit of file locks (ulimit -x) must be open"));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&terms.runtime_dir)?;
        let folder = Arc::new(OwnedFd::from(File::open(&terms.runtime_dir)?));
        let key = HolderKey::open(&terms.runtime_dir, terms.instance)?;
        // Before the search for leftovers, which would otherwise kill the programs that are held.
        let left = reattach::all(&folder, &terms, &key).await;
        let held = left.iter().flat_map(|link| link.all()).map(|one| one.label()).collect();
        let swept = kill_leftovers::of_instance(terms.instance, held).await;
        if swept > 0 {
            tracing::warn!(
                processes = swept,
                "terminated processes of an earlier process instance"
            );
        }
        let wardens = Self {
            folder,
            key,
            own: tokio::sync::Mutex::default(),
            present: watch::Sender::default(),
            left,
            secret: OnceLock::new(),
            launches: Semaphore::new(LAUNCHES as usize),
            census: Arc::default(),
            terms,
        };
        wardens.end_groups().await;
        wardens.own().await?;
        Ok(Arc::new(wardens))
    }

    /// Ends the groups of an earlier process instance, except those of held programs.
    async fn end_groups(&self) {
        let Some(groups) = &self.terms.groups else { return };
        let held = self.left().flat_map(|link| link.all());
        let held = held.filter_map(|program| program.attempt()).collect();
        let ended = groups.end_all_but(&held).await;
        if ended > 0 {
            tracing::warn!(groups = ended, "removed control groups of an earlier process instance");
        }
    }

    /// Ends held programs whose executions nothing has claimed.
    pub async fn end_the_unclaimed(&self) {
        self.end_but(|program| program.is_claimed()).await;
    }

    /// Ends all held programs except those of these attempts.
    pub async fn end_all_but(&self, these: &HashSet<(ExecutionId, AttemptId)>) {
        self.end_but(|program| program.attempt().is_some_and(|it| these.contains(&it))).await;
    }

    async fn end_but(&self, goes_on: impl Fn(&Program) -> bool) {
        for link in self.left() {
            for program in link.all().into_iter().filter(|program| !goes_on(program)) {
                let execution = program.attempt().map(|(id, _)| id.to_string());
                tracing::warn!(execution, "terminating orphaned program");
                if let Ok(spawned) = self.held(Arc::clone(&link), program).await {
                    spawned.tree.sweep().await;
                }
            }
        }
    }

    /// Kills every held program, with its descendants. Returns at once.
    pub fn kill_all(&self) {
        let own = self.present.borrow().clone();
        for link in self.left().chain(own) {
            for program in link.all().into_iter().filter(|it| it.state().has_survivors()) {
                link.order(HolderOrder::Kill { slot: program.slot() }, Vec::new());
                let groups = self.terms.groups.as_ref().zip(program.attempt());
                if let Some(group) = groups.and_then(|(groups, attempt)| groups.find(attempt)) {
                    group.kill();
                }
            }
        }
    }

    /// Returns the bytes that process holders of an earlier process instance stored for this one.
    pub fn kept(&self) -> impl Iterator<Item = Vec<u8>> {
        self.left.iter().filter_map(|link| link.kept().map(<[u8]>::to_vec))
    }

    /// Stores these bytes in every process holder, present or later, for the next process instance of the service. Only
    /// the first call has an effect.
    pub async fn store_secret(&self, secret: Vec<u8>) {
        let own = self.own.lock().await; // The lock prevents the start of a process holder meanwhile.
        if self.secret.set(secret).is_ok() {
            self.left().chain(own.clone()).for_each(|link| self.entrust(&link));
        }
    }

    /// Sends the secret to a process holder. One of an earlier release ignores the unknown order.
    fn entrust(&self, link: &Link) {
        if let Some(secret) = self.secret.get() {
            link.order(HolderOrder::Keep { secret: SecretValue(secret.clone()) }, Vec::new());
        }
    }

    /// Returns the attempts whose programs are held.
    pub fn held_attempts(&self) -> Vec<(ExecutionId, AttemptId)> {
        let own = self.present.borrow().clone();
        let programs = self.left().chain(own).flat_map(|link| link.all());
        programs.filter_map(|program| program.attempt()).collect()
    }

    /// Returns the numbers of the scratch slots that held programs use.
    pub fn held_slots(&self) -> HashSet<u64> {
        let own = self.present.borrow().clone();
        let programs = self.left().chain(own).flat_map(|link| link.all());
        programs.filter_map(|program| program.scratch()).collect()
    }

    /// Returns the process ids of the present process holders.
    pub fn pids(&self) -> Vec<u32> {
        let own = self.present.borrow().clone();
        let all = self.left().chain(own).map(|link| link.state());
        all.filter(|standing| !standing.is_lost).filter_map(|standing| standing.pid).collect()
    }

    /// Returns the usage of the memory for the output of programs.
    pub fn memory(&self) -> MemoryUse {
        self.terms.memory.usage()
    }

    /// Ends all process holders with everything that they hold.
    pub async fn end(&self) {
        let own = self.own.lock().await.take();
        for link in self.left().chain(own) {
            link.order(HolderOrder::Bye, Vec::new());
            if timeout(PATIENCE, link.until(|_| false)).await.is_err() {
                tracing::error!(pid = link.state().pid, "process holder did not exit");
            }
        }
        if let Some(groups) = &self.terms.groups {
            groups.close().await;
        }
    }

    /// Leaves everything that is held to the next process instance of the service: from then on nothing is started,
    /// ended or forgotten.
    pub async fn leave(&self) -> Left {
        // Pending launches finish or fail before the count.
        if let Ok(Ok(all)) = timeout(PATIENCE, self.launches.acquire_many(LAUNCHES)).await {
            all.forget();
        }
        let own = self.own.lock().await.clone();
        let links: Vec<_> = self.left().chain(own).collect();
        // From here on drivers that are dropped must not release or kill what the next process instance takes over.
        links.iter().for_each(|link| link.shutdown());
        let programs: Vec<_> = links.iter().flat_map(|link| link.all()).collect();
        let living = programs.iter().filter(|program| program.state().has_survivors());
        let (ending, going_on): (Vec<_>, Vec<_>) = living.partition(|it| it.dies_alone());
        let (going_on, ending) = (going_on.len(), ending.len());
        Left { going_on, ending, patience: self.terms.patience }
    }

    /// Returns the process holder for new programs: the present one, or a replacement.
    async fn own(&self) -> io::Result<Arc<Link>> {
        let mut own = self.own.lock().await;
        if let Some(link) = own.as_ref().filter(|link| !link.state().is_lost) {
            return Ok(Arc::clone(link));
        }
        // The programs of a lost process holder are children of this process now; nobody can read or settle them.
        if let Some(lost) = own.take() {
            lost_processes::bury(lost.state().pid, self.terms.instance).await;
        }
        let link = self.make().await?;
        *own = Some(Arc::clone(&link));
        self.present.send_replace(Some(Arc::clone(&link)));
        Ok(link)
    }

    async fn make(&self) -> io::Result<Arc<Link>> {
        let HolderCommand { program, args } = &self.terms.origin;
        // A socket pair and no path: no other process can connect first.
        let (ours, its) = packet::pair()?;
        let mut command = Command::new(program);
        command.arg0("algonius").args(args).env_clear().current_dir("/");
        command.stdin(Stdio::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        drop(command); // The command holds the other end; with it open here, the end of the process holder would go unnoticed.
        let link = Link::open(ours, self.terms.memory.clone())?;
        let name = reattach::fresh_name(self.terms.instance).into_bytes();
        let patience = u64::try_from(self.terms.patience.as_millis()).unwrap_or(u64::MAX);
        let key = self.key.secret();
        // The first order, so that the holder knows the version before anything that depends on it.
        let hello = HolderOrder::Hello { version: VERSION, patience, name, key };
        link.order(hello, vec![Arc::clone(&self.folder)]);
        self.entrust(&link);
        // In a task of its own, because nobody else reaps the process holder.
        let gone = Arc::clone(&link);
        tokio::spawn(async move {
            gone.until(|_| false).await;
            _ = tokio::task::spawn_blocking(move || child.wait()).await;
        });
        let greeted = timeout(PATIENCE, link.until(|now| now.pid.is_some())).await;
        match greeted.is_ok_and(|standing| standing.pid.is_some()) {
            true => Ok(link),
            false => Err(io::Error::other("the process holder did not start")),
        }
    }

    /// Returns the process holders of earlier process instances that are still there.
    fn left(&self) -> impl Iterator<Item = Arc<Link>> {
        self.left.iter().filter(|link| !link.state().is_lost).map(Arc::clone)
    }

    /// Returns the process tree of a held program, with its group.
    async fn held(&self, link: Arc<Link>, program: Arc<Program>) -> io::Result<Spawned> {
        let groups = self.terms.groups.as_ref();
        let group = groups.zip(program.attempt()).and_then(|(groups, it)| groups.find(it));
        let claim = program.claims();
        spawned(link, (program, claim), Arc::clone(&self.census), group.map(Arc::new)).await
    }

    /// Creates the group of a program that is about to start, if it needs one and the machine permits it.
    fn group(&self, launch: &Launch) -> io::Result<Option<(Arc<Group>, OwnedFd)>> {
        let (resources, groups) = (&launch.resources, self.terms.groups.as_ref());
        let Some(groups) = groups.filter(|_| resources.wants_group()) else { return Ok(None) };
        let made = groups.make((launch.execution, launch.stamp), resources);
        let entered = made.and_then(|group| Ok((group.entrance()?, Arc::new(group))));
        match entered {
            Ok((entrance, group)) => Ok(Some((group, entrance))),
            Err(error) if resources.grouping == Grouping::Required => Err(io::Error::other(error)),
            Err(error) => {
                tracing::warn!(%error, "no control group for execution; limits are polled");
                Ok(None)
            }
        }
    }

    fn find(&self, label: Label) -> Option<(Arc<Link>, Arc<Program>)> {
        let found = |link: Arc<Link>| link.find(label).map(|program| (link, program));
        let own = self.present.borrow().clone();
        self.left().chain(own).find_map(found)
    }
}

#[async_trait]
impl Warden for ProcessHolders {
    async fn launch(&self, launch: Launch) -> io::Result<Spawned> {
        // Descriptors in flight count against the limit of this user, and beyond it the socket refuses every order.
        let _one = self.launches.acquire().await.map_err(io::Error::other)?;
        let link = self.own().await?;
        if matches!(launch.stdin, Stdin::Fed) {
            link.check_feeds()?;
        }
        let (group, entrance) = self.group(&launch)?.unzip();
        let with = (entrance, self.terms.memory.account());
        let begun = start(launch, with, self.terms.instance, link.fresh_slot());
        let Start { program, order, fds, feed } = match begun {
            Ok(start) => start,
            Err(error) => {
                end(group.as_ref()).await;
                return Err(error);
            }
        };
        // Before the order, because the answer may arrive before this function continues.
        link.add(Arc::clone(&program));
        if link.state().is_lost {
            program.lose(); // The process holder may have been lost before it could receive the order for this program.
        }
        link.order(order, fds);
        // From here on the program is ended if no task waits for it any more. A claim during the start takes precedence
        // over the task that ordered the launch.
        let launched = spawned(link, (program, UNCLAIMED), Arc::clone(&self.census), group).await?;
        let stdin =
            feed.map(Sender::from_owned_fd).transpose()?.map(|feed| Box::pin(feed) as StdinPipe);
        Ok(Spawned { stdin, ..launched })
    }

    fn claim(&self, execution: ExecutionId, stamp: AttemptId) -> Option<ClaimedProgram> {
        let (_, program) = self.find(Label::of(self.terms.instance, execution, stamp))?;
        // The claim comes before the adoption, so that the present driver stops reading the same pipes.
        program.claim();
        Some(ClaimedProgram { age: program.age() })
    }

    async fn adopt(&self, execution: ExecutionId, stamp: AttemptId) -> io::Result<Spawned> {
        let label = Label::of(self.terms.instance, execution, stamp);
        let (link, program) = self.find(label).ok_or(io::ErrorKind::NotFound)?;
        self.held(link, program).await
    }

    async fn sweep(&self, execution: ExecutionId, stamp: AttemptId) -> usize {
        let label = Label::of(self.terms.instance, execution, stamp);
        if self.claim(execution, stamp).is_some()
            && let Ok(spawned) = self.adopt(execution, stamp).await
        {
            spawned.tree.sweep().await;
        }
        // After the held program: what is still found by its label has left the sight of the process holder.
        let killed = kill_leftovers::of_label(label).await;
        let groups = self.terms.groups.as_ref();
        end(groups.and_then(|groups| groups.find((execution, stamp))).map(Arc::new).as_ref()).await;
        killed
    }
}

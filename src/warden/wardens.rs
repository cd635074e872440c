//! The wardens of a service: its own, for whatever is started, and those that an earlier life
//! left, until what they hold has ended.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::resources::Grouping;
use async_trait::async_trait;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use uuid::Uuid;

use super::attach;
use super::census::Census;
use super::frame::{Order, VERSION};
use super::group::{Group, Groups, end};
use super::label::Label;
use super::link::Link;
use super::process::can_label;
use super::program::{Program, UNCLAIMED};
use super::start::{Start, begin};
use super::tree::spawned;
use super::{Claimed, Feed, Launch, Spawned, Warden, packet, sweep};

/// How long a warden may take for its first word.
const PATIENCE: Duration = Duration::from_secs(10);

/// Launches under way at once: each has up to ten descriptors in flight.
const LAUNCHES: u32 = 64;

/// How a process becomes a warden: this very program, unless something else stands in for it.
#[derive(Debug, Clone)]
pub struct Origin {
    /// What is run, with one end of a socket as its standard input.
    pub program: PathBuf,
    /// With which arguments.
    pub args: Vec<OsString>,
}

impl Default for Origin {
    /// The program that runs, even if its file was replaced meanwhile.
    fn default() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args: vec!["warden".into()] }
    }
}

impl Origin {
    /// The `algonius` program at this place, for a service that lives in another program.
    #[must_use]
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }
}

/// What the wardens of a service have in common.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How a warden is made.
    pub origin: Origin,
    /// Where a warden can be found by the next life of the service.
    pub runtime_dir: PathBuf,
    /// The data directory to which everything belongs.
    pub instance: Uuid,
    /// How long a warden waits for the next life of the service.
    pub patience: Duration,
    /// Where programs get control groups of their own, if anywhere.
    pub groups: Option<Arc<Groups>>,
}

/// What a service has left to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Programs that go on.
    pub going_on: usize,
    /// Programs that end, since their agents want it so.
    pub ending: usize,
    /// How long the first wait for the next service.
    pub patience: Duration,
}

/// The wardens.
pub struct Wardens {
    terms: Terms,
    folder: Arc<OwnedFd>,
    own: tokio::sync::Mutex<Option<Arc<Link>>>,
    /// The same, for those who cannot wait.
    present: watch::Sender<Option<Arc<Link>>>,
    left: Vec<Arc<Link>>,
    launches: Semaphore,
    census: Arc<Census>,
}

impl Wardens {
    /// Takes up what an earlier life left, kills what nobody holds, and starts a warden.
    ///
    /// # Errors
    /// When no warden can be started, or programs cannot be labelled here.
    pub async fn start(terms: Terms) -> io::Result<Arc<Self>> {
        if !can_label() {
            return Err(io::Error::other("the hard limit of file locks (ulimit -x) must be open"));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&terms.runtime_dir)?;
        let folder = Arc::new(OwnedFd::from(File::open(&terms.runtime_dir)?));
        let left = attach::all(&folder, &terms).await;
        let held = left.iter().flat_map(|link| link.all()).map(|one| one.label()).collect();
        let swept = sweep::of_instance(terms.instance, held).await;
        if swept > 0 {
            tracing::warn!(processes = swept, "swept what an earlier life left running");
        }
        let wardens = Self {
            folder,
            own: tokio::sync::Mutex::default(),
            present: watch::Sender::default(),
            left,
            launches: Semaphore::new(LAUNCHES as usize),
            census: Arc::default(),
            terms,
        };
        wardens.end_groups().await;
        wardens.own().await?;
        Ok(Arc::new(wardens))
    }

    /// Ends the groups that an earlier life left, but for those of what is held.
    async fn end_groups(&self) {
        let Some(groups) = &self.terms.groups else { return };
        let held = self.left().flat_map(|link| link.all());
        let held = held.filter_map(|program| program.attempt()).collect();
        let ended = groups.end_all_but(&held).await;
        if ended > 0 {
            tracing::warn!(groups = ended, "removed control groups that an earlier life left");
        }
    }

    /// Ends what is held for executions that nobody took up.
    pub async fn end_the_unclaimed(&self) {
        self.end_but(|program| program.is_claimed()).await;
    }

    /// Ends all that is held but for these attempts.
    pub async fn end_all_but(&self, these: &HashSet<(ExecutionId, Stamp)>) {
        self.end_but(|program| program.attempt().is_some_and(|it| these.contains(&it))).await;
    }

    async fn end_but(&self, goes_on: impl Fn(&Program) -> bool) {
        for link in self.left() {
            for program in link.all().into_iter().filter(|program| !goes_on(program)) {
                let execution = program.attempt().map(|(id, _)| id.to_string());
                tracing::warn!(execution, "nobody takes its program up, which is ended");
                if let Ok(spawned) = self.held(Arc::clone(&link), program).await {
                    spawned.tree.sweep().await;
                }
            }
        }
    }

    /// The processes of the wardens that are there.
    pub fn pids(&self) -> Vec<u32> {
        let own = self.present.borrow().clone();
        let all = self.left().chain(own).map(|link| link.standing());
        all.filter(|standing| !standing.is_lost).filter_map(|standing| standing.pid).collect()
    }

    /// Ends all wardens with all that they hold.
    pub async fn end(&self) {
        let own = self.own.lock().await.take();
        for link in self.left().chain(own) {
            link.order(Order::Bye, Vec::new());
            if timeout(PATIENCE, link.until(|_| false)).await.is_err() {
                tracing::error!(pid = link.standing().pid, "a warden does not end");
            }
        }
        if let Some(groups) = &self.terms.groups {
            groups.close().await;
        }
    }

    /// Leaves all that is held to the next life of the service: from here on nothing is started,
    /// ended or forgotten.
    pub async fn leave(&self) -> Left {
        // What is being started comes to life, or not, before the count is made.
        if let Ok(Ok(all)) = timeout(PATIENCE, self.launches.acquire_many(LAUNCHES)).await {
            all.forget();
        }
        let own = self.own.lock().await.clone();
        let links: Vec<_> = self.left().chain(own).collect();
        links.iter().for_each(|link| link.fall_silent());
        let programs: Vec<_> = links.iter().flat_map(|link| link.all()).collect();
        let living = programs.iter().filter(|program| program.standing().has_survivors());
        let (ending, going_on): (Vec<_>, Vec<_>) = living.partition(|it| it.dies_alone());
        let (going_on, ending) = (going_on.len(), ending.len());
        Left { going_on, ending, patience: self.terms.patience }
    }

    /// The warden for what is new: the one that is there, or another in its place.
    async fn own(&self) -> io::Result<Arc<Link>> {
        let mut own = self.own.lock().await;
        if let Some(link) = own.as_ref().filter(|link| !link.standing().is_lost) {
            return Ok(Arc::clone(link));
        }
        let link = self.make().await?;
        *own = Some(Arc::clone(&link));
        self.present.send_replace(Some(Arc::clone(&link)));
        Ok(link)
    }

    async fn make(&self) -> io::Result<Arc<Link>> {
        let Origin { program, args } = &self.terms.origin;
        let (ours, its) = packet::pair()?;
        let mut command = Command::new(program);
        command.arg0("algonius").args(args).env_clear().current_dir("/");
        command.stdin(Stdio::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        drop(command); // It holds the other end.
        let link = Link::open(ours)?;
        let name = attach::fresh_name(self.terms.instance).into_bytes();
        let patience = u64::try_from(self.terms.patience.as_millis()).unwrap_or(u64::MAX);
        let hello = Order::Hello { version: VERSION, patience, name };
        link.order(hello, vec![Arc::clone(&self.folder)]);
        let gone = Arc::clone(&link);
        tokio::spawn(async move {
            gone.until(|_| false).await;
            _ = tokio::task::spawn_blocking(move || child.wait()).await;
        });
        let greeted = timeout(PATIENCE, link.until(|now| now.pid.is_some())).await;
        match greeted.is_ok_and(|standing| standing.pid.is_some()) {
            true => Ok(link),
            false => Err(io::Error::other("the warden did not begin")),
        }
    }

    /// Those of an earlier life that are still there.
    fn left(&self) -> impl Iterator<Item = Arc<Link>> {
        self.left.iter().filter(|link| !link.standing().is_lost).map(Arc::clone)
    }

    /// A program that is held, with the group that it has.
    async fn held(&self, link: Arc<Link>, program: Arc<Program>) -> io::Result<Spawned> {
        let groups = self.terms.groups.as_ref();
        let group = groups.zip(program.attempt()).and_then(|(groups, it)| groups.find(it));
        let claim = program.claims();
        spawned(link, (program, claim), Arc::clone(&self.census), group.map(Arc::new)).await
    }

    /// The group of a program that is about to be started, where it is to have one and can.
    fn group(&self, launch: &Launch) -> io::Result<Option<(Arc<Group>, OwnedFd)>> {
        let (resources, groups) = (&launch.resources, self.terms.groups.as_ref());
        let Some(groups) = groups.filter(|_| resources.wants_group()) else { return Ok(None) };
        let made = groups.make((launch.execution, launch.stamp), resources);
        let entered = made.and_then(|group| Ok((group.entrance()?, Arc::new(group))));
        match entered {
            Ok((entrance, group)) => Ok(Some((group, entrance))),
            Err(error) if resources.grouping == Grouping::Required => Err(io::Error::other(error)),
            Err(error) => {
                tracing::warn!(%error, "no control group for an execution, which is watched alone");
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
impl Warden for Wardens {
    async fn launch(&self, launch: Launch) -> io::Result<Spawned> {
        let _one = self.launches.acquire().await.map_err(io::Error::other)?;
        let link = self.own().await?;
        let (group, entrance) = self.group(&launch)?.unzip();
        let begun = begin(launch, entrance, self.terms.instance, link.fresh_slot());
        let Start { program, order, fds, feed } = match begun {
            Ok(start) => start,
            Err(error) => {
                end(group.as_ref()).await;
                return Err(error);
            }
        };
        link.add(Arc::clone(&program));
        if link.standing().is_lost {
            program.lose(); // The warden may have been lost before it could be told of this one.
        }
        link.order(order, fds);
        // From here on it is ended when nobody waits for it any more.
        // Whoever claims it while it is being started has it, and not who asked for it.
        let launched = spawned(link, (program, UNCLAIMED), Arc::clone(&self.census), group).await?;
        let stdin = feed.map(Sender::from_owned_fd).transpose()?.map(|feed| Box::pin(feed) as Feed);
        Ok(Spawned { stdin, ..launched })
    }

    fn claim(&self, execution: ExecutionId, stamp: Stamp) -> Option<Claimed> {
        let (_, program) = self.find(Label::of(self.terms.instance, execution, stamp))?;
        program.claim();
        Some(Claimed { age: program.age() })
    }

    async fn adopt(&self, execution: ExecutionId, stamp: Stamp) -> io::Result<Spawned> {
        let label = Label::of(self.terms.instance, execution, stamp);
        let (link, program) = self.find(label).ok_or(io::ErrorKind::NotFound)?;
        self.held(link, program).await
    }

    async fn sweep(&self, execution: ExecutionId, stamp: Stamp) -> usize {
        let label = Label::of(self.terms.instance, execution, stamp);
        if self.claim(execution, stamp).is_some()
            && let Ok(spawned) = self.adopt(execution, stamp).await
        {
            spawned.tree.sweep().await;
        }
        let killed = sweep::of_label(label).await;
        let groups = self.terms.groups.as_ref();
        end(groups.and_then(|groups| groups.find((execution, stamp))).map(Arc::new).as_ref()).await;
        killed
    }
}

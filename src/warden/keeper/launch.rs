//! Starts a program for the supervisor.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::super::frame::{Guard, Spec, Terms, Word};
use super::Keeper;
use super::birth::{self, Bounds, Limit, Stack};
use super::held::{Held, Stream};

/// From here on stand the descriptors that are held.
const USUAL_FLOOR: u64 = 1000;

/// How much sooner than others a program is ended when memory runs out.
const OUT_OF_MEMORY: &str = "500";

/// What every launch needs of the warden.
pub(super) struct Means {
    /// Descriptors of a program, as this process found them.
    files: Limit,
    floor: i32,
    stack: Stack,
}

impl Means {
    /// Takes as many descriptors as this process may have.
    ///
    /// # Errors
    /// When limits can be neither read nor set.
    pub(super) fn prepare() -> io::Result<Self> {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        let floor = i32::try_from(USUAL_FLOOR.min(hard / 2)).map_err(io::Error::other)?;
        let files = (Resource::RLIMIT_NOFILE as u32, soft, hard);
        Ok(Self { files, floor, stack: Stack::new() })
    }

    /// The limits of a program: first those that everybody gets.
    fn limits(&self, label: u64, spec: &Spec) -> Vec<Limit> {
        let label = (Resource::RLIMIT_LOCKS as u32, label, nix::libc::RLIM_INFINITY);
        let no_dump = (Resource::RLIMIT_CORE as u32, 0, 0);
        let own = spec
            .limits
            .iter()
            .filter_map(|(resource, limit)| Some((u32::try_from(*resource).ok()?, *limit, *limit)));
        [label, no_dump, self.files].into_iter().chain(own).collect()
    }
}

/// The descriptors of a launch, by what they are for.
struct Kit {
    streams: [OwnedFd; 3],
    ours: [OwnedFd; 4],
    bounds: Bounds,
    spec: Option<OwnedFd>,
}

impl Kit {
    /// Sorts what came; `None` when something did not arrive.
    fn sort(
        fds: Vec<OwnedFd>,
        Guard { is_confined, is_grouped, .. }: Guard,
        has_file: bool,
    ) -> Option<Self> {
        let mut fds = fds.into_iter();
        let mut next = || fds.next();
        let streams = [next()?, next()?, next()?];
        let ours = [next()?, next()?, next()?, next()?];
        let ruleset = if is_confined { Some(next()?) } else { None };
        let group = if is_grouped { Some(next()?) } else { None };
        let spec = if has_file { Some(next()?) } else { None };
        Some(Self { streams, ours, bounds: Bounds { ruleset, group }, spec })
    }
}

impl Keeper {
    pub(super) fn launch(
        &mut self,
        terms: Terms,
        spec: Option<Spec>,
        guard: Guard,
        fds: Vec<OwnedFd>,
    ) {
        let slot = terms.slot;
        let has_file = spec.is_none();
        // One that was taken over only finishes what it has.
        let allowed = if self.is_adopted { Err(Errno::EPERM) } else { Ok(()) };
        let launched = allowed
            .and_then(|()| Kit::sort(fds, guard, has_file).ok_or(Errno::EMFILE))
            .and_then(|kit| self.start(terms, spec, kit));
        if let Some(held) = self.held.get_mut(&slot) {
            held.is_wrapped = guard.is_wrapped;
        }
        self.say(match launched {
            Ok(pid) => Word::Launched { slot, pid: pid.unsigned_abs().into() },
            Err(errno) => Word::Refused { slot, errno: (errno as i32).unsigned_abs().into() },
        });
    }

    fn start(&mut self, terms: Terms, spec: Option<Spec>, kit: Kit) -> Result<i32, Errno> {
        let Kit { streams: [stdin, stdout, stderr], ours, bounds, spec: file } = kit;
        let spec = match (spec, file) {
            (Some(spec), _) => spec,
            (None, file) => file.and_then(read).ok_or(Errno::EBADMSG)?,
        };
        let [out, err, out_memory, err_memory] = &ours;
        let hold = |pipe, memory| {
            Stream::hold(pipe, memory, self.means.floor).map_err(|_full| Errno::EMFILE)
        };
        let streams = [hold(out, out_memory)?, hold(err, err_memory)?];
        let limits = self.means.limits(terms.label, &spec);
        let its = [&stdin, &stdout, &stderr];
        let pid = birth::start(&spec, its, &bounds, &limits, &mut self.means.stack)?;
        let pid = pid.as_raw();
        // Not in the child: there this process's own protection stands in the way.
        _ = fs::write(format!("/proc/{pid}/oom_score_adj"), OUT_OF_MEMORY);
        let slot = terms.slot;
        self.held.insert(slot, Held::new(terms, pid, streams));
        self.by_pid.insert(pid, slot);
        Ok(pid)
    }
}

fn read(file: OwnedFd) -> Option<Spec> {
    let (mut file, mut bytes) = (File::from(file), Vec::new());
    file.rewind().ok()?;
    file.read_to_end(&mut bytes).ok()?;
    Spec::decode(&bytes)
}

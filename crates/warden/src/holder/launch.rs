//! Starts a program for the supervisor.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::ProcessHolder;
use super::clone_exec::{self, ChildStack, Rlimit, StartConfinement};
use super::held_program::{HeldFds, HeldProgram};
use crate::inherited_state::soft_limits::SoftLimit;
use crate::protocol::frame::HolderEvent;
use crate::protocol::launch_frame::{HoldTerms, LaunchFlags, LaunchSpec};

/// First number for held descriptors.
const PREFERRED_MIN_HELD_FD: u64 = 1000;

/// Adjustment of the out-of-memory score: the kernel kills programs before other processes.
const OOM_SCORE_ADJ: &str = "500";

/// Resources that every launch uses.
pub(super) struct LaunchResources {
    /// Limits that every program has.
    program_limits: Vec<Rlimit>,
    min_held_fd: i32,
    stack: ChildStack,
}

impl LaunchResources {
    /// Raises the descriptor limit of this process to the maximum. Programs get these soft limits, and this process's
    /// own of the other resources.
    ///
    /// # Errors
    /// Fails if limits can be neither read nor set.
    pub(super) fn prepare(soft_limits: &[SoftLimit]) -> io::Result<Self> {
        // Each held program occupies up to six descriptors here, so the inherited soft limit would allow few programs.
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        let min_held_fd =
            i32::try_from(PREFERRED_MIN_HELD_FD.min(hard / 2)).map_err(io::Error::other)?;
        // A limit from the arguments follows, and takes effect.
        let mut program_limits = vec![(Resource::RLIMIT_NOFILE as u32, soft, hard)];
        for SoftLimit { resource, value } in soft_limits {
            let (_, hard) = getrlimit(*resource)?;
            if *resource == Resource::RLIMIT_NPROC {
                // At this limit the start of a program fails here, before the program has done anything.
                setrlimit(*resource, *value.min(&hard), hard)?;
            }
            program_limits.push((*resource as u32, *value.min(&hard), hard));
        }
        Ok(Self { program_limits, min_held_fd, stack: ChildStack::new() })
    }

    /// Returns the limits of a program: first those of every program.
    fn limits(&self, process_label: u64, spec: &LaunchSpec) -> Vec<Rlimit> {
        // Linux ignores this limit, but every descendant inherits it: it carries the label.
        let label_limit = (Resource::RLIMIT_LOCKS as u32, process_label, nix::libc::RLIM_INFINITY);
        let no_dump = (Resource::RLIMIT_CORE as u32, 0, 0);
        let spec_limits = spec
            .limits
            .iter()
            .filter_map(|(resource, limit)| Some((u32::try_from(*resource).ok()?, *limit, *limit)));
        let program_limits = self.program_limits.iter().copied();
        [label_limit, no_dump].into_iter().chain(program_limits).chain(spec_limits).collect()
    }
}

/// Descriptors of a launch, by purpose.
struct LaunchFds {
    streams: [OwnedFd; 3],
    held_output_fds: [OwnedFd; 4],
    confinement: StartConfinement,
    /// Write end of standard input and its journal, if the input is journaled.
    held_stdin: Option<[OwnedFd; 2]>,
    spec_file: Option<OwnedFd>,
}

impl LaunchFds {
    /// Returns the received descriptors by their purpose; `None` if one did not arrive.
    fn from_received(fds: Vec<OwnedFd>, flags: LaunchFlags, has_spec_file: bool) -> Option<Self> {
        let mut fds = fds.into_iter();
        let mut next = || fds.next();
        let streams = [next()?, next()?, next()?];
        let held_output_fds = [next()?, next()?, next()?, next()?];
        let ruleset = if flags.is_confined { Some(next()?) } else { None };
        let procs_file = if flags.has_control_group { Some(next()?) } else { None };
        let held_stdin = if flags.has_stdin_journal { Some([next()?, next()?]) } else { None };
        let spec_file = if has_spec_file { Some(next()?) } else { None };
        Some(Self {
            streams,
            held_output_fds,
            confinement: StartConfinement { ruleset, procs_file, network: flags.network },
            held_stdin,
            spec_file,
        })
    }
}

impl ProcessHolder {
    pub(super) fn launch(
        &mut self,
        hold_terms: HoldTerms,
        spec: Option<LaunchSpec>,
        flags: LaunchFlags,
        fds: Vec<OwnedFd>,
    ) {
        let (program_number, has_spec_file) = (hold_terms.program_number, spec.is_none());
        // For a successor of its first supervisor, a process holder only finishes its programs.
        let allowed = if self.supervisor.is_successor { Err(Errno::EPERM) } else { Ok(()) };
        let launch_result = allowed
            .and_then(|()| LaunchFds::from_received(fds, flags, has_spec_file).ok_or(Errno::EMFILE))
            .and_then(|fds| self.start_program(hold_terms, spec, fds))
            .map_err(|errno| (errno as i32).unsigned_abs());
        if let Some(program) = self.programs.program_mut(program_number) {
            program.has_wrapper_process = flags.has_wrapper_process;
        }
        self.send_event(match launch_result {
            Ok(pid) => HolderEvent::Launched { program_number, pid: pid.unsigned_abs().into() },
            Err(errno) => HolderEvent::LaunchFailed { program_number, errno: errno.into() },
        });
    }

    fn start_program(
        &mut self,
        hold_terms: HoldTerms,
        spec: Option<LaunchSpec>,
        fds: LaunchFds,
    ) -> Result<i32, Errno> {
        let LaunchFds { streams, held_output_fds, confinement, held_stdin, spec_file } = fds;
        let spec = match (spec, spec_file) {
            (Some(spec), _) => spec,
            (None, spec_file) => spec_file.and_then(read_spec).ok_or(Errno::EBADMSG)?,
        };
        // Before the clone: a full descriptor table then refuses the launch, instead of losing a started program.
        let held_fds = HeldFds::duplicate_fds(
            &held_output_fds,
            held_stdin.as_ref(),
            self.resources.min_held_fd,
        );
        let held_fds = held_fds.map_err(|_full| Errno::EMFILE)?;
        let limits = self.resources.limits(hold_terms.process_label, &spec);
        let (streams, stack) = (streams.each_ref(), &mut self.resources.stack);
        let pid = clone_exec::start(&spec, streams, &confinement, &limits, stack)?.as_raw();
        // Not in the child: there the non-dumpable state of this process prevents the write.
        _ = fs::write(format!("/proc/{pid}/oom_score_adj"), OOM_SCORE_ADJ);
        // No exit can be missed in between: SIGCHLD is blocked and read by the event loop, after this order.
        self.programs.insert(HeldProgram::new(hold_terms, pid, held_fds));
        Ok(pid)
    }
}

fn read_spec(file: OwnedFd) -> Option<LaunchSpec> {
    let (mut file, mut bytes) = (File::from(file), Vec::new());
    file.rewind().ok()?;
    file.read_to_end(&mut bytes).ok()?;
    LaunchSpec::decode(&bytes)
}

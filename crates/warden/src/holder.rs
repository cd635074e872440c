//! Process holder: a process with one thread that starts programs and stores their output for any supervisor.
//!
//! The process holder never waits for a supervisor. While one is attached, it moves no output; after the supervisor is
//! lost, it stores the output for the agreed time, and then ends everything.

mod clone_exec;
mod held_program;
mod launch;
mod programs;
mod reattach_socket;
mod supervisor_link;
mod syscall_filter;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use nix::unistd::getpid;

use self::launch::LaunchResources;
use self::programs::{HeldPrograms, KillResult};
use self::reattach_socket::ReattachSocket;
use self::supervisor_link::{SendResult, SupervisorLink};
use super::inherited_state::soft_limits::SoftLimit;
use super::process::signal::{ReapedChild, reap};
use super::protocol::frame::{FRAME_VERSION, HolderEvent, HolderOrder, SecretValue};
use super::protocol::packet::Packet;

/// Pause between two rounds of killing processes.
const KILL_ROUND_PAUSE: Duration = Duration::from_millis(5);

/// Epoll tokens of the watched descriptors. A stream has twice its program number, or one more, above these.
const SUPERVISOR_TOKEN: u64 = 0;
const REATTACH_TOKEN: u64 = 1;
const SIGNALS_TOKEN: u64 = 2;
const UNAUTHENTICATED_PEERS_TOKEN: u64 = 3;
const FIRST_STREAM_TOKEN: u64 = 8;

/// State of the process holder.
struct ProcessHolder {
    epoll: Epoll,
    signals: SignalFd,
    supervisor: SupervisorLink,
    /// Listening socket for the next supervisor.
    reattach_socket: Option<ReattachSocket>,
    programs: HeldPrograms,
    /// Bytes that are held for the next supervisor.
    stored_secret: Option<SecretValue>,
    resources: LaunchResources,
    /// True if everything is to end.
    is_ending: bool,
}

/// Serves the supervisor at the other end of this socket, and its successors. Programs get these soft limits.
///
/// # Errors
/// Fails if the system does not provide the minimum that a process holder needs.
pub(super) fn run_holder(
    supervisor_socket: OwnedFd,
    signals: SignalFd,
    soft_limits: &[SoftLimit],
) -> io::Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&supervisor_socket, EpollEvent::new(EpollFlags::EPOLLIN, SUPERVISOR_TOKEN))?;
    epoll.add(&signals, EpollEvent::new(EpollFlags::EPOLLIN, SIGNALS_TOKEN))?;
    let holder = ProcessHolder {
        epoll,
        signals,
        supervisor: SupervisorLink::new(supervisor_socket),
        reattach_socket: None,
        programs: HeldPrograms::open(),
        stored_secret: None,
        resources: LaunchResources::prepare(soft_limits)?,
        is_ending: false,
    };
    holder.run()
}

impl ProcessHolder {
    fn run(mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        while !self.is_done() {
            let count = match self.epoll.wait(&mut events, self.time_until_next_action()) {
                // A stop and continue of this process interrupts the wait, which is not an error.
                Err(nix::errno::Errno::EINTR) => 0,
                count => count?,
            };
            for event in events.iter().take(count) {
                self.dispatch(event.data());
            }
            // After the events: a `List` order in this batch ends the reattach grace before it is checked.
            self.run_timed_actions();
        }
        Ok(())
    }

    /// Returns true if no process is alive, and no further order can come.
    fn is_done(&self) -> bool {
        let is_cleanup_done = self.programs.iter().all(|program| program.is_cleanup_done);
        let SupervisorLink { storing_since, is_successor, .. } = &self.supervisor;
        (self.is_ending && is_cleanup_done)
            || (self.programs.is_empty() && (storing_since.is_some() || *is_successor))
    }

    /// Returns the time until the next timed action.
    fn time_until_next_action(&self) -> EpollTimeout {
        let is_killing = self.programs.iter().any(|program| program.killed_so_far.is_some());
        let time_left = self.supervisor.remaining_reattach_grace().filter(|_| !self.is_ending);
        let pause = if is_killing { Some(KILL_ROUND_PAUSE) } else { time_left };
        pause.map_or(EpollTimeout::NONE, timeout_after)
    }

    fn dispatch(&mut self, token: u64) {
        match token {
            SUPERVISOR_TOKEN => self.handle_pending_orders(),
            REATTACH_TOKEN => self.accept_peers(),
            UNAUTHENTICATED_PEERS_TOKEN => self.authenticate_connections(),
            SIGNALS_TOKEN => self.handle_signals(),
            // A fetched event is outdated if the supervisor began to read in the same batch: only one side may splice.
            _ if self.supervisor.storing_since.is_none() => {}
            stream => self.programs.pump(stream - FIRST_STREAM_TOKEN, &self.epoll),
        }
    }

    fn run_timed_actions(&mut self) {
        if self.supervisor.remaining_reattach_grace().is_some_and(|left| left.is_zero()) {
            self.end_everything();
        }
        self.run_kill_rounds();
    }

    /// Handles all pending orders of the supervisor.
    fn handle_pending_orders(&mut self) {
        while let Some(received) = self.supervisor.receive() {
            match received {
                Ok(Some(packet)) => self.handle_order(packet),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => self.handle_supervisor_loss(),
            }
        }
        self.send_events();
    }

    fn handle_order(&mut self, Packet { frame, fds }: Packet) {
        // An unknown order is of a later version and is ignored.
        let Some(order) = HolderOrder::decode(&frame) else { return };
        match order {
            HolderOrder::Hello { version, reattach_grace_ms, socket_name: name, key } => {
                self.supervisor.frame_version = version;
                self.supervisor.reattach_grace = Duration::from_millis(reattach_grace_ms);
                self.open_reattach_socket(&name, key, fds);
                let pid = getpid().as_raw().unsigned_abs().into();
                self.send_event(HolderEvent::Hello { version: FRAME_VERSION, pid });
            }
            HolderOrder::Launch { hold_terms, spec, flags } => {
                self.launch(hold_terms, spec, flags, fds);
            }
            HolderOrder::Terminate { program_number } => self.programs.terminate(program_number),
            HolderOrder::Kill { program_number } => self.kill_processes(program_number),
            HolderOrder::Release { program_number } => {
                release(&mut self.programs, program_number, &self.epoll);
            }
            HolderOrder::CloseStdin { program_number } => self.programs.close_stdin(program_number),
            HolderOrder::List => self.hand_over_programs(),
            // Only an explicit goodbye ends the programs at once; a supervisor that is just gone may be upgrading.
            HolderOrder::Shutdown => self.end_everything(),
            HolderOrder::StoreSecret { secret } => self.stored_secret = Some(secret),
            // The present supervisor has proved the key before, or has started this process.
            HolderOrder::Challenge { .. } | HolderOrder::Authenticate { .. } => {}
        }
    }

    /// Queues an event for the supervisor.
    fn send_event(&mut self, event: HolderEvent) {
        self.supervisor.queue_event(event);
        self.send_events();
    }

    fn send_events(&mut self) {
        if self.supervisor.send_events(&self.programs, &self.epoll) == SendResult::Disconnected {
            self.handle_supervisor_loss();
        }
    }

    /// Handles the loss of the supervisor: from then on the output is stored here.
    fn handle_supervisor_loss(&mut self) {
        self.supervisor.disconnect(&self.epoll);
        for program_number in self.programs.program_numbers() {
            let program = self.programs.get(program_number);
            if program.is_some_and(|it| it.hold_terms.ends_with_supervisor || it.end.is_some()) {
                self.kill_processes(program_number);
            }
            self.programs.set_streams_watched(program_number, true, &self.epoll);
        }
    }

    fn handle_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let is_child = signal.ssi_signo == nix::libc::SIGCHLD.unsigned_abs();
            // While a supervisor is attached, it decides when everything ends.
            if !is_child && !self.supervisor.is_connected() {
                self.end_everything();
            }
        }
        self.reap_all();
    }

    /// Reaps all ended children before their orphans are examined.
    fn reap_all(&mut self) {
        let reaped_children: Vec<_> = std::iter::from_fn(|| reap(None)).collect();
        reaped_children.iter().for_each(|dead| self.handle_exit(dead));
    }

    /// Handles an ended child: a held program, or an orphan of one.
    fn handle_exit(&mut self, child: &ReapedChild) {
        let Some((program_number, end)) = self.programs.record_end(child) else { return };
        self.send_event(HolderEvent::Ended { program_number, end });
        // Without a supervisor nobody would order the clean-up of what the program left behind.
        if !self.supervisor.is_connected() {
            self.kill_processes(program_number);
        }
    }

    /// Kills all processes of a program, repeatedly until none is left.
    fn kill_processes(&mut self, program_number: u64) {
        let Some(program) = self.programs.program_mut(program_number) else { return };
        if program.is_cleanup_done {
            let result = KillResult { killed_count: 0, survivor_count: 0 };
            return self.send_event(kill_finished_event(program_number, result));
        }
        // A repeated order continues the count of killed processes.
        program.killed_so_far.get_or_insert(0);
        self.run_kill_round(program_number);
    }

    /// Runs one round over all programs that are being killed.
    fn run_kill_rounds(&mut self) {
        if self.programs.programs_being_killed().is_empty() {
            return;
        }
        // Zombies would otherwise count as living processes and cost one more round.
        self.reap_all();
        for program_number in self.programs.programs_being_killed() {
            self.run_kill_round(program_number);
        }
    }

    fn run_kill_round(&mut self, program_number: u64) {
        if let Some(result) = self.programs.run_kill_round(program_number) {
            self.send_event(kill_finished_event(program_number, result));
        }
    }

    fn end_everything(&mut self) {
        self.is_ending = true;
        for program_number in self.programs.program_numbers() {
            self.kill_processes(program_number);
        }
    }
}

/// Returns the event that reports the result of a kill.
const fn kill_finished_event(program_number: u64, result: KillResult) -> HolderEvent {
    let KillResult { killed_count: killed, survivor_count: survivors } = result;
    HolderEvent::KillFinished { program_number, killed_count: killed, survivor_count: survivors }
}

/// Returns the timeout of a wait for this time.
fn timeout_after(pause: Duration) -> EpollTimeout {
    // One millisecond more, so that the wait does not end before the time.
    EpollTimeout::from(u16::try_from(pause.as_millis() + 1).unwrap_or(u16::MAX))
}

fn release(programs: &mut HeldPrograms, program_number: u64, epoll: &Epoll) {
    programs.set_streams_watched(program_number, false, epoll);
    programs.release(program_number);
}

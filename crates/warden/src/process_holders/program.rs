//! Held program from the supervisor's side: its streams, and the state that its process holder reported.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::ProcessExit;
use nix::sys::stat::fstat;
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

use crate::output::memory_account::MemoryAccount;
use crate::output::recording::OutputRecording;
use crate::output::stdin_journal::{CloseStdinCallback, StdinFds, StdinJournal, StdinState};
use crate::output::stream::{ProgramStream, StreamFds};
use crate::process::process_label::ProcessLabel;
use crate::process::procfs::process_age;
use crate::protocol::frame::{HolderEvent, ProgramEnd};
use crate::protocol::launch_frame::HoldTerms;

/// Takeover number of a program that is driven by the task that launched it.
pub(crate) const LAUNCHER_TAKEOVER_NUMBER: u32 = 0;

/// Reported state of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProgramState {
    pub(crate) pid: Option<u32>,
    pub(crate) launch_errno: Option<i32>,
    pub(crate) end: Option<ProgramEnd>,
    /// Number of killed processes, after the last one was killed.
    pub(crate) killed_process_count: Option<u64>,
    /// Number of processes that do not die.
    pub(crate) survivor_count: u64,
    /// True if its process holder is lost.
    pub(crate) is_lost: bool,
}

impl ProgramState {
    /// Returns true if a process of the program may be alive.
    pub(crate) fn may_have_live_processes(&self) -> bool {
        self.killed_process_count.is_none() && self.end.is_none_or(|end| end.has_survivors)
    }
}

/// Program in a process holder.
pub(crate) struct ProgramHandle {
    hold_terms: HoldTerms,
    streams: [StreamFds; 2],
    /// Journaled standard input, with the lock of its present writer.
    stdin_state: Option<Arc<Mutex<StdinState>>>,
    memory_account: MemoryAccount,
    /// Lock of the present reader of the streams.
    reader_lock: Arc<Mutex<()>>,
    state: watch::Sender<ProgramState>,
    /// Number of takeovers: the driver of the latest one drives the program.
    takeover_count: watch::Sender<u32>,
}

impl ProgramHandle {
    /// Returns a program that is about to start.
    pub(crate) fn new(
        hold_terms: HoldTerms,
        streams: [StreamFds; 2],
        memory_account: MemoryAccount,
    ) -> Self {
        let (reader_lock, state, takeover_count) =
            (Arc::default(), watch::Sender::default(), watch::Sender::default());
        Self {
            hold_terms,
            streams,
            stdin_state: None,
            memory_account,
            reader_lock,
            state,
            takeover_count,
        }
    }

    /// Returns the same program with a journaled standard input.
    pub(crate) fn with_stdin_journal(mut self, stdin_fds: Option<StdinFds>) -> Self {
        self.stdin_state = stdin_fds.map(|fds| StdinState::new_shared(fds, &self.memory_account));
        self
    }

    /// Returns a program that an earlier process instance started, or `None` if a descriptor did not arrive. The
    /// descriptors of a journaled input follow those of the outputs.
    pub(crate) fn from_earlier_instance(
        hold_terms: HoldTerms,
        pid: u64,
        end: Option<ProgramEnd>,
        (mut fds, has_stdin_journal): (Vec<OwnedFd>, bool),
        memory_account: MemoryAccount,
    ) -> Option<Self> {
        let stdin_fds = if has_stdin_journal {
            let (journal, pipe) = (Arc::new(fds.pop()?), Arc::new(fds.pop()?));
            Some(StdinFds { pipe, journal })
        } else {
            None
        };
        let fds: [OwnedFd; 4] = fds.try_into().ok()?;
        let [stdout_pipe, stderr_pipe, out_memory, err_memory] = fds.map(Arc::new);
        let streams = [
            StreamFds { pipe: stdout_pipe, memory_file: out_memory },
            StreamFds { pipe: stderr_pipe, memory_file: err_memory },
        ];
        let lengths = streams.iter().filter_map(|ends| fstat(&ends.memory_file).ok());
        // Bytes that were recorded before this process started use memory too.
        memory_account.charge(lengths.map(|file| file.st_size.unsigned_abs()).sum());
        let program = Self::new(hold_terms, streams, memory_account).with_stdin_journal(stdin_fds);
        let pid = u32::try_from(pid).ok();
        program
            .state
            .send_modify(|process_state| (process_state.pid, process_state.end) = (pid, end));
        Some(program)
    }

    pub(crate) fn program_number(&self) -> u64 {
        self.hold_terms.program_number
    }

    pub(crate) fn label(&self) -> ProcessLabel {
        ProcessLabel(self.hold_terms.process_label)
    }

    /// Returns true if the program ends when its supervisor is gone.
    pub(crate) fn ends_with_supervisor(&self) -> bool {
        self.hold_terms.ends_with_supervisor
    }

    /// Returns the attempt of the program.
    pub(crate) fn attempt(&self) -> Option<(ExecutionId, AttemptId)> {
        decode_attempt(&self.hold_terms.metadata)
    }

    /// Returns the number of its scratch slot, as the service recorded it at the launch.
    pub(crate) fn scratch_slot(&self) -> Option<u64> {
        decode_scratch_slot(&self.hold_terms.metadata)
    }

    /// Takes over the program, in place of its present driver.
    pub(crate) fn record_takeover(&self) {
        self.takeover_count.send_modify(|takeover_count| *takeover_count += 1);
    }

    /// Returns the number of takeovers.
    pub(crate) fn latest_takeover_number(&self) -> u32 {
        *self.takeover_count.borrow()
    }

    /// Returns when a takeover after the one with this number exists.
    pub(crate) async fn wait_for_next_takeover(&self, known_takeover: u32) {
        _ = self
            .takeover_count
            .subscribe()
            .wait_for(|takeover_count| *takeover_count != known_takeover)
            .await;
    }

    /// Returns the running time; `None` after the end, because the process id may be reused.
    pub(crate) fn age(&self) -> Option<Duration> {
        let process_state = self.state();
        let pid = process_state.pid.filter(|_| process_state.end.is_none())?;
        process_age(i32::try_from(pid).ok()?)
    }

    pub(crate) fn is_taken_over(&self) -> bool {
        self.latest_takeover_number() != LAUNCHER_TAKEOVER_NUMBER
    }

    pub(crate) fn state(&self) -> ProgramState {
        *self.state.borrow()
    }

    pub(crate) fn handle_event(&self, event: &HolderEvent) {
        self.state.send_modify(|process_state| match event {
            HolderEvent::Launched { pid, .. } => process_state.pid = u32::try_from(*pid).ok(),
            HolderEvent::LaunchFailed { errno, .. } => {
                process_state.launch_errno = i32::try_from(*errno).ok();
            }
            HolderEvent::Ended { end, .. } => process_state.end = Some(*end),
            HolderEvent::KillFinished {
                killed_count: killed, survivor_count: survivors, ..
            } => {
                (process_state.killed_process_count, process_state.survivor_count) =
                    (Some(*killed), *survivors);
            }
            HolderEvent::Hello { .. }
            | HolderEvent::ProgramListed { .. }
            | HolderEvent::ListFinished
            | HolderEvent::StoredSecret { .. }
            | HolderEvent::ChallengeResponse { .. } => {}
        });
    }

    pub(crate) fn handle_holder_loss(&self) {
        self.state.send_modify(|process_state| process_state.is_lost = true);
    }

    /// Returns when a condition of the program is true, or when its process holder is lost.
    pub(crate) async fn wait_until_or_lost(
        &self,
        condition: impl Fn(&ProgramState) -> bool,
    ) -> ProgramState {
        let mut changes = self.state.subscribe();
        let found = changes.wait_for(|state| condition(state) || state.is_lost).await;
        found.map_or_else(|_| self.state(), |found| *found)
    }

    /// Returns the exit of the program.
    ///
    /// # Errors
    /// `ConnectionAborted` if its process holder was lost before the end.
    pub(crate) async fn wait_for_exit(self: Arc<Self>) -> io::Result<ProcessExit> {
        let end = self.wait_until_or_lost(|state| state.end.is_some()).await.end;
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        to_process_exit(ExitStatus::from_raw(
            u32::try_from(end.status).unwrap_or(u32::MAX).cast_signed(),
        ))
    }

    /// Returns the program's account of the memory for output.
    pub(crate) const fn memory_account(&self) -> &MemoryAccount {
        &self.memory_account
    }

    /// Returns the memory files of standard output and of standard error.
    pub(crate) fn recordings(&self) -> [OutputRecording; 2] {
        let [out, err] = &self.streams;
        [out, err].map(|ends| {
            OutputRecording::from_memory_file(
                Arc::clone(&ends.memory_file),
                self.memory_account.clone(),
            )
        })
    }

    /// Returns its two streams from their first byte, after any other reader has stopped.
    ///
    /// # Errors
    /// Fails if the runtime cannot watch them.
    pub(crate) async fn open_streams(&self) -> io::Result<[ProgramStream; 2]> {
        let reader_lock = Arc::new(Arc::clone(&self.reader_lock).lock_owned().await);
        let limit_and_account =
            || (self.hold_terms.max_recorded_bytes, self.memory_account.clone());
        let open = |ends| ProgramStream::open(ends, limit_and_account(), Arc::clone(&reader_lock));
        let [out, err] = &self.streams;
        Ok([open(out)?, open(err)?])
    }

    /// Returns its journaled standard input, after any other writer has stopped; `None` if it has none, or closed it.
    ///
    /// # Errors
    /// Fails if the journal is corrupt, or if the runtime cannot watch the pipe.
    pub(crate) async fn attach_stdin_journal(
        &self,
        close: CloseStdinCallback,
    ) -> io::Result<Option<StdinJournal>> {
        let Some(stdin_state) = &self.stdin_state else { return Ok(None) };
        let state = Arc::clone(stdin_state).lock_owned().await;
        Ok(StdinJournal::attach(state, close)?)
    }
}

fn to_process_exit(status: ExitStatus) -> io::Result<ProcessExit> {
    let code = status.code().map(ProcessExit::Code);
    let exit = code.or_else(|| status.signal().map(ProcessExit::Signal));
    exit.ok_or_else(|| io::Error::other("the program ended neither by itself nor by a signal"))
}

/// Bytes of an attempt's metadata that precede the number of its scratch slot.
const SCRATCH_SLOT_OFFSET: usize = 24;

/// Encodes the attempt and its scratch slot for the process holder.
pub(crate) fn encode_metadata(
    execution: ExecutionId,
    attempt_id: AttemptId,
    scratch_slot: Option<u64>,
) -> Vec<u8> {
    let mut meta = execution.0.as_bytes().to_vec();
    meta.extend(attempt_id.turn.to_le_bytes());
    meta.extend(attempt_id.attempt.to_le_bytes());
    meta.extend(scratch_slot.into_iter().flat_map(u64::to_le_bytes));
    meta
}

fn decode_scratch_slot(meta: &[u8]) -> Option<u64> {
    let (number, _later) = meta.get(SCRATCH_SLOT_OFFSET..)?.split_first_chunk()?;
    Some(u64::from_le_bytes(*number))
}

fn decode_attempt(meta: &[u8]) -> Option<(ExecutionId, AttemptId)> {
    let (id, rest) = meta.split_first_chunk::<16>()?;
    let (turn, rest) = rest.split_first_chunk()?;
    let (attempt, _later) = rest.split_first_chunk()?;
    let attempt_id =
        AttemptId { turn: u32::from_le_bytes(*turn), attempt: u32::from_le_bytes(*attempt) };
    Some((ExecutionId(Uuid::from_bytes(*id)), attempt_id))
}

#[cfg(test)]
mod tests {
    use super::{
        SCRATCH_SLOT_OFFSET, decode_attempt, decode_scratch_slot, encode_metadata, to_process_exit,
    };
    use algonius_actors::model::execution::AttemptId;
    use algonius_actors::model::id::ExecutionId;
    use algonius_actors::model::program::ProcessExit;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn attempt_metadata_survives_a_round_trip() {
        let (execution, attempt_id) =
            (ExecutionId::generate(), AttemptId { turn: 2, attempt: 700 });
        let encoded = encode_metadata(execution, attempt_id, Some(1 << 40));
        assert_eq!(decode_attempt(&encoded), Some((execution, attempt_id)));
        assert_eq!(decode_scratch_slot(&encoded), Some(1 << 40));
        assert_eq!(decode_scratch_slot(&encode_metadata(execution, attempt_id, None)), None);
        assert_eq!(decode_attempt(&encoded[..SCRATCH_SLOT_OFFSET - 1]), None);
    }

    #[test]
    fn an_exit_status_is_a_code_or_a_signal() {
        assert_eq!(to_process_exit(ExitStatus::from_raw(3 << 8)).unwrap(), ProcessExit::Code(3));
        assert_eq!(to_process_exit(ExitStatus::from_raw(9)).unwrap(), ProcessExit::Signal(9));
    }
}

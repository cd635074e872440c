//! A program as the supervisor knows it: the ends of its streams, and what its warden told of it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

use super::frame::{End, Terms, Word};
use super::label::Label;
use super::proc::age;
use super::stream::{Ends, Stream};

/// How often a program was claimed that is driven by who had it started.
pub(super) const UNCLAIMED: u32 = 0;

/// What was told so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Standing {
    pub(super) pid: Option<u32>,
    pub(super) refused: Option<i32>,
    pub(super) end: Option<End>,
    /// How many had to be killed, once it is done with.
    pub(super) cleared: Option<u64>,
    /// How many do not die.
    pub(super) undying: u64,
    /// Whether its warden is gone.
    pub(super) is_lost: bool,
}

impl Standing {
    /// Whether anything of it may live.
    pub(super) fn has_survivors(&self) -> bool {
        self.cleared.is_none() && self.end.is_none_or(|end| end.has_survivors)
    }
}

/// A program.
pub(super) struct Program {
    terms: Terms,
    streams: [Ends; 2],
    /// Held by who reads the streams.
    turn: Arc<Mutex<()>>,
    standing: watch::Sender<Standing>,
    /// How often it was claimed: whoever did last drives it.
    claims: watch::Sender<u32>,
}

impl Program {
    /// One that is about to be started.
    pub(super) fn new(terms: Terms, streams: [Ends; 2]) -> Self {
        let (turn, standing) = (Arc::default(), watch::Sender::default());
        Self { terms, streams, turn, standing, claims: watch::Sender::default() }
    }

    /// One that an earlier life started; `None` when something of it did not arrive.
    pub(super) fn held(
        terms: Terms,
        pid: u64,
        end: Option<End>,
        fds: Vec<OwnedFd>,
    ) -> Option<Self> {
        let fds: [OwnedFd; 4] = fds.try_into().ok()?;
        let [out, err, out_memory, err_memory] = fds.map(Arc::new);
        let streams =
            [Ends { pipe: out, memory: out_memory }, Ends { pipe: err, memory: err_memory }];
        let program = Self::new(terms, streams);
        let pid = u32::try_from(pid).ok();
        program.standing.send_modify(|standing| (standing.pid, standing.end) = (pid, end));
        Some(program)
    }

    pub(super) fn slot(&self) -> u64 {
        self.terms.slot
    }

    pub(super) fn label(&self) -> Label {
        Label(self.terms.label)
    }

    /// Whether it ends when its supervisor is gone.
    pub(super) fn dies_alone(&self) -> bool {
        self.terms.dies_alone
    }

    /// The attempt for which it works.
    pub(super) fn attempt(&self) -> Option<(ExecutionId, Stamp)> {
        read_meta(&self.terms.meta)
    }

    /// Somebody will drive it, in place of whoever does.
    pub(super) fn claim(&self) {
        self.claims.send_modify(|claims| *claims += 1);
    }

    /// How often it was claimed.
    pub(super) fn claims(&self) -> u32 {
        *self.claims.borrow()
    }

    /// Returns when it is claimed by another than the one with this number.
    pub(super) async fn taken(&self, claim: u32) {
        _ = self.claims.subscribe().wait_for(|claims| *claims != claim).await;
    }

    /// How long it has run; `None` where it has ended, and its number may be another's.
    pub(super) fn age(&self) -> Option<Duration> {
        let standing = self.standing();
        let pid = standing.pid.filter(|_| standing.end.is_none())?;
        age(i32::try_from(pid).ok()?)
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.claims() != UNCLAIMED
    }

    pub(super) fn standing(&self) -> Standing {
        *self.standing.borrow()
    }

    pub(super) fn hear(&self, word: &Word) {
        self.standing.send_modify(|standing| match word {
            Word::Launched { pid, .. } => standing.pid = u32::try_from(*pid).ok(),
            Word::Refused { errno, .. } => standing.refused = i32::try_from(*errno).ok(),
            Word::Ended { end, .. } => standing.end = Some(*end),
            Word::Cleared { killed, left, .. } => {
                (standing.cleared, standing.undying) = (Some(*killed), *left);
            }
            Word::Hello { .. } | Word::Held { .. } | Word::Listed => {}
        });
    }

    pub(super) fn lose(&self) {
        self.standing.send_modify(|standing| standing.is_lost = true);
    }

    /// Returns when something is true of it, or its warden is gone.
    pub(super) async fn until(&self, claim: impl Fn(&Standing) -> bool) -> Standing {
        let mut standing = self.standing.subscribe();
        let found = standing.wait_for(|now| claim(now) || now.is_lost).await;
        found.map_or_else(|_| self.standing(), |found| *found)
    }

    /// How it ended.
    ///
    /// # Errors
    /// `ConnectionAborted` when its warden was gone before it ended.
    pub(super) async fn ending(self: Arc<Self>) -> io::Result<Exit> {
        let end = self.until(|now| now.end.is_some()).await.end;
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        exit(ExitStatus::from_raw(u32::try_from(end.status).unwrap_or(u32::MAX).cast_signed()))
    }

    /// Its two streams from their first byte, once nobody else reads them.
    ///
    /// # Errors
    /// When the runtime cannot watch them.
    pub(super) async fn streams(&self) -> io::Result<[Stream; 2]> {
        let turn = Arc::new(Arc::clone(&self.turn).lock_owned().await);
        let open = |ends| Stream::open(ends, self.terms.cap, Arc::clone(&turn));
        let [out, err] = &self.streams;
        Ok([open(out)?, open(err)?])
    }
}

fn exit(status: ExitStatus) -> io::Result<Exit> {
    let code = status.code().map(Exit::Code);
    let exit = code.or_else(|| status.signal().map(Exit::Signal));
    exit.ok_or_else(|| io::Error::other("the program ended neither by itself nor by a signal"))
}

/// The attempt, in the form in which its warden keeps it.
pub(super) fn meta(execution: ExecutionId, stamp: Stamp) -> Vec<u8> {
    let mut meta = execution.0.as_bytes().to_vec();
    meta.extend(stamp.turn.to_le_bytes());
    meta.extend(stamp.attempt.to_le_bytes());
    meta
}

fn read_meta(meta: &[u8]) -> Option<(ExecutionId, Stamp)> {
    let (id, rest) = meta.split_first_chunk::<16>()?;
    let (turn, rest) = rest.split_first_chunk()?;
    let (attempt, _later) = rest.split_first_chunk()?;
    let stamp = Stamp { turn: u32::from_le_bytes(*turn), attempt: u32::from_le_bytes(*attempt) };
    Some((ExecutionId(Uuid::from_bytes(*id)), stamp))
}

#[cfg(test)]
mod tests {
    use super::{exit, meta, read_meta};
    use algonius_actors::model::execution::Stamp;
    use algonius_actors::model::id::ExecutionId;
    use algonius_actors::model::program::Exit;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn an_attempt_is_read_as_it_was_kept() {
        let (execution, stamp) = (ExecutionId::fresh(), Stamp { turn: 2, attempt: 700 });
        let kept = meta(execution, stamp);
        assert_eq!(read_meta(&kept), Some((execution, stamp)));
        assert_eq!(read_meta(&kept[1..]), None);
    }

    #[test]
    fn a_status_tells_a_code_or_a_signal() {
        assert_eq!(exit(ExitStatus::from_raw(3 << 8)).unwrap(), Exit::Code(3));
        assert_eq!(exit(ExitStatus::from_raw(9)).unwrap(), Exit::Signal(9));
    }
}

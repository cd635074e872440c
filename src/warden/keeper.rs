//! The warden itself: a process with one thread that starts programs and holds what they write,
//! whoever reads it.
//!
//! It never waits for a supervisor. While there is one it moves no output; when the supervisor is
//! gone it keeps what comes, for as long as it was told to be patient, and then ends everything.

mod birth;
mod door;
mod held;
mod launch;
mod orphans;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use nix::unistd::getpid;
use tokio::time::Instant;

use self::door::Door;
use self::held::Held;
use self::launch::Means;
use super::frame::{End, Order, VERSION, Word};
use super::packet::{Packet, receive, send};
use super::proc::OwnChildren;
use super::signal::{Dead, reap};

/// Pause between two looks at what does not die.
const PAUSE: Duration = Duration::from_millis(5);

/// Names of what is watched. A stream has twice its slot, or one more, above these.
const LINK: u64 = 0;
const DOOR: u64 = 1;
const SIGNALS: u64 = 2;
const STREAMS: u64 = 8;

/// Everything that the warden knows.
struct Keeper {
    me: i32,
    epoll: Epoll,
    signals: SignalFd,
    /// The supervisor.
    link: Option<OwnedFd>,
    /// Where the next one comes in.
    door: Option<Door>,
    held: BTreeMap<u64, Held>,
    by_pid: HashMap<i32, u64>,
    /// The programs, and what they left to us.
    children: OwnChildren,
    /// Words for which the socket had no room.
    unsaid: VecDeque<Word>,
    means: Means,
    /// How long it waits for the next supervisor.
    patience: Duration,
    /// Since when there is none.
    lost: Option<Instant>,
    /// Whether the supervisor is not the one that started it: then nothing new comes.
    is_adopted: bool,
    /// Whether everything is to end.
    is_ending: bool,
}

/// Serves the supervisor at the other end of this socket, and its successors.
///
/// # Errors
/// When the system gives not even what a warden needs to begin.
pub(super) fn keep(link: OwnedFd, signals: SignalFd) -> io::Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&link, EpollEvent::new(EpollFlags::EPOLLIN, LINK))?;
    epoll.add(&signals, EpollEvent::new(EpollFlags::EPOLLIN, SIGNALS))?;
    let keeper = Keeper {
        me: getpid().as_raw(),
        epoll,
        signals,
        link: Some(link),
        door: None,
        held: BTreeMap::new(),
        by_pid: HashMap::new(),
        children: OwnChildren::open(),
        unsaid: VecDeque::new(),
        means: Means::prepare()?,
        patience: Duration::ZERO,
        lost: None,
        is_adopted: false,
        is_ending: false,
    };
    keeper.run()
}

impl Keeper {
    fn run(mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        while !self.is_done() {
            let count = match self.epoll.wait(&mut events, self.next_look()) {
                Err(nix::errno::Errno::EINTR) => 0,
                count => count?,
            };
            for event in events.iter().take(count) {
                self.attend(event.data());
            }
            self.look();
        }
        Ok(())
    }

    /// Nothing lives, and nobody will ask any more.
    fn is_done(&self) -> bool {
        let is_empty = self.held.values().all(|held| held.is_cleared);
        (self.is_ending && is_empty)
            || (self.held.is_empty() && (self.lost.is_some() || self.is_adopted))
    }

    /// Until when it may sleep.
    fn next_look(&self) -> EpollTimeout {
        let left = self.lost.map(|lost| self.patience.saturating_sub(lost.elapsed()));
        let is_clearing = self.held.values().any(|held| held.clearing.is_some());
        let pause = if is_clearing { Some(PAUSE) } else { left.filter(|_| !self.is_ending) };
        // A millisecond more, so that it does not wake before the time.
        let millis = pause.map(|pause| u16::try_from(pause.as_millis() + 1).unwrap_or(u16::MAX));
        millis.map_or(EpollTimeout::NONE, EpollTimeout::from)
    }

    fn attend(&mut self, what: u64) {
        match what {
            LINK => self.hear(),
            DOOR => self.admit(),
            SIGNALS => self.take_signals(),
            // What was fetched before the supervisor began to read is not for this process any more.
            _ if self.lost.is_none() => {}
            stream => self.pump(stream - STREAMS),
        }
    }

    fn look(&mut self) {
        if self.lost.is_some_and(|lost| lost.elapsed() >= self.patience) {
            self.end_everything();
        }
        self.clear_round();
    }

    /// Hears the supervisor out.
    fn hear(&mut self) {
        while let Some(link) = &self.link {
            match receive(link) {
                Ok(Some(packet)) => self.obey(packet),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => self.lose(),
            }
        }
        self.speak();
    }

    fn obey(&mut self, Packet { frame, fds }: Packet) {
        match Order::decode(&frame) {
            Some(Order::Hello { patience, name, .. }) => {
                self.patience = Duration::from_millis(patience);
                self.open_door(&name, fds);
                self.say(Word::Hello { version: VERSION, pid: self.me.unsigned_abs().into() });
            }
            Some(Order::Launch { terms, spec, guard }) => self.launch(terms, spec, guard, fds),
            Some(Order::Terminate { slot }) => self.terminate(slot),
            Some(Order::Kill { slot }) => self.clear(slot),
            Some(Order::Release { slot }) => self.release(slot),
            Some(Order::List) => self.list(),
            Some(Order::Bye) => self.end_everything(),
            None => {} // A word of a later version.
        }
    }

    /// Says it to the supervisor. The next one is told by a list what it needs to know.
    fn say(&mut self, word: Word) {
        if self.link.is_some() {
            self.unsaid.push_back(word);
            self.speak();
        }
    }

    /// Says what is to be said, as far as there is room.
    fn speak(&mut self) {
        while let (Some(link), Some(word)) = (&self.link, self.unsaid.front()) {
            let fds = match word {
                Word::Held { terms, .. } => self.held.get(&terms.slot).map(Held::fds),
                _ => None,
            };
            match send(link, &word.encode(), fds.as_ref().map_or(&[], |fds| fds.as_slice())) {
                Ok(()) => _ = self.unsaid.pop_front(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_gone) => return self.lose(),
            }
        }
        self.watch_link();
    }

    /// Wants to know of room only while there is something to say.
    fn watch_link(&self) {
        let mut flags = EpollFlags::EPOLLIN;
        flags.set(EpollFlags::EPOLLOUT, !self.unsaid.is_empty());
        if let Some(link) = &self.link {
            _ = self.epoll.modify(link.as_fd(), &mut EpollEvent::new(flags, LINK));
        }
    }

    /// The supervisor is gone: from here on the output is kept here.
    fn lose(&mut self) {
        if let Some(link) = self.link.take() {
            _ = self.epoll.delete(link);
        }
        self.unsaid.clear();
        self.lost = Some(Instant::now());
        let slots: Vec<_> = self.held.keys().copied().collect();
        for slot in slots {
            let held = self.held.get(&slot);
            if held.is_some_and(|held| held.terms.dies_alone || held.end.is_some()) {
                self.clear(slot);
            }
            self.watch_streams(slot, true);
        }
    }

    /// Begins or ceases to move the output of a program.
    fn watch_streams(&self, slot: u64, begin: bool) {
        let Some(held) = self.held.get(&slot) else { return };
        for (stream, name) in held.streams.iter().zip(STREAMS + slot * 2..) {
            // What is not watched cannot cease to be: that is all that may go wrong.
            _ = if begin && !stream.is_dry {
                self.epoll.add(&stream.pipe, EpollEvent::new(EpollFlags::EPOLLIN, name))
            } else {
                self.epoll.delete(&stream.pipe)
            };
        }
    }

    fn pump(&mut self, name: u64) {
        let Some(held) = self.held.get_mut(&(name / 2)) else { return };
        let [out, err] = &mut held.streams;
        let stream = if name.is_multiple_of(2) { out } else { err };
        stream.pump(held.terms.cap);
        if stream.is_dry {
            _ = self.epoll.delete(&stream.pipe);
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let is_child = signal.ssi_signo == nix::libc::SIGCHLD.unsigned_abs();
            // With a supervisor it is for that one to say when everything ends.
            if !is_child && self.link.is_none() {
                self.end_everything();
            }
        }
        self.bury_all();
    }

    /// Takes leave of all that have ended before it is asked what they left.
    fn bury_all(&mut self) {
        let dead: Vec<_> = std::iter::from_fn(|| reap(None)).collect();
        dead.iter().for_each(|dead| self.bury(dead));
    }

    /// A child has ended: a program that is held, or what one of them left to us.
    fn bury(&mut self, dead: &Dead) {
        let Some(slot) = self.by_pid.remove(&dead.pid) else { return };
        let has_survivors = self.has_orphans(slot);
        let Some(held) = self.held.get_mut(&slot) else { return };
        // A wrapper does not wait for what it wraps, and so knows nothing of what that took.
        let (cpu, peak) = if held.is_wrapped { (0, 0) } else { (dead.cpu, dead.peak) };
        let status = u64::from(dead.status.cast_unsigned());
        let end = End { status, has_survivors, cpu, peak };
        held.end = Some(end);
        held.is_cleared = !has_survivors;
        self.say(Word::Ended { slot, end });
        if self.link.is_none() {
            self.clear(slot);
        }
    }

    fn release(&mut self, slot: u64) {
        self.watch_streams(slot, false);
        if let Some(held) = self.held.remove(&slot)
            && held.end.is_none()
        {
            self.by_pid.remove(&held.pid);
            self.kill_line(held.pid);
        }
    }

    fn end_everything(&mut self) {
        self.is_ending = true;
        let slots: Vec<_> = self.held.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.clear(slot));
    }
}

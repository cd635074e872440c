//! The supervisor's line to one warden: what is told to it, and what it tells.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::socket::{Shutdown, shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::frame::{Order, VERSION, Word};
use super::label::Label;
use super::packet::{Packet, receive, send, watch};
use super::program::Program;

/// After how long it is looked for room of which nothing tells.
const PAUSE: Duration = Duration::from_millis(25);

/// An order with the descriptors that go with it.
struct Parcel {
    order: Order,
    fds: Vec<Arc<OwnedFd>>,
}

/// How far the first words have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Standing {
    /// The process of the warden, once it has told.
    pub(super) pid: Option<u32>,
    /// Whether all that it held was told.
    pub(super) is_listed: bool,
    /// Whether it is gone.
    pub(super) is_lost: bool,
}

/// A line to a warden.
pub(super) struct Link {
    orders: mpsc::UnboundedSender<Parcel>,
    programs: watch::Sender<HashMap<u64, Arc<Program>>>,
    standing: watch::Sender<Standing>,
    next: AtomicU64,
    /// Whether nothing more is ordered.
    is_silent: AtomicBool,
}

impl Link {
    /// Begins to speak over a socket. Ends when either side is gone.
    ///
    /// # Errors
    /// When the runtime cannot watch the socket.
    pub(super) fn open(socket: OwnedFd) -> io::Result<Arc<Self>> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let socket = Arc::new(watch(Arc::new(socket), interest)?);
        let (orders, parcels) = mpsc::unbounded_channel();
        let (programs, standing) = (watch::Sender::default(), watch::Sender::default());
        let (next, is_silent) = (AtomicU64::new(0), AtomicBool::new(false));
        let link = Arc::new(Self { orders, programs, standing, next, is_silent });
        let writing = tokio::spawn(write(Arc::clone(&socket), parcels));
        let reader = Arc::clone(&link);
        tokio::spawn(async move {
            reader.read(&socket).await;
            reader.lose();
            writing.abort();
        });
        Ok(link)
    }

    /// Sends an order; where the warden is gone, nobody obeys it.
    pub(super) fn order(&self, order: Order, fds: Vec<Arc<OwnedFd>>) {
        if !self.is_silent() {
            _ = self.orders.send(Parcel { order, fds });
        }
    }

    /// Orders nothing more, whoever asks for it: the warden keeps what it holds.
    pub(super) fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Whether what is held is left to the next life of the service.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// A number that no program of this warden has.
    pub(super) fn fresh_slot(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn add(&self, program: Arc<Program>) {
        self.programs.send_modify(|programs| _ = programs.insert(program.slot(), program));
    }

    pub(super) fn release(&self, slot: u64) {
        if self.programs.send_if_modified(|programs| programs.remove(&slot).is_some()) {
            self.order(Order::Release { slot }, Vec::new());
        }
    }

    /// The program that carries a label.
    pub(super) fn find(&self, label: Label) -> Option<Arc<Program>> {
        self.programs.borrow().values().find(|program| program.label() == label).map(Arc::clone)
    }

    pub(super) fn all(&self) -> Vec<Arc<Program>> {
        self.programs.borrow().values().map(Arc::clone).collect()
    }

    pub(super) fn standing(&self) -> Standing {
        *self.standing.borrow()
    }

    /// Returns when something is true of the line, or will not become so.
    pub(super) async fn until(&self, claim: impl Fn(&Standing) -> bool) -> Standing {
        let mut standing = self.standing.subscribe();
        let found = standing.wait_for(|now| claim(now) || now.is_lost).await;
        found.map_or_else(|_| self.standing(), |found| *found)
    }

    async fn read(&self, socket: &AsyncFd<Arc<OwnedFd>>) {
        while let Ok(Some(packet)) = socket.async_io(Interest::READABLE, receive).await {
            self.hear(packet);
        }
    }

    fn hear(&self, Packet { frame, fds }: Packet) {
        let Some(word) = Word::decode(&frame) else { return }; // A word of a later version.
        match word {
            Word::Hello { version, pid } => {
                tracing::debug!(version, own = VERSION, pid, "a warden is there");
                let pid = u32::try_from(pid).ok();
                self.standing.send_modify(|standing| standing.pid = pid);
            }
            Word::Listed => self.standing.send_modify(|standing| standing.is_listed = true),
            Word::Held { terms, pid, end } => {
                self.next.fetch_max(terms.slot + 1, Ordering::Relaxed);
                match Program::held(terms, pid, end, fds) {
                    Some(program) => self.add(Arc::new(program)),
                    None => tracing::error!("descriptors of a held program did not arrive"),
                }
            }
            Word::Launched { slot, .. }
            | Word::Refused { slot, .. }
            | Word::Ended { slot, .. }
            | Word::Cleared { slot, .. } => {
                let program = self.programs.borrow().get(&slot).map(Arc::clone);
                if let Some(program) = program {
                    program.hear(&word);
                }
            }
        }
    }

    /// The warden is gone. What it held is nobody's now.
    fn lose(&self) {
        self.standing.send_modify(|standing| standing.is_lost = true);
        self.all().iter().for_each(|program| program.lose());
    }
}

async fn write(socket: Arc<AsyncFd<Arc<OwnedFd>>>, mut parcels: mpsc::UnboundedReceiver<Parcel>) {
    while let Some(Parcel { order, fds }) = parcels.recv().await {
        let (frame, fds) = (order.encode(), fds);
        let numbers: Vec<RawFd> = fds.iter().map(|fd| fd.as_raw_fd()).collect();
        if deliver(&socket, &frame, &numbers).await.is_err() {
            _ = shutdown(socket.as_raw_fd(), Shutdown::Both); // So that the reader sees it too.
            return;
        }
    }
}

/// Sends a frame when there is room for it.
async fn deliver(socket: &AsyncFd<Arc<OwnedFd>>, frame: &[u8], fds: &[RawFd]) -> io::Result<()> {
    loop {
        let sent = socket.async_io(Interest::WRITABLE, |socket| send(socket, frame, fds));
        if let Ok(sent) = timeout(PAUSE, sent).await {
            return sent;
        }
        // Memory, or descriptors in flight that are this user's elsewhere, may be what is short:
        // nothing tells when there is more of these.
        match send(socket, frame, fds) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return sent,
        }
    }
}

//! Supervisor's connection to one process holder: orders in one direction, events in the other.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::sys::socket::{Shutdown, shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::program::ProgramHandle;
use crate::output::memory_account::OutputMemory;
use crate::output::stdin_journal::StdinJournalError;
use crate::process::process_label::ProcessLabel;
use crate::protocol::frame::{
    FRAME_VERSION, HolderEvent, HolderOrder, MIN_NETWORK_FILTER_VERSION, MIN_STDIN_JOURNAL_VERSION,
};
use crate::protocol::packet::{Packet, receive_packet, register_fd, send_packet};

/// Interval of retries for room in the socket whose return no event reports.
const SEND_RETRY_PAUSE: Duration = Duration::from_millis(25);

/// Order with its descriptors.
struct OutgoingOrder {
    order: HolderOrder,
    fds: Vec<Arc<OwnedFd>>,
}

/// Progress of the first events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LinkState {
    /// Process id of the process holder, after its first event.
    pub(crate) pid: Option<u32>,
    /// Frame version of the process holder, after its first event.
    pub(crate) frame_version: u64,
    /// True if everything that it held was listed.
    pub(crate) has_listed_programs: bool,
    /// True if the connection is lost.
    pub(crate) is_lost: bool,
}

/// Connection to a process holder.
pub(crate) struct HolderLink {
    order_sender: mpsc::UnboundedSender<OutgoingOrder>,
    programs: watch::Sender<HashMap<u64, Arc<ProgramHandle>>>,
    state: watch::Sender<LinkState>,
    /// Name of the socket at which the next process instance of the service finds the process holder.
    socket_name: watch::Sender<Option<String>>,
    /// Secret that an earlier supervisor stored in the process holder.
    stored_secret: OnceLock<Vec<u8>>,
    next_program_number: AtomicU64,
    /// True if the link sends no more orders.
    is_detached: AtomicBool,
    /// Memory for the output of programs that are held already.
    output_memory: OutputMemory,
}

impl HolderLink {
    /// Opens the connection over a socket. It ends when either side is gone.
    ///
    /// # Errors
    /// Fails if the runtime cannot watch the socket.
    pub(crate) fn open(socket: OwnedFd, memory: OutputMemory) -> io::Result<Arc<Self>> {
        // One registration for both directions, because the runtime accepts a descriptor once.
        let interest = Interest::READABLE | Interest::WRITABLE;
        let socket = Arc::new(register_fd(Arc::new(socket), interest)?);
        let (order_sender, order_receiver) = mpsc::unbounded_channel();
        let (programs, state) = (watch::Sender::default(), watch::Sender::default());
        let (next_program_number, is_detached) = (AtomicU64::new(0), AtomicBool::new(false));
        let (socket_name, stored_secret) = (watch::Sender::default(), OnceLock::new());
        let link = Arc::new(Self {
            order_sender,
            programs,
            state,
            socket_name,
            stored_secret,
            next_program_number,
            is_detached,
            output_memory: memory,
        });
        let writer_handle = tokio::spawn(write_orders(Arc::clone(&socket), order_receiver));
        let reader_link = Arc::clone(&link);
        tokio::spawn(async move {
            reader_link.read_packets(&socket).await;
            reader_link.handle_holder_loss();
            writer_handle.abort();
        });
        Ok(link)
    }

    /// Sends an order; after the loss of the process holder the order has no effect.
    pub(crate) fn send_order(&self, order: HolderOrder, fds: Vec<Arc<OwnedFd>>) {
        if !self.is_detached() {
            _ = self.order_sender.send(OutgoingOrder { order, fds });
        }
    }

    /// Stops sending orders: the process holder keeps its programs.
    pub(crate) fn detach(&self) {
        self.is_detached.store(true, Ordering::Relaxed);
    }

    /// Returns true if the programs are left to the next process instance of the service.
    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::Relaxed)
    }

    /// Returns a number that no program of this process holder has.
    pub(crate) fn allocate_program_number(&self) -> u64 {
        self.next_program_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an error if the process holder is of a release that holds no journaled standard input. It would take the
    /// descriptors for others, and the program would see the end of its input when this process ends.
    pub(crate) fn require_stdin_journal_support(&self) -> Result<(), StdinJournalError> {
        match self.state().frame_version {
            version if version < MIN_STDIN_JOURNAL_VERSION => {
                Err(StdinJournalError::HolderTooOld { version, needed: MIN_STDIN_JOURNAL_VERSION })
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the process holder is of a release that does not restrict the network of a program.
    pub(crate) fn require_network_filter_support(&self) -> io::Result<()> {
        match self.state().frame_version {
            version if version < MIN_NETWORK_FILTER_VERSION => {
                let message = format!(
                    "the process holder has protocol version {version}, and a program without network needs \
                     version {MIN_NETWORK_FILTER_VERSION}"
                );
                Err(io::Error::new(io::ErrorKind::Unsupported, message))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn add_program(&self, program: Arc<ProgramHandle>) {
        self.programs
            .send_modify(|programs| _ = programs.insert(program.program_number(), program));
    }

    pub(crate) fn release_program(&self, program_number: u64) {
        if self.programs.send_if_modified(|programs| programs.remove(&program_number).is_some()) {
            self.send_order(HolderOrder::Release { program_number }, Vec::new());
        }
    }

    /// Returns the program that carries a label.
    pub(crate) fn find_program(&self, label: ProcessLabel) -> Option<Arc<ProgramHandle>> {
        self.programs.borrow().values().find(|program| program.label() == label).map(Arc::clone)
    }

    pub(crate) fn programs(&self) -> Vec<Arc<ProgramHandle>> {
        self.programs.borrow().values().map(Arc::clone).collect()
    }

    /// Returns true if the process holder has not created its socket again.
    pub(crate) fn has_failed_socket_renewal(&self) -> bool {
        self.socket_name.borrow().is_none()
    }

    /// Records that the process holder has not created its socket again.
    pub(crate) fn record_failed_socket_renewal(&self) {
        self.socket_name.send_replace(None);
    }

    pub(crate) fn socket_name(&self) -> Option<String> {
        self.socket_name.borrow().clone()
    }

    pub(crate) fn set_socket_name(&self, name: String) {
        self.socket_name.send_replace(Some(name));
    }

    /// Returns the secret that an earlier supervisor stored in the process holder, after everything is listed.
    pub(crate) fn stored_secret(&self) -> Option<&[u8]> {
        self.stored_secret.get().map(Vec::as_slice)
    }

    pub(crate) fn state(&self) -> LinkState {
        *self.state.borrow()
    }

    /// Returns when a condition of the connection is true, or when the connection is lost.
    pub(crate) async fn wait_until_or_lost(
        &self,
        condition: impl Fn(&LinkState) -> bool,
    ) -> LinkState {
        let mut changes = self.state.subscribe();
        let found = changes.wait_for(|state| condition(state) || state.is_lost).await;
        found.map_or_else(|_| self.state(), |found| *found)
    }

    async fn read_packets(&self, socket: &AsyncFd<Arc<OwnedFd>>) {
        while let Ok(Some(packet)) = socket.async_io(Interest::READABLE, receive_packet).await {
            self.handle_packet(packet);
        }
    }

    fn handle_packet(&self, Packet { frame, fds }: Packet) {
        let Some(event) = HolderEvent::decode(&frame) else { return }; // An unknown event is of a later version.
        match event {
            HolderEvent::Hello { version, pid } => {
                tracing::debug!(version, own = FRAME_VERSION, pid, "connected to process holder");
                let pid = u32::try_from(pid).ok();
                self.state.send_modify(|state| (state.pid, state.frame_version) = (pid, version));
            }
            HolderEvent::StoredSecret { secret } => _ = self.stored_secret.set(secret.0),
            HolderEvent::ChallengeResponse { .. } => {} // This event comes only before a link is opened.
            HolderEvent::ListFinished => {
                self.state.send_modify(|link_state| link_state.has_listed_programs = true);
            }
            HolderEvent::ProgramListed { hold_terms, pid, end, has_stdin_journal } => {
                // A new program must not get the number of a program that an earlier process instance started.
                self.next_program_number
                    .fetch_max(hold_terms.program_number + 1, Ordering::Relaxed);
                match ProgramHandle::from_earlier_instance(
                    hold_terms,
                    pid,
                    end,
                    (fds, has_stdin_journal),
                    self.output_memory.new_account(),
                ) {
                    Some(program) => self.add_program(Arc::new(program)),
                    None => tracing::error!("descriptors of a held program did not arrive"),
                }
            }
            HolderEvent::Launched { program_number, .. }
            | HolderEvent::LaunchFailed { program_number, .. }
            | HolderEvent::Ended { program_number, .. }
            | HolderEvent::KillFinished { program_number, .. } => {
                // Cloned, so that the lock of the map is not held while the waiters of the program wake.
                let program = self.programs.borrow().get(&program_number).map(Arc::clone);
                if let Some(program) = program {
                    program.handle_event(&event);
                }
            }
        }
    }

    /// Handles the loss of the process holder, after which no process holds its programs.
    fn handle_holder_loss(&self) {
        self.state.send_modify(|link_state| link_state.is_lost = true);
        self.programs().iter().for_each(|program| program.handle_holder_loss());
    }
}

async fn write_orders(
    socket: Arc<AsyncFd<Arc<OwnedFd>>>,
    mut order_receiver: mpsc::UnboundedReceiver<OutgoingOrder>,
) {
    while let Some(OutgoingOrder { order, fds }) = order_receiver.recv().await {
        let (frame, fds) = (order.encode(), fds);
        let raw_fds: Vec<RawFd> = fds.iter().map(|fd| fd.as_raw_fd()).collect();
        if send_frame(&socket, &frame, &raw_fds).await.is_err() {
            _ = shutdown(socket.as_raw_fd(), Shutdown::Both); // The shutdown notifies the reader too.
            return;
        }
    }
}

/// Sends a frame when the socket has room for it.
async fn send_frame(socket: &AsyncFd<Arc<OwnedFd>>, frame: &[u8], fds: &[RawFd]) -> io::Result<()> {
    loop {
        let send_when_writable =
            socket.async_io(Interest::WRITABLE, |socket| send_packet(socket, frame, fds));
        if let Ok(sent) = timeout(SEND_RETRY_PAUSE, send_when_writable).await {
            return sent;
        }
        // The shortage may be memory, or descriptors of the same user in flight in other sockets: no event reports
        // their return.
        match send_packet(socket, frame, fds) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return sent,
        }
    }
}

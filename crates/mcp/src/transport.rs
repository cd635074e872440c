//! Lines of JSON between the client and a server.
//!
//! Only answers to pending requests reach the library. The transport itself answers the requests of the server, and
//! drops its notifications: the library would start a task for each of them, without a limit.

mod message_filter;
mod reader;
mod writer;

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use self::message_filter::MessageFilter;
pub(crate) use self::reader::MALFORMED_RESPONSE_CODE;
use self::reader::MessageReader;
use self::writer::LineWriter;
use crate::connection_end::ConnectionEndReason;

/// Answers that wait for the library. The reader stops while it has more.
const MAX_WAITING_ANSWERS: usize = 16;

/// Transport to a server. Dropping it ends the connection.
pub(crate) struct LineTransport {
    answers: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    filter: Arc<MessageFilter>,
    writer: LineWriter,
    end_sender: watch::Sender<Option<ConnectionEndReason>>,
    pipe_join_handle: JoinHandle<()>,
}

impl LineTransport {
    /// Creates the transport, and the receiver of its end. It needs a tokio runtime.
    pub(crate) fn new(
        server_input: impl AsyncWrite + Send + Unpin + 'static,
        server_output: impl AsyncRead + Send + Unpin + 'static,
    ) -> (Self, watch::Receiver<Option<ConnectionEndReason>>) {
        let (end_sender, end_receiver) = watch::channel(None);
        let (sender, answers) = mpsc::channel(MAX_WAITING_ANSWERS);
        let filter = Arc::new(MessageFilter::default());
        let (writer, write_lines_future) = LineWriter::new(server_input, end_sender.clone());
        // The library must not notice the end before its reason is recorded.
        let open_channel_guard = sender.clone();
        let reader = MessageReader::new(Arc::clone(&filter), writer.clone(), sender);
        let pipe_end_sender = end_sender.clone();
        let pipe_join_handle = tokio::spawn(async move {
            tokio::select! {
                reason = reader.read_until_end(server_output) => record_end_reason(&pipe_end_sender, reason),
                () = write_lines_future => {}
            }
            drop(open_channel_guard);
        });
        (Self { answers, filter, writer, end_sender, pipe_join_handle }, end_receiver)
    }
}

/// Records why the connection ends, unless a reason is recorded.
fn record_end_reason(
    sender: &watch::Sender<Option<ConnectionEndReason>>,
    reason: ConnectionEndReason,
) {
    sender.send_if_modified(|end| {
        let is_first = end.is_none();
        *end = end.or(Some(reason));
        is_first
    });
}

impl Drop for LineTransport {
    fn drop(&mut self) {
        // The task owns both pipes.
        self.pipe_join_handle.abort();
        record_end_reason(&self.end_sender, ConnectionEndReason::Dropped);
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.filter.track_sent(&message);
        // The place in the queue is taken here: the library may poll the futures of two messages in any order.
        self.writer.enqueue_message(&message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.answers.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        record_end_reason(&self.end_sender, ConnectionEndReason::Dropped);
        Ok(())
    }
}

//! Writer of messages to a server.

use std::io;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::record_end_reason;
use crate::connection_end::ConnectionEndReason;

/// Time in which the server has to read a message. A pipe holds 64 KiB, so only a server that does not read exceeds it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Line to write, and the receiver of the result. A dropped sender means that the line is not written.
type QueuedLine = (Vec<u8>, oneshot::Sender<()>);

/// Queue of the messages to a server. Cheap to clone.
#[derive(Clone)]
pub(super) struct LineWriter(mpsc::UnboundedSender<QueuedLine>);

impl LineWriter {
    /// Creates a queue, and the future that writes its messages in their order, one on each line, until a failure ends
    /// the connection. The future owns the input of the server.
    pub(super) fn new(
        server_input: impl AsyncWrite + Send + Unpin + 'static,
        end_sender: watch::Sender<Option<ConnectionEndReason>>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, queue) = mpsc::unbounded_channel();
        (Self(sender), write_lines(server_input, queue, end_sender))
    }

    /// Queues a message at once, and returns the future of its end.
    pub(super) fn enqueue_message<M: Serialize + 'static>(
        &self,
        message: &M,
    ) -> impl Future<Output = io::Result<()>> + Send + use<M> {
        let (sender, written_receiver) = oneshot::channel();
        let enqueue_result =
            serde_json::to_vec(message).map_err(io::Error::other).and_then(|mut line| {
                line.push(b'\n');
                self.0.send((line, sender)).map_err(|_closed| broken_pipe_error())
            });
        async move {
            enqueue_result?;
            written_receiver.await.map_err(|_dropped| broken_pipe_error())
        }
    }
}

fn broken_pipe_error() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

/// Writes lines until one fails. A failure ends the connection, because a part of the line may have been written.
async fn write_lines(
    mut server_input: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<QueuedLine>,
    end_sender: watch::Sender<Option<ConnectionEndReason>>,
) {
    while let Some((line, written_sender)) = queue.recv().await {
        let write = async {
            server_input.write_all(&line).await?;
            server_input.flush().await
        };
        let reason = match timeout(WRITE_TIMEOUT, write).await {
            Ok(Ok(())) => {
                _ = written_sender.send(()); // The sender of a message may wait no longer.
                continue;
            }
            Ok(Err(_)) => ConnectionEndReason::InputClosed,
            Err(_) => ConnectionEndReason::InputUnread,
        };
        // Before `written_sender` is dropped: the sender of the message may end the connection then.
        return record_end_reason(&end_sender, reason);
    }
}

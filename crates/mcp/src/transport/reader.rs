//! Reader of the messages of a server.

use std::sync::Arc;

use futures_util::StreamExt as _;
use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage};
use rmcp::service::RxJsonRpcMessage;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};

use super::message_filter::{IncomingMessage, MessageFilter};
use super::writer::LineWriter;
use crate::connection_end::ConnectionEndReason;

/// Greatest length of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Greatest number of bytes since the last answer that answer no request.
const MAX_UNREQUESTED_BYTES: usize = 16 << 20;

/// Code of the error that replaces an answer that does not follow the protocol. No server uses it.
pub(crate) const MALFORMED_RESPONSE_CODE: ErrorCode = ErrorCode(i32::MIN);

/// Reader of the messages of a server, one on each line.
pub(super) struct MessageReader {
    filter: Arc<MessageFilter>,
    writer: LineWriter,
    answers: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    unrequested_bytes: usize,
}

impl MessageReader {
    pub(super) const fn new(
        filter: Arc<MessageFilter>,
        writer: LineWriter,
        answers: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    ) -> Self {
        Self { filter, writer, answers, unrequested_bytes: 0 }
    }

    /// Reads messages until the connection ends, and returns the reason.
    pub(super) async fn read_until_end(
        mut self,
        server_output: impl AsyncRead + Unpin,
    ) -> ConnectionEndReason {
        let codec =
            AnyDelimiterCodec::new_with_max_length(b"\n".into(), b"\n".into(), MAX_MESSAGE_BYTES);
        let mut lines = FramedRead::new(server_output, codec);
        while let Some(line) = lines.next().await {
            let line_result = match line {
                Ok(line) => self.handle_line(&line).await,
                Err(AnyDelimiterCodecError::MaxChunkLengthExceeded) => {
                    Err(ConnectionEndReason::MessageTooLong)
                }
                Err(AnyDelimiterCodecError::Io(_)) => Err(ConnectionEndReason::OutputClosed),
            };
            if let Err(reason) = line_result {
                return reason;
            }
        }
        ConnectionEndReason::OutputClosed
    }

    async fn handle_line(&mut self, line: &[u8]) -> Result<(), ConnectionEndReason> {
        match self.filter.classify_and_untrack(line) {
            IncomingMessage::Answer(id) => {
                self.unrequested_bytes = 0;
                let answer = serde_json::from_slice(line).unwrap_or_else(|_malformed| {
                    let error = ErrorData::new(MALFORMED_RESPONSE_CODE, "malformed answer", None);
                    JsonRpcMessage::error(error, Some(id))
                });
                return self.forward(answer).await;
            }
            IncomingMessage::TooComplex => return Err(ConnectionEndReason::MessageTooComplex),
            IncomingMessage::ErrorWithoutId => {
                if let Ok(error) = serde_json::from_slice(line) {
                    self.forward(error).await?;
                }
            }
            IncomingMessage::RequestWithResponse(answer) => {
                _ = self.writer.enqueue_message(&answer).await; // The writer ends the connection if it fails.
            }
            IncomingMessage::Unused => {}
        }
        self.unrequested_bytes += line.len() + 1;
        match self.unrequested_bytes > MAX_UNREQUESTED_BYTES {
            true => Err(ConnectionEndReason::TooMuchUnrequestedOutput),
            false => Ok(()),
        }
    }

    async fn forward(
        &self,
        answer: RxJsonRpcMessage<RoleClient>,
    ) -> Result<(), ConnectionEndReason> {
        self.answers.send(answer).await.map_err(|_closed| ConnectionEndReason::Dropped)
    }
}

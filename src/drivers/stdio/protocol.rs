//! Protocol of an open standard input: messages to a program and the meaning of its bytes. This module uses no process,
//! no pipe and no ledger.

mod document_template;
mod framing;
mod message_turn;
mod notified_text;
mod rpc;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::stdio_protocol;

use self::message_turn::MessageTurn;
use self::rpc::RpcTurn;
use crate::drivers::adapters::event_line::ProgramEvent;
use crate::platform::template::ExecutionValues;

/// Consequence of bytes that a program wrote.
pub(in crate::drivers) enum StdioAction {
    /// Bytes to write to the program.
    Write(Vec<u8>),
    /// Event that the program reports.
    Event(ProgramEvent),
    /// Bytes to read with the program's output method.
    Output(Vec<u8>),
    /// Warning about an unexpected message, which has no other effect.
    Warn(String),
    /// Text of the program that may have been a message and could not be read.
    UnreadableMessage(UnreadableMessageText),
    /// End of the turn, because no boundary of a message can be found any more.
    Desynchronized(Failure),
    /// End of the turn, with the failure of the protocol itself if there was one.
    End(Option<Failure>),
}

/// Text that may have been a message.
#[derive(Debug, PartialEq)]
pub(in crate::drivers) struct UnreadableMessageText {
    /// Clause that follows "the message".
    pub(in crate::drivers) reason: String,
    /// Text of the program; empty if it was too long to be kept.
    pub(in crate::drivers) text: String,
}

/// One turn of the protocol with a program.
pub(in crate::drivers) enum StdioTurn {
    /// JSON-RPC call.
    Rpc(Box<RpcTurn>),
    /// Message and its answer.
    Message(MessageTurn),
}

impl StdioTurn {
    /// Returns a turn that sends the `values`. `call_number` counts the calls of a program; call 0 initializes the
    /// program first. A longer message, or line with the end of a turn, than `max_message_bytes` fails the turn.
    ///
    /// # Errors
    /// `input-rejected` if this program cannot receive such a message.
    pub(in crate::drivers) fn new(
        spec: &stdio_protocol::StdioProtocol,
        values: &ExecutionValues,
        call_number: u64,
        max_message_bytes: usize,
    ) -> Result<Self, Failure> {
        match spec {
            stdio_protocol::StdioProtocol::Rpc(spec) => {
                RpcTurn::new(spec, values, call_number, max_message_bytes)
                    .map(Box::new)
                    .map(Self::Rpc)
            }
            stdio_protocol::StdioProtocol::Turns(spec) => {
                MessageTurn::new(spec, values, call_number, max_message_bytes).map(Self::Message)
            }
            stdio_protocol::StdioProtocol::Interactive(_) => {
                Err(Failure::new(Code::Internal, "a control protocol has no such turn"))
            }
        }
    }

    /// Returns the bytes to write first.
    pub(in crate::drivers) fn take_first_bytes(&mut self) -> Vec<u8> {
        match self {
            Self::Rpc(rpc) => rpc.take_first_bytes(),
            Self::Message(turn) => turn.take_first_bytes(),
        }
    }

    /// Handles the next bytes of standard output. After the end of the turn no action follows.
    pub(in crate::drivers) fn receive(&mut self, bytes: &[u8]) -> Vec<StdioAction> {
        match self {
            Self::Rpc(rpc) => rpc.receive(bytes),
            Self::Message(turn) => turn.receive(bytes),
        }
    }

    /// Handles the end of standard output, after which the last message needs no line end.
    pub(in crate::drivers) fn handle_end_of_output(&mut self) -> Vec<StdioAction> {
        match self {
            Self::Rpc(rpc) => rpc.handle_end_of_output(),
            Self::Message(_) => Vec::new(),
        }
    }

    /// Returns the bytes that ask the program to cancel the turn, if the protocol has such a message.
    pub(in crate::drivers) fn interrupt_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Rpc(rpc) => rpc.interrupt_bytes(),
            Self::Message(turn) => turn.interrupt_bytes(),
        }
    }

    /// Returns true if the turn is over in case the program writes nothing more for a moment.
    pub(in crate::drivers) fn may_be_over(&self) -> bool {
        matches!(self, Self::Message(turn) if turn.may_be_over())
    }

    /// Ends the turn because the program is silent.
    pub(in crate::drivers) fn end_on_silence(&mut self) -> Vec<StdioAction> {
        match self {
            Self::Message(turn) => turn.end_on_silence(),
            Self::Rpc(_) => Vec::new(),
        }
    }

    /// Returns a suspicion about a turn that ended without an answer: true if the program has continued writing
    /// already, and the failure if it continues.
    pub(in crate::drivers) fn suspected_premature_end(&self) -> Option<(bool, Failure)> {
        match self {
            Self::Message(turn) if turn.has_ended_without_text() => {
                Some((turn.has_output_after_end(), turn.premature_end_mark_failure()))
            }
            Self::Message(_) | Self::Rpc(_) => None,
        }
    }
}

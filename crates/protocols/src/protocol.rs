//! Interface between a connection and the state machine of its protocol.

use serde_json::Value;

use crate::model::command::Command;
use crate::model::step::ProtocolStep;

/// Behaviour that every protocol has.
pub(crate) trait Protocol {
    /// Handles a received JSON object.
    fn receive(&mut self, message: Value) -> Vec<ProtocolStep>;
    /// Handles a command while the process runs.
    fn handle_command(&mut self, command: Command) -> Vec<ProtocolStep>;
    /// Records a line that was sent before a crash.
    fn replay_sent_line(&mut self, line: &[u8]);
    /// Ends all that is open, since the process can send nothing any more.
    fn handle_end_of_output(&mut self) -> Vec<ProtocolStep>;
}

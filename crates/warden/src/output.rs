//! Output of programs and input to them: memory files that outlive the supervisor, and the accounts of their memory.

pub mod memory_account;
pub(crate) mod program_streams;
pub mod recording;
pub(crate) mod stdin_journal;
pub(crate) mod stream;
pub(crate) mod unread_pipe;

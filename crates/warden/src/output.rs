//! Output of programs and input to them: memory files that outlive the supervisor, and the accounts of their memory.

pub mod memory_account;
pub(crate) mod program_streams;
pub(crate) mod readerless_pipe;
pub mod recording;
pub(crate) mod stdin_journal;
pub(crate) mod stream;

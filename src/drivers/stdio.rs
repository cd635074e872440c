//! Programs that speak over standard input and output: the protocol of a turn, and its session with a program.

pub(super) mod agent_turn;
pub(super) mod protocol;
pub(super) mod stdio_exchange;

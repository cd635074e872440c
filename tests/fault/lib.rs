//! Crash points: preloaded into an unmodified `algonius`, counts what it asks of the system, and
//! lets the k-th of these fail, or be the last that the process does.
//!
//! | Variable | |
//! |---|---|
//! | `ALGONIUS_FAULT_IN` | the process by its first argument: `serve` or `warden` |
//! | `ALGONIUS_FAULT_CALLS` | which count: words of `write`, `log`, `file`, `spawn`, `send` |
//! | `ALGONIUS_FAULT_AT` | the first of them that is struck, from 1 |
//! | `ALGONIUS_FAULT_HOW` | `die`, `tear`, `once:ERRNO` or `on:ERRNO` (that one and all after it) |
//! | `ALGONIUS_FAULT_TALLY` | a file of 512 bytes that is told the count and what was struck |
//!
//! `die` kills before the call; `tear` lets half of a write, or the whole of another call, come to
//! pass, and kills then.
#![expect(unsafe_code, reason = "stands between a program and its system's functions")]

mod calls;
mod plan;
mod tally;

//! What holds for any bytes from outside. The fuzzers look for bytes for which it does not, and the
//! tests replay what they have found interesting.

pub mod conversions;
mod dialect_readers;
pub mod envelope;
mod error_responses;
#[path = "../../crates/a2a/src/tests/losses.rs"]
mod losses;
pub mod rest;
pub mod rpc;

use algonius_a2a::v1;
use algonius_supervisor::wire;

/// A check: it panics when something does not hold for these bytes.
pub type FuzzCheck = fn(&[u8]);

//! What holds for any bytes from outside. The fuzzers look for bytes for which it does not, and the
//! tests replay what they have found interesting.

pub mod conversions;
pub mod envelope;
#[path = "../../crates/a2a/src/tests/losses.rs"]
mod losses;
mod reading;
pub mod rest;
pub mod rpc;
mod telling;

use algonius_a2a::v1;
use algonius_supervisor::wire;

/// A check: it panics when something does not hold for these bytes.
pub type Check = fn(&[u8]);

//! The functions of the system that are stood in for, each for as long as it is counted.
//!
//! Those that take a variable number of arguments are written with all that they can have: on the
//! machines that we run on, arguments travel alike in both.

mod make;
mod put;
mod spawn;

use libc::{c_int, c_long};

use super::plan::{Fate, Kind, die, meet};

/// How much of a call is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Half,
}

/// Makes a call as it was planned.
fn make(kind: Kind, name: &str, fd: Option<c_int>, real: impl FnOnce(Extent) -> c_long) -> c_long {
    match meet(kind, name.as_bytes(), fd) {
        Fate::Pass => real(Extent::Whole),
        Fate::Fail(errno) => {
            // SAFETY: the place of this thread's error number.
            unsafe { *libc::__errno_location() = errno };
            -1
        }
        Fate::Tear => {
            real(Extent::Half);
            die()
        }
    }
}

/// A result that is a descriptor or says that all went well.
fn short(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

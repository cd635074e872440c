//! The functions of the system that are stood in for, each for as long as it is counted.
//!
//! Those that take a variable number of arguments are written with all that they can have: on the
//! machines that we run on, arguments travel alike in both.

mod filesystem;
mod process;
mod write;

use libc::{c_int, c_long};

use super::plan::{CallKind, CallOutcome, count_call_and_decide_outcome, die};

/// How much of a call is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallExtent {
    Whole,
    Half,
}

/// Makes a call as it was planned.
fn perform_planned_call(
    kind: CallKind,
    name: &str,
    fd: Option<c_int>,
    real_call: impl FnOnce(CallExtent) -> c_long,
) -> c_long {
    match count_call_and_decide_outcome(kind, name.as_bytes(), fd) {
        CallOutcome::Pass => real_call(CallExtent::Whole),
        CallOutcome::Fail(errno) => {
            // SAFETY: the place of this thread's error number.
            unsafe { *libc::__errno_location() = errno };
            -1
        }
        CallOutcome::Tear => {
            real_call(CallExtent::Half);
            die()
        }
    }
}

/// A result that is a descriptor or says that all went well.
fn as_int(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

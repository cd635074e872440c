//! What is to happen in this process, read from its environment before its `main`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};

use libc::{c_char, c_int};

use super::tally;

/// What a call is about; words of `ALGONIUS_FAULT_CALLS`.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum CallKind {
    /// Bytes into files and pipes, lengths of files, and what waits for the disk.
    Write = 1,
    /// Bytes to standard error.
    Log = 2,
    /// Files and folders that come and go.
    File = 4,
    /// Processes, and the descriptors that are made for them.
    Spawn = 8,
    /// Packets.
    Send = 16,
}

const CALL_KIND_NAMES: [(&[u8], CallKind); 5] = [
    (b"write", CallKind::Write),
    (b"log", CallKind::Log),
    (b"file", CallKind::File),
    (b"spawn", CallKind::Spawn),
    (b"send", CallKind::Send),
];

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// It is made.
    Pass,
    /// It is not made, and fails with this.
    Fail(c_int),
    /// It is made, half of it where it has halves, and nothing after it.
    Tear,
}

/// How the k-th is struck.
const MODE_DIE: u8 = 1;
const MODE_TEAR: u8 = 2;
const MODE_FAIL_ONCE: u8 = 3;
const MODE_FAIL_ONWARD: u8 = 4;

/// The kinds that count; none until all the rest is set.
static COUNTED_KINDS: AtomicU8 = AtomicU8::new(0);
static FAULT_CALL_NUMBER: AtomicU64 = AtomicU64::new(0);
static FAULT_MODE: AtomicU8 = AtomicU8::new(0);
static FAULT_ERRNO: AtomicI32 = AtomicI32::new(0);

/// Runs before `main`; the loader hands it the arguments.
#[used]
#[unsafe(link_section = ".init_array")]
static INIT_FUNCTION: unsafe extern "C" fn(c_int, *const *const c_char) = initialize;

unsafe extern "C" fn initialize(count: c_int, args: *const *const c_char) {
    // SAFETY: the loader gives so many strings, and the environment is nobody else's yet.
    let (first_argument, expected_argument) = unsafe {
        let first_argument = if count > 1 { c_string_bytes(*args.add(1)) } else { None };
        (first_argument, env_variable(c"ALGONIUS_FAULT_IN"))
    };
    if first_argument.is_some() && first_argument == expected_argument {
        read_settings();
    }
}

fn read_settings() {
    // SAFETY: as in `initialize`.
    let (kind_names, call_number, mode_words, is_tally_mapped) = unsafe {
        let words = [c"ALGONIUS_FAULT_CALLS", c"ALGONIUS_FAULT_AT", c"ALGONIUS_FAULT_HOW"];
        let [kind_names, call_number, mode_words] =
            words.map(|name| env_variable(name).unwrap_or_default());
        (
            kind_names,
            call_number,
            mode_words,
            tally::map_file(libc::getenv(c"ALGONIUS_FAULT_TALLY".as_ptr())),
        )
    };
    let mut mode_words = mode_words.split(|byte| *byte == b':');
    let mode = match mode_words.next() {
        Some(b"die") => MODE_DIE,
        Some(b"tear") => MODE_TEAR,
        Some(b"once") => MODE_FAIL_ONCE,
        Some(b"on") => MODE_FAIL_ONWARD,
        _ => return,
    };
    FAULT_MODE.store(mode, Ordering::Relaxed);
    let errno =
        i32::try_from(parse_number(mode_words.next().unwrap_or_default())).unwrap_or_default();
    FAULT_ERRNO.store(errno, Ordering::Relaxed);
    FAULT_CALL_NUMBER.store(parse_number(call_number), Ordering::Relaxed);
    let is_counted = |name: &[u8]| kind_names.split(|byte| *byte == b',').any(|word| word == name);
    let kinds = CALL_KIND_NAMES.iter().filter(|(name, _)| is_counted(name));
    let kind_bits = kinds.fold(0, |all, (_, kind)| all | *kind as u8);
    if is_tally_mapped {
        COUNTED_KINDS.store(kind_bits, Ordering::Release);
    }
}

/// Counts a call and says what becomes of it; does not return when it is the last.
pub(crate) fn count_call_and_decide_outcome(
    kind: CallKind,
    name: &[u8],
    fd: Option<c_int>,
) -> CallOutcome {
    if COUNTED_KINDS.load(Ordering::Acquire) & kind as u8 == 0 {
        return CallOutcome::Pass;
    }
    let (call_number, fault_call_number, mode) = (
        tally::next_call_number(),
        FAULT_CALL_NUMBER.load(Ordering::Relaxed),
        FAULT_MODE.load(Ordering::Relaxed),
    );
    if call_number < fault_call_number
        || (call_number > fault_call_number && mode != MODE_FAIL_ONWARD)
    {
        return CallOutcome::Pass;
    }
    tally::record_fault(name, fd);
    match mode {
        MODE_DIE => die(),
        MODE_TEAR => CallOutcome::Tear,
        _ => CallOutcome::Fail(FAULT_ERRNO.load(Ordering::Relaxed)),
    }
}

/// Ends this process as a crash does: nothing of it runs any more.
pub(crate) fn die() -> ! {
    loop {
        // SAFETY: plain system calls.
        unsafe { libc::syscall(libc::SYS_kill, libc::syscall(libc::SYS_getpid), libc::SIGKILL) };
    }
}

unsafe fn env_variable<'a>(name: &CStr) -> Option<&'a [u8]> {
    // SAFETY: nobody changes the environment before `main`.
    unsafe { c_string_bytes(libc::getenv(name.as_ptr())) }
}

unsafe fn c_string_bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: null, or a string of C that stays.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

fn parse_number(digits: &[u8]) -> u64 {
    let digits = digits.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

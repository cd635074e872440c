//! What the test is told: a page of a file that both have in memory, so that no death loses it.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use libc::{c_char, c_int};

/// How much of the page tells which call was struck.
const MAX_FAULT_TEXT_BYTES: usize = 496;

/// The page: two numbers and a text, in this order.
#[repr(C)]
pub(crate) struct TallyPage {
    call_count: AtomicU64,
    fault_count: AtomicU64,
    fault_text: [AtomicU8; MAX_FAULT_TEXT_BYTES],
}

static PAGE: AtomicPtr<TallyPage> = AtomicPtr::new(ptr::null_mut());

/// Takes the file into memory; whether that was possible.
///
/// # Safety
/// `path` is a string of C.
pub(crate) unsafe fn map_file(path: *const c_char) -> bool {
    // SAFETY: plain system calls; what is mapped is never unmapped.
    let page = unsafe {
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, libc::O_RDWR);
        let Ok(file) = c_int::try_from(file) else { return false };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let page =
            libc::mmap(ptr::null_mut(), size_of::<TallyPage>(), access, libc::MAP_SHARED, file, 0);
        libc::syscall(libc::SYS_close, file);
        page
    };
    if page == libc::MAP_FAILED {
        return false;
    }
    PAGE.store(page.cast(), Ordering::Release);
    true
}

/// Counts one more; which it is, from 1.
pub(crate) fn next_call_number() -> u64 {
    page().map_or(0, |page| page.call_count.fetch_add(1, Ordering::Relaxed) + 1)
}

/// Notes what is struck: the name of the call and, the first time, what its descriptor is.
pub(crate) fn record_fault(name: &[u8], fd: Option<c_int>) {
    let Some(page) = page() else { return };
    if page.fault_count.fetch_add(1, Ordering::Relaxed) > 0 {
        return;
    }
    let mut target = [0_u8; 400];
    let length = fd.map_or(0, |fd| read_fd_target(fd, &mut target));
    let text = name.iter().chain(b" ").chain(target.iter().take(length));
    page.fault_text.iter().zip(text).for_each(|(slot, byte)| slot.store(*byte, Ordering::Relaxed));
}

fn page<'a>() -> Option<&'a TallyPage> {
    // SAFETY: null, or a page that is never unmapped and holds nothing but atomics.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// What a descriptor is, without allocating: this may run between `clone` and `execve`.
fn read_fd_target(fd: c_int, buffer: &mut [u8]) -> usize {
    let mut path_bytes = [0_u8; 32];
    let digit_count = fd.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    let digits =
        (0..digit_count).rev().map(|exponent| fd.unsigned_abs() / 10_u32.pow(exponent) % 10);
    let digits = digits.map(|digit| b'0' + u8::try_from(digit).unwrap_or_default());
    let path = b"/proc/self/fd/".iter().copied().chain(digits);
    path_bytes.iter_mut().zip(path).for_each(|(slot, byte)| *slot = byte);
    // SAFETY: the path ends in a zero, and the room is as long as is said.
    let length = unsafe {
        let call = libc::SYS_readlinkat;
        libc::syscall(call, libc::AT_FDCWD, path_bytes.as_ptr(), buffer.as_mut_ptr(), buffer.len())
    };
    usize::try_from(length).unwrap_or_default()
}

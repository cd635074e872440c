//! Returns memory to the system that was needed once, for the start of a process or for finished work.

use std::ffi::c_void;
use std::fs;
use std::ops::Range;
use std::time::Duration;
use std::{ptr, slice};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::{SysconfVar, sysconf};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Time after which the memory of the start is returned.
const STARTUP_TRIM_DELAY: Duration = Duration::from_secs(1);

/// Interval between two checks of whether the process is idle.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Divisor of the interval: an idle process has used no more than this fraction of a processor.
const IDLE_CPU_DIVISOR: u32 = 100;

/// Growth in bytes over the idle size after which memory is returned.
const TRIM_GROWTH_BYTES: u64 = 4 << 20;

/// Returns memory after the start, and whenever the process has worked and is idle again. Never returns.
pub async fn keep_memory_trimmed() {
    sleep(STARTUP_TRIM_DELAY).await;
    let mut state = TrimState::default();
    loop {
        _ = spawn_blocking(trim_memory).await; // A blocking thread, because the allocator may have much memory to examine.
        loop {
            sleep(IDLE_CHECK_INTERVAL).await;
            if state.update_and_should_trim(cpu_time(), resident_bytes()) {
                break;
            }
        }
    }
}

/// State of the latest check.
#[derive(Default)]
struct TrimState {
    cpu_time: Duration,
    /// True if the process was busy since memory was last returned.
    has_worked: bool,
    /// Resident bytes of the idle process; unknown from the return of memory until the next check.
    idle_bytes: Option<u64>,
}

impl TrimState {
    /// Returns true if a process with this processor time is idle after work, or holds more memory than it needs when
    /// idle.
    fn update_and_should_trim(&mut self, cpu_time: Duration, resident_bytes: u64) -> bool {
        let is_idle =
            cpu_time.saturating_sub(self.cpu_time) <= IDLE_CHECK_INTERVAL / IDLE_CPU_DIVISOR;
        self.cpu_time = cpu_time;
        if !is_idle {
            self.has_worked = true;
            return false;
        }
        if std::mem::take(&mut self.has_worked) {
            self.idle_bytes = None;
            return true;
        }
        let idle_bytes = *self.idle_bytes.get_or_insert(resident_bytes);
        self.idle_bytes = Some(idle_bytes.min(resident_bytes))
            .filter(|idle_bytes| resident_bytes <= idle_bytes + TRIM_GROWTH_BYTES);
        self.idle_bytes.is_none()
    }
}

/// Returns the processor time that the process has used.
fn cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let micros = usage.map(|it| it.user_time() + it.system_time()).map(|it| it.num_microseconds());
    Duration::from_micros(micros.and_then(|it| u64::try_from(it).ok()).unwrap_or_default())
}

/// Returns the resident bytes of the process, or 0 if the system does not report them.
fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * page_size() as u64
}

/// Returns the resident pages of the program's own file, and freed memory that the allocator holds. Pages that are
/// needed again come from the page cache at the cost of a minor fault. Most of the resident memory of an idle process
/// would be code that only the start needs.
pub fn trim_memory() {
    for range in read_only_ranges(page_size()) {
        drop_pages(range);
    }
    trim_allocator();
}

fn page_size() -> usize {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(1 << 12)
}

/// Returns the mappings of the program's own file that are never written to, in whole pages of this size.
#[expect(unsafe_code, reason = "no safe wrapper tells where the program was put")]
fn read_only_ranges(page_size: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    // SAFETY: the call lasts no longer than the vector, and `collect_segments` takes it for what it is.
    unsafe { libc::dl_iterate_phdr(Some(collect_segments), ptr::from_mut(&mut ranges).cast()) };
    let whole_pages = |range: Range<usize>| {
        range.start.next_multiple_of(page_size)..range.end / page_size * page_size
    };
    ranges.into_iter().map(whole_pages).filter(|range| !range.is_empty()).collect()
}

/// Collects the read-only segments of the first object, which is the program itself: relocations are in a segment that
/// is writable at first.
///
/// # Safety
/// `ranges` is a `Vec<Range<usize>>` that nobody else holds.
#[expect(unsafe_code, reason = "the loader calls it, with what is its own")]
unsafe extern "C" fn collect_segments(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    ranges: *mut c_void,
) -> libc::c_int {
    // SAFETY: the loader's description of an object is whole, and lasts as long as this call.
    let (base, segments) = unsafe {
        let object = &*object;
        (object.dlpi_addr, slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()))
    };
    // SAFETY: as the caller of `dl_iterate_phdr` has it.
    let ranges = unsafe { &mut *ranges.cast::<Vec<Range<usize>>>() };
    for segment in segments {
        if segment.p_type != libc::PT_LOAD || segment.p_flags & libc::PF_W != 0 {
            continue;
        }
        let start = usize::try_from(base + segment.p_vaddr).unwrap_or_default();
        ranges.push(start..start + usize::try_from(segment.p_memsz).unwrap_or_default());
    }
    1 // The other objects are libraries.
}

/// Drops pages that equal the file's contents.
#[expect(unsafe_code, reason = "what is in memory is a matter of the whole process")]
fn drop_pages(range: Range<usize>) {
    // SAFETY: what is mapped there is private, and as in its file, from which it is read again.
    _ = unsafe {
        libc::madvise(range.start as *mut c_void, range.len(), libc::MADV_DONTNEED) // After a failure the pages stay.
    };
}

/// Returns freed memory of the allocator to the system.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "no safe wrapper knows the allocator")]
fn trim_allocator() {
    // SAFETY: nothing that is in use is touched.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return freed memory by themselves.
#[cfg(not(target_env = "gnu"))]
const fn trim_allocator() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_trimmed_once_after_work() {
        let mut state = TrimState::default();
        let mut should_trim = |seconds, megabytes: u64| {
            state.update_and_should_trim(Duration::from_secs(seconds), megabytes << 20)
        };
        assert!(!should_trim(10, 50)); // Busy.
        assert!(should_trim(10, 49)); // Whatever it held before.
        assert!(!should_trim(10, 14)); // What it holds at rest.
        assert!(!should_trim(20, 90)); // Busy.
        assert!(should_trim(20, 90));
        assert!(!should_trim(20, 16)); // What it holds at rest now.
        assert!(!should_trim(20, 19));
        assert!(should_trim(20, 21));
    }

    /// Returns the kilobytes of the program's executable mapping that are resident.
    fn resident_code_kib() -> u64 {
        let program = std::env::current_exe().unwrap().display().to_string();
        let (mut sum, mut is_own) = (0, false);
        for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
            if let Some((head, _)) = line.split_once(' ').filter(|(head, _)| head.contains('-')) {
                is_own = !head.is_empty() && line.ends_with(&program) && line.contains(" r-xp ");
            } else if let Some(rss) = line.strip_prefix("Rss:").filter(|_| is_own) {
                sum += rss.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "other tests of this process cannot be awaited")]
    fn trimming_returns_start_up_memory_and_the_process_continues() {
        // Reads a byte of every page first: the number of pages that the start left resident depends on the machine.
        for range in read_only_ranges(4096) {
            // SAFETY: it is mapped, and can be read.
            #[expect(unsafe_code, reason = "reads the program itself")]
            let bytes = unsafe { slice::from_raw_parts(range.start as *const u8, range.len()) };
            let bytes = bytes.chunks(4096).filter_map(<[u8]>::first);
            assert!(bytes.fold(0, |sum, byte| sum | *byte) != 0);
        }
        let before = resident_code_kib();
        // Other tests of this process need parts of the program again at the same time.
        let mut after = before;
        for _ in 0..200 {
            trim_memory();
            after = resident_code_kib();
            if after < before / 2 {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{after} kB of {before} are still held");
    }
}

//! Gives memory back that was needed once, for the start of a process or for work that is over.

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

/// What the start has left is put in order within this time.
const SETTLED: Duration = Duration::from_secs(1);

/// From one look at whether the process is at rest to the next.
const PACE: Duration = Duration::from_secs(60);

/// A process at rest has used no more of a processor than one part of so many.
const BUSY: u32 = 100;

/// It has grown when it holds so many bytes more than at rest.
const GROWN: u64 = 4 << 20;

/// Gives memory back when the start is over, and whenever the process has worked and come to rest. Never
/// ends.
pub async fn give_back_at_rest() {
    sleep(SETTLED).await;
    let mut rest = Rest::default();
    loop {
        _ = spawn_blocking(give_back).await; // It may have much to look through.
        loop {
            sleep(PACE).await;
            if rest.is_over_work(spent(), resident()) {
                break;
            }
        }
    }
}

/// What is known of the latest look.
#[derive(Default)]
struct Rest {
    spent: Duration,
    /// Whether it was busy since it gave back.
    has_worked: bool,
    /// What the process holds at rest; not known from when it gives back until the next look.
    low: Option<u64>,
}

impl Rest {
    /// Whether a process that has spent so much of a processor is at rest after work, or holds more than
    /// it needs for that.
    fn is_over_work(&mut self, spent: Duration, resident: u64) -> bool {
        let is_quiet = spent.saturating_sub(self.spent) <= PACE / BUSY;
        self.spent = spent;
        if !is_quiet {
            self.has_worked = true;
            return false;
        }
        if std::mem::take(&mut self.has_worked) {
            self.low = None;
            return true;
        }
        let low = *self.low.get_or_insert(resident);
        self.low = Some(low.min(resident)).filter(|low| resident <= low + GROWN);
        self.low.is_none()
    }
}

/// The time of processors that the process has taken.
fn spent() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let micros = usage.map(|it| it.user_time() + it.system_time()).map(|it| it.num_microseconds());
    Duration::from_micros(micros.and_then(|it| u64::try_from(it).ok()).unwrap_or_default())
}

/// Bytes of the process that are in memory; nothing where the system does not tell.
fn resident() -> u64 {
    let told = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = told.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * page() as u64
}

/// Gives back the pages of the program's own file that are in memory, and what the allocator holds
/// and nobody uses. Of the file's pages those come back that are needed again; they are in the cache
/// of the system, so that takes no more than a look. What a start runs through is most of what a
/// process at rest would hold.
pub fn give_back() {
    for range in unwritten(page()) {
        forget(range);
    }
    trim();
}

fn page() -> usize {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    page.and_then(|size| usize::try_from(size).ok()).unwrap_or(1 << 12)
}

/// Where the program's own file is mapped and never written to, in whole pages of this size.
#[expect(unsafe_code, reason = "no safe wrapper tells where the program was put")]
fn unwritten(page: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    // SAFETY: the call lasts no longer than the vector, and `collect` takes it for what it is.
    unsafe { libc::dl_iterate_phdr(Some(collect), ptr::from_mut(&mut ranges).cast()) };
    let whole = |range: Range<usize>| range.start.next_multiple_of(page)..range.end / page * page;
    ranges.into_iter().map(whole).filter(|range| !range.is_empty()).collect()
}

/// Takes the segments of the first object, which is the program itself, that nothing writes to: what
/// the loader puts addresses into is in one that can be written to at first.
///
/// # Safety
/// `ranges` is a `Vec<Range<usize>>` that nobody else holds.
#[expect(unsafe_code, reason = "the loader calls it, with what is its own")]
unsafe extern "C" fn collect(
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
    1 // The others are libraries.
}

/// Lets go of pages that are as the file has them.
#[expect(unsafe_code, reason = "what is in memory is a matter of the whole process")]
fn forget(range: Range<usize>) {
    // SAFETY: what is mapped there is private, and as in its file, from which it is read again.
    _ = unsafe {
        libc::madvise(range.start as *mut c_void, range.len(), libc::MADV_DONTNEED) // Or it stays.
    };
}

/// Lets go of what was freed.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "no safe wrapper knows the allocator")]
fn trim() {
    // SAFETY: nothing that is in use is touched.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators let go of it by themselves.
#[cfg(not(target_env = "gnu"))]
const fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_after_work() {
        let mut rest = Rest::default();
        let mut look = |seconds, megabytes: u64| {
            rest.is_over_work(Duration::from_secs(seconds), megabytes << 20)
        };
        assert!(!look(10, 50)); // Busy.
        assert!(look(10, 49)); // Whatever it held before.
        assert!(!look(10, 14)); // What it holds at rest.
        assert!(!look(20, 90)); // Busy.
        assert!(look(20, 90));
        assert!(!look(20, 16)); // What it holds at rest now.
        assert!(!look(20, 19));
        assert!(look(20, 21));
    }

    /// Kilobytes of the program's own file that this process has in memory, of what it runs.
    fn held() -> u64 {
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
    fn what_the_start_ran_through_is_given_back_and_all_goes_on() {
        // All of it is touched first.
        for range in unwritten(4096) {
            // SAFETY: it is mapped, and can be read.
            #[expect(unsafe_code, reason = "reads the program itself")]
            let bytes = unsafe { slice::from_raw_parts(range.start as *const u8, range.len()) };
            assert!(bytes.chunks(4096).filter_map(<[u8]>::first).any(|byte| *byte != 0));
        }
        let before = held();
        give_back();
        let after = held();
        assert!(after < before / 2, "{after} kB of {before} are still held");
    }
}

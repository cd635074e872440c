//! What is done to a process: the library of `tests/fault`, told by variables, and what it tells.

use std::fs;
use std::path::{Path, PathBuf};

use super::service::Setup;

/// The process, the calls that count, and what becomes of the k-th; all in the library's words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) process: &'static str,
    pub(crate) calls: &'static str,
    pub(crate) how: &'static str,
}

impl Mode {
    /// Whether it fails on, so that nothing can be settled before the next start.
    pub(crate) fn stays(&self) -> bool {
        self.how.starts_with("on:")
    }

    /// Whether the process is to die.
    pub(crate) fn is_deadly(&self) -> bool {
        matches!(self.how, "die" | "tear")
    }
}

/// One crash point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) mode: Mode,
    pub(crate) at: u64,
}

const VARIABLES: [&str; 6] = [
    "LD_PRELOAD",
    "ALGONIUS_FAULT_IN",
    "ALGONIUS_FAULT_CALLS",
    "ALGONIUS_FAULT_AT",
    "ALGONIUS_FAULT_HOW",
    "ALGONIUS_FAULT_TALLY",
];

/// The length of the tally, and of the numbers before its text.
const PAGE: usize = 512;
const NUMBERS: usize = 16;

impl Fault {
    /// The next start has the fault.
    pub(crate) fn into(self, setup: Setup) -> Setup {
        let tally = tally(setup.here());
        fs::write(&tally, [0; PAGE]).unwrap();
        let Self { mode: Mode { process, calls, how }, at } = self;
        let (library, at) = (library().display().to_string(), at.to_string());
        let values = [&library, process, calls, &at, how, &tally.display().to_string()];
        VARIABLES.iter().zip(values).fold(setup, |setup, (name, value)| setup.env(name, value))
    }
}

/// The next start has no fault.
pub(crate) fn heal(setup: &mut Setup) {
    VARIABLES.iter().for_each(|name| setup.unset(name));
}

/// What the library counted.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) counted: u64,
    pub(crate) struck: u64,
    /// The first call that was struck, and on what.
    pub(crate) call: String,
}

impl Tally {
    pub(crate) fn read(here: &Path) -> Self {
        let page = fs::read(tally(here)).unwrap();
        let (numbers, text) = page.split_at(NUMBERS);
        let mut numbers = numbers.chunks(8).map(|it| u64::from_ne_bytes(it.try_into().unwrap()));
        let text = String::from_utf8_lossy(text);
        let (counted, struck) = (numbers.next().unwrap(), numbers.next().unwrap());
        Self { counted, struck, call: text.trim_end_matches('\0').to_owned() }
    }
}

fn tally(here: &Path) -> PathBuf {
    here.join("tally")
}

/// Cargo builds it beside the test that depends on it.
fn library() -> PathBuf {
    let beside = std::env::current_exe().unwrap().with_file_name("libalgonius_fault.so");
    assert!(beside.is_file(), "{} was not built", beside.display());
    beside
}

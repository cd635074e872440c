//! Fault injection into a process: the library of `tests/fault`, configured by variables, and its tally.

use std::fs;
use std::path::{Path, PathBuf};

use super::service::Setup;

/// Process, counted calls, and fault of the k-th call; all in the syntax of the library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultMode {
    pub(crate) process: &'static str,
    pub(crate) counted_call_kinds: &'static str,
    pub(crate) effect: &'static str,
}

impl FaultMode {
    /// Returns true if the fault persists, so that no operation can be settled before the next start.
    pub(crate) fn is_persistent(&self) -> bool {
        self.effect.starts_with("on:")
    }

    /// Returns true if the fault kills the process.
    pub(crate) fn is_deadly(&self) -> bool {
        matches!(self.effect, "die" | "tear")
    }
}

/// Crash point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InjectedFault {
    pub(crate) mode: FaultMode,
    pub(crate) call_number: u64,
}

const FAULT_VARIABLES: [&str; 6] = [
    "LD_PRELOAD",
    "ALGONIUS_FAULT_IN",
    "ALGONIUS_FAULT_CALLS",
    "ALGONIUS_FAULT_AT",
    "ALGONIUS_FAULT_HOW",
    "ALGONIUS_FAULT_TALLY",
];

/// Length of the tally, and of the numbers before its text.
const TALLY_BYTES: usize = 512;
const TALLY_NUMBERS_BYTES: usize = 16;

impl InjectedFault {
    /// Configures the fault for the next start.
    pub(crate) fn inject_into(self, setup: Setup) -> Setup {
        let tally = tally_path(setup.test_folder());
        fs::write(&tally, [0; TALLY_BYTES]).unwrap();
        let Self { mode: FaultMode { process, counted_call_kinds, effect }, call_number } = self;
        let (library, call_number) =
            (library_path().display().to_string(), call_number.to_string());
        let values = [
            &library,
            process,
            counted_call_kinds,
            &call_number,
            effect,
            &tally.display().to_string(),
        ];
        FAULT_VARIABLES
            .iter()
            .zip(values)
            .fold(setup, |setup, (name, value)| setup.env(name, value))
    }
}

/// Removes the fault from the next start.
pub(crate) fn remove_fault(setup: &mut Setup) {
    FAULT_VARIABLES.iter().for_each(|name| setup.remove_env(name));
}

/// Tally of the library.
#[derive(Debug)]
pub(crate) struct FaultTally {
    pub(crate) counted_calls: u64,
    pub(crate) affected_calls: u64,
    /// First affected call, with its target.
    pub(crate) first_affected_call: String,
}

impl FaultTally {
    pub(crate) fn read(test_folder: &Path) -> Self {
        let content = fs::read(tally_path(test_folder)).unwrap();
        let (numbers, text) = content.split_at(TALLY_NUMBERS_BYTES);
        let mut numbers =
            numbers.chunks(8).map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap()));
        let text = String::from_utf8_lossy(text);
        let (counted_calls, affected_calls) = (numbers.next().unwrap(), numbers.next().unwrap());
        Self {
            counted_calls,
            affected_calls,
            first_affected_call: text.trim_end_matches('\0').to_owned(),
        }
    }
}

fn tally_path(test_folder: &Path) -> PathBuf {
    test_folder.join("tally")
}

/// Returns the path of the library, which cargo builds beside the test that depends on it.
fn library_path() -> PathBuf {
    let library_path = std::env::current_exe().unwrap().with_file_name("libalgonius_fault.so");
    assert!(library_path.is_file(), "{} was not built", library_path.display());
    library_path
}

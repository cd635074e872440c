//! Tests of the process holder: the test program itself in that role.

mod control_groups;
mod fixture;
mod held_programs;
mod journal;
mod journaled_stdin;
mod killed_writers;
mod secret_store;

use std::path::Path;

use uuid::Uuid;

use crate::process_holders::LaunchOptions;
use crate::testing;

/// Name of the test [`process`].
const HOLDER_TEST: &str = "tests::process";

/// Entry point of a process holder, not a test.
#[test]
fn process() {
    testing::hold_if_started_as_holder();
}

fn holder_options(runtime_dir: &Path, instance: Uuid) -> LaunchOptions {
    testing::launch_options(HOLDER_TEST, runtime_dir, instance)
}

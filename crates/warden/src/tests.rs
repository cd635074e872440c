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

use crate::process_holders::ProcessHolderOptions;
use crate::testing;

/// Name of the test [`process`].
const HOLDER_TEST: &str = "tests::process";

/// Entry point of a process holder, not a test.
#[test]
fn process() {
    testing::serve_if_started_as_holder();
}

fn holder_options(runtime_dir: &Path, data_dir_id: Uuid) -> ProcessHolderOptions {
    testing::process_holder_options(HOLDER_TEST, runtime_dir, data_dir_id)
}

//! Tests of the process holder: the test program itself in that role.

mod feeding;
mod grouping;
mod holding;
mod journal;
mod keeping;
mod kills;
mod world;

use std::path::Path;

use uuid::Uuid;

use crate::testing;
use crate::wardens::LaunchOptions;

/// Name of the test [`process`].
const PROCESS: &str = "tests::process";

/// Entry point of a process holder, not a test.
#[test]
fn process() {
    testing::hold_if_started_as_holder();
}

fn terms(runtime_dir: &Path, instance: Uuid) -> LaunchOptions {
    testing::launch_options(PROCESS, runtime_dir, instance)
}

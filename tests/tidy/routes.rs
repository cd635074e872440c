//! Every path is in the table of operations, which is described, or is one of A2A.

use crate::tree::{Faults, rust_files};

/// Makes paths of the table.
const TABLE: &str = "src/serve/api/operation.rs";
/// Has the paths of A2A.
const ROUTER: &str = "src/serve/router.rs";

#[test]
fn a_path_that_is_not_of_a2a_is_in_the_table_of_operations() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/serve"]) {
        if file.path == TABLE || file.is_test() {
            continue;
        }
        for (number, line) in file.lines() {
            let Some((_, path)) = line.split_once(".route(") else { continue };
            let of_a2a = ["\"/agents/{agent}/", "\"/.well-known/"];
            let is_of_a2a = of_a2a.iter().any(|start| path.starts_with(start));
            if file.path != ROUTER || !is_of_a2a {
                faults.add(&file.path, number, "a path that is not described");
            }
        }
    }
    faults.settle("add it to the table in src/serve/api/table, with all that it takes and tells");
}

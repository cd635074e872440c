//! HTTP paths: each is in the endpoint table, which the OpenAPI document describes, or belongs to A2A.

use crate::tree::{Faults, rust_files};

/// File that builds the paths of the endpoint table.
const ENDPOINT_TABLE_FILE: &str = "src/serve/api/endpoint.rs";
/// File that defines the paths of A2A.
const ROUTER_FILE: &str = "src/serve/router.rs";

#[test]
fn every_path_outside_a2a_is_in_the_endpoint_table() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/serve"]) {
        if file.path == ENDPOINT_TABLE_FILE || file.is_test_module() {
            continue;
        }
        for (number, line) in file.lines() {
            let Some((_, path)) = line.split_once(".route(") else { continue };
            let a2a_prefixes = ["\"/agents/{agent}/", "\"/.well-known/"];
            let is_of_a2a = a2a_prefixes.iter().any(|start| path.starts_with(start));
            if file.path != ROUTER_FILE || !is_of_a2a {
                faults.add(&file.path, number, "the OpenAPI document does not describe the path");
            }
        }
    }
    faults.fail_if_any("add it to src/serve/api/endpoints.rs with its parameters and responses");
}

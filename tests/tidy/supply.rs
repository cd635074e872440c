//! Supply chain: no banned crates, and no sources other than the registry.

use crate::tree::{Faults, repository_files};

/// Crates that need more than Rust and a C compiler, or duplicate a crate in use.
const BANNED_CRATES: &[&str] = &[
    "aws-lc-rs",
    "aws-lc-sys",
    "bindgen",
    "cmake",
    "native-tls",
    "openssl",
    "openssl-sys",
    "protoc-bin-vendored",
];

#[test]
fn no_banned_crate_is_in_the_lock_file() {
    let mut faults = Faults::default();
    let files = repository_files();
    let lock_file = files.iter().find(|file| file.path == "Cargo.lock");
    assert!(lock_file.is_some(), "Cargo.lock is not tracked");
    for (number, line) in lock_file.into_iter().flat_map(|file| file.lines()) {
        let name = line.strip_prefix("name = \"").and_then(|rest| rest.strip_suffix('"'));
        if let Some(name) = name.filter(|name| BANNED_CRATES.contains(name)) {
            faults.add("Cargo.lock", number, format!("`{name}`"));
        }
    }
    faults.fail_if_any(
        "run `cargo tree -i NAME` to find the dependent crate; disable the feature that needs it",
    );
}

/// The checksums of the registry cover no crate from another source.
#[test]
fn every_crate_comes_from_the_registry() {
    let mut faults = Faults::default();
    for file in repository_files().iter().filter(|file| file.path == "Cargo.lock") {
        for (number, line) in file.lines() {
            let registry = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
            if line.starts_with("source = ") && line != registry {
                faults.add("Cargo.lock", number, line);
            }
        }
    }
    faults.fail_if_any("depend on a published version of the crate");
}

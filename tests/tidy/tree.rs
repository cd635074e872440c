//! The files of the house, and the list of what is wrong with them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that hold no source; only asked when git cannot tell.
const NOT_OURS: &[&str] = &[".git", "target", "data"];

/// Code that a generator writes. Its own test, in `tests/proto`, keeps it as it must be.
const GENERATED: &str = "src/serve/grpc/proto/";

/// A text file of the house.
pub(crate) struct File {
    /// Path from the root of the house, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl File {
    /// Whether it lies in one of these folders.
    pub(crate) fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Whether it is the test module of a room.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
    }

    /// Its numbered lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// The root of the house.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file that is tracked or could be, in the order of its path.
pub(crate) fn files() -> Vec<File> {
    let mut paths = known_to_git().unwrap_or_else(|| walked(&root()));
    paths.sort();
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).ok()?;
        Some(File { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

/// The Rust files below these folders that people write.
pub(crate) fn rust_files(folders: &[&str]) -> Vec<File> {
    let wanted = |file: &File| {
        file.path.ends_with(".rs") && file.is_in(folders) && !file.is_in(&[GENERATED])
    };
    files().into_iter().filter(wanted).collect()
}

fn known_to_git() -> Option<Vec<String>> {
    let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(listing).current_dir(root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<_> = text.split_terminator('\0').map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

fn walked(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_file() {
            paths.extend(path.strip_prefix(root()).ok().and_then(Path::to_str).map(str::to_owned));
        } else if !NOT_OURS.iter().any(|ours| name == *ours) {
            paths.extend(walked(&path));
        }
    }
    paths
}

/// What is wrong, place by place.
#[derive(Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// Adds a place and what is wrong there.
    pub(crate) fn add(&mut self, path: &str, line: usize, what: impl AsRef<str>) {
        self.0.push(format!("{path}:{line}: {}", what.as_ref()));
    }

    /// Fails the test with the whole list and what to do about it.
    pub(crate) fn settle(self, remedy: &str) {
        let mut list = String::new();
        for fault in &self.0 {
            _ = writeln!(list, "  {fault}");
        }
        assert!(self.0.is_empty(), "{} place(s):\n{list}What to do: {remedy}", self.0.len());
    }
}

/// A tree that cannot be read would pass every rule.
#[test]
fn the_tree_is_found() {
    let paths: Vec<_> = files().into_iter().map(|file| file.path).collect();
    for known in ["Cargo.toml", "src/lib.rs", "actors/src/model/code.rs", "tests/tidy.rs"] {
        assert!(paths.iter().any(|path| path == known), "{known} is not among {paths:?}");
    }
    let by_hand = walked(&root());
    assert!(by_hand.iter().any(|path| path == "src/lib.rs"), "the walk without git finds nothing");
}

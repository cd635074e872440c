//! Text files of the repository, and the list of faults found in them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders without source files. Used only if git is not available.
const EXCLUDED_FOLDERS: &[&str] = &[".git", "target", "data"];

/// Generated code. The tests in `tests/proto` compare it with its source.
const GENERATED_FOLDER: &str = "crates/a2a/src/grpc/proto/";

/// Text file of the repository.
pub(crate) struct RepoFile {
    /// Path relative to the root of the repository, with `/`.
    pub(crate) path: String,
    /// Content of the file.
    pub(crate) text: String,
}

impl RepoFile {
    /// Returns whether the path of the file starts with one of these folders.
    pub(crate) fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Returns whether the file is the test module of another module.
    pub(crate) fn is_test_module(&self) -> bool {
        self.path.ends_with("/tests.rs")
    }

    /// Returns the lines with their numbers; the first number is 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// Returns the root folder of the repository.
pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every text file that git tracks or does not ignore, sorted by path.
pub(crate) fn repository_files() -> Vec<RepoFile> {
    let mut paths = git_files().unwrap_or_else(|| walk_files(&repository_root()));
    paths.sort();
    let read = |path: String| {
        let text = fs::read_to_string(repository_root().join(&path)).ok()?;
        Some(RepoFile { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

/// Returns the Rust files in these folders, without generated code.
pub(crate) fn rust_files(folders: &[&str]) -> Vec<RepoFile> {
    let is_selected = |file: &RepoFile| {
        file.path.ends_with(".rs") && file.is_in(folders) && !file.is_in(&[GENERATED_FOLDER])
    };
    repository_files().into_iter().filter(is_selected).collect()
}

fn git_files() -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output =
        Command::new("git").args(arguments).current_dir(repository_root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<_> = text.split_terminator('\0').map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

fn walk_files(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_file() {
            paths.extend(
                path.strip_prefix(repository_root()).ok().and_then(Path::to_str).map(str::to_owned),
            );
        } else if !EXCLUDED_FOLDERS.iter().any(|excluded| name == *excluded) {
            paths.extend(walk_files(&path));
        }
    }
    paths
}

/// Faults found by one rule, with their locations.
#[derive(Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// Adds a fault with its location.
    pub(crate) fn add(&mut self, path: &str, line: usize, message: impl AsRef<str>) {
        self.0.push(format!("{path}:{line}: {}", message.as_ref()));
    }

    /// Fails the test with the complete list and the remedy, if there are faults.
    pub(crate) fn fail_if_any(self, remedy: &str) {
        let mut fault_list = String::new();
        for fault in &self.0 {
            _ = writeln!(fault_list, "  {fault}");
        }
        assert!(self.0.is_empty(), "{} fault(s):\n{fault_list}Remedy: {remedy}", self.0.len());
    }
}

/// An empty list of files would satisfy every rule.
#[test]
fn the_files_of_the_repository_are_found() {
    let paths: Vec<_> = repository_files().into_iter().map(|file| file.path).collect();
    for known in ["Cargo.toml", "src/lib.rs", "actors/src/model/code.rs", "tests/tidy/tree.rs"] {
        assert!(paths.iter().any(|path| path == known), "{known} is not among {paths:?}");
    }
    let paths = walk_files(&repository_root());
    assert!(paths.iter().any(|path| path == "src/lib.rs"), "the walk misses src/lib.rs");
}

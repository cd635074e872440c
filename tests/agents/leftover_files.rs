//! Traces on disk.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below these folders that contain this text; paths that end as one of `excluded_suffixes` are
/// skipped.
pub(crate) fn files_containing(
    folders: &[&Path],
    excluded_suffixes: &[&Path],
    text: &str,
) -> Vec<PathBuf> {
    let mut matching_files = Vec::new();
    let mut pending: Vec<PathBuf> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(path) = pending.pop() {
        if excluded_suffixes.iter().any(|suffix| path.ends_with(suffix)) {
            continue;
        }
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            pending.extend(entries.map(|entry| entry.path()));
        } else if metadata.is_file() && contains_text(&path, text) {
            matching_files.push(path);
        }
    }
    matching_files
}

fn contains_text(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

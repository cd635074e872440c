//! Traces on disk.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below these folders that contain this text; paths that end as one of `hidden` are skipped.
pub(crate) fn files_containing(folders: &[&Path], hidden: &[&Path], text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending: Vec<PathBuf> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(path) = pending.pop() {
        if hidden.iter().any(|suffix| path.ends_with(suffix)) {
            continue;
        }
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            pending.extend(entries.map(|entry| entry.path()));
        } else if metadata.is_file() && contains_text(&path, text) {
            found.push(path);
        }
    }
    found
}

fn contains_text(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

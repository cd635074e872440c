//! Traces on disk.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below these folders that contain this text; paths that end as one of `hidden` are skipped.
pub(crate) fn files_containing(folders: &[&Path], hidden: &[&Path], text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(place) = left.pop() {
        if hidden.iter().any(|end| place.ends_with(end)) {
            continue;
        }
        let Ok(kind) = fs::symlink_metadata(&place) else { continue };
        if kind.is_dir() {
            let entries = fs::read_dir(&place).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()));
        } else if kind.is_file() && contains_text(&place, text) {
            found.push(place);
        }
    }
    found
}

fn contains_text(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

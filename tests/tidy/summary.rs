//! Table of contents of the documentation: it lists every page once, and mdBook builds a book from it.

use std::collections::BTreeSet;
use std::process::Command;

use algonius_skips::skip_without;

use crate::tree::{Faults, repository_files, repository_root};

const SUMMARY_PAGE: &str = "docs/SUMMARY.md";

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let files = repository_files();
    let summary = files.iter().find(|file| file.path == SUMMARY_PAGE).map_or("", |file| &file.text);
    let mut faults = Faults::default();
    let mut listed_pages = BTreeSet::new();
    for (index, line) in summary.lines().enumerate() {
        let Some((_, rest)) = line.split_once("](") else { continue };
        let target = format!("docs/{}", rest.trim_end_matches(')'));
        if !listed_pages.insert(target.clone()) {
            faults.add(SUMMARY_PAGE, index + 1, format!("`{target}` occurs twice"));
        }
    }
    let pages = files.iter().map(|file| &file.path);
    let pages = pages.filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    for page in pages.filter(|path| *path != SUMMARY_PAGE && !listed_pages.contains(*path)) {
        faults.add(SUMMARY_PAGE, 1, format!("`{page}` is not listed"));
    }
    faults.fail_if_any("list each page of docs once in docs/SUMMARY.md");
}

#[test]
fn mdbook_builds_the_documentation() {
    let folder = tempfile::tempdir().unwrap();
    let result = Command::new("mdbook")
        .args(["build", "--dest-dir"])
        .arg(folder.path())
        .current_dir(repository_root())
        .output();
    let Ok(output) = result else {
        skip_without("mdbook");
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(folder.path().join("quick-start.html").exists(), "{stderr}");
}

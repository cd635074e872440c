//! Documentation pages: each error code has one, and every relative link points to a file.

use std::collections::BTreeSet;
use std::path::Path;

use algonius_actors::model::code::Code;

use crate::tree::{Faults, RepoFile, repository_files, repository_root};

const ERROR_PAGES_FOLDER: &str = "docs/errors/";
const INDEX_PAGE: &str = "docs/errors/README.md";

/// Parts of each error page, in this order.
const PAGE_PARTS: &[&str] =
    &["**What happened**", "**Category**", "**Why**", "**What to do**", "**Seen as**"];

#[test]
fn every_error_code_has_exactly_one_page() {
    let expected_paths: BTreeSet<_> = Code::ALL.iter().map(|code| page_path(*code)).collect();
    let actual_paths: BTreeSet<_> = repository_files()
        .into_iter()
        .map(|file| file.path)
        .filter(|path| path.starts_with(ERROR_PAGES_FOLDER) && path != INDEX_PAGE)
        .collect();
    let mut faults = Faults::default();
    for path in expected_paths.difference(&actual_paths) {
        faults.add(path, 1, "the code has no page");
    }
    for path in actual_paths.difference(&expected_paths) {
        faults.add(path, 1, "the page has no code");
    }
    faults.fail_if_any("write or remove the page; actors/src/model/code.rs defines the codes");
}

#[test]
fn error_pages_have_all_parts_and_are_in_the_index() {
    let files = repository_files();
    let index = files.iter().find(|file| file.path == INDEX_PAGE).map_or("", |file| &file.text);
    let mut faults = Faults::default();
    for &code in Code::ALL {
        let path = page_path(code);
        let Some(page) = files.iter().find(|file| file.path == path) else { continue };
        let page = &page.text;
        if !page.starts_with(&format!("# {code}\n")) {
            faults.add(&path, 1, format!("the title is not `{code}`"));
        }
        if !page.contains(&format!("**Category**: {}", code.category().as_str())) {
            faults.add(&path, 1, format!("the category is not `{}`", code.category().as_str()));
        }
        let positions: Vec<_> = PAGE_PARTS.iter().map(|part| page.find(part)).collect();
        if positions.contains(&None) || !positions.is_sorted() {
            faults.add(
                &path,
                1,
                format!("the parts are not, in this order, {}", PAGE_PARTS.join(", ")),
            );
        }
        if !index.contains(&format!("({code}.md)")) {
            faults.add(INDEX_PAGE, 1, format!("`{code}` is not listed"));
        }
    }
    faults.fail_if_any("write the page like the others of docs/errors, and list it in the index");
}

fn page_path(code: Code) -> String {
    format!("{ERROR_PAGES_FOLDER}{code}.md")
}

#[test]
fn every_relative_link_points_to_a_file() {
    let mut faults = Faults::default();
    for file in repository_files().iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in relative_links(file) {
            let page_file = repository_root().join(&file.path);
            let path = page_file.parent().unwrap_or(Path::new("")).join(&target);
            if !path.exists() {
                faults.add(&file.path, line, format!("`{target}` does not exist"));
            }
        }
    }
    faults.fail_if_any("correct the link, or write the page");
}

/// Returns the relative links of a page outside of code, with their lines and without the part after `#`.
fn relative_links(file: &RepoFile) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut is_in_fence = false;
    for (number, line) in file.lines() {
        is_in_fence ^= line.trim_start().starts_with("```");
        let prose: String = line.split('`').step_by(2).collect();
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let is_relative = |target: &&str| !target.contains("://") && !target.starts_with("mailto:");
        for target in targets.filter(is_relative).filter(|_| !is_in_fence) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() {
                links.push((number, path.to_owned()));
            }
        }
    }
    links
}

#[test]
fn links_inside_code_are_ignored() {
    let text = "[a](b.md#c) `[d](e)` [f](#g) [`h`](i.md)\n```\n[j](k)\n```\n[l](https://m.n)";
    let page = RepoFile { path: "page.md".to_owned(), text: text.to_owned() };
    assert_eq!(relative_links(&page), [(1, "b.md".to_owned()), (1, "i.md".to_owned())]);
}

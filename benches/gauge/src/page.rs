//! Performance page, whose measured parts are generated and whose rest is written by hand.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the documentation.
#[must_use]
pub fn docs_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Replaces the texts between the marks of their names on the page.
///
/// # Panics
/// Panics if the page lacks a mark, or cannot be written.
pub fn write_sections(texts: &[(&str, String)]) {
    let file = docs_folder().join("performance.md");
    let page = fs::read_to_string(&file).expect("the page");
    let page = texts.iter().fold(page, |page, (name, text)| replace_section(&page, name, text));
    fs::write(&file, page).expect("the page");
}

/// Returns the page with another text between the two marks of this name.
fn replace_section(page: &str, name: &str, text: &str) -> String {
    let [open_mark, close_mark] = [format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->")];
    let (before, rest) = page.split_once(&open_mark).expect("a mark");
    let (_, after) = rest.split_once(&close_mark).expect("the mark of its end");
    format!("{before}{open_mark}\n{}\n\n{close_mark}{after}", text.trim_end())
}

/// Formats a number with its significant digits.
#[must_use]
pub fn format_number(value: f64) -> String {
    let magnitude = value.abs();
    let text = match magnitude {
        1000.0.. => return format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        let once = replace_section(page, "x", "new\n");
        assert_eq!(once, "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n");
        assert_eq!(replace_section(&once, "x", "new"), once);
    }

    #[test]
    fn numbers_are_printed_in_their_shortest_form() {
        let texts = [0.2195, 1.0, 12.345, 345.67, 12_345.6, 0.0].map(format_number);
        assert_eq!(texts, ["0.22", "1", "12.35", "345.7", "12346", "0"]);
    }
}

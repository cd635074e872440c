//! Selections of known words.

use super::section::Section;
use super::shape::ValueShape;
use crate::config::diagnostics::new_diagnostic;

/// Reads a selection of the known words; all of them if the key is absent.
pub(crate) fn read_keyword_list<T: Copy + PartialEq>(
    section: &mut Section<'_>,
    key: &'static str,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Vec<T> {
    let reader = section.reader;
    let words = section.text_list(key);
    section.record_shape(key, || {
        ValueShape::KeywordList(all.iter().map(|word| as_str(*word).to_owned()).collect())
    });
    let Some(words) = words else { return all.to_vec() };
    if words.is_empty() {
        reader
            .report_error(&section.position.child(key).without_excerpt(), "must name one at least");
    }
    let mut selected = Vec::new();
    for word in words {
        match all.iter().find(|known| as_str(**known) == word.value) {
            Some(known) if selected.contains(known) => {}
            Some(known) => selected.push(*known),
            None => {
                let known = all.iter().map(|known| as_str(*known));
                reader.report_error(
                    &word.position,
                    new_diagnostic("is not known").suggest_from(&word.value, known),
                );
            }
        }
    }
    selected
}

//! Start of an unfinished line that can be shown before the rest of the line arrives.

use crate::Redactor;
use crate::rules::discord_token::next_discord_token;
use crate::rules::{keywords, next_keyword};
use crate::text::boundary::find_bytes;

/// Start of the header of a private key.
const PEM_HEADER_START: &[u8] = b"-----";

impl Redactor {
    /// Returns the length of the start of `text`, an unfinished line, that contains no secret and cannot be a part or
    /// the announcement of one.
    pub(crate) fn safe_prefix_bytes(&self, text: &str) -> usize {
        // Configured patterns and personal numbers have no literal that announces them.
        if self.scanner.inspects_every_line() {
            return 0;
        }
        let bytes = text.as_bytes();
        let keyword = next_keyword(bytes, 0).map(|found| found.0);
        let literal = self.scanner.literals.next_position(bytes, 0);
        // A registered value may have arrived only in part.
        let partial = self.scanner.literals.partial_form_start(bytes);
        let discord_token = next_discord_token(bytes, 0).map(|token| token.start);
        let key_header = find_bytes(bytes, PEM_HEADER_START);
        let starts = [keyword, literal, discord_token, partial, key_header, partial_keyword(bytes)];
        let first_start = starts.into_iter().flatten().min().unwrap_or(text.len());
        let head = text.get(..text.floor_char_boundary(first_start)).unwrap_or_default();
        // The last word may be the first half of a literal.
        let word_start = head.rfind([' ', '\t', '\n']).map_or(0, |space| space + 1);
        word_start + safe_part_of_word(head.get(word_start..).unwrap_or_default())
    }
}

/// Returns the length of the start of an unfinished word that may be shown: its characters up to the last one outside
/// of ASCII, because scripts without spaces would wait for the end of their line. No token and no key word contains
/// such characters, but a password in an address can.
fn safe_part_of_word(word: &str) -> usize {
    if word.contains("//") {
        return 0;
    }
    let last = word.char_indices().rev().find(|(_, character)| !character.is_ascii());
    last.map_or(0, |(start, character)| start + character.len_utf8())
}

/// Returns the start of a key word of several words, such as `api key`, of which only the first words have arrived.
fn partial_keyword(text: &[u8]) -> Option<usize> {
    let is_at_end = |keyword: &[u8]| {
        let end = text.len().checked_sub(keyword.len())?;
        text.get(end..)?.eq_ignore_ascii_case(keyword).then_some(end)
    };
    let partial_start = |keyword: &'static str| {
        // A part of the first word is held back as any unfinished word.
        let first_space = keyword.find(' ').filter(|at| *at > 0)?;
        let lengths = first_space + 1..keyword.len();
        lengths.filter_map(|length| is_at_end(keyword.as_bytes().get(..length)?)).min()
    };
    keywords()?.filter_map(partial_start).min()
}

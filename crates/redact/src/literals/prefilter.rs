//! Prefilter that skips text without literals, several times as fast as an automaton.
//!
//! The prefilter knows the three rarest adjacent bytes of each literal. Text without such a triple contains no literal;
//! the automaton searches the surroundings of the others.

use std::ops::Range;

/// Number of bytes that are inspected together.
const BLOCK_BYTES: usize = 64;

/// Number of bits of a byte class.
const CLASS_BITS: u32 = 6;

/// Number of triples of byte classes.
const TRIPLE_COUNT: usize = 1 << (3 * CLASS_BITS);

/// Number of words in the bitmap.
const WORDS: usize = TRIPLE_COUNT / 64;

/// Letters, the most frequent first.
const LETTERS_BY_FREQUENCY: &[u8; 26] = b"etaoinsrhldcumfpgwybvkxjqz";

/// Class of each byte: letters are distinguished, and so are common separators.
const BYTE_CLASSES: [u8; 256] = kinds();

/// Literal and its case sensitivity.
pub(crate) enum Literal<'t> {
    /// Case-sensitive literal.
    CaseSensitive(&'t [u8]),
    /// Case-insensitive literal.
    CaseInsensitive(&'t [u8]),
}

/// Prefilter for the positions of literals.
pub(crate) struct LiteralPrefilter {
    /// Bitmap of triples of byte classes.
    marks: Box<[u64; WORDS]>,
    /// One byte of each literal that is shorter than three bytes.
    singles: Vec<u8>,
    longest: usize,
}

impl LiteralPrefilter {
    pub(crate) fn new<'t>(literals: impl IntoIterator<Item = Literal<'t>>) -> Self {
        let mut prefilter = Self { marks: Box::new([0; WORDS]), singles: Vec::new(), longest: 0 };
        for literal in literals {
            prefilter.add(&literal);
        }
        prefilter.singles.sort_unstable();
        prefilter.singles.dedup();
        prefilter
    }

    /// Returns the ranges that may contain a literal, in order: each literal in the text lies within one range.
    pub(crate) fn candidate_ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut triple = 0;
        for (number, block) in text.chunks(BLOCK_BYTES).enumerate() {
            let has_triple = self.has_marked_triple(block, &mut triple);
            if has_triple || self.singles.iter().any(|single| has(block, *single)) {
                let start = (number * BLOCK_BYTES).saturating_sub(self.longest);
                let end = (number * BLOCK_BYTES + block.len() + self.longest).min(text.len());
                match ranges.last_mut().filter(|last| last.end >= start) {
                    Some(last) => last.end = end,
                    None => ranges.push(start..end),
                }
            }
        }
        ranges
    }

    /// Returns true if a marked triple ends in a block; `triple` holds the classes before the block.
    fn has_marked_triple(&self, block: &[u8], triple: &mut u32) -> bool {
        let mut found = 0;
        for byte in block {
            *triple = *triple << CLASS_BITS | byte_class(*byte);
            let (word, bit) = bitmap_position(*triple);
            found |= self.marks.get(word).copied().unwrap_or_default() >> bit;
        }
        found & 1 == 1
    }

    fn add(&mut self, literal: &Literal<'_>) {
        let (Literal::CaseSensitive(bytes) | Literal::CaseInsensitive(bytes)) = *literal;
        self.longest = self.longest.max(bytes.len());
        let triples = bytes.windows(3).filter_map(|triple| triple.first_chunk::<3>());
        match triples
            .min_by_key(|triple| triple.iter().map(|byte| byte_frequency(*byte)).sum::<usize>())
        {
            None => self.singles.extend(bytes.iter().min_by_key(|byte| byte_frequency(**byte))),
            Some(triple) => {
                let cases =
                    if matches!(literal, Literal::CaseInsensitive(_)) { 1..=8_u8 } else { 8..=8 };
                cases.for_each(|case| self.mark(case_variant(*triple, case)));
            }
        }
    }

    fn mark(&mut self, triple: [u8; 3]) {
        let (word, bit) = bitmap_position(
            triple.iter().fold(0, |triple, byte| triple << CLASS_BITS | byte_class(*byte)),
        );
        if let Some(word) = self.marks.get_mut(word) {
            *word |= 1 << bit;
        }
    }
}

/// Returns the triple with the case of its letters inverted where the number has a bit; 8 leaves it unchanged.
fn case_variant(triple: [u8; 3], inverted: u8) -> [u8; 3] {
    let mut bit = 1;
    triple.map(|byte| {
        let is_inverted = inverted & bit != 0 && byte.is_ascii_alphabetic();
        bit <<= 1;
        if is_inverted { byte ^ 0x20 } else { byte }
    })
}

/// Returns the bit of the last three classes in the bitmap.
const fn bitmap_position(triple: u32) -> (usize, u32) {
    (triple as usize % TRIPLE_COUNT / 64, triple % 64)
}

fn byte_class(byte: u8) -> u32 {
    BYTE_CLASSES.get(usize::from(byte)).map_or(0, |kind| u32::from(*kind))
}

/// Returns true if the block contains the byte; written so that the compiler vectorizes it.
fn has(block: &[u8], single: u8) -> bool {
    block.iter().fold(false, |has, byte| has | (*byte == single))
}

/// Returns the approximate frequency of a byte.
fn byte_frequency(byte: u8) -> usize {
    match byte {
        b'a'..=b'z' => {
            LETTERS_BY_FREQUENCY.iter().rev().position(|letter| *letter == byte).unwrap_or(0)
        }
        b' ' => LETTERS_BY_FREQUENCY.len() + 4,
        b'0'..=b'9' => LETTERS_BY_FREQUENCY.len(), // All digits have one class.
        b'.' | b'-' | b'_' | b'/' | b'=' | b':' | b'"' | b'\'' => LETTERS_BY_FREQUENCY.len() / 2,
        b'A'..=b'Z' => LETTERS_BY_FREQUENCY.len() / 3,
        _ => 1,
    }
}

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let (mut byte, mut rest) = (0_u8, kinds.as_mut_slice());
    while let Some((kind, remaining)) = rest.split_first_mut() {
        *kind = kind_of(byte);
        (byte, rest) = (byte.wrapping_add(1), remaining);
    }
    kinds
}

const fn kind_of(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => byte - b'a' + 1,
        b'A'..=b'Z' => byte - b'A' + 27,
        b'0'..=b'9' => 53,
        b' ' => 54,
        b'-' => 55,
        b'_' => 56,
        b'.' => 57,
        b'/' => 58,
        b'=' => 59,
        b':' => 60,
        b'"' | b'\'' => 61,
        0x80.. => 62,
        b'\n' => 63,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK_BYTES, Literal, LiteralPrefilter};

    const EXACT: [&str; 5] = ["sk-", "Q~", "hooks.slack.com/", "\u{e9}\0\r\n", "1//0"];
    const WORDS: [&str; 4] = ["secret", "@", " -u", "private key"];

    fn prefilter() -> LiteralPrefilter {
        let exact = EXACT.iter().map(|text| Literal::CaseSensitive(text.as_bytes()));
        LiteralPrefilter::new(
            exact.chain(WORDS.iter().map(|word| Literal::CaseInsensitive(word.as_bytes()))),
        )
    }

    #[test]
    fn ordinary_text_is_skipped() {
        let text = "A line of plain words, and 17 of them; no more than that.\n".repeat(100);
        assert!(prefilter().candidate_ranges(text.as_bytes()).is_empty());
    }

    proptest! {
        #[test]
        fn a_literal_is_always_inside_a_candidate_range(
            at in 0..3 * BLOCK_BYTES, rest in 0..2 * BLOCK_BYTES,
            number in 0..EXACT.len() + WORDS.len(), upper in any::<u32>(),
        ) {
            let literal: String = match EXACT.get(number) {
                Some(text) => (*text).to_owned(),
                None => WORDS[number - EXACT.len()].char_indices().map(|(index, letter)| {
                    if upper >> index & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
                }).collect(),
            };
            let text = ["x".repeat(at), literal.clone(), "x".repeat(rest)].concat();
            let holds = |range: &std::ops::Range<usize>| range.start <= at && at + literal.len() <= range.end;
            prop_assert!(prefilter().candidate_ranges(text.as_bytes()).iter().any(holds));
        }
    }
}

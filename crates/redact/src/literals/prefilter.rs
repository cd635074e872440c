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
const BITMAP_WORDS: usize = TRIPLE_COUNT / 64;

/// Letters, the most frequent first.
const LETTERS_BY_FREQUENCY: &[u8; 26] = b"etaoinsrhldcumfpgwybvkxjqz";

/// Class of each byte: letters are distinguished, and so are common separators.
const BYTE_CLASSES: [u8; 256] = byte_classes();

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
    triple_bitmap: Box<[u64; BITMAP_WORDS]>,
    /// One byte of each literal that is shorter than three bytes.
    short_literal_bytes: Vec<u8>,
    max_literal_bytes: usize,
}

impl LiteralPrefilter {
    pub(crate) fn new<'t>(literals: impl IntoIterator<Item = Literal<'t>>) -> Self {
        let mut prefilter = Self {
            triple_bitmap: Box::new([0; BITMAP_WORDS]),
            short_literal_bytes: Vec::new(),
            max_literal_bytes: 0,
        };
        for literal in literals {
            prefilter.add(&literal);
        }
        prefilter.short_literal_bytes.sort_unstable();
        prefilter.short_literal_bytes.dedup();
        prefilter
    }

    /// Returns the ranges that may contain a literal, in order: each literal in the text lies within one range.
    pub(crate) fn candidate_ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut last_triple = 0;
        for (block_index, block) in text.chunks(BLOCK_BYTES).enumerate() {
            let has_triple = self.has_marked_triple(block, &mut last_triple);
            if has_triple || self.short_literal_bytes.iter().any(|byte| contains_byte(block, *byte))
            {
                let start = (block_index * BLOCK_BYTES).saturating_sub(self.max_literal_bytes);
                let end = (block_index * BLOCK_BYTES + block.len() + self.max_literal_bytes)
                    .min(text.len());
                match ranges.last_mut().filter(|last| last.end >= start) {
                    Some(last) => last.end = end,
                    None => ranges.push(start..end),
                }
            }
        }
        ranges
    }

    /// Returns true if a marked triple ends in a block; `triple` holds the classes before the block.
    fn has_marked_triple(&self, block: &[u8], last_triple: &mut u32) -> bool {
        let mut marked_bits = 0;
        for byte in block {
            *last_triple = *last_triple << CLASS_BITS | byte_class(*byte);
            let (word, bit) = bitmap_position(*last_triple);
            marked_bits |= self.triple_bitmap.get(word).copied().unwrap_or_default() >> bit;
        }
        marked_bits & 1 == 1
    }

    fn add(&mut self, literal: &Literal<'_>) {
        let (Literal::CaseSensitive(bytes) | Literal::CaseInsensitive(bytes)) = *literal;
        self.max_literal_bytes = self.max_literal_bytes.max(bytes.len());
        let triples = bytes.windows(3).filter_map(|triple| triple.first_chunk::<3>());
        match triples
            .min_by_key(|triple| triple.iter().map(|byte| frequency_score(*byte)).sum::<usize>())
        {
            None => self
                .short_literal_bytes
                .extend(bytes.iter().min_by_key(|byte| frequency_score(**byte))),
            Some(triple) => {
                let case_mask_range =
                    if matches!(literal, Literal::CaseInsensitive(_)) { 1..=8_u8 } else { 8..=8 };
                case_mask_range
                    .for_each(|case_mask| self.mark_triple(case_variant(*triple, case_mask)));
            }
        }
    }

    fn mark_triple(&mut self, triple: [u8; 3]) {
        let (word, bit) = bitmap_position(
            triple.iter().fold(0, |triple, byte| triple << CLASS_BITS | byte_class(*byte)),
        );
        if let Some(word) = self.triple_bitmap.get_mut(word) {
            *word |= 1 << bit;
        }
    }
}

/// Returns the triple with the case of its letters inverted where the number has a bit; 8 leaves it unchanged.
fn case_variant(triple: [u8; 3], case_mask: u8) -> [u8; 3] {
    let mut bit = 1;
    triple.map(|byte| {
        let is_inverted = case_mask & bit != 0 && byte.is_ascii_alphabetic();
        bit <<= 1;
        if is_inverted { byte ^ 0x20 } else { byte }
    })
}

/// Returns the bit of the last three classes in the bitmap.
const fn bitmap_position(triple: u32) -> (usize, u32) {
    (triple as usize % TRIPLE_COUNT / 64, triple % 64)
}

fn byte_class(byte: u8) -> u32 {
    BYTE_CLASSES.get(usize::from(byte)).map_or(0, |class| u32::from(*class))
}

/// Returns true if the block contains the byte; written so that the compiler vectorizes it.
fn contains_byte(block: &[u8], byte: u8) -> bool {
    block.iter().fold(false, |is_found, other| is_found | (*other == byte))
}

/// Returns the approximate frequency of a byte.
fn frequency_score(byte: u8) -> usize {
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

const fn byte_classes() -> [u8; 256] {
    let mut byte_classes = [0; 256];
    let (mut byte, mut rest) = (0_u8, byte_classes.as_mut_slice());
    while let Some((class, remaining)) = rest.split_first_mut() {
        *class = compute_byte_class(byte);
        (byte, rest) = (byte.wrapping_add(1), remaining);
    }
    byte_classes
}

const fn compute_byte_class(byte: u8) -> u8 {
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

    const CASE_SENSITIVE: [&str; 5] = ["sk-", "Q~", "hooks.slack.com/", "\u{e9}\0\r\n", "1//0"];
    const CASE_INSENSITIVE: [&str; 4] = ["secret", "@", " -u", "private key"];

    fn prefilter() -> LiteralPrefilter {
        let exact = CASE_SENSITIVE.iter().map(|text| Literal::CaseSensitive(text.as_bytes()));
        LiteralPrefilter::new(
            exact.chain(
                CASE_INSENSITIVE.iter().map(|word| Literal::CaseInsensitive(word.as_bytes())),
            ),
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
            number in 0..CASE_SENSITIVE.len() + CASE_INSENSITIVE.len(), upper_case_bits in any::<u32>(),
        ) {
            let literal: String = match CASE_SENSITIVE.get(number) {
                Some(text) => (*text).to_owned(),
                None => CASE_INSENSITIVE[number - CASE_SENSITIVE.len()].char_indices().map(|(index, letter)| {
                    if upper_case_bits >> index & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
                }).collect(),
            };
            let text = ["x".repeat(at), literal.clone(), "x".repeat(rest)].concat();
            let holds = |range: &std::ops::Range<usize>| range.start <= at && at + literal.len() <= range.end;
            prop_assert!(prefilter().candidate_ranges(text.as_bytes()).iter().any(holds));
        }
    }
}

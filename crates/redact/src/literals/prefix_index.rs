//! Index of the first bytes of registered values, searched by a hash of eight bytes.

use super::encode::MIN_FORM_LENGTH;

/// Length of a prefix in bytes: that of a machine word.
pub(crate) const PREFIX_BYTES: usize = 8;
const _: () = assert!(PREFIX_BYTES <= MIN_FORM_LENGTH, "every form has a prefix");

/// Number of bits of a position in the bitmap.
const BITMAP_INDEX_BITS: u32 = 18;

/// Multiplier that spreads similar values.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Index of prefixes of equal length.
#[derive(Default)]
pub(crate) struct PrefixIndex {
    /// Known prefixes, each with the number of its text, in order.
    prefixes: Vec<(u64, usize)>,
    /// Bitmap of the hashes of all prefixes; empty if there are none.
    hash_bitmap: Vec<u64>,
}

impl PrefixIndex {
    /// Creates the index of numbered texts. A text shorter than a prefix is omitted.
    pub(crate) fn new<'t>(texts: impl Iterator<Item = (usize, &'t [u8])>) -> Self {
        let numbered_prefix = |(number, text): (usize, &[u8])| {
            Some((u64::from_le_bytes(*text.first_chunk()?), number))
        };
        let mut prefixes: Vec<_> = texts.filter_map(numbered_prefix).collect();
        prefixes.sort_unstable();
        let mut hash_bitmap =
            vec![0; if prefixes.is_empty() { 0 } else { 1 << (BITMAP_INDEX_BITS - 6) }];
        for (prefix, _) in &prefixes {
            let (word, bit) = bitmap_position(*prefix);
            hash_bitmap.get_mut(word).into_iter().for_each(|word: &mut u64| *word |= 1 << bit);
        }
        Self { prefixes, hash_bitmap }
    }

    /// Returns the position of the first known prefix from `search_start` on.
    pub(crate) fn next_position(&self, text: &[u8], search_start: usize) -> Option<usize> {
        if self.prefixes.is_empty() {
            return None;
        }
        let mut prefix = 0;
        for (offset, byte) in text.get(search_start..)?.iter().enumerate() {
            prefix = prefix >> 8 | u64::from(*byte) << (u64::BITS - 8);
            if self.is_in_hash_bitmap(prefix) && offset + 1 >= PREFIX_BYTES && self.is_known(prefix)
            {
                return Some(search_start + offset + 1 - PREFIX_BYTES);
            }
        }
        None
    }

    /// Returns the numbers of the texts whose prefix is at this position.
    pub(crate) fn entry_numbers_at(&self, text: &[u8], at: usize) -> impl Iterator<Item = usize> {
        let prefix = text.get(at..).and_then(|rest| rest.first_chunk());
        let prefix = prefix.map(|prefix| u64::from_le_bytes(*prefix));
        let first = self
            .prefixes
            .partition_point(|(indexed, _)| prefix.is_none_or(|prefix| *indexed < prefix));
        let entries = self.prefixes.get(first..).unwrap_or_default().iter();
        entries.take_while(move |(indexed, _)| prefix == Some(*indexed)).map(|(_, number)| *number)
    }

    fn is_in_hash_bitmap(&self, prefix: u64) -> bool {
        let (word, bit) = bitmap_position(prefix);
        self.hash_bitmap.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    fn is_known(&self, prefix: u64) -> bool {
        self.prefixes.binary_search_by_key(&prefix, |(indexed, _)| *indexed).is_ok()
    }
}

/// Returns the word and the bit of a prefix in the bitmap.
const fn bitmap_position(prefix: u64) -> (usize, u32) {
    let bit_index = prefix.wrapping_mul(HASH_MULTIPLIER) >> (u64::BITS - BITMAP_INDEX_BITS);
    ((bit_index >> 6) as usize, (bit_index & 63) as u32)
}

#[cfg(test)]
mod tests {
    use super::PrefixIndex;

    #[test]
    fn all_entries_with_a_prefix_are_found_at_its_offset() {
        let texts = ["beginning one", "beginning two", "another beginning", "short"];
        let index = PrefixIndex::new(texts.iter().map(|text| text.as_bytes()).enumerate());
        let text = b"the beginning of another, beginnin";
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = index.next_position(text, from) {
            found.push((at, index.entry_numbers_at(text, at).collect::<Vec<_>>()));
            from = at + 1;
        }
        assert_eq!(found, [(4, vec![0, 1]), (26, vec![0, 1])]);
        assert_eq!(index.entry_numbers_at(text, 0).count(), 0);
        assert_eq!(index.entry_numbers_at(text, text.len() - 3).count(), 0);
        assert_eq!(PrefixIndex::default().next_position(text, 0), None);
    }
}

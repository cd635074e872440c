//! Index of the first bytes of registered values, searched by a hash of eight bytes.

use super::encode::MIN_FORM_LENGTH;

/// Length of a prefix in bytes: that of a machine word.
pub(crate) const PREFIX_BYTES: usize = 8;
const _: () = assert!(PREFIX_BYTES <= MIN_FORM_LENGTH, "every form has a prefix");

/// Number of bits of a position in the bitmap.
const BITMAP_BITS: u32 = 18;

/// Multiplier that spreads similar values.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Index of prefixes of equal length.
#[derive(Default)]
pub(crate) struct PrefixIndex {
    /// Known prefixes, each with the number of its text, in order.
    known: Vec<(u64, usize)>,
    /// Bitmap of the hashes of all prefixes; empty if there are none.
    marks: Vec<u64>,
}

impl PrefixIndex {
    /// Creates the index of numbered texts. A text shorter than a prefix is omitted.
    pub(crate) fn new<'t>(texts: impl Iterator<Item = (usize, &'t [u8])>) -> Self {
        let head = |(number, text): (usize, &[u8])| {
            Some((u64::from_le_bytes(*text.first_chunk()?), number))
        };
        let mut known: Vec<_> = texts.filter_map(head).collect();
        known.sort_unstable();
        let mut marks = vec![0; if known.is_empty() { 0 } else { 1 << (BITMAP_BITS - 6) }];
        for (head, _) in &known {
            let (word, bit) = bitmap_position(*head);
            marks.get_mut(word).into_iter().for_each(|word: &mut u64| *word |= 1 << bit);
        }
        Self { known, marks }
    }

    /// Returns the position of the first known prefix from `at` on.
    pub(crate) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.known.is_empty() {
            return None;
        }
        let mut head = 0;
        for (number, byte) in text.get(at..)?.iter().enumerate() {
            head = head >> 8 | u64::from(*byte) << (u64::BITS - 8);
            if self.is_marked(head) && number + 1 >= PREFIX_BYTES && self.is_known(head) {
                return Some(at + number + 1 - PREFIX_BYTES);
            }
        }
        None
    }

    /// Returns the numbers of the texts whose prefix is at this position.
    pub(crate) fn entries_at(&self, text: &[u8], at: usize) -> impl Iterator<Item = usize> {
        let head = text.get(at..).and_then(|rest| rest.first_chunk());
        let head = head.map(|head| u64::from_le_bytes(*head));
        let from = self.known.partition_point(|(known, _)| head.is_none_or(|head| *known < head));
        let matching = self.known.get(from..).unwrap_or_default().iter();
        matching.take_while(move |(known, _)| head == Some(*known)).map(|(_, number)| *number)
    }

    fn is_marked(&self, head: u64) -> bool {
        let (word, bit) = bitmap_position(head);
        self.marks.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    fn is_known(&self, head: u64) -> bool {
        self.known.binary_search_by_key(&head, |(known, _)| *known).is_ok()
    }
}

/// Returns the word and the bit of a prefix in the bitmap.
const fn bitmap_position(head: u64) -> (usize, u32) {
    let slot = head.wrapping_mul(HASH_MULTIPLIER) >> (u64::BITS - BITMAP_BITS);
    ((slot >> 6) as usize, (slot & 63) as u32)
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
        while let Some(at) = index.next(text, from) {
            found.push((at, index.entries_at(text, at).collect::<Vec<_>>()));
            from = at + 1;
        }
        assert_eq!(found, [(4, vec![0, 1]), (26, vec![0, 1])]);
        assert_eq!(index.entries_at(text, 0).count(), 0);
        assert_eq!(index.entries_at(text, text.len() - 3).count(), 0);
        assert_eq!(PrefixIndex::default().next(text, 0), None);
    }
}

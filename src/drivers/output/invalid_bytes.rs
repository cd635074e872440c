//! Count of the bytes of a text that are not UTF-8. The service shows U+FFFD instead of them.

use std::mem;

/// Counter of the bytes that are not UTF-8.
#[derive(Debug, Default)]
pub(in crate::drivers) struct InvalidByteCounter {
    count: u64,
    /// Start of a character whose rest may follow.
    pending: Vec<u8>,
    /// True if the bytes before the next ones are not known, so that these may start within a character.
    is_after_gap: bool,
}

impl InvalidByteCounter {
    /// Returns the number of bytes of a text that are not UTF-8.
    pub(in crate::drivers) fn count_in_text(bytes: &[u8]) -> u64 {
        let mut counter = Self::default();
        counter.push(bytes);
        counter.into_count()
    }

    /// Leaves bytes out. The characters before and after the gap may be cut.
    pub(in crate::drivers) fn mark_gap(&mut self) {
        self.pending.clear();
        self.is_after_gap = true;
    }

    /// Takes the next bytes.
    pub(in crate::drivers) fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if mem::take(&mut self.is_after_gap) {
            let continuation_count =
                bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
            bytes = bytes.get(continuation_count..).unwrap_or_default();
        }
        if self.pending.is_empty() {
            return self.count_invalid_bytes(bytes);
        }
        let mut joined = mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        self.count_invalid_bytes(&joined);
    }

    fn count_invalid_bytes(&mut self, bytes: &[u8]) {
        if str::from_utf8(bytes).is_ok() {
            return; // Nearly always, and much faster than the search for the chunks.
        }
        let mut remaining = bytes.len();
        for chunk in bytes.utf8_chunks() {
            let invalid = chunk.invalid();
            remaining -= chunk.valid().len() + invalid.len();
            let is_incomplete_character =
                str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if remaining == 0 && is_incomplete_character {
                self.pending = invalid.to_vec();
            } else {
                self.count += invalid.len() as u64;
            }
        }
    }

    /// Returns the number of bytes of a text that ends here.
    pub(in crate::drivers) fn into_count(self) -> u64 {
        self.count + self.pending.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(pieces: &[&[u8]]) -> u64 {
        let mut counter = InvalidByteCounter::default();
        pieces.iter().for_each(|piece| counter.push(piece));
        counter.into_count()
    }

    #[test]
    fn characters_in_two_pieces_are_valid() {
        for (pieces, expected) in [
            (&[&b"caf\xc3"[..], b"\xa9 ok"][..], 0),
            (&[b"\xf0\x9f", b"\x94", b"\x91"], 0),
            (&[b"caf\xe9 and \xff"], 2),
            (&[b"caf\xe9"], 1),
            (&[b"\xf0\x9f", b"x"], 2),
            (&[b"\xff\xfea\0b\0"], 2),
            (&[b""], 0),
        ] {
            assert_eq!(count(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn characters_that_a_gap_cuts_are_not_counted() {
        let mut counter = InvalidByteCounter::default();
        counter.push(b"caf\xc3");
        counter.mark_gap();
        counter.push(b"\x94\x91 and \xff");
        assert_eq!(counter.into_count(), 1);
    }

    proptest! {
        #[test]
        fn the_count_does_not_depend_on_the_pieces(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'a'), Just(0xc3), Just(0xa9), Just(0xf0), Just(0x9f), any::<u8>()],
                0..60,
            ),
            size in 1_usize..7,
        ) {
            let pieces: Vec<_> = bytes.chunks(size).collect();
            prop_assert_eq!(count(&pieces), count(&[&bytes]));
        }
    }
}

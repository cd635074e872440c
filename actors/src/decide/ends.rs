//! What is kept of a text that is too long: its head and its tail, with a word about what is missing.

/// The longest tail, in bytes; a shorter limit has a quarter of it as its tail.
const LONGEST_TAIL: usize = 1 << 20;

/// How a limit is shared out, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// What is kept of the beginning.
    pub head: usize,
    /// What is kept of the end.
    pub tail: usize,
}

impl Ends {
    /// The ends of a text of which so many bytes may be kept.
    #[must_use]
    pub fn of(limit: usize) -> Self {
        let tail = (limit / 4).min(LONGEST_TAIL);
        Self { head: limit - tail, tail }
    }
}

/// What stands between the ends.
#[must_use]
pub fn marker(dropped: u64) -> String {
    format!("\n[... {dropped} bytes were dropped ...]\n")
}

/// Takes away what stands before the last bytes of a text. Tells how much that was.
pub fn shorten(text: &mut String, most: usize) -> u64 {
    let from = text.ceil_char_boundary(text.len().saturating_sub(most));
    text.drain(..from);
    from as u64
}

/// The last bytes of a text that may have no end.
#[derive(Debug)]
pub struct Tail {
    bytes: Vec<u8>,
    least: usize,
    lost: u64,
}

impl Tail {
    /// Keeps `least` bytes at least, and never more than three times as many, or what came at once.
    #[must_use]
    pub const fn new(least: usize) -> Self {
        Self { bytes: Vec::new(), least, lost: 0 }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > self.least.saturating_mul(2) {
            self.lose();
        }
    }

    /// Takes bytes that are not even there: what came before them is not the tail.
    pub fn skip(&mut self, count: u64) {
        if count > 0 {
            self.lost += count + self.bytes.len() as u64;
            self.bytes.clear();
        }
    }

    /// Whether nothing came.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.lost == 0
    }

    /// How much came in all.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.lost + self.bytes.len() as u64
    }

    /// How much of what came is lost, and what is left: all of it, or the last bytes.
    #[must_use]
    pub fn end(mut self) -> (u64, Vec<u8>) {
        if self.lost > 0 {
            self.lose();
        }
        (self.lost, self.bytes)
    }

    fn lose(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.least);
        self.bytes.drain(..excess);
        self.lost += excess as u64;
    }
}

/// The ends of a raw text.
#[derive(Debug)]
pub struct Kept {
    ends: Ends,
    head: Vec<u8>,
    tail: Tail,
}

impl Kept {
    /// Nothing as yet of a text of which so many bytes may be kept.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let ends = Ends::of(limit);
        Self { ends, head: Vec::new(), tail: Tail::new(ends.tail) }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.ends.head.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        self.tail.push(tail);
    }

    /// Takes bytes that are not even there.
    pub fn skip(&mut self, count: u64) {
        self.tail.skip(count);
    }

    /// The text; what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(self) -> String {
        let Self { ends, mut head, tail } = self;
        let (lost, mut bytes) = tail.end();
        let excess = bytes.len().saturating_sub(ends.tail);
        let dropped = lost + excess as u64;
        if dropped > 0 {
            bytes.drain(..excess);
            let broken = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte));
            let broken = broken.count();
            bytes.drain(..broken);
            head.truncate(whole(&head));
            head.extend_from_slice(marker(dropped).as_bytes());
        }
        head.extend_from_slice(&bytes);
        String::from_utf8(head)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// The length of bytes without the beginning of a character at their end.
fn whole(bytes: &[u8]) -> usize {
    let last = bytes.get(bytes.len().saturating_sub(3)..).unwrap_or_default();
    let starts = (1..=last.len()).find(|back| {
        let byte = last.get(last.len() - back).copied().unwrap_or_default();
        !(0x80..0xc0).contains(&byte)
    });
    let Some(back) = starts else { return bytes.len() };
    let first = last.get(last.len() - back).copied().unwrap_or_default();
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if back < length { bytes.len() - back } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Ends, Kept, marker};

    fn kept(text: &[u8], limit: usize, mut size: impl FnMut() -> usize) -> String {
        let mut kept = Kept::new(limit);
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(size().clamp(1, rest.len()));
            kept.push(piece);
            rest = tail;
        }
        kept.text()
    }

    #[test]
    fn a_limit_is_mostly_head() {
        assert_eq!(Ends::of(10 << 20), Ends { head: 9 << 20, tail: 1 << 20 });
        assert_eq!(Ends::of(1000), Ends { head: 750, tail: 250 });
        assert_eq!(Ends::of(1), Ends { head: 1, tail: 0 });
    }

    #[test]
    fn what_is_missing_between_the_ends_is_told() {
        assert_eq!(kept(b"0123456789", 10, || 1), "0123456789");
        let wanted = "012345\n[... 2 bytes were dropped ...]\n89";
        assert_eq!(kept(b"0123456789", 8, || 3), wanted);
        let mut far = Kept::new(8);
        far.push(b"0123456");
        far.skip(1_000_000);
        far.push(b"789");
        assert_eq!(far.text(), "012345\n[... 1000002 bytes were dropped ...]\n89");
    }

    #[test]
    fn no_character_is_cut_in_two() {
        let text = "é".repeat(100);
        for limit in 8..40 {
            let kept = kept(text.as_bytes(), limit, || 7);
            assert!(!kept.contains(char::REPLACEMENT_CHARACTER), "{limit}: {kept}");
        }
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(length in 0_usize..3000, limit in 4_usize..400, size in 1_usize..500) {
            let text: String = ('a'..='z').cycle().take(length).collect();
            let Ends { head, tail } = Ends::of(limit);
            let wanted = if length <= limit {
                text.clone()
            } else {
                let dropped = (length - limit) as u64;
                let (head, _) = text.split_at(head);
                let (_, tail) = text.split_at(length - tail);
                [head, &marker(dropped), tail].concat()
            };
            prop_assert_eq!(kept(text.as_bytes(), limit, || size), wanted);
        }
    }
}

//! The beginnings of registered values, found by what eight bytes come to.

use super::encode::SHORTEST;

/// Bytes of a beginning: those of a word of the machine.
pub(super) const HEAD: usize = 8;
const _: () = assert!(HEAD <= SHORTEST, "every form has a head");

/// Bits of a place among the marks.
const BITS: u32 = 18;

/// Spreads what is alike.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Beginnings of equal length.
#[derive(Default)]
pub(super) struct Heads {
    /// Each beginning, with the number of what begins so, in order.
    known: Vec<(u64, usize)>,
    /// A bit for each place of a beginning; nothing where there is none.
    marks: Vec<u64>,
}

impl Heads {
    /// Takes the beginnings of texts by their numbers. A shorter text has none.
    pub(super) fn new<'t>(texts: impl Iterator<Item = (usize, &'t [u8])>) -> Self {
        let head = |(number, text): (usize, &[u8])| {
            Some((u64::from_le_bytes(*text.first_chunk()?), number))
        };
        let mut known: Vec<_> = texts.filter_map(head).collect();
        known.sort_unstable();
        let mut marks = vec![0; if known.is_empty() { 0 } else { 1 << (BITS - 6) }];
        for (head, _) in &known {
            let (word, bit) = place(*head);
            marks.get_mut(word).into_iter().for_each(|word: &mut u64| *word |= 1 << bit);
        }
        Self { known, marks }
    }

    /// The first place from `at` on where one stands.
    pub(super) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.known.is_empty() {
            return None;
        }
        let mut head = 0;
        for (number, byte) in text.get(at..)?.iter().enumerate() {
            head = head >> 8 | u64::from(*byte) << (u64::BITS - 8);
            if self.is_marked(head) && number + 1 >= HEAD && self.is_known(head) {
                return Some(at + number + 1 - HEAD);
            }
        }
        None
    }

    /// The numbers of what begins with the bytes at this place.
    pub(super) fn at(&self, text: &[u8], at: usize) -> impl Iterator<Item = usize> {
        let head = text.get(at..).and_then(|rest| rest.first_chunk());
        let head = head.map(|head| u64::from_le_bytes(*head));
        let from = self.known.partition_point(|(known, _)| head.is_none_or(|head| *known < head));
        let same = self.known.get(from..).unwrap_or_default().iter();
        same.take_while(move |(known, _)| head == Some(*known)).map(|(_, number)| *number)
    }

    fn is_marked(&self, head: u64) -> bool {
        let (word, bit) = place(head);
        self.marks.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    fn is_known(&self, head: u64) -> bool {
        self.known.binary_search_by_key(&head, |(known, _)| *known).is_ok()
    }
}

/// The word and the bit of a beginning.
const fn place(head: u64) -> (usize, u32) {
    let place = head.wrapping_mul(SPREAD) >> (u64::BITS - BITS);
    ((place >> 6) as usize, (place & 63) as u32)
}

#[cfg(test)]
mod tests {
    use super::Heads;

    #[test]
    fn each_is_found_wherever_it_stands_by_all_that_begin_so() {
        let texts = ["beginning one", "beginning two", "another beginning", "short"];
        let heads = Heads::new(texts.iter().map(|text| text.as_bytes()).enumerate());
        let text = b"the beginning of another, beginnin";
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = heads.next(text, from) {
            found.push((at, heads.at(text, at).collect::<Vec<_>>()));
            from = at + 1;
        }
        assert_eq!(found, [(4, vec![0, 1]), (26, vec![0, 1])]);
        assert_eq!(heads.at(text, 0).count(), 0);
        assert_eq!(heads.at(text, text.len() - 3).count(), 0);
        assert_eq!(Heads::default().next(text, 0), None);
    }
}

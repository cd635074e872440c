//! Numbers and bytes as they stand in a frame: little-endian, bytes behind their length.

/// Writes a frame.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Begins with the frame's kind.
    pub(super) fn new(kind: u8) -> Self {
        Self(vec![kind])
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self = self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn list(mut self, list: &[Vec<u8>]) -> Self {
        self = self.number(list.len() as u64);
        list.iter().fold(self, |writer, bytes| writer.bytes(bytes))
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a frame. Whatever is cut short reads as `None`, never as something else.
#[derive(Debug)]
pub(super) struct Reader<'f>(&'f [u8]);

impl<'f> Reader<'f> {
    /// The frame's kind, and what follows it.
    pub(super) fn new(frame: &'f [u8]) -> Option<(u8, Self)> {
        let (kind, rest) = frame.split_first()?;
        Some((*kind, Self(rest)))
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    pub(super) fn list(&mut self) -> Option<Vec<Vec<u8>>> {
        let count = self.number()?;
        (0..count).map(|_| self.bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, Writer};

    #[test]
    fn what_was_written_is_read_and_what_was_cut_is_not() {
        let list = vec![b"a".to_vec(), Vec::new(), vec![0xff, 0]];
        let frame = Writer::new(7).number(u64::MAX).bytes(b"x y").list(&list).finish();
        let read = |frame: &[u8]| {
            let (kind, mut reader) = Reader::new(frame)?;
            Some((kind, reader.number()?, reader.bytes()?, reader.list()?))
        };
        assert_eq!(read(&frame), Some((7, u64::MAX, b"x y".to_vec(), list)));
        for cut in 0..frame.len() {
            assert_eq!(read(&frame[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_length_that_lies_is_refused() {
        let frame = Writer::new(1).number(u64::MAX).finish();
        assert_eq!(Reader::new(&frame).unwrap().1.bytes(), None);
        assert_eq!(Reader::new(&frame).unwrap().1.list(), None);
    }
}

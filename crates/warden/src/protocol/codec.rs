//! Encoding of numbers and bytes in a frame: little-endian numbers, bytes after their length.

/// Encoder of a frame.
#[derive(Debug, Default)]
pub(crate) struct FrameWriter(Vec<u8>);

impl FrameWriter {
    /// Starts a frame with its kind.
    pub(crate) fn new(kind: u8) -> Self {
        Self(vec![kind])
    }

    pub(crate) fn write_number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn write_bytes(mut self, bytes: &[u8]) -> Self {
        self = self.write_number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn write_list(mut self, list: &[Vec<u8>]) -> Self {
        self = self.write_number(list.len() as u64);
        list.iter().fold(self, |writer, bytes| writer.write_bytes(bytes))
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Decoder of a frame. A truncated value decodes as `None`, never as another value.
#[derive(Debug)]
pub(crate) struct FrameReader<'f>(&'f [u8]);

impl<'f> FrameReader<'f> {
    /// Returns the frame's kind, and a decoder of the rest.
    pub(crate) fn new(frame: &'f [u8]) -> Option<(u8, Self)> {
        let (kind, rest) = frame.split_first()?;
        Some((*kind, Self(rest)))
    }

    pub(crate) fn read_number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn read_bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.read_number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    pub(crate) fn read_list(&mut self) -> Option<Vec<Vec<u8>>> {
        let count = self.read_number()?;
        (0..count).map(|_| self.read_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameReader, FrameWriter};

    #[test]
    fn a_frame_is_read_back_and_a_truncated_one_is_rejected() {
        let list = vec![b"a".to_vec(), Vec::new(), vec![0xff, 0]];
        let frame = FrameWriter::new(7)
            .write_number(u64::MAX)
            .write_bytes(b"x y")
            .write_list(&list)
            .finish();
        let read = |frame: &[u8]| {
            let (kind, mut reader) = FrameReader::new(frame)?;
            Some((kind, reader.read_number()?, reader.read_bytes()?, reader.read_list()?))
        };
        assert_eq!(read(&frame), Some((7, u64::MAX, b"x y".to_vec(), list)));
        for cut in 0..frame.len() {
            assert_eq!(read(&frame[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_wrong_length_is_refused() {
        let frame = FrameWriter::new(1).write_number(u64::MAX).finish();
        assert_eq!(FrameReader::new(&frame).unwrap().1.read_bytes(), None);
        assert_eq!(FrameReader::new(&frame).unwrap().1.read_list(), None);
    }
}

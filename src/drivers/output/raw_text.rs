//! Raw text of a channel until its attempt is judged, outside the heap of the service if it is long.

use std::sync::OnceLock;
use std::{io, mem};

use algonius_actors::decide::output::truncation::{
    HeadAndTailBuffer, HeadAndTailLimits, join_head_and_tail,
};
use algonius_warden::{MemoryAccount, OutputRecording};

/// Greatest length of a text that stays in the heap. Most texts are shorter, and need no memory file.
pub(in crate::drivers) const MAX_HEAP_TEXT_BYTES: usize = 64 << 10;

/// Storage of a long text.
#[derive(Debug, Clone)]
pub(in crate::drivers) struct LongTextStorage {
    /// Account that is charged for memory files.
    pub(in crate::drivers) memory_account: MemoryAccount,
    /// Memory file that already has the same text from its first byte, at least as much of it as may be kept.
    pub(in crate::drivers) recording: Option<OutputRecording>,
}

/// Stores the ends of a text while it arrives.
#[derive(Debug)]
pub(in crate::drivers) struct RawTextWriter {
    limit: usize,
    storage: LongTextStorage,
    state: TextState,
}

#[derive(Debug)]
enum TextState {
    Short(HeadAndTailBuffer),
    Long(LongText),
}

impl RawTextWriter {
    /// Returns an empty text that keeps at most `limit` bytes.
    pub(in crate::drivers) fn new(limit: usize, storage: LongTextStorage) -> Self {
        Self { limit, storage, state: TextState::Short(HeadAndTailBuffer::new(limit)) }
    }

    /// Appends the next bytes.
    pub(in crate::drivers) fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            TextState::Short(buffer) => {
                buffer.push(bytes);
                if buffer.stored_bytes() > MAX_HEAP_TEXT_BYTES {
                    self.move_to_file();
                }
            }
            TextState::Long(long) => long.push(bytes),
        }
    }

    /// Skips bytes that were not read, after the head of the text.
    pub(in crate::drivers) fn record_missing_bytes(&mut self, count: u64) {
        match &mut self.state {
            TextState::Short(buffer) => buffer.record_missing_bytes(count),
            TextState::Long(long) => long.record_missing_bytes(count),
        }
    }

    /// Clears the text, so that another one can start.
    pub(in crate::drivers) fn clear(&mut self) {
        self.state = TextState::Short(HeadAndTailBuffer::new(self.limit));
    }

    /// Finishes the text.
    pub(in crate::drivers) fn close(self) -> RawText {
        match self.state {
            TextState::Short(buffer) => RawText {
                is_truncated: buffer.missing_bytes() > 0,
                text: buffer.into_text().into(),
                long_text: None,
            },
            // Read back only when the attempt is judged, while it has the permit for a long text in the heap.
            TextState::Long(long) => {
                let is_truncated = long.missing_bytes() > 0;
                RawText { text: OnceLock::new(), long_text: Some(long), is_truncated }
            }
        }
    }

    /// Moves the text into a memory file. If none can be created, the text stays in the heap.
    fn move_to_file(&mut self) {
        let limits = HeadAndTailLimits::from_total(self.limit);
        let file = OutputRecording::new(&self.storage.memory_account);
        let (TextState::Short(buffer), Ok(own_file)) = (&mut self.state, file) else { return };
        let buffer = mem::replace(buffer, HeadAndTailBuffer::new(self.limit));
        let (head, lost_bytes, tail) = buffer.into_parts();
        // The recording of the pipe has the same bytes, so a second copy would double the memory for output.
        let head_recording = self.storage.recording.clone();
        let mut long = LongText {
            limits,
            head_recording,
            own_file,
            head_bytes: 0,
            lost_bytes_before_ring: 0,
            bytes_through_ring: 0,
            is_error_logged: false,
        };
        long.push(&head);
        if lost_bytes > 0 {
            long.record_missing_bytes(lost_bytes);
        }
        long.push(&tail);
        self.state = TextState::Long(long);
    }
}

/// Head and tail of a long text. Its own file holds the head, unless a recording holds it already, and after the head a
/// ring of the last bytes.
#[derive(Debug)]
struct LongText {
    limits: HeadAndTailLimits,
    head_recording: Option<OutputRecording>,
    own_file: OutputRecording,
    /// Bytes of the head.
    head_bytes: u64,
    /// Bytes before those of the ring that are lost.
    lost_bytes_before_ring: u64,
    /// Bytes that went through the ring.
    bytes_through_ring: u64,
    /// True if an error of the memory file was logged.
    is_error_logged: bool,
}

impl LongText {
    fn push(&mut self, bytes: &[u8]) {
        if let Err(error) = self.store(bytes)
            && !mem::replace(&mut self.is_error_logged, true)
        {
            // The ledger has the text. The lost bytes are missing only from the raw text that decides the outcome.
            tracing::error!(%error, "failed to store raw output of agent in memory");
        }
    }

    fn store(&mut self, bytes: &[u8]) -> io::Result<()> {
        let head_length = (self.limits.head as u64).saturating_sub(self.head_bytes);
        let head_length = usize::try_from(head_length).unwrap_or(usize::MAX).min(bytes.len());
        let (head, rest) = bytes.split_at(head_length);
        if self.head_recording.is_none() && !head.is_empty() {
            self.own_file.write_at(head, self.head_bytes)?;
        }
        self.head_bytes += head.len() as u64;
        let ring_size = self.limits.tail as u64;
        // Bytes that the next ones would overwrite in the ring are only counted.
        let (overwritten, mut rest) = rest.split_at(rest.len().saturating_sub(self.limits.tail));
        self.bytes_through_ring += overwritten.len() as u64;
        while !rest.is_empty() {
            let ring_offset = self.bytes_through_ring % ring_size;
            let free_bytes =
                usize::try_from(ring_size - ring_offset).unwrap_or(usize::MAX).min(rest.len());
            let (chunk, remaining) = rest.split_at(free_bytes);
            self.own_file.write_at(chunk, self.limits.head as u64 + ring_offset)?;
            self.bytes_through_ring += chunk.len() as u64;
            rest = remaining;
        }
        Ok(())
    }

    fn record_missing_bytes(&mut self, count: u64) {
        if count > 0 {
            // Bytes before a gap are no part of the tail any more.
            self.lost_bytes_before_ring += count + mem::take(&mut self.bytes_through_ring);
        }
    }

    fn read(&self) -> io::Result<String> {
        let length = usize::try_from(self.head_bytes).map_err(io::Error::other)?;
        let head = self.head_recording.as_ref().unwrap_or(&self.own_file).read_at(0, length)?;
        let (ring_start, ring_size) = (self.limits.head as u64, self.limits.tail as u64);
        let stored_length = self.bytes_through_ring.min(ring_size);
        // The oldest byte of a full ring is at the position of the next byte.
        let start = if stored_length == ring_size && ring_size > 0 {
            self.bytes_through_ring % ring_size
        } else {
            0
        };
        let to_usize = |bytes| usize::try_from(bytes).map_err(io::Error::other);
        let mut tail =
            self.own_file.read_at(ring_start + start, to_usize(stored_length - start)?)?;
        tail.extend(self.own_file.read_at(ring_start, to_usize(start)?)?);
        Ok(join_head_and_tail(head, self.missing_bytes(), &tail))
    }

    /// Returns the number of bytes between the head and the tail.
    const fn missing_bytes(&self) -> u64 {
        self.lost_bytes_before_ring
            + self.bytes_through_ring.saturating_sub(self.limits.tail as u64)
    }
}

/// Raw text of a channel, or its head and tail. It is never written to disk.
#[derive(Debug, Default)]
pub(in crate::drivers) struct RawText {
    text: OnceLock<String>,
    long_text: Option<LongText>,
    is_truncated: bool,
}

impl RawText {
    /// Returns true if bytes between the head and the tail are missing.
    pub(in crate::drivers) const fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns true if reading the text takes much memory.
    pub(in crate::drivers) const fn is_long(&self) -> bool {
        self.long_text.is_some()
    }

    /// Returns the text. A long text is read at the first call and then stays in the heap.
    pub(in crate::drivers) fn as_str(&self) -> &str {
        self.text.get_or_init(|| {
            let read = self.long_text.as_ref().map_or_else(|| Ok(String::new()), LongText::read);
            read.unwrap_or_else(|error| {
                tracing::error!(%error, "failed to read raw output of agent");
                String::new()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use algonius_actors::decide::output::truncation::HeadAndTailBuffer;
    use algonius_warden::{OutputMemory, OutputRecording};
    use proptest::prelude::*;

    use super::{LongTextStorage, MAX_HEAP_TEXT_BYTES, RawTextWriter};

    fn storage(memory: &OutputMemory) -> LongTextStorage {
        LongTextStorage { memory_account: memory.new_account(), recording: None }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_text_in_a_memory_file_equals_the_one_on_the_heap(
            limit in 1_usize..300_000,
            pieces in proptest::collection::vec((1_usize..90_000, any::<u8>(), 0_u64..9), 1..9),
            is_recorded in any::<bool>(),
        ) {
            let memory = OutputMemory::with_limit(1 << 30);
            let mut storage = storage(&memory);
            if is_recorded {
                let recording = OutputRecording::new(&storage.memory_account).unwrap();
                let texts = pieces.iter().flat_map(|(length, first, _)| text(*length, *first));
                recording.write_at(&texts.collect::<Vec<_>>(), 0).unwrap();
                storage.recording = Some(recording);
            }
            let (mut heap, mut writer) = (HeadAndTailBuffer::new(limit), RawTextWriter::new(limit, storage));
            let mut length = 0;
            for (more, first, skipped) in pieces {
                length += more;
                heap.push(&text(more, first));
                writer.push(&text(more, first));
                if skipped == 8 && length > limit {
                    heap.record_missing_bytes(skipped);
                    writer.record_missing_bytes(skipped);
                }
            }
            let text = writer.close();
            prop_assert!(text.as_str() == heap.into_text());
        }
    }

    fn text(length: usize, first: u8) -> Vec<u8> {
        (0..251).cycle().take(length).map(|at| first.wrapping_add(at)).collect()
    }

    #[test]
    fn a_long_text_is_in_a_memory_file_and_a_short_one_is_not() {
        let memory = OutputMemory::with_limit(1 << 30);
        let mut writer = RawTextWriter::new(10 << 20, storage(&memory));
        writer.push(&[b'x'; MAX_HEAP_TEXT_BYTES]);
        assert_eq!(memory.usage().used_bytes, 0);
        writer.push(b"y");
        assert_eq!(memory.usage().used_bytes, MAX_HEAP_TEXT_BYTES as u64 + 1);
        let text = writer.close();
        assert!(text.is_long() && text.as_str().len() == MAX_HEAP_TEXT_BYTES + 1);
        drop(text);
        assert_eq!(memory.usage().used_bytes, 0);
    }
}

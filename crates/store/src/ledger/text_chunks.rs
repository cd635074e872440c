//! Redacted text: insertion of chunks and reads of ranges.

use std::ops::Range;

use algonius_actors::driver::report::split_into_chunks;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::{
    MAX_CHUNK_BYTES, TextChannel, TextChunk, TextRange,
};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::history::TextSlice;
use async_trait::async_trait;

use crate::engine::error::decode_error;
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::saturating_i64;
use crate::engine::sql::{self, DatabaseConnection, ReaderPool};
use crate::engine::writer::WriteCommand;

/// Maximum initial capacity for a text, in bytes. A longer text grows while it is read.
const MAX_INITIAL_CAPACITY: usize = 16 << 20;

const INSERT: &str = "
    INSERT INTO chunks (execution, turn, attempt, channel, number, start, text)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (execution, turn, attempt, channel, number) DO NOTHING";

/// Insertion that requires the previous chunk: a text that is stored by one commit after another has no gap.
const INSERT_AFTER_PREVIOUS: &str = "
    INSERT INTO chunks (execution, turn, attempt, channel, number, start, text)
    SELECT $1, $2, $3, $4, $5, $6, $7
    WHERE $5 = 0 OR EXISTS (
        SELECT 1 FROM chunks
        WHERE execution = $1 AND turn = $2 AND attempt = $3 AND channel = $4 AND number = $5 - 1)
    ON CONFLICT (execution, turn, attempt, channel, number) DO NOTHING";

const DELETE: &str = "
    DELETE FROM chunks WHERE execution = $1 AND turn = $2 AND attempt = $3 AND channel <> $4";

const SELECT_RANGE: &str = "
    SELECT start, text FROM chunks
    WHERE execution = $1 AND turn = $2 AND attempt = $3 AND channel = $4
        AND start > $5 AND start < $6
    ORDER BY number";

/// Append of one chunk to a text of an execution. A second chunk with the same number changes nothing.
pub(crate) struct AppendChunk {
    /// Id of the execution.
    pub(crate) id: ExecutionId,
    /// Chunk to append.
    pub(crate) chunk: TextChunk,
}

#[async_trait]
impl WriteCommand for AppendChunk {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        insert_with(connection, INSERT_AFTER_PREVIOUS, self.id, &self.chunk).await
    }
}

/// Removal of the text of an attempt, except for its input.
pub(crate) struct DeleteOutput {
    /// Id of the execution.
    pub(crate) id: ExecutionId,
    /// Turn and attempt number.
    pub(crate) attempt_id: AttemptId,
}

#[async_trait]
impl WriteCommand for DeleteOutput {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.id)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        sql::statement(DELETE)
            .bind(self.id.0)
            .bind(i64::from(self.attempt_id.turn))
            .bind(i64::from(self.attempt_id.attempt))
            .bind(TextChannel::Input.as_str())
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// Stores one chunk.
pub(crate) async fn insert(
    connection: &mut DatabaseConnection,
    id: ExecutionId,
    chunk: &TextChunk,
) -> sql::Result<()> {
    insert_with(connection, INSERT, id, chunk).await
}

async fn insert_with(
    connection: &mut DatabaseConnection,
    statement: &'static str,
    id: ExecutionId,
    chunk: &TextChunk,
) -> sql::Result<()> {
    sql::statement(statement)
        .bind(id.0)
        .bind(i64::from(chunk.attempt_id.turn))
        .bind(i64::from(chunk.attempt_id.attempt))
        .bind(chunk.channel.as_str())
        .bind(i64::from(chunk.number))
        .bind(saturating_i64(chunk.offset))
        .bind(chunk.text.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores chunks.
pub(crate) async fn insert_all(
    connection: &mut DatabaseConnection,
    id: ExecutionId,
    chunks: &[TextChunk],
) -> sql::Result<()> {
    for chunk in chunks {
        insert(connection, id, chunk).await?;
    }
    Ok(())
}

/// Stores a whole text in a channel that has none yet.
pub(crate) async fn insert_text(
    connection: &mut DatabaseConnection,
    id: ExecutionId,
    attempt_id: AttemptId,
    channel: TextChannel,
    text: &str,
) -> sql::Result<()> {
    let mut offset = 0;
    for (number, text) in (0..).zip(split_into_chunks(text)) {
        let length = text.len() as u64;
        insert(connection, id, &TextChunk { attempt_id, channel, number, offset, text }).await?;
        offset += length;
    }
    Ok(())
}

/// Reads a range as far as the text exists. A character that the range cuts is read as U+FFFD.
pub(crate) async fn read_range_lossy(
    pool: &ReaderPool,
    id: ExecutionId,
    range: TextRange,
) -> sql::Result<String> {
    String::from_utf8(read_bytes(pool, id, range).await?).or_else(|error| {
        complete_char_range(error.as_bytes())?;
        Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

/// Reads the complete characters of a range.
pub(crate) async fn read_complete_chars(
    pool: &ReaderPool,
    id: ExecutionId,
    range: TextRange,
) -> sql::Result<TextSlice> {
    let mut bytes = read_bytes(pool, id, range).await?;
    let Range { start, end } = complete_char_range(&bytes)?;
    bytes.truncate(end);
    bytes.drain(..start);
    let text = String::from_utf8(bytes).map_err(decode_error)?;
    Ok(TextSlice { start_offset: range.from + start as u64, text })
}

/// Returns the range of the complete characters; the bytes may start and end within a character.
fn complete_char_range(bytes: &[u8]) -> sql::Result<Range<usize>> {
    let start = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    match std::str::from_utf8(bytes.get(start..).unwrap_or_default()) {
        Ok(_) => Ok(start..bytes.len()),
        Err(error) if error.error_len().is_none() => Ok(start..start + error.valid_up_to()),
        Err(error) => Err(decode_error(error)),
    }
}

async fn read_bytes(pool: &ReaderPool, id: ExecutionId, range: TextRange) -> sql::Result<Vec<u8>> {
    let max_chunk_bytes = i64::try_from(MAX_CHUNK_BYTES).unwrap_or(i64::MAX);
    let length = usize::try_from(range.to.saturating_sub(range.from)).unwrap_or(usize::MAX);
    // The caller chooses the range, so it must not choose the allocation.
    let bytes = Vec::with_capacity(length.min(MAX_INITIAL_CAPACITY));
    let mut assembler = RangeAssembler { range, next_offset: None, bytes };
    sql::statement(SELECT_RANGE)
        .bind(id.0)
        .bind(i64::from(range.attempt_id.turn))
        .bind(i64::from(range.attempt_id.attempt))
        .bind(range.channel.as_str())
        // The chunk that contains the first byte starts at most one chunk before it; the index finds it by this.
        .bind(saturating_i64(range.from).saturating_sub(max_chunk_bytes))
        .bind(saturating_i64(range.to))
        .for_each_row(pool, |row| {
            let start = u64::try_from(row.integer(0)?).map_err(decode_error)?;
            assembler.push(start, row.text(1)?)
        })
        .await?;
    Ok(assembler.bytes)
}

/// Assembler of chunks that keeps only the bytes within the range.
struct RangeAssembler {
    range: TextRange,
    next_offset: Option<u64>,
    bytes: Vec<u8>,
}

impl RangeAssembler {
    fn push(&mut self, start: u64, chunk: &[u8]) -> sql::Result<()> {
        let expected = self.next_offset.unwrap_or(start.min(self.range.from));
        // A gap would shift every later byte of the range without notice.
        if start != expected {
            return Err(decode_error("a chunk of text is missing"));
        }
        let end = start + chunk.len() as u64;
        let index =
            |offset: u64| usize::try_from(offset.clamp(start, end) - start).unwrap_or(usize::MAX);
        let part = chunk.get(index(self.range.from)..index(self.range.to));
        self.bytes.extend_from_slice(part.unwrap_or_default());
        self.next_offset = Some(end);
        Ok(())
    }
}

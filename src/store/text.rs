//! Redacted text: chunks in, ranges out.

use std::ops::Range;

use algonius_actors::model::event::{CHUNK, Channel, Chunk, Span};
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::history::Passage;
use algonius_actors::report::pieces;
use async_trait::async_trait;

use super::column::integer;
use super::fault::unreadable;
use super::recent::Touched;
use super::sql::{self, Connection, Readers};
use super::writer::Change;

/// Room that is made at once for a text, at most, in bytes. A longer one makes more as it comes.
const ROOM: usize = 16 << 20;

const INSERT: &str = "
    INSERT INTO chunks (execution, turn, attempt, channel, number, start, text)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (execution, turn, attempt, channel, number) DO NOTHING";

/// The same, where the chunk before it is there: of what one commit after another takes of a text, nothing
/// is missing in the middle.
const CONTINUE: &str = "
    INSERT INTO chunks (execution, turn, attempt, channel, number, start, text)
    SELECT $1, $2, $3, $4, $5, $6, $7
    WHERE $5 = 0 OR EXISTS (
        SELECT 1 FROM chunks
        WHERE execution = $1 AND turn = $2 AND attempt = $3 AND channel = $4 AND number = $5 - 1)
    ON CONFLICT (execution, turn, attempt, channel, number) DO NOTHING";

const DELETE: &str = "
    DELETE FROM chunks WHERE execution = $1 AND turn = $2 AND attempt = $3 AND channel <> $4";

const RANGE: &str = "
    SELECT start, text FROM chunks
    WHERE execution = $1 AND turn = $2 AND attempt = $3 AND channel = $4
        AND start > $5 AND start < $6
    ORDER BY number";

/// A piece of text for an execution. The same number again changes nothing.
pub(super) struct Append {
    /// The execution.
    pub(super) id: ExecutionId,
    /// The piece.
    pub(super) chunk: Chunk,
}

#[async_trait]
impl Change for Append {
    type Answer = ();

    fn touches(&self) -> Touched {
        Touched::One(self.id)
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<()> {
        put(connection, CONTINUE, self.id, &self.chunk).await
    }
}

/// The text of an attempt goes, but for what was asked.
pub(super) struct Unwrite {
    /// The execution.
    pub(super) id: ExecutionId,
    /// The attempt.
    pub(super) stamp: Stamp,
}

#[async_trait]
impl Change for Unwrite {
    type Answer = ();

    fn touches(&self) -> Touched {
        Touched::One(self.id)
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<()> {
        sql::query(DELETE)
            .bind(self.id.0)
            .bind(i64::from(self.stamp.turn))
            .bind(i64::from(self.stamp.attempt))
            .bind(Channel::Input.as_str())
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// Stores one chunk.
pub(super) async fn insert(
    connection: &mut Connection,
    id: ExecutionId,
    chunk: &Chunk,
) -> sql::Result<()> {
    put(connection, INSERT, id, chunk).await
}

async fn put(
    connection: &mut Connection,
    statement: &'static str,
    id: ExecutionId,
    chunk: &Chunk,
) -> sql::Result<()> {
    sql::query(statement)
        .bind(id.0)
        .bind(i64::from(chunk.stamp.turn))
        .bind(i64::from(chunk.stamp.attempt))
        .bind(chunk.channel.as_str())
        .bind(i64::from(chunk.number))
        .bind(integer(chunk.offset))
        .bind(chunk.text.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores chunks.
pub(super) async fn insert_all(
    connection: &mut Connection,
    id: ExecutionId,
    chunks: &[Chunk],
) -> sql::Result<()> {
    for chunk in chunks {
        insert(connection, id, chunk).await?;
    }
    Ok(())
}

/// Stores a whole text of a channel that has none yet.
pub(super) async fn insert_whole(
    connection: &mut Connection,
    id: ExecutionId,
    stamp: Stamp,
    channel: Channel,
    text: &str,
) -> sql::Result<()> {
    let mut offset = 0;
    for (number, text) in (0..).zip(pieces(text)) {
        let length = text.len() as u64;
        insert(connection, id, &Chunk { stamp, channel, number, offset, text }).await?;
        offset += length;
    }
    Ok(())
}

/// Reads a range; what of it is not yet there is left out. A character that the range cuts
/// through comes as U+FFFD.
pub(super) async fn range(pool: &Readers, id: ExecutionId, span: Span) -> sql::Result<String> {
    String::from_utf8(bytes(pool, id, span).await?).or_else(|error| {
        whole(error.as_bytes())?;
        Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

/// Reads the whole characters of a range.
pub(super) async fn passage(pool: &Readers, id: ExecutionId, span: Span) -> sql::Result<Passage> {
    let mut bytes = bytes(pool, id, span).await?;
    let Range { start, end } = whole(&bytes)?;
    bytes.truncate(end);
    bytes.drain(..start);
    let text = String::from_utf8(bytes).map_err(unreadable)?;
    Ok(Passage { from: span.from + start as u64, text })
}

/// Where the whole characters of a range are, which may begin and end within one.
fn whole(bytes: &[u8]) -> sql::Result<Range<usize>> {
    let start = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    match std::str::from_utf8(bytes.get(start..).unwrap_or_default()) {
        Ok(_) => Ok(start..bytes.len()),
        Err(error) if error.error_len().is_none() => Ok(start..start + error.valid_up_to()),
        Err(error) => Err(unreadable(error)),
    }
}

async fn bytes(pool: &Readers, id: ExecutionId, span: Span) -> sql::Result<Vec<u8>> {
    let longest = i64::try_from(CHUNK).unwrap_or(i64::MAX);
    let room = usize::try_from(span.to.saturating_sub(span.from)).unwrap_or(usize::MAX);
    let bytes = Vec::with_capacity(room.min(ROOM));
    let mut cut = Cut { span, next: None, bytes };
    sql::query(RANGE)
        .bind(id.0)
        .bind(i64::from(span.stamp.turn))
        .bind(i64::from(span.stamp.attempt))
        .bind(span.channel.as_str())
        .bind(integer(span.from).saturating_sub(longest))
        .bind(integer(span.to))
        .each(pool, |row| {
            let start = u64::try_from(row.integer(0)?).map_err(unreadable)?;
            cut.push(start, row.text(1)?)
        })
        .await?;
    Ok(cut.bytes)
}

/// Puts chunks together and keeps what is in the range.
struct Cut {
    span: Span,
    next: Option<u64>,
    bytes: Vec<u8>,
}

impl Cut {
    fn push(&mut self, start: u64, chunk: &[u8]) -> sql::Result<()> {
        let expected = self.next.unwrap_or(start.min(self.span.from));
        if start != expected {
            return Err(unreadable("a chunk of text is missing"));
        }
        let end = start + chunk.len() as u64;
        let place = |at: u64| usize::try_from(at.clamp(start, end) - start).unwrap_or(usize::MAX);
        let kept = chunk.get(place(self.span.from)..place(self.span.to));
        self.bytes.extend_from_slice(kept.unwrap_or_default());
        self.next = Some(end);
        Ok(())
    }
}

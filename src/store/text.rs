//! Redacted text: chunks in, ranges out.

use algonius_actors::model::event::{CHUNK, Channel, Chunk, Span};
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::history::Passage;
use algonius_actors::report::pieces;
use async_trait::async_trait;

use super::column::{Columns, integer};
use super::fault::unreadable;
use super::recent::Touched;
use super::sql::{self, Connection, Readers};
use super::writer::Change;

const INSERT: &str = "
    INSERT INTO chunks (execution, turn, attempt, channel, number, start, text)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
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
        insert(connection, self.id, &self.chunk).await
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
    sql::query(INSERT)
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
    let bytes = bytes(pool, id, span).await?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Reads the whole characters of a range.
pub(super) async fn passage(pool: &Readers, id: ExecutionId, span: Span) -> sql::Result<Passage> {
    let mut bytes = bytes(pool, id, span).await?;
    let begun = bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
    bytes.drain(..begun);
    if let Err(error) = std::str::from_utf8(&bytes) {
        bytes.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(bytes).map_err(unreadable)?;
    Ok(Passage { from: span.from + begun as u64, text })
}

async fn bytes(pool: &Readers, id: ExecutionId, span: Span) -> sql::Result<Vec<u8>> {
    let longest = i64::try_from(CHUNK).unwrap_or(i64::MAX);
    let rows = sql::query(RANGE)
        .bind(id.0)
        .bind(i64::from(span.stamp.turn))
        .bind(i64::from(span.stamp.attempt))
        .bind(span.channel.as_str())
        .bind(integer(span.from).saturating_sub(longest))
        .bind(integer(span.to))
        .fetch_all(pool)
        .await?;
    let mut cut = Cut { span, next: None, bytes: Vec::new() };
    // Each chunk goes when it is put to the others: a long text is not there twice.
    for row in rows {
        let columns = Columns(&row);
        cut.push(columns.number("start")?, columns.plain::<&str>("text")?.as_bytes())?;
    }
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

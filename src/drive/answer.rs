//! Finds the answer of an ended attempt: on standard output, in a file, or inside a document.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use algonius_actors::model::content::Piece;
use algonius_actors::model::event::{Channel, Fact};
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use serde_json::Value;

use super::folder::{Contents, contents};
use super::pump::{Note, Text};

/// The answer, raw and as it stands in the ledger.
pub(super) struct Answer<'t> {
    /// The raw text.
    pub(super) raw: Cow<'t, str>,
    /// The redacted text, as it stands in the ledger.
    pub(super) piece: Piece,
}

/// Takes the answer from standard output, or from the place in it that the contract names.
///
/// # Errors
/// When the ledger did not commit.
pub(super) async fn of_stdout<'t>(
    program: &ProgramSpec,
    stdout: &'t Text,
    report: &Reporter,
) -> Result<Option<Answer<'t>>, LedgerError> {
    match &program.success.json_pointer {
        None => Ok(Some(Answer { raw: Cow::Borrowed(&stdout.raw), piece: stdout.piece.clone() })),
        Some(pointer) => written(place(&stdout.raw, pointer), report).await,
    }
}

/// Takes the answer from the program's file, or from the place in it that the contract names.
///
/// # Errors
/// When the ledger did not commit.
pub(super) async fn of_file(
    program: &ProgramSpec,
    path: &Path,
    limit: usize,
    report: &Reporter,
) -> Result<Option<Answer<'static>>, LedgerError> {
    let Some(Contents { head, skipped, tail }) = read(path, limit).await else { return Ok(None) };
    if let Some(pointer) = &program.success.json_pointer {
        let dropped = skipped + tail.len() as u64;
        if dropped > 0 {
            report.note(Fact::Truncated { channel: Channel::Answer, dropped }).await?;
            return Ok(None); // The head of a document is none.
        }
        return written(place(&String::from_utf8_lossy(&head), pointer), report).await;
    }
    let mut note = Note::open(report, Channel::Answer, limit);
    note.take(&head).await?;
    note.skip(skipped);
    note.take(&tail).await?;
    let Text { raw, piece } = note.close().await?;
    Ok(Some(Answer { raw: Cow::Owned(raw), piece }))
}

async fn read(path: &Path, limit: usize) -> Option<Contents> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || contents(&path, limit)).await;
    read.map_err(io::Error::other).flatten().unwrap_or_else(|error| {
        tracing::warn!(%error, "an answer's file could not be read");
        None
    })
}

async fn written(
    answer: Option<String>,
    report: &Reporter,
) -> Result<Option<Answer<'static>>, LedgerError> {
    let Some(answer) = answer else { return Ok(None) };
    let mut scribe = report.scribe(Channel::Answer);
    scribe.write(answer.as_bytes()).await?;
    Ok(Some(Answer { raw: Cow::Owned(answer), piece: scribe.close().await? }))
}

/// The value at a place of a JSON document: a string as it is, anything else as compact JSON. A
/// null is no answer.
fn place(document: &str, pointer: &str) -> Option<String> {
    let document: Value = serde_json::from_str(document).ok()?;
    match document.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_place_gives_a_string_raw_and_anything_else_as_json() {
        let document = r#"{"a": {"b": "x\ny"}, "n": [1, {"k": true}], "z": null, "/": "slash"}"#;
        let at = |pointer| place(document, pointer);
        assert_eq!(at("/a/b").as_deref(), Some("x\ny"));
        assert_eq!(at("/n").as_deref(), Some(r#"[1,{"k":true}]"#));
        assert_eq!(at("/n/1/k").as_deref(), Some("true"));
        assert_eq!(at("/~1").as_deref(), Some("slash"));
        assert_eq!((at("/z"), at("/none"), place("no json", "/a")), (None, None, None));
    }
}

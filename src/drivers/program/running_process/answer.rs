//! Finds the answer of an ended attempt: on standard output, in a file, or inside a document.

use std::borrow::Cow;
use std::io;

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::ports::ledger::LedgerError;
use algonius_protocols::{LineItem, read_json_line};
use serde_json::Value;

use crate::drivers::files::scratch_dir::{FileContents, ProgramFile};
use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter};
use crate::drivers::output::raw_text::{MAX_HEAP_TEXT_BYTES, TextStorage};

/// Answer of an attempt: the raw text and the redacted text that the ledger holds.
pub(super) struct AttemptAnswer<'t> {
    /// The raw text.
    pub(super) raw: Cow<'t, str>,
    /// Redacted text, as the ledger holds it.
    pub(super) piece: StoredPart,
}

/// Returns the answer from standard output, or from the place in it that the contract names.
///
/// # Errors
/// Fails if the ledger did not commit.
pub(super) async fn stdout_answer<'t>(
    program: &ProgramSpec,
    stdout: &'t ChannelText,
    reporter: &Reporter,
) -> Result<Option<AttemptAnswer<'t>>, LedgerError> {
    match &program.success.json_pointer {
        None => Ok(Some(AttemptAnswer {
            raw: Cow::Borrowed(stdout.raw.as_str()),
            piece: stdout.piece.clone(),
        })),
        Some(pointer) => record_answer(value_at(stdout.raw.as_str(), pointer), reporter).await,
    }
}

/// Returns the answer from the program's file, or from the place in it that the contract names.
///
/// # Errors
/// Fails if the ledger did not commit.
pub(super) async fn file_answer(
    program: &ProgramSpec,
    file: &ProgramFile,
    (limit, storage): (usize, TextStorage),
    reporter: &Reporter,
) -> Result<Option<AttemptAnswer<'static>>, LedgerError> {
    let Some(FileContents { head, skipped_bytes, tail }) = read_contents(file, limit).await else {
        return Ok(None);
    };
    if let Some(pointer) = &program.success.json_pointer {
        let dropped = skipped_bytes + tail.len() as u64;
        if dropped > 0 {
            reporter
                .record_event(EventKind::OutputTruncated { channel: TextChannel::Answer, dropped })
                .await?;
            return Ok(None); // The head of a JSON document cannot be parsed.
        }
        return record_answer(value_at(&String::from_utf8_lossy(&head), pointer), reporter).await;
    }
    let mut raw_writer = ChannelWriter::open(reporter, TextChannel::Answer, (limit, storage));
    raw_writer.write(&head).await?;
    raw_writer.skip(skipped_bytes);
    raw_writer.write(&tail).await?;
    let ChannelText { raw, piece } = raw_writer.close().await?;
    Ok(Some(AttemptAnswer { raw: Cow::Owned(raw.as_str().to_owned()), piece }))
}

/// Returns true if reading a file takes much memory.
pub(super) async fn is_long(file: &ProgramFile) -> bool {
    let file = file.clone();
    tokio::task::spawn_blocking(move || file.length())
        .await
        .is_ok_and(|length| length > MAX_HEAP_TEXT_BYTES as u64)
}

async fn read_contents(file: &ProgramFile, limit: usize) -> Option<FileContents> {
    let file = file.clone();
    let read = tokio::task::spawn_blocking(move || file.read_contents(limit)).await;
    read.map_err(io::Error::other).flatten().unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to read answer file");
        None
    })
}

async fn record_answer(
    answer: Option<String>,
    reporter: &Reporter,
) -> Result<Option<AttemptAnswer<'static>>, LedgerError> {
    let Some(answer) = answer else { return Ok(None) };
    let mut writer = reporter.open_output(TextChannel::Answer);
    writer.write(answer.as_bytes()).await?;
    Ok(Some(AttemptAnswer { raw: Cow::Owned(answer), piece: writer.close().await? }))
}

/// Returns the value at a JSON pointer: a string as it is, anything else as compact JSON. A null is no answer.
fn value_at(document: &str, pointer: &str) -> Option<String> {
    match parse_document(document)?.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Parses a document, which may have the same noise as a line of events: a byte order mark, escape sequences of a
/// terminal, or an unpaired surrogate.
fn parse_document(text: &str) -> Option<Value> {
    if let Ok(document) = serde_json::from_str(text) {
        return Some(document);
    }
    match <[LineItem; 1]>::try_from(read_json_line(text.as_bytes())) {
        Ok([LineItem::Object(document)]) => Some(document),
        Ok([LineItem::Unread(_)]) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::value_at;

    #[test]
    fn a_document_with_noise_is_read() {
        for document in [
            "\u{feff}{\"a\": \"b\"}",
            "\u{1b}[?2004h{\n  \"a\": \"b\"\n}\n\u{1b}[0m",
            r#"{"a": "b", "odd": "\ud83d"}"#,
        ] {
            assert_eq!(value_at(document, "/a").as_deref(), Some("b"), "{document:?}");
        }
        for document in [r#"{"a": "b"} {"a": "c"}"#, r#"{"a": "b""#, r#"note {"a": "b"}"#] {
            assert_eq!(value_at(document, "/a"), None, "{document}");
        }
    }

    #[test]
    fn a_json_pointer_gives_raw_strings_and_other_values_as_json() {
        let document = r#"{"a": {"b": "x\ny"}, "n": [1, {"k": true}], "z": null, "/": "slash"}"#;
        let at = |pointer| value_at(document, pointer);
        assert_eq!(at("/a/b").as_deref(), Some("x\ny"));
        assert_eq!(at("/n").as_deref(), Some(r#"[1,{"k":true}]"#));
        assert_eq!(at("/n/1/k").as_deref(), Some("true"));
        assert_eq!(at("/~1").as_deref(), Some("slash"));
        assert_eq!((at("/z"), at("/none"), value_at("no json", "/a")), (None, None, None));
    }
}

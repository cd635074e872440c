//! Finds the answer of an ended attempt: on standard output, in a file, or inside a document.

use std::borrow::Cow;

use algonius_actors::decide::classify::success_evaluation::MissingAnswer;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::ports::ledger::LedgerError;
use algonius_protocols::{LineItem, read_json_line};
use serde_json::Value;

use crate::drivers::files::program_file::{FileContents, ProgramFileRefusal, ProgramOutputFile};
use crate::drivers::output::channel_writer::{ChannelText, ChannelWriter};
use crate::drivers::output::invalid_bytes::InvalidByteCounter;
use crate::drivers::output::raw_text::{LongTextStorage, MAX_HEAP_TEXT_BYTES};

/// Answer of an attempt: the raw text and the redacted text that the ledger holds.
pub(super) struct AttemptAnswer<'t> {
    /// The raw text.
    pub(super) raw: Cow<'t, str>,
    /// Redacted text, as the ledger holds it.
    pub(super) stored_part: StoredPart,
}

/// Returns the answer from standard output, or records and returns the one at the place in it that the contract names.
///
/// # Errors
/// Fails if the ledger did not commit.
pub(super) async fn extract_stdout_answer<'t>(
    program: &ProgramSpec,
    stdout: &'t ChannelText,
    reporter: &Reporter,
) -> Result<Result<AttemptAnswer<'t>, MissingAnswer>, LedgerError> {
    warn_of_invalid_bytes(stdout.invalid_bytes, reporter).await?;
    match &program.success_criteria.json_pointer {
        None => Ok(Ok(AttemptAnswer {
            raw: Cow::Borrowed(stdout.raw.as_str()),
            stored_part: stdout.stored_part.clone(),
        })),
        // Bytes can be missing in the middle of a text, and what remains is still a document.
        Some(_) if stdout.raw.is_truncated() => Ok(Err(MissingAnswer::DocumentTruncated)),
        Some(pointer) => record_answer(value_at(stdout.raw.as_str(), pointer), reporter).await,
    }
}

/// Records the answer from the program's file, or from the place in it that the contract names, and returns it.
///
/// # Errors
/// Fails if the ledger did not commit.
pub(super) async fn record_file_answer(
    program: &ProgramSpec,
    file: &ProgramOutputFile,
    (limit, storage): (usize, LongTextStorage),
    reporter: &Reporter,
) -> Result<Result<AttemptAnswer<'static>, MissingAnswer>, LedgerError> {
    let FileContents { head, skipped_bytes, tail } = match read_contents(file, limit).await {
        Ok(contents) => contents,
        Err(missing) => return Ok(Err(missing)),
    };
    if let Some(pointer) = &program.success_criteria.json_pointer {
        let dropped = skipped_bytes + tail.len() as u64;
        if dropped > 0 {
            reporter
                .record_event(EventKind::OutputTruncated { channel: TextChannel::Answer, dropped })
                .await?;
            return Ok(Err(MissingAnswer::DocumentTruncated)); // The head of a JSON document cannot be parsed.
        }
        warn_of_invalid_bytes(InvalidByteCounter::count_in_text(&head), reporter).await?;
        return record_answer(value_at(&String::from_utf8_lossy(&head), pointer), reporter).await;
    }
    let mut channel_writer = ChannelWriter::open(reporter, TextChannel::Answer, (limit, storage));
    channel_writer.write(&head).await?;
    channel_writer.record_missing_bytes(skipped_bytes);
    channel_writer.write(&tail).await?;
    let ChannelText { raw, stored_part, invalid_bytes } = channel_writer.close().await?;
    warn_of_invalid_bytes(invalid_bytes, reporter).await?;
    Ok(Ok(AttemptAnswer { raw: Cow::Owned(raw.as_str().to_owned()), stored_part }))
}

/// Records a warning if an answer has bytes that are no text: a caller gets other bytes than the program wrote.
async fn warn_of_invalid_bytes(count: u64, reporter: &Reporter) -> Result<(), LedgerError> {
    if count == 0 {
        return Ok(());
    }
    let (noun, verb) = if count == 1 { ("byte", "is") } else { ("bytes", "are") };
    let message = format!("{count} {noun} of the output {verb} not UTF-8: read as U+FFFD");
    reporter.record_event(EventKind::Warning { message }).await
}

/// Returns true if reading a file takes much memory.
pub(super) async fn is_long_file(file: &ProgramOutputFile) -> bool {
    let file = file.clone();
    tokio::task::spawn_blocking(move || file.length())
        .await
        .is_ok_and(|length| length > MAX_HEAP_TEXT_BYTES as u64)
}

async fn read_contents(
    file: &ProgramOutputFile,
    limit: usize,
) -> Result<FileContents, MissingAnswer> {
    let file = file.clone();
    let read = tokio::task::spawn_blocking(move || file.read_contents(limit)).await;
    read.unwrap_or(Err(ProgramFileRefusal::Unreadable)).map_err(|refusal| match refusal {
        ProgramFileRefusal::Missing => MissingAnswer::FileAbsent,
        ProgramFileRefusal::FolderRemoved => MissingAnswer::FolderRemoved,
        ProgramFileRefusal::Link => MissingAnswer::FileIsLink,
        ProgramFileRefusal::NotRegularFile => MissingAnswer::FileIsIrregular,
        ProgramFileRefusal::NotPermitted => MissingAnswer::FileNotPermitted,
        ProgramFileRefusal::Unreadable => MissingAnswer::FileUnreadable,
    })
}

async fn record_answer(
    answer: Result<String, MissingAnswer>,
    reporter: &Reporter,
) -> Result<Result<AttemptAnswer<'static>, MissingAnswer>, LedgerError> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(missing) => return Ok(Err(missing)),
    };
    let mut writer = reporter.open_output(TextChannel::Answer);
    writer.write(answer.as_bytes()).await?;
    Ok(Ok(AttemptAnswer { raw: Cow::Owned(answer), stored_part: writer.close().await? }))
}

/// Returns the value at a JSON pointer: a string as it is, anything else as compact JSON. A null is no answer.
fn value_at(document: &str, pointer: &str) -> Result<String, MissingAnswer> {
    match parse_document(document)?.pointer(pointer) {
        None => Err(MissingAnswer::JsonValueAbsent),
        Some(Value::Null) => Err(MissingAnswer::JsonValueNull),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(other.to_string()),
    }
}

/// Parses a document, which may have the same noise as a line of events: a byte order mark, escape sequences of a
/// terminal, or an unpaired surrogate.
fn parse_document(text: &str) -> Result<Value, MissingAnswer> {
    let error = match serde_json::from_str(text) {
        Ok(document) => return Ok(document),
        Err(error) => error,
    };
    let items = read_json_line(text.as_bytes());
    if items.is_empty() {
        return Err(MissingAnswer::DocumentEmpty);
    }
    if let Ok([LineItem::Object(document)]) = <[LineItem; 1]>::try_from(items) {
        return Ok(document);
    }
    let noise_bytes = text.find(['{', '[']).unwrap_or_default();
    let body = text.get(noise_bytes..).unwrap_or_default();
    match serde_json::from_str::<Value>(body) {
        Err(error) if error.is_eof() => Err(MissingAnswer::DocumentIncomplete),
        Ok(_) | Err(_) => {
            let (line, column) = (error.line(), error.column());
            Err(MissingAnswer::DocumentInvalid { line, column })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MissingAnswer, value_at};

    #[test]
    fn a_document_with_noise_is_read() {
        for document in [
            "\u{feff}{\"a\": \"b\"}",
            "\u{1b}[?2004h{\n  \"a\": \"b\"\n}\n\u{1b}[0m",
            r#"{"a": "b", "odd": "\ud83d"}"#,
        ] {
            assert_eq!(value_at(document, "/a").as_deref(), Ok("b"), "{document:?}");
        }
    }

    #[test]
    fn a_document_without_an_answer_has_its_own_reason() {
        let invalid = |line, column| MissingAnswer::DocumentInvalid { line, column };
        for (document, reason) in [
            (r#"{"a": "b"} {"a": "c"}"#, invalid(1, 12)),
            ("{\n  \"a\": no", invalid(2, 9)),
            (r#"note {"a": "b"}"#, invalid(1, 2)),
            (r#"{"a": "b""#, MissingAnswer::DocumentIncomplete),
            ("\u{feff}{\"a\": \"b\"", MissingAnswer::DocumentIncomplete),
            (" \n", MissingAnswer::DocumentEmpty),
            ("\u{feff}", MissingAnswer::DocumentEmpty),
            ("\u{1b}[0m\n", MissingAnswer::DocumentEmpty),
            ("{}", MissingAnswer::JsonValueAbsent),
            ("[1]", MissingAnswer::JsonValueAbsent),
            (r#"{"a": null}"#, MissingAnswer::JsonValueNull),
        ] {
            assert_eq!(value_at(document, "/a"), Err(reason), "{document}");
        }
    }

    #[test]
    fn a_json_pointer_gives_raw_strings_and_other_values_as_json() {
        let document = r#"{"a": {"b": "x\ny"}, "n": [1, {"k": true}], "/": "slash"}"#;
        let at = |pointer| value_at(document, pointer);
        assert_eq!(at("/a/b").as_deref(), Ok("x\ny"));
        assert_eq!(at("/n").as_deref(), Ok(r#"[1,{"k":true}]"#));
        assert_eq!(at("/n/1/k").as_deref(), Ok("true"));
        assert_eq!(at("/~1").as_deref(), Ok("slash"));
    }
}

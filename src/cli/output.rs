//! Output: tables and sentences for people, JSON for programs.
//!
//! All text passes through this module, and most of it comes from agents, callers or remote systems. No text can
//! control the terminal: see [`TerminalScanner`].

pub(super) mod failure_details;
pub(super) mod lossy_text;
pub(super) mod progress;
pub(super) mod screen;
pub(super) mod time_text;
pub(super) mod usage_text;

use std::cell::RefCell;
use std::error::Error;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use comfy_table::{Table, presets};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::error::CliError;
use crate::platform::terminal_text::{self, TerminalScanner};

/// Output of a command.
pub(super) struct CliOutput {
    is_json: bool,
    is_raw: bool,
    stdout: RefCell<OutputStream>,
    stderr: RefCell<OutputStream>,
    /// Notified by the first failed write to standard output.
    stdout_failure: Notify,
}

/// Standard output or standard error. After a failed write it writes no more, so that no text has a gap.
struct OutputStream {
    writer: Box<dyn Write>,
    has_failed: bool,
    /// Error of the failed write, until it is reported.
    unreported_error: Option<io::Error>,
    /// Filter of control characters; `None` prints the text unchanged.
    scanner: Option<TerminalScanner>,
    is_terminal: bool,
    /// True if the last line of a text has no line end yet.
    has_open_line: bool,
}

impl CliOutput {
    /// Creates the output, as JSON if `is_json` is true; `is_raw` prints text unchanged, including control characters.
    pub(super) fn new(is_json: bool, is_raw: bool) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let (stdout_is_terminal, stderr_is_terminal) = (stdout.is_terminal(), stderr.is_terminal());
        Self {
            is_json,
            is_raw,
            stdout: RefCell::new(OutputStream::new(Box::new(stdout), stdout_is_terminal, is_raw)),
            stderr: RefCell::new(OutputStream::new(Box::new(stderr), stderr_is_terminal, is_raw)),
            stdout_failure: Notify::new(),
        }
    }

    /// Returns the error of standard output once: some text was not written.
    ///
    /// # Errors
    /// Fails after a failed write.
    pub(super) fn take_write_error(&self) -> io::Result<()> {
        self.stdout.borrow_mut().unreported_error.take().map_or(Ok(()), Err)
    }

    /// Waits until a write to standard output fails.
    pub(super) async fn wait_for_stdout_failure(&self) {
        self.stdout_failure.notified().await;
    }

    /// Writes the text that the filters hold back. Returns false if standard error could not be written, although
    /// somebody reads it.
    pub(super) fn finish(&self) -> bool {
        self.write_to_stdout(OutputStream::finish_scanner);
        let mut stderr = self.stderr.borrow_mut();
        stderr.finish_scanner();
        stderr
            .unreported_error
            .as_ref()
            .is_none_or(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// True if the output is JSON.
    pub(super) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// True if standard output is a regular file, which is read only after the end.
    pub(super) fn writes_to_file(&self) -> bool {
        stdout_metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// True if standard output is the null device, which is also in place of a closed one.
    pub(super) fn is_discarded(&self) -> bool {
        let null_device = fs::metadata("/dev/null").map(|null| null.rdev());
        stdout_metadata().is_ok_and(|metadata| {
            metadata.file_type().is_char_device()
                && null_device.is_ok_and(|device| device == metadata.rdev())
        })
    }

    /// Prints a line.
    pub(super) fn print_line(&self, text: &str) {
        self.write_to_stdout(|stdout| stdout.print_line(text));
    }

    /// Prints a whole text; on a terminal it ends with a line end.
    pub(super) fn print_text(&self, text: &str) {
        self.write_to_stdout(|stdout| {
            stdout.print_piece(text);
            stdout.end_text();
        });
    }

    /// Prints a piece of a text immediately.
    pub(super) fn print_piece(&self, text: &str) {
        self.write_to_stdout(|stdout| stdout.print_piece(text));
    }

    /// Prints a piece of a text to standard error.
    pub(super) fn print_stderr(&self, text: &str) {
        self.stderr.borrow_mut().print_piece(text);
    }

    /// Ends texts that were printed piece by piece.
    pub(super) fn end_text(&self) {
        self.write_to_stdout(OutputStream::end_text);
        self.stderr.borrow_mut().end_text();
    }

    /// Prints a shape as JSON.
    pub(super) fn print_json(&self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.print_json_document(&text),
            Err(error) => self.write_to_stdout(|stdout| stdout.record_failure(error.into())),
        }
    }

    /// Prints a JSON document.
    pub(super) fn print_json_document(&self, document: &str) {
        self.print_line(&self.printable_json(document));
    }

    /// Returns a writer of JSON documents to standard output, one per line.
    pub(super) fn document_writer(&self) -> JsonDocumentWriter {
        JsonDocumentWriter { pending_bytes: Vec::new(), is_raw: self.is_raw }
    }

    /// Prints rows under headings, or a sentence if there are no rows.
    pub(super) fn print_table<const N: usize>(
        &self,
        headings: [&str; N],
        rows: Vec<[String; N]>,
        empty_message: &str,
    ) {
        if rows.is_empty() {
            return self.print_line(empty_message);
        }
        // The table measures the printed text, so its cells are filtered first.
        let rows = rows.into_iter().map(|row| match self.is_raw {
            true => row,
            false => row.map(|cell| terminal_text::escape_to_single_line(&cell)),
        });
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(headings).add_rows(rows);
        self.print_line(&table.trim_fmt());
    }

    /// Prints a remark to standard error.
    pub(super) fn print_note(&self, text: &str) {
        // The earlier output ends first: otherwise the remark would have its color.
        self.write_to_stdout(OutputStream::finish_scanner);
        self.stderr.borrow_mut().print_line(text);
    }

    /// Prints an error with all its causes.
    pub(super) fn print_error(&self, error: &CliError) {
        if self.is_json {
            let (code, text) = (error.exit_code(), cause_chain(error));
            let mut object = json!({"error": text, "exitCode": code});
            let error_body =
                error.error_body().and_then(|error_body| serde_json::to_value(error_body).ok());
            if let (Some(object), Some(Value::Object(error_body))) =
                (object.as_object_mut(), error_body)
            {
                object.extend(error_body);
            }
            if let (Some(object), Some(seconds)) = (object.as_object_mut(), error.retry_after()) {
                object.insert("retryAfterSeconds".to_owned(), json!(seconds));
            }
            return self.print_note(&self.printable_json(&object.to_string()));
        }
        self.print_note(&format!("error: {}", cause_chain(error)));
    }

    /// Returns a JSON document in its printed form.
    pub(super) fn printable_json(&self, document: &str) -> String {
        if self.is_raw { document.to_owned() } else { terminal_text::escape_json(document) }
    }

    /// Writes to standard output, and notifies of a failure.
    fn write_to_stdout(&self, write: impl FnOnce(&mut OutputStream)) {
        let mut stdout = self.stdout.borrow_mut();
        write(&mut stdout);
        if stdout.unreported_error.is_some() {
            self.stdout_failure.notify_one();
        }
    }
}

impl Drop for CliOutput {
    /// Resets the color of the terminal after a panic; without one, the filter holds nothing back any more.
    fn drop(&mut self) {
        self.finish();
    }
}

impl OutputStream {
    fn new(writer: Box<dyn Write>, is_terminal: bool, is_raw: bool) -> Self {
        let scanner = (!is_raw).then(|| TerminalScanner::new(is_terminal));
        Self {
            writer,
            has_failed: false,
            unreported_error: None,
            scanner,
            is_terminal,
            has_open_line: false,
        }
    }

    fn print_piece(&mut self, text: &str) {
        if let Some(last) = text.chars().next_back() {
            self.has_open_line = last != '\n';
        }
        match &mut self.scanner {
            Some(scanner) => {
                let printable = scanner.push(text);
                self.write(&printable);
            }
            None => self.write(text),
        }
    }

    /// Prints the text that the filter holds back, and resets colors.
    fn finish_scanner(&mut self) {
        let pending = self.scanner.as_mut().map(TerminalScanner::finish).unwrap_or_default();
        self.write(&pending);
    }

    /// Ends a text; on a terminal it ends with a line end.
    fn end_text(&mut self) {
        self.finish_scanner();
        if std::mem::take(&mut self.has_open_line) && self.is_terminal {
            self.write("\n");
        }
    }

    fn print_line(&mut self, text: &str) {
        self.finish_scanner();
        self.has_open_line = false;
        let text = match &mut self.scanner {
            Some(scanner) => scanner.push(text) + &scanner.finish(),
            None => text.to_owned(),
        };
        self.write(&format!("{text}\n"));
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() || self.has_failed {
            return;
        }
        let written = self.writer.write_all(text.as_bytes()).and_then(|()| self.writer.flush());
        if let Err(error) = written {
            self.record_failure(error);
        }
    }

    fn record_failure(&mut self, error: io::Error) {
        self.has_failed = true;
        self.unreported_error.get_or_insert(error);
    }
}

/// Writer of JSON documents to standard output, which arrive in pieces.
pub(super) struct JsonDocumentWriter {
    /// Start of a character that has not arrived completely.
    pending_bytes: Vec<u8>,
    is_raw: bool,
}

impl Write for JsonDocumentWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stdout = io::stdout().lock();
        if self.is_raw {
            return stdout.write(bytes);
        }
        self.pending_bytes.extend_from_slice(bytes);
        // The filter works on text, and a document may be cut within a character.
        let complete_len = complete_characters_len(&self.pending_bytes);
        let incomplete = self.pending_bytes.split_off(complete_len);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.pending_bytes, incomplete))
            .into_owned();
        stdout.write_all(terminal_text::escape_json(&text).as_bytes())?;
        Ok(bytes.len())
    }

    /// Writes an incomplete last character too, as U+FFFD.
    fn flush(&mut self) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        let rest = std::mem::take(&mut self.pending_bytes);
        stdout.write_all(String::from_utf8_lossy(&rest).as_bytes())?;
        stdout.flush()
    }
}

/// Returns the length of the text without an incomplete last character.
fn complete_characters_len(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

fn cause_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let cause_text = error.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        cause = error.source();
    }
    text
}

fn stdout_metadata() -> io::Result<Metadata> {
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    stdout.and_then(|file| file.metadata())
}

#[cfg(test)]
mod tests {
    use super::complete_characters_len;

    #[test]
    fn an_incomplete_character_waits_for_its_rest() {
        let text = "aé日".as_bytes();
        let lengths: Vec<_> =
            (0..=text.len()).map(|end| complete_characters_len(&text[..end])).collect();
        assert_eq!(lengths, [0, 1, 1, 3, 3, 3, 6]);
        assert_eq!(complete_characters_len(b"a\xff\xffb"), 4, "bytes that are no text do not wait");
    }
}

//! Prints: tables and sentences for people, JSON for programs.

use std::error::Error;
use std::io::{IsTerminal, Write};

use comfy_table::{Table, presets};
use serde::Serialize;
use serde_json::{Value, json};

use super::fault::CliError;

/// Where a command prints to.
pub(super) struct Out {
    json: bool,
}

impl Out {
    /// For programs when `json`, else for people.
    pub(super) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether a program reads.
    pub(super) const fn is_json(&self) -> bool {
        self.json
    }

    /// A line.
    pub(super) fn line(&self, text: &str) {
        _ = writeln!(std::io::stdout(), "{text}"); // A reader that has gone wants no more.
    }

    /// Lines in one piece.
    ///
    /// # Errors
    /// When nobody reads them.
    pub(super) fn lines(&self, lines: &[String]) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(format!("{}\n", lines.join("\n")).as_bytes())?;
        stdout.flush()
    }

    /// A text as it is; on a terminal it ends with a line.
    pub(super) fn text(&self, text: &str) {
        let mut stdout = std::io::stdout();
        _ = stdout.write_all(text.as_bytes());
        if stdout.is_terminal() && !text.ends_with('\n') {
            _ = writeln!(stdout);
        }
    }

    /// A piece of a text, at once.
    pub(super) fn piece(&self, text: &str) {
        let mut stdout = std::io::stdout();
        _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    /// A text as it is that is not part of the answer.
    pub(super) fn aside(&self, text: &str) {
        _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// A shape as JSON.
    pub(super) fn shape(&self, shape: &impl Serialize) {
        if let Ok(text) = serde_json::to_string_pretty(shape) {
            self.line(&text);
        }
    }

    /// Rows under headings, or a sentence when there are none.
    pub(super) fn table<const N: usize>(
        &self,
        head: [&str; N],
        rows: Vec<[String; N]>,
        none: &str,
    ) {
        if rows.is_empty() {
            return self.line(none);
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(head).add_rows(rows);
        self.line(&table.trim_fmt());
    }

    /// A remark that is not part of the answer.
    pub(super) fn note(&self, text: &str) {
        _ = writeln!(std::io::stderr(), "{text}");
    }

    /// An error with all its causes.
    pub(super) fn trouble(&self, error: &CliError) {
        if self.json {
            let (code, text) = (error.exit_code(), chain(error));
            let mut told = json!({"error": text, "exitCode": code});
            let trouble = error.trouble().and_then(|trouble| serde_json::to_value(trouble).ok());
            if let (Some(told), Some(Value::Object(trouble))) = (told.as_object_mut(), trouble) {
                told.extend(trouble);
            }
            return self.note(&told.to_string());
        }
        self.note(&format!("error: {}", chain(error)));
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

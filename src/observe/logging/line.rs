//! Log lines as JSON and as text for people.

use std::fmt::{Debug, Write as _};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use tracing::Level;
use tracing::field::{Field, Visit};

use crate::observe;
use crate::platform::terminal_text;

/// Fields of a line or a span, by name; a later value replaces an earlier one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LogFields(Vec<(&'static str, Value)>);

/// Line before it is written.
pub(super) struct LogLine {
    pub(super) at: DateTime<Utc>,
    pub(super) level: Level,
    pub(super) target: &'static str,
    pub(super) fields: LogFields,
}

/// Name of the field with the text of a line.
const MESSAGE_FIELD: &str = "message";

impl LogFields {
    /// Adds all fields of another list.
    pub(super) fn extend(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.set(name, value.clone());
        }
    }

    /// Sets the text of the line.
    pub(super) fn set_message(&mut self, message: &str) {
        self.set(MESSAGE_FIELD, message.into());
    }

    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        self.0.retain(|(existing, _)| *existing != name);
        self.0.push((name, value));
    }

    fn message(&self) -> &str {
        let found = self.0.iter().find(|(name, _)| *name == MESSAGE_FIELD);
        found.and_then(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set(field.name(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), value.into());
    }
}

impl LogLine {
    /// Returns one JSON object, with time, level and target first.
    pub(super) fn json(&self) -> String {
        let timestamp = Value::from(self.timestamp());
        let (level, target) = (Value::from(self.level.as_str()), Value::from(self.target));
        let head = [("timestamp", &timestamp), ("level", &level), ("target", &target)];
        let fields = self.fields.0.iter().map(|(name, value)| (*name, value));
        let mut text = String::from("{");
        for (name, value) in head.into_iter().chain(fields) {
            let comma = if text.len() > 1 { "," } else { "" };
            _ = write!(text, "{comma}{}:{value}", Value::from(name)); // To memory.
        }
        text.push_str("}\n");
        text
    }

    /// Returns the time, the level, the message, and the other fields as names and values.
    pub(super) fn human_text(&self, is_coloured: bool) -> String {
        let (level_colour, dim, reset) = match (is_coloured, self.level) {
            (false, _) => ("", "", ""),
            (true, Level::ERROR) => ("\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m"),
            (true, Level::WARN) => ("\u{1b}[33m", "\u{1b}[2m", "\u{1b}[0m"),
            (true, _) => ("\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"),
        };
        let (level, message) =
            (self.level, terminal_text::escape_to_single_line(self.fields.message()));
        let mut text =
            format!("{dim}{}{reset} {level_colour}{level:>5}{reset} {message}", self.timestamp());
        for (name, value) in self.fields.0.iter().filter(|(name, _)| *name != MESSAGE_FIELD) {
            let value = match value {
                Value::String(word) if needs_no_quotes(word) => word.clone(),
                value => terminal_text::escape_json(&value.to_string()),
            };
            _ = write!(text, " {dim}{name}={reset}{value}"); // To memory.
        }
        text.push('\n');
        text
    }

    fn timestamp(&self) -> String {
        self.at.to_rfc3339_opts(SecondsFormat::Micros, true)
    }

    /// Returns the line for the exporter.
    pub(super) fn into_exported_line(self) -> observe::ExportedLogLine {
        observe::ExportedLogLine { at: self.at, level: self.level, fields: self.fields.0 }
    }
}

/// True if a text needs no quotes.
fn needs_no_quotes(text: &str) -> bool {
    let is_unquoted_byte = |byte: u8| byte.is_ascii_graphic() && !b"\"=".contains(&byte);
    !text.is_empty() && text.bytes().all(is_unquoted_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> LogLine {
        let mut fields = LogFields(vec![("execution", "e-1".into()), ("agent", "echo".into())]);
        let line_fields = [("message", "en\u{1b}ded\u{202e}\n".into()), ("why", "a \"b\"".into())];
        fields.extend(&LogFields(
            line_fields.into_iter().chain([("agent", "other".into())]).collect(),
        ));
        fields.set("took", 7.into());
        LogLine { at: DateTime::UNIX_EPOCH, level: Level::WARN, target: "here", fields }
    }

    #[test]
    fn a_json_log_line_has_unique_names_and_the_last_value() {
        let text = line().json();
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&read["agent"], &read["took"]), (&"other".into(), &7.into()));
        assert_eq!((&read["level"], &read["execution"]), (&"WARN".into(), &"e-1".into()));
        assert_eq!(text.matches("\"agent\"").count(), 1);
        assert!(text.starts_with("{\"timestamp\":\"1970-") && text.ends_with("}\n"), "{text}");
    }

    #[test]
    fn a_text_log_line_is_one_line_without_control_characters() {
        let text = line().human_text(false);
        let (_, rest) = text.split_once(' ').expect("a time");
        assert_eq!(
            rest,
            " WARN en\\x1bded\\u{202e}  execution=e-1 why=\"a \\\"b\\\"\" agent=other took=7\n"
        );
    }
}

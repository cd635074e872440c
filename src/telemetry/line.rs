//! A line of the log, as JSON and for people.

use std::fmt::{Debug, Write as _};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use tracing::Level;
use tracing::field::{Field, Visit};

use crate::observe;

/// What a line or a span says, by name; what is said last counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

/// A line before it is written.
pub(super) struct Line {
    pub(super) at: DateTime<Utc>,
    pub(super) level: Level,
    pub(super) target: &'static str,
    pub(super) fields: Fields,
}

/// The field that is the sentence of a line.
const MESSAGE: &str = "message";

impl Fields {
    /// Takes all of these over.
    pub(super) fn extend(&mut self, others: &Self) {
        for (name, value) in &others.0 {
            self.put(name, value.clone());
        }
    }

    fn put(&mut self, name: &'static str, value: Value) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }

    fn message(&self) -> &str {
        let found = self.0.iter().find(|(name, _)| *name == MESSAGE);
        found.and_then(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }
}

impl Line {
    /// One object, with its time, level and origin first.
    pub(super) fn json(&self) -> String {
        let at = Value::from(self.at());
        let (level, target) = (Value::from(self.level.as_str()), Value::from(self.target));
        let head = [("timestamp", &at), ("level", &level), ("target", &target)];
        let fields = self.fields.0.iter().map(|(name, value)| (*name, value));
        let mut text = String::from("{");
        for (name, value) in head.into_iter().chain(fields) {
            let comma = if text.len() > 1 { "," } else { "" };
            _ = write!(text, "{comma}{}:{value}", Value::from(name)); // To memory.
        }
        text.push_str("}\n");
        text
    }

    /// The time, the level, the sentence, and the rest as names and values.
    pub(super) fn human(&self, is_coloured: bool) -> String {
        let (on, dim, off) = match (is_coloured, self.level) {
            (false, _) => ("", "", ""),
            (true, Level::ERROR) => ("\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m"),
            (true, Level::WARN) => ("\u{1b}[33m", "\u{1b}[2m", "\u{1b}[0m"),
            (true, _) => ("\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"),
        };
        let (level, message) = (self.level, shown(self.fields.message()));
        let mut text = format!("{dim}{}{off} {on}{level:>5}{off} {message}", self.at());
        for (name, value) in self.fields.0.iter().filter(|(name, _)| *name != MESSAGE) {
            let value = match value {
                Value::String(word) if is_word(word) => word.clone(),
                value => value.to_string(),
            };
            _ = write!(text, " {dim}{name}={off}{value}"); // To memory.
        }
        text.push('\n');
        text
    }

    fn at(&self) -> String {
        self.at.to_rfc3339_opts(SecondsFormat::Micros, true)
    }

    /// The line as whoever looks on hears it.
    pub(super) fn told(self) -> observe::Line {
        observe::Line { at: self.at, level: self.level, fields: self.fields.0 }
    }
}

/// Whether a text stands for itself without quotes.
fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"=".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// A sentence in one line that commands no terminal.
fn shown(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let mut fields = Fields(vec![("execution", "e-1".into()), ("agent", "echo".into())]);
        let own = [("message", "en\u{1b}ded\n".into()), ("why", "a \"b\"".into())];
        fields.extend(&Fields(own.into_iter().chain([("agent", "other".into())]).collect()));
        fields.put("took", 7.into());
        Line { at: DateTime::UNIX_EPOCH, level: Level::WARN, target: "here", fields }
    }

    #[test]
    fn a_line_of_json_has_each_name_once_and_the_last_word_counts() {
        let text = line().json();
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&read["agent"], &read["took"]), (&"other".into(), &7.into()));
        assert_eq!((&read["level"], &read["execution"]), (&"WARN".into(), &"e-1".into()));
        assert_eq!(text.matches("\"agent\"").count(), 1);
        assert!(text.starts_with("{\"timestamp\":\"1970-") && text.ends_with("}\n"), "{text}");
    }

    #[test]
    fn a_line_for_people_is_one_line_and_commands_no_terminal() {
        let text = line().human(false);
        let (_, rest) = text.split_once(' ').expect("a time");
        assert_eq!(rest, " WARN en ded  execution=e-1 why=\"a \\\"b\\\"\" agent=other took=7\n");
    }
}

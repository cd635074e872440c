//! Table of the file, read key by key; a key that no reader requests is unknown.

use std::ops::Range;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::bounds::RangeWithDefault;
use super::position::{Positioned, PositionedValue, SourcePosition};
use super::reader::ConfigReader;
use super::shape::ValueShape;
use super::value;
use crate::config::diagnostics::{FaultCode, nearest_word, new_diagnostic};

/// Table of the file. An absent table reads as an empty one.
pub(crate) struct Section<'c> {
    pub(crate) reader: &'c ConfigReader<'c>,
    pub(crate) position: SourcePosition,
    table: Option<&'c DeTable<'c>>,
    requested_keys: Vec<&'static str>,
}

impl<'c> Section<'c> {
    /// Returns a table at a position.
    pub(crate) fn new(
        reader: &'c ConfigReader<'c>,
        position: SourcePosition,
        table: Option<&'c DeTable<'c>>,
    ) -> Self {
        Self { reader, position, table, requested_keys: Vec::new() }
    }

    /// Reads the value of a key, of any type.
    pub(crate) fn entry(&mut self, key: &'static str) -> Option<PositionedValue<'c>> {
        self.requested_keys.push(key);
        self.record_shape(key, || ValueShape::Unknown);
        let value = self.table?.get(key)?;
        Some(Positioned {
            position: self.position_of(key, value.span(), value.get_ref()),
            value: value.get_ref(),
        })
    }

    /// Returns true if a key is given.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Returns the value of a key without a record of the request, so that the key may still be unknown.
    pub(crate) fn peek(&self, key: &str) -> Option<&'c DeValue<'c>> {
        Some(self.table?.get(key)?.get_ref())
    }

    /// Reports a key that is needed and not there.
    pub(crate) fn report_if_missing(&self, key: &str) {
        if !self.has_key(key) {
            self.reader.report_error(&self.position.child(key).without_excerpt(), "is needed");
        }
    }

    /// Reports each of these keys that is there. The other keys get no shape.
    pub(crate) fn refuse_unsupported_keys(&mut self, keys: &[&'static str]) {
        for key in keys {
            if self.has_key(key)
                && let Some(entry) = self.entry(key)
            {
                self.reader.report_error(&entry.position.without_excerpt(), "is not supported yet");
            }
        }
    }

    /// Returns all keys and values of the table in the order of the file; any key is permitted then.
    pub(crate) fn entries(self) -> Vec<(Positioned<String>, PositionedValue<'c>)> {
        self.reader.record_shape(|| self.position.clone(), || ValueShape::AnyKeys);
        self.sorted_entries()
    }

    /// Records the shape of a key.
    pub(crate) fn record_shape(&self, key: &str, shape: impl FnOnce() -> ValueShape) {
        self.reader.record_shape(|| self.position.child(key), shape);
    }

    /// Records the description of a key.
    pub(crate) fn record_description(&self, key: &str, text: &'static str) {
        self.reader.record_description(|| self.position.child(key), text);
    }

    fn sorted_entries(self) -> Vec<(Positioned<String>, PositionedValue<'c>)> {
        let mut rows: Vec<_> = self.table.into_iter().flat_map(DeTable::iter).collect();
        rows.sort_by_key(|(key, _)| key.span().start);
        rows.into_iter()
            .map(|(key, value)| {
                let name: &str = key.get_ref();
                let position = self.position_of(name, value.span(), value.get_ref());
                let key_position =
                    self.position.child(name).without_excerpt().with_span(key.span());
                let key = Positioned { value: name.to_owned(), position: key_position };
                (key, Positioned { value: value.get_ref(), position })
            })
            .collect()
    }

    /// Reads the table below a key.
    pub(crate) fn section(&mut self, key: &'static str) -> Self {
        let absent = Self::new(self.reader, self.position.child(key), None);
        self.record_shape(key, || ValueShape::Table);
        self.entry(key).and_then(|entry| Self::from_entry(self.reader, entry)).unwrap_or(absent)
    }

    /// Reads the named tables below a key, in the order of the file.
    pub(crate) fn sections(&mut self, key: &'static str) -> Vec<(Positioned<String>, Self)> {
        let reader = self.reader;
        if let Some(list) = self.entry(key).filter(|entry| entry.value.is_array()) {
            let path = self.position.child(key).key_path;
            let hint = format!("write `[{path}.a-name]`");
            let diagnostic = new_diagnostic("must be tables with a name").with_hint(hint);
            reader.report_error(&list.position.without_excerpt(), diagnostic);
            return Vec::new();
        }
        let rows = self.section(key).sorted_entries().into_iter();
        self.record_shape(key, || ValueShape::NamedTables);
        rows.filter_map(|(name, entry)| Some((name, Self::from_entry(reader, entry)?))).collect()
    }

    /// Reads an entry as a table, whose own values may be printed.
    pub(crate) fn from_entry(
        reader: &'c ConfigReader<'c>,
        entry: PositionedValue<'c>,
    ) -> Option<Self> {
        let table = value::table(reader, &entry)?;
        Some(Self::new(
            reader,
            SourcePosition { may_quote_source: true, ..entry.position },
            Some(table),
        ))
    }

    /// Reads a text.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<Positioned<String>> {
        self.record_shape(key, || ValueShape::Text);
        let entry = self.entry(key)?;
        let text = value::text(self.reader, &entry)?;
        Some(Positioned { value: text.to_owned(), position: entry.position })
    }

    /// Reads a text that must not be empty or blank.
    pub(crate) fn nonblank_text(&mut self, key: &'static str) -> Option<Positioned<String>> {
        let text = self.text(key)?;
        if text.value.trim().is_empty() {
            self.reader.report_error(&text.position, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// Reads a boolean.
    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        let configured = self.entry(key).and_then(|entry| value::flag(self.reader, &entry));
        self.record_shape(key, || ValueShape::Flag(Some(default)));
        configured.unwrap_or(default)
    }

    /// Reads a whole number.
    pub(crate) fn count(&mut self, key: &'static str, bounds: RangeWithDefault<u64>) -> u64 {
        let configured =
            self.entry(key).and_then(|entry| value::count(self.reader, &entry, bounds));
        self.record_shape(key, || ValueShape::Count(bounds, true));
        configured.unwrap_or(bounds.default)
    }

    /// Reads a number.
    pub(crate) fn number(&mut self, key: &'static str, bounds: RangeWithDefault<f64>) -> f64 {
        let configured =
            self.entry(key).and_then(|entry| value::number(self.reader, &entry, bounds));
        self.record_shape(key, || ValueShape::Number(bounds, true));
        configured.unwrap_or(bounds.default)
    }

    /// Reads a duration.
    pub(crate) fn duration(
        &mut self,
        key: &'static str,
        bounds: RangeWithDefault<f64>,
    ) -> Duration {
        let entry = self.entry(key);
        let configured = entry.and_then(|entry| value::seconds(self.reader, &entry, bounds));
        self.record_shape(key, || ValueShape::Seconds(bounds, true));
        Duration::try_from_secs_f64(configured.unwrap_or(bounds.default)).unwrap_or_default()
    }

    /// Reads one of a few words; `None` if the key is absent or the word is unknown.
    pub(crate) fn keyword<T: Copy>(
        &mut self,
        key: &'static str,
        known: &[(&str, T)],
    ) -> Option<Positioned<T>> {
        let text = self.text(key);
        self.record_shape(key, || {
            ValueShape::Keyword(known.iter().map(|(word, _)| (*word).to_owned()).collect())
        });
        let text = text?;
        if let Some((_, value)) = known.iter().find(|(word, _)| *word == text.value) {
            return Some(Positioned { value: *value, position: text.position });
        }
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let diagnostic = new_diagnostic(format!("must be \"{}\"", words.join("\" or \"")));
        let diagnostic = match nearest_word(&text.value, &words) {
            Some(word) => diagnostic.with_hint(format!("did you mean `{word}`?")),
            None => diagnostic,
        };
        self.reader.report_error(&text.position, diagnostic);
        None
    }

    /// Reads one of a few words like [`keyword`](Self::keyword). A word of `unsupported` is not supported yet.
    pub(crate) fn supported_keyword<T: Copy>(
        &mut self,
        key: &'static str,
        known: &[(&str, T)],
        unsupported: &[&str],
    ) -> Option<Positioned<T>> {
        let word = self.peek(key).and_then(DeValue::as_str);
        if word.is_some_and(|word| unsupported.contains(&word)) {
            let position = self.entry(key)?.position;
            self.reader.report_error(&position, "is not supported yet");
            return None;
        }
        self.keyword(key, known)
    }

    /// Reads the items of a list; `None` if the key is absent.
    pub(crate) fn list(&mut self, key: &'static str) -> Option<Vec<PositionedValue<'c>>> {
        self.record_shape(key, || ValueShape::List);
        let entry = self.entry(key)?;
        let array = value::list(self.reader, &entry)?;
        let items = array.iter().enumerate().map(|(index, item)| {
            let key_path = format!("{}[{index}]", entry.position.key_path);
            let position = SourcePosition {
                key_path,
                may_quote_source: entry.position.may_quote_source,
                span: item.span(),
            };
            Positioned { value: item.get_ref(), position }
        });
        Some(items.collect())
    }

    /// Reads a list of texts; items of another type are faults and are skipped.
    pub(crate) fn text_list(&mut self, key: &'static str) -> Option<Vec<Positioned<String>>> {
        let reader = self.reader;
        let items = self.list(key);
        self.record_shape(key, || ValueShape::TextList);
        let items = items?.into_iter();
        let text = |entry: PositionedValue<'c>| {
            let value = value::text(reader, &entry)?.to_owned();
            Some(Positioned { value, position: entry.position })
        };
        Some(items.filter_map(text).collect())
    }

    /// Reports every key that no reader requested.
    pub(crate) fn report_unknown_keys(self) {
        let (reader, requested_keys) = (self.reader, self.requested_keys.clone());
        for (key, _) in self.sorted_entries() {
            if !requested_keys.contains(&key.value.as_str()) {
                let diagnostic = new_diagnostic("unknown key")
                    .with_code(FaultCode::UnknownKey)
                    .suggest_from(&key.value, requested_keys.iter().copied());
                reader.report_error(&key.position, diagnostic);
            }
        }
    }

    /// Returns the position of a value in this table. A table is not printed, and has no single span to blame.
    fn position_of(&self, key: &str, span: Range<usize>, value: &DeValue<'_>) -> SourcePosition {
        SourcePosition {
            may_quote_source: !value.is_table(),
            ..self.position.child(key).with_span(span)
        }
    }
}

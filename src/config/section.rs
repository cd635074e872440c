//! A table of the file, read key by key; what nobody asked for is unknown.

use std::ops::Range;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::fault::{nearest, said};
use super::reader::{Found, Place, Reader};
use super::shape::Shape;
use super::value::{self, Bounds};

/// A value as written, and where.
pub(super) type Entry<'c> = Found<&'c DeValue<'c>>;

/// A table of the file. An absent table reads as an empty one.
pub(super) struct Section<'c> {
    pub(super) reader: &'c Reader<'c>,
    pub(super) place: Place,
    table: Option<&'c DeTable<'c>>,
    known: Vec<&'static str>,
}

impl<'c> Section<'c> {
    /// A table at a place.
    pub(super) fn new(
        reader: &'c Reader<'c>,
        place: Place,
        table: Option<&'c DeTable<'c>>,
    ) -> Self {
        Self { reader, place, table, known: Vec::new() }
    }

    /// The value of a key, of whatever type.
    pub(super) fn entry(&mut self, key: &'static str) -> Option<Entry<'c>> {
        self.known.push(key);
        self.note(key, || Shape::Unsaid);
        let value = self.table?.get(key)?;
        Some(Found {
            place: self.inside(key, value.span(), value.get_ref()),
            value: value.get_ref(),
        })
    }

    /// Whether a key is given.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// All keys and values of the table in the order of the file; none is unknown then.
    pub(super) fn entries(self) -> Vec<(Found<String>, Entry<'c>)> {
        self.reader.note(|| self.place.clone(), || Shape::Free);
        self.rows()
    }

    /// Notes what a key may hold.
    pub(super) fn note(&self, key: &str, shape: impl FnOnce() -> Shape) {
        self.reader.note(|| self.place.below(key), shape);
    }

    fn rows(self) -> Vec<(Found<String>, Entry<'c>)> {
        let mut rows: Vec<_> = self.table.into_iter().flat_map(DeTable::iter).collect();
        rows.sort_by_key(|(key, _)| key.span().start);
        rows.into_iter()
            .map(|(key, value)| {
                let name: &str = key.get_ref();
                let place = self.inside(name, value.span(), value.get_ref());
                let named = self.place.below(name).hidden().at(key.span());
                let key = Found { value: name.to_owned(), place: named };
                (key, Found { value: value.get_ref(), place })
            })
            .collect()
    }

    /// The table below a key.
    pub(super) fn section(&mut self, key: &'static str) -> Self {
        let absent = Self::new(self.reader, self.place.below(key), None);
        self.note(key, || Shape::Table);
        self.entry(key).and_then(|entry| Self::of(self.reader, entry)).unwrap_or(absent)
    }

    /// The tables below a key with their names, in the order of the file.
    pub(super) fn sections(&mut self, key: &'static str) -> Vec<(Found<String>, Self)> {
        let reader = self.reader;
        if let Some(list) = self.entry(key).filter(|entry| entry.value.is_array()) {
            let complaint =
                said("must be tables with a name").hint(format!("write `[{key}.a-name]`"));
            reader.error(&list.place.hidden(), complaint);
            return Vec::new();
        }
        let rows = self.section(key).rows().into_iter();
        self.note(key, || Shape::Named);
        rows.filter_map(|(name, entry)| Some((name, Self::of(reader, entry)?))).collect()
    }

    /// An entry as a table, whose own values may be printed.
    pub(super) fn of(reader: &'c Reader<'c>, entry: Entry<'c>) -> Option<Self> {
        let table = value::table(reader, &entry)?;
        Some(Self::new(reader, Place { shown: true, ..entry.place }, Some(table)))
    }

    /// Text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<Found<String>> {
        self.note(key, || Shape::Text);
        let entry = self.entry(key)?;
        let text = value::text(self.reader, &entry)?;
        Some(Found { value: text.to_owned(), place: entry.place })
    }

    /// Text that may not be empty or blank.
    pub(super) fn nonblank(&mut self, key: &'static str) -> Option<Found<String>> {
        let text = self.text(key)?;
        if text.value.trim().is_empty() {
            self.reader.error(&text.place, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        let given = self.entry(key).and_then(|entry| value::flag(self.reader, &entry));
        self.note(key, || Shape::Flag(Some(default)));
        given.unwrap_or(default)
    }

    /// A whole number.
    pub(super) fn count(&mut self, key: &'static str, bounds: Bounds<u64>) -> u64 {
        let given = self.entry(key).and_then(|entry| value::count(self.reader, &entry, bounds));
        self.note(key, || Shape::Count(bounds, true));
        given.unwrap_or(bounds.default)
    }

    /// A number.
    pub(super) fn number(&mut self, key: &'static str, bounds: Bounds<f64>) -> f64 {
        let given = self.entry(key).and_then(|entry| value::number(self.reader, &entry, bounds));
        self.note(key, || Shape::Number(bounds, true));
        given.unwrap_or(bounds.default)
    }

    /// A span of time.
    pub(super) fn seconds(&mut self, key: &'static str, bounds: Bounds<f64>) -> Duration {
        let entry = self.entry(key);
        let given = entry.and_then(|entry| value::seconds(self.reader, &entry, bounds));
        self.note(key, || Shape::Seconds(bounds, true));
        Duration::try_from_secs_f64(given.unwrap_or(bounds.default)).unwrap_or_default()
    }

    /// One of a few words; nothing when the key is absent or the word is unknown.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        known: &[(&str, T)],
    ) -> Option<Found<T>> {
        let text = self.text(key);
        self.note(key, || Shape::Word(known.iter().map(|(word, _)| (*word).to_owned()).collect()));
        let text = text?;
        if let Some((_, value)) = known.iter().find(|(word, _)| *word == text.value) {
            return Some(Found { value: *value, place: text.place });
        }
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let complaint = said(format!("must be \"{}\"", words.join("\" or \"")));
        let complaint = match nearest(&text.value, &words) {
            Some(word) => complaint.hint(format!("did you mean `{word}`?")),
            None => complaint,
        };
        self.reader.error(&text.place, complaint);
        None
    }

    /// The items of a list; nothing when the key is absent.
    pub(super) fn list(&mut self, key: &'static str) -> Option<Vec<Entry<'c>>> {
        self.note(key, || Shape::List);
        let entry = self.entry(key)?;
        let array = value::list(self.reader, &entry)?;
        let items = array.iter().enumerate().map(|(index, item)| {
            let path = format!("{}[{index}]", entry.place.path);
            let place = Place { path, shown: entry.place.shown, span: item.span() };
            Found { value: item.get_ref(), place }
        });
        Some(items.collect())
    }

    /// A list of texts; items of another type are faults and left out.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<Found<String>>> {
        let reader = self.reader;
        let items = self.list(key);
        self.note(key, || Shape::Texts);
        let items = items?.into_iter();
        let text = |entry: Entry<'c>| {
            let value = value::text(reader, &entry)?.to_owned();
            Some(Found { value, place: entry.place })
        };
        Some(items.filter_map(text).collect())
    }

    /// Reports every key that nobody asked for.
    pub(super) fn finish(self) {
        let (reader, known) = (self.reader, self.known.clone());
        for (key, _) in self.rows() {
            if !known.contains(&key.value.as_str()) {
                let complaint = said("unknown key").among(&key.value, known.iter().copied());
                reader.error(&key.place, complaint);
            }
        }
    }

    /// The place of a value in this table. A table is not printed, and has no end to blame.
    fn inside(&self, key: &str, span: Range<usize>, value: &DeValue<'_>) -> Place {
        Place { shown: !value.is_table(), ..self.place.below(key).at(span) }
    }
}

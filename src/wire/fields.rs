//! JSON objects, read field by field so that each fault names its field, and written without what
//! is empty.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use serde_json::{Map, Value};

use super::base64;

/// A fault in what was sent.
pub(super) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidParams, message)
}

/// The fields of an object, each of which is read once.
///
/// A field is found by its name in `camelCase` or in `snake_case`; null is the same as absent;
/// fields that nobody asks for do no harm.
#[derive(Default)]
pub(super) struct Fields {
    place: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The fields of parameters or of a body; null has none.
    pub(super) fn of(value: Value) -> Result<Self, Failure> {
        Self::at(String::new(), value)
    }

    fn at(place: String, value: Value) -> Result<Self, Failure> {
        match value {
            Value::Object(map) => Ok(Self { place, map }),
            Value::Null if place.is_empty() => Ok(Self { place, map: Map::new() }),
            _ if place.is_empty() => Err(invalid("the parameters must be an object")),
            _ => Err(invalid(format!("`{place}` must be an object"))),
        }
    }

    /// The full name of a field.
    pub(super) fn place(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    /// What this object is called in a sentence.
    pub(super) fn called(&self) -> &str {
        if self.place.is_empty() { "the object" } else { &self.place }
    }

    fn wrong(&self, name: &str, wanted: &str) -> Failure {
        invalid(format!("`{}` must be {wanted}", self.place(name)))
    }

    /// Whether the field is there at all, null or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Any value.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        let found = self.map.remove(name).filter(|value| !value.is_null());
        if found.is_some() || self.map.is_empty() || !name.contains(is_capital) {
            return found; // There is no other spelling, or nothing left.
        }
        self.map.remove(&snake(name)).filter(|value| !value.is_null())
    }

    /// A text, which may be empty.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a text")),
        }
    }

    /// A text that says something; an empty one is absent.
    pub(super) fn word(&mut self, name: &str) -> Result<Option<String>, Failure> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    /// A text that must be there and say something.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, Failure> {
        self.word(name)?.ok_or_else(|| self.wrong(name, "there and not empty"))
    }

    /// An id that must be there. An empty one is an id too, of something that is not there.
    pub(super) fn id(&mut self, name: &str) -> Result<String, Failure> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "there"))
    }

    /// A list of texts.
    pub(super) fn words(&mut self, name: &str) -> Result<Vec<String>, Failure> {
        let texts = match self.value(name) {
            None => Some(Vec::new()),
            Some(Value::Array(list)) => list.into_iter().map(text).collect(),
            Some(_) => None,
        };
        texts.ok_or_else(|| self.wrong(name, "a list of texts"))
    }

    /// True or false, also as the text of a query.
    pub(super) fn truth(&mut self, name: &str) -> Result<Option<bool>, Failure> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(truth)),
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" => Ok(Some(false)),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    /// A whole number that is not negative, also as the text of a query.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>, Failure> {
        let count = match self.value(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_i64(),
            Some(Value::String(text)) => text.parse().ok(),
            Some(_) => None,
        };
        let small = count.and_then(|count| i32::try_from(count).ok());
        let count = small.ok_or_else(|| self.wrong(name, "a whole number"))?;
        u32::try_from(count).map(Some).map_err(|_negative| self.wrong(name, "zero or more"))
    }

    /// A time as RFC 3339 writes it. In UTC, too, it lies in the years that can be written so.
    pub(super) fn time(&mut self, name: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let Some(text) = self.word(name)? else { return Ok(None) };
        let time = DateTime::parse_from_rfc3339(&text).map(|time| time.to_utc());
        match time {
            Ok(time) if (1..=9999).contains(&time.year()) => Ok(Some(time)),
            Ok(_) | Err(_) => Err(self.wrong(name, "a time of RFC 3339")),
        }
    }

    /// Bytes in base64, which are kept so, in the standard spelling.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let bytes = base64::decode(&text).ok_or_else(|| self.wrong(name, "base64"))?;
        Ok(Some(base64::encode(&bytes)))
    }

    /// Free data.
    pub(super) fn data(&mut self, name: &str) -> Result<Map<String, Value>, Failure> {
        Ok(self.object(name)?.map(|fields| fields.map).unwrap_or_default())
    }

    /// An object.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Failure> {
        self.value(name).map(|value| Self::at(self.place(name), value)).transpose()
    }

    /// An object that must be there.
    pub(super) fn inner(&mut self, name: &str) -> Result<Self, Failure> {
        self.object(name)?.ok_or_else(|| self.wrong(name, "an object"))
    }

    /// A list of objects.
    pub(super) fn objects(&mut self, name: &str) -> Result<Vec<Self>, Failure> {
        let list = match self.value(name) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(self.wrong(name, "a list")),
        };
        let objects = list.into_iter().enumerate();
        let place = self.place(name);
        objects.map(|(at, value)| Self::at(format!("{place}[{at}]"), value)).collect()
    }

    /// All that was not read.
    pub(super) fn rest(self) -> Value {
        Value::Object(self.map)
    }
}

fn text(value: Value) -> Option<String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

const fn is_capital(letter: char) -> bool {
    letter.is_ascii_uppercase()
}

/// A name in the spelling of `.proto` files.
fn snake(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if is_capital(letter) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Parameters with what the path of an address says about them.
///
/// # Errors
/// `invalid-params` for parameters that are not an object, or that say otherwise than the path.
pub fn placed(params: Value, path: &[(&str, &str)]) -> Result<Value, Failure> {
    let mut fields = Fields::of(params)?;
    for (name, value) in path {
        if fields.word(name)?.is_some_and(|said| said != *value) {
            return Err(invalid(format!("`{name}` is not that of the path")));
        }
        fields.map.insert((*name).to_owned(), Value::from(*value));
    }
    Ok(fields.rest())
}

/// A time as every dialect writes it: in UTC, with `Z`, in milliseconds.
pub(super) fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A total as every dialect writes it: readers of the `.proto` files have 32 bits for it.
pub(super) fn total(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// An object on its way out.
#[derive(Default)]
pub(super) struct Object(Map<String, Value>);

impl Object {
    /// An object with one field.
    pub(super) fn of(name: &str, value: impl Into<Value>) -> Self {
        Self::default().with(name, value)
    }

    /// Adds a field.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field if there is a value.
    pub(super) fn some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a list unless it is empty.
    pub(super) fn listed<T: Into<Value>>(self, name: &str, list: Vec<T>) -> Self {
        self.some(name, Some(list).filter(|list| !list.is_empty()))
    }

    /// Adds free data unless there is none.
    pub(super) fn data(self, name: &str, data: Map<String, Value>) -> Self {
        self.some(name, Some(data).filter(|data| !data.is_empty()))
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

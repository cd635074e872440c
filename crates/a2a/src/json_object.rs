//! Readers and writers of JSON objects: each error names its field, and empty fields are omitted.

pub mod document;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use serde_json::{Map, Value};

use super::base64;

/// Creates the error `invalid-params` for a fault of the caller.
pub fn invalid_params(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidParams, message)
}

/// Fields of an object, each of which can be read once.
///
/// A field has its name in `camelCase` or in `snake_case`; null is the same as absent; unknown fields are ignored.
#[derive(Default)]
pub struct ObjectFields {
    path: String,
    values: Map<String, Value>,
}

impl ObjectFields {
    /// Returns the fields of parameters or of a body; null has no fields.
    pub fn from_value(value: Value) -> Result<Self, Failure> {
        Self::at_path(String::new(), value)
    }

    fn at_path(path: String, value: Value) -> Result<Self, Failure> {
        match value {
            Value::Object(map) => Ok(Self { path, values: map }),
            // JSON-RPC allows a call without parameters.
            Value::Null if path.is_empty() => Ok(Self { path, values: Map::new() }),
            _ if path.is_empty() => Err(invalid_params("the parameters must be an object")),
            _ => Err(invalid_params(format!("`{path}` must be an object"))),
        }
    }

    /// Returns the full name of a field, with the names of the objects that contain it.
    pub fn field_path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns the name of this object for an error message.
    pub fn path_for_error(&self) -> &str {
        if self.path.is_empty() { "the object" } else { &self.path }
    }

    fn invalid_field(&self, name: &str, expected: &str) -> Failure {
        invalid_params(format!("`{}` must be {expected}", self.field_path(name)))
    }

    /// True if the field is present, even with the value null.
    pub fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Reads any value.
    pub fn take_value(&mut self, name: &str) -> Option<Value> {
        let found = self.values.remove(name).filter(|value| !value.is_null());
        // Readers of protobuf JSON must accept the names of the `.proto` file too.
        if found.is_some() || self.values.is_empty() || !name.contains(is_capital) {
            return found; // There is no other spelling, or nothing left.
        }
        self.values.remove(&to_snake_case(name)).filter(|value| !value.is_null())
    }

    /// Reads a text, which may be empty.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.take_value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid_field(name, "a text")),
        }
    }

    /// Reads a text; an empty text counts as absent.
    pub fn take_non_empty_text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        Ok(self.take_text(name)?.filter(|text| !text.is_empty()))
    }

    /// Reads a required text that is not empty.
    pub fn take_required_text(&mut self, name: &str) -> Result<String, Failure> {
        self.take_non_empty_text(name)?
            .ok_or_else(|| self.invalid_field(name, "present and not empty"))
    }

    /// Reads a required id. An empty id is valid here; no item has it.
    pub fn take_required_id(&mut self, name: &str) -> Result<String, Failure> {
        self.take_text(name)?.ok_or_else(|| self.invalid_field(name, "present"))
    }

    /// Reads a list of texts.
    pub fn take_text_list(&mut self, name: &str) -> Result<Vec<String>, Failure> {
        let texts = match self.take_value(name) {
            None => Some(Vec::new()),
            Some(Value::Array(list)) => list.into_iter().map(into_text).collect(),
            Some(_) => None,
        };
        texts.ok_or_else(|| self.invalid_field(name, "a list of texts"))
    }

    /// Reads a Boolean, also as the text of a query.
    pub fn take_boolean(&mut self, name: &str) -> Result<Option<bool>, Failure> {
        match self.take_value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" => Ok(Some(false)),
            Some(_) => Err(self.invalid_field(name, "true or false")),
        }
    }

    /// Reads a whole number that is not negative, also as the text of a query.
    pub fn take_non_negative_integer(&mut self, name: &str) -> Result<Option<u32>, Failure> {
        let count = match self.take_value(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_i64(),
            Some(Value::String(text)) => text.parse().ok(),
            Some(_) => None,
        };
        // The `.proto` files have 32 bits with a sign for every count, so the same numbers are valid on all bindings.
        let as_i32 = count.and_then(|count| i32::try_from(count).ok());
        let count = as_i32.ok_or_else(|| self.invalid_field(name, "a whole number"))?;
        u32::try_from(count).map(Some).map_err(|_negative| self.invalid_field(name, "zero or more"))
    }

    /// Reads a time of RFC 3339. In UTC its year must be from 1 to 9999, so that the time can be written again.
    pub fn take_time(&mut self, name: &str) -> Result<Option<DateTime<Utc>>, Failure> {
        let Some(text) = self.take_non_empty_text(name)? else { return Ok(None) };
        let time = DateTime::parse_from_rfc3339(&text).map(|time| time.to_utc());
        match time {
            // A zone can move a valid year over the limit, so the year is checked in UTC.
            Ok(time) if (1..=9999).contains(&time.year()) => Ok(Some(time)),
            Ok(_) | Err(_) => Err(self.invalid_field(name, "a time of RFC 3339")),
        }
    }

    /// Reads bytes in base64 and returns them as base64 in the standard spelling.
    pub fn take_base64_text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let Some(text) = self.take_text(name)? else { return Ok(None) };
        let bytes = base64::decode(&text).ok_or_else(|| self.invalid_field(name, "base64"))?;
        // Encoded again: followers and the ledger get one spelling, whichever alphabet the sender used.
        Ok(Some(base64::encode(&bytes)))
    }

    /// Reads free-form data.
    pub fn take_json_map(&mut self, name: &str) -> Result<Map<String, Value>, Failure> {
        Ok(self.take_object(name)?.map(|fields| fields.values).unwrap_or_default())
    }

    /// Reads an object.
    pub fn take_object(&mut self, name: &str) -> Result<Option<Self>, Failure> {
        self.take_value(name).map(|value| Self::at_path(self.field_path(name), value)).transpose()
    }

    /// Reads a required object.
    pub fn take_required_object(&mut self, name: &str) -> Result<Self, Failure> {
        self.take_object(name)?.ok_or_else(|| self.invalid_field(name, "an object"))
    }

    /// Reads a list of objects.
    pub fn take_object_list(&mut self, name: &str) -> Result<Vec<Self>, Failure> {
        let list = match self.take_value(name) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(self.invalid_field(name, "a list")),
        };
        let objects = list.into_iter().enumerate();
        let path = self.field_path(name);
        objects.map(|(index, value)| Self::at_path(format!("{path}[{index}]"), value)).collect()
    }

    /// Returns all fields that were not read.
    pub fn into_remaining(self) -> Value {
        Value::Object(self.values)
    }
}

fn into_text(value: Value) -> Option<String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

const fn is_capital(letter: char) -> bool {
    letter.is_ascii_uppercase()
}

/// Returns a name in the spelling of `.proto` files.
fn to_snake_case(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if is_capital(letter) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Adds the values from the path of an address to the parameters.
///
/// # Errors
/// `invalid-params` for parameters that are not an object, or that contradict the path.
pub fn add_path_params(params: Value, path_params: &[(&str, &str)]) -> Result<Value, Failure> {
    let mut fields = ObjectFields::from_value(params)?;
    for (name, value) in path_params {
        // A body that names another object than its path is refused: rights were checked for the path.
        if fields.take_non_empty_text(name)?.is_some_and(|body_value| body_value != *value) {
            return Err(invalid_params(format!("`{name}` must equal the value in the path")));
        }
        fields.values.insert((*name).to_owned(), Value::from(*value));
    }
    Ok(fields.into_remaining())
}

/// Formats a time as every dialect writes it: in UTC, with `Z`, in milliseconds.
pub fn format_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Converts a total as every dialect writes it: the `.proto` files have 32 bits for it.
pub fn saturating_i32(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Object under construction.
#[derive(Default)]
pub struct ObjectBuilder(Map<String, Value>);

impl ObjectBuilder {
    /// Creates an object with one field.
    pub fn from_field(name: &str, value: impl Into<Value>) -> Self {
        Self::default().with_field(name, value)
    }

    /// Adds a field.
    pub fn with_field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field if there is a value.
    pub fn with_optional_field(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with_field(name, value),
            None => self,
        }
    }

    /// Adds a list unless it is empty.
    pub fn with_non_empty_list<T: Into<Value>>(self, name: &str, list: Vec<T>) -> Self {
        self.with_optional_field(name, Some(list).filter(|list| !list.is_empty()))
    }

    /// Adds free-form data unless it is empty.
    pub fn with_non_empty_map(self, name: &str, data: Map<String, Value>) -> Self {
        self.with_optional_field(name, Some(data).filter(|data| !data.is_empty()))
    }
}

impl From<ObjectBuilder> for Value {
    fn from(object: ObjectBuilder) -> Self {
        Self::Object(object.0)
    }
}

//! Arguments of a call of a tool, and the sentences that refuse them.

use serde_json::{Map, Value};

/// Arguments by name.
pub(super) struct ToolArguments<'call>(pub(super) &'call Map<String, Value>);

impl<'call> ToolArguments<'call> {
    /// Refuses arguments with other names than these.
    pub(super) fn refuse_all_except(&self, names: &[&str]) -> Result<(), String> {
        match self.0.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(format!("the tool has no argument `{}`", name.escape_debug())),
            None => Ok(()),
        }
    }

    /// Returns a text; `None` if the argument is absent or null.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&'call str>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("the argument `{name}` must be a string")),
        }
    }

    /// Returns a text, which must be present.
    pub(super) fn required_text(&self, name: &str) -> Result<&'call str, String> {
        self.optional_text(name)?.ok_or_else(|| format!("the argument `{name}` is missing"))
    }
}

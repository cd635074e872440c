//! Directives of a prompt to the model: `[[mock status=529 times=2]]`.

use serde_json::{Deserializer, Map, Value};

const OPENING_MARK: &str = "[[mock";
const CLOSING_MARK: &str = "]]";

/// Settings by name. A value is JSON if it starts like JSON, otherwise a word; a name alone is true.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Directive(Map<String, Value>);

impl Directive {
    /// Parses the inside of a directive.
    pub(crate) fn parse(words: &str) -> Self {
        Self(parse_settings(words).0)
    }

    /// Removes the directives from a text; returns the rest of the text, and the last directive.
    pub(crate) fn extract_from(text: &str) -> (String, Option<Self>) {
        let (mut text_without_directives, mut last_directive, mut rest) =
            (String::new(), None, text);
        while let Some((before, after)) = rest.split_once(OPENING_MARK) {
            let (settings, after) = parse_settings(after);
            text_without_directives.push_str(before);
            (last_directive, rest) = (Some(Self(settings)), after);
        }
        text_without_directives.push_str(rest);
        (text_without_directives.trim().to_owned(), last_directive)
    }

    /// Returns true if a text has a directive.
    pub(crate) fn is_in(text: &str) -> bool {
        text.contains(OPENING_MARK)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| *value != Value::Bool(false))
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0
            .get(name)
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    pub(crate) fn seconds(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Returns the canonical text of the directive: equal directives share their counters. `id=WORD` distinguishes a
    /// directive from the others.
    pub(crate) fn canonical_text(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }
}

/// Parses settings up to the closing mark or the end; returns them, and the following text.
fn parse_settings(text: &str) -> (Map<String, Value>, &str) {
    let (mut settings, mut rest) = (Map::new(), text.trim_start());
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(CLOSING_MARK) {
            return (settings, after);
        }
        let end = rest.find(|c: char| c == '=' || c == ']' || c.is_whitespace());
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        let (setting, after) = match after.strip_prefix('=') {
            Some(after) => parse_value(after),
            None => (Value::Bool(true), after),
        };
        if name.is_empty() {
            let mut remaining = after.chars();
            remaining.next(); // What is no name is passed over, or this would never end.
            rest = remaining.as_str().trim_start();
            continue;
        }
        settings.insert(name.to_owned(), setting);
        rest = after.trim_start();
    }
    (settings, rest)
}

/// Returns the value at the start of a text, and the following text.
fn parse_value(text: &str) -> (Value, &str) {
    if text.starts_with(['{', '[', '"']) {
        let mut values = Deserializer::from_str(text).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return (value, text.get(values.byte_offset()..).unwrap_or_default());
        }
    }
    let blank = text.find(char::is_whitespace).unwrap_or(text.len());
    let end = text.find(CLOSING_MARK).map_or(blank, |closing| closing.min(blank));
    let (word, after) = text.split_at(end);
    (serde_json::from_str(word).unwrap_or_else(|_| Value::from(word)), after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_directive_is_removed_from_its_text() {
        let text = r#"before [[mock tool=Bash args={"command":"a [[ b ]] c"} steps=2]] after"#;
        let (text_without_directives, directive) = Directive::extract_from(text);
        let directive = directive.unwrap_or_default();
        assert_eq!(text_without_directives, "before  after");
        assert_eq!(directive.text("tool").as_deref(), Some("Bash"));
        assert_eq!(directive.value("args"), Some(&json!({"command": "a [[ b ]] c"})));
        assert_eq!(directive.number("steps"), Some(2));
    }

    #[test]
    fn the_last_of_several_directives_counts() {
        let (_, directive) = Directive::extract_from("[[mock hang]] [[mock delay=0.5]]");
        let directive = directive.unwrap_or_default();
        assert_eq!((directive.is_set("hang"), directive.seconds("delay")), (false, Some(0.5)));
    }

    #[test]
    fn an_invalid_directive_ends_the_parsing() {
        for text in
            ["[[mock", "[[mock =", "[[mock ]", "[[mock a={", "[[mock ] = ] x=\"", "[[mock é=]]é"]
        {
            assert!(Directive::extract_from(text).1.is_some(), "{text}");
        }
    }
}

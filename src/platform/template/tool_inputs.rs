//! Templates over the arguments of a tool's call.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use minijinja::value::Value;
use minijinja::{Environment, ErrorKind, escape_formatter};
use serde_json::{Map, Value as JsonValue};

use super::{ENGINE, TemplateError, engine_message, new_engine, statement_keywords, syntax_error};

/// Name of all arguments together, as the text of a JSON object.
pub(crate) const ALL_ARGUMENTS_NAME: &str = "arguments";

/// Statements that a template of a tool may contain. `set` could hide the argument of an input.
const ALLOWED_TOOL_STATEMENTS: [&str; 4] = ["if", "elif", "else", "endif"];

/// Mark before each value in a rendered argument. No argument of a program can contain it.
const VALUE_MARK: char = '\0';

static MARKING_ENGINE: LazyLock<Environment<'static>> = LazyLock::new(new_marking_engine);

/// Argument of a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramArgument {
    pub(crate) text: String,
    /// True if a value, and not the text of the template, is at the start. It may be an empty value.
    pub(crate) starts_with_value: bool,
}

impl ProgramArgument {
    /// Returns true if a value makes this an option.
    pub(crate) fn is_injected_option(&self) -> bool {
        self.starts_with_value && self.text.starts_with('-')
    }
}

/// Template whose names are the inputs of a tool, and [`ALL_ARGUMENTS_NAME`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolTemplate<'s>(pub(crate) &'s str);

impl ToolTemplate<'_> {
    /// Returns true if a template can use a text as the name of an input.
    pub(crate) fn is_variable_name(text: &str) -> bool {
        let is_word_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let source = format!("{{{{ {text} }}}}");
        // The words of the template language, such as `true`, are no names.
        let parsed = ENGINE.template_from_str(&source);
        let names = parsed.map(|template| template.undeclared_variables(false));
        text.bytes().all(is_word_byte) && names.is_ok_and(|names| names.contains(text))
    }

    /// Checks the template with sample values for all inputs.
    ///
    /// # Errors
    /// Fails if the template cannot be parsed, or uses an unknown name, filter or statement.
    pub(crate) fn check(self, sample: &Map<String, JsonValue>) -> Result<(), TemplateError> {
        let has_other_statement = |tag: &String| !ALLOWED_TOOL_STATEMENTS.contains(&tag.as_str());
        if let Some(tag) = statement_keywords(self.0).find(has_other_statement) {
            return Err(TemplateError::ForbiddenStatement { tag });
        }
        let template = ENGINE.template_from_str(self.0).map_err(|error| syntax_error(&error))?;
        let mut names: Vec<_> = template.undeclared_variables(true).into_iter().collect();
        names.sort_unstable();
        let is_known = |name: &String| name == ALL_ARGUMENTS_NAME || sample.contains_key(name);
        if let Some(name) = names.into_iter().find(|name| !is_known(name)) {
            return Err(TemplateError::UnknownVariable { name });
        }
        // Unknown filters and tests are detected when the template is rendered.
        match self.render(sample) {
            Err(TemplateError::Render { cause }) => Err(TemplateError::Syntax { cause }),
            // Each input has a sample, so the template names a part of a value.
            Ok(None) => {
                let cause =
                    "a list or an object is a text of JSON here, so a template names no part of it"
                        .to_owned();
                Err(TemplateError::Syntax { cause })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Returns the names that the template uses; none if it cannot be parsed.
    pub(crate) fn used_variables(self) -> HashSet<String> {
        let parsed = ENGINE.template_from_str(self.0);
        parsed.map(|template| template.undeclared_variables(false)).unwrap_or_default()
    }

    /// Renders an argument of a program. Texts, numbers, `true` and `false` have their own values; a list or an object
    /// is the text of its JSON. Returns `None` if the template uses an input that has no argument, or if its statements
    /// leave nothing.
    ///
    /// # Errors
    /// Fails if a value has a zero byte or does not fit the filters, or if the rendering takes too many steps.
    pub(crate) fn render_argument(
        self,
        arguments: &Map<String, JsonValue>,
    ) -> Result<Option<ProgramArgument>, TemplateError> {
        let is_unusable = |name: &String| {
            arguments
                .get(name)
                .and_then(JsonValue::as_str)
                .is_some_and(|text| text.contains(VALUE_MARK))
        };
        if self.used_variables().iter().any(is_unusable) {
            let cause = "no argument of a program contains a zero byte".to_owned();
            return Err(TemplateError::Render { cause });
        }
        let Some(marked_text) = self.render_with_engine(&MARKING_ENGINE, arguments)? else {
            return Ok(None);
        };
        let starts_with_value = marked_text.starts_with(VALUE_MARK);
        let text = marked_text.replace(VALUE_MARK, "");
        let is_left_out = text.is_empty() && self.0.contains("{%");
        Ok((!is_left_out).then_some(ProgramArgument { text, starts_with_value }))
    }

    /// Renders a text, with the same values. Returns `None` if the template uses an input that has no argument.
    ///
    /// # Errors
    /// Fails if a value does not fit the filters, or if the rendering takes too many steps.
    pub(crate) fn render(
        self,
        arguments: &Map<String, JsonValue>,
    ) -> Result<Option<String>, TemplateError> {
        self.render_with_engine(&ENGINE, arguments)
    }

    fn render_with_engine(
        self,
        engine: &Environment<'static>,
        arguments: &Map<String, JsonValue>,
    ) -> Result<Option<String>, TemplateError> {
        let template = engine.template_from_str(self.0).map_err(|error| syntax_error(&error))?;
        let value_of = |name: String| {
            let value = match arguments.get(&name) {
                Some(JsonValue::Null) => return None,
                Some(argument) => template_value(argument),
                None if name == ALL_ARGUMENTS_NAME => {
                    Value::from(JsonValue::from(arguments.clone()).to_string())
                }
                None => return None,
            };
            Some((name, value))
        };
        let values: BTreeMap<_, _> =
            template.undeclared_variables(false).into_iter().filter_map(value_of).collect();
        match template.render(values) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::UndefinedError => Ok(None),
            Err(error) => Err(TemplateError::Render { cause: engine_message(&error) }),
        }
    }
}

/// Returns an engine that writes [`VALUE_MARK`] before each value.
fn new_marking_engine() -> Environment<'static> {
    let mut environment = new_engine();
    environment.set_formatter(|output, state, value| {
        output.write_char(VALUE_MARK)?;
        escape_formatter(output, state, value)
    });
    environment
}

fn template_value(argument: &JsonValue) -> Value {
    match argument {
        JsonValue::String(text) => Value::from(text.as_str()),
        JsonValue::Bool(flag) => Value::from(*flag),
        // As written: a large number would lose digits in a conversion.
        JsonValue::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.to_string()),
        },
        other => Value::from(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments() -> Map<String, JsonValue> {
        let value = json!({
            "city": "Bern {{ x }}", "days": 3, "far": -1.50, "deep": true, "tags": ["a", "b"], "nothing": null
        });
        value.as_object().unwrap().clone()
    }

    #[test]
    fn arguments_are_rendered_once_and_verbatim() {
        for (source, expected) in [
            ("{{ city }}", Some("Bern {{ x }}")),
            ("--days={{ days }}", Some("--days=3")),
            ("{{ far }}", Some("-1.5")),
            ("{{ tags }}", Some(r#"["a","b"]"#)),
            ("{% if deep %}-d{% else %}-f{% endif %}", Some("-d")),
            ("{{ absent }}", None),
            ("{{ nothing }}", None),
            ("{{ absent | default('x') }}", Some("x")),
        ] {
            let rendered = ToolTemplate(source).render(&arguments());
            assert_eq!(rendered.as_ref().map(Option::as_deref), Ok(expected), "{source}");
        }
        let all = ToolTemplate("{{ arguments }}").render(&arguments()).unwrap().unwrap();
        assert_eq!(serde_json::from_str::<JsonValue>(&all).unwrap(), json!(arguments()));
    }

    #[test]
    fn an_option_of_a_value_is_not_one_of_the_template() {
        for (source, city, expected) in [
            ("{{ city }}", "Bern", "Bern"),
            ("{{ city }}", "-n", "(injected) -n"),
            ("{{ city }}{{ city }}", "-n", "(injected) -n-n"),
            ("{{ empty }}{{ city }}", "-n", "(injected) -n"),
            ("{{ city | replace('a', '') }}", "a-n", "(injected) -n"),
            ("{{ city | lower | replace(' ', '-') }}", " RF", "(injected) -rf"),
            ("{{ one - two }}", "", "(injected) -1"),
            ("{{ city }}", "a-n", "a-n"),
            ("--city={{ city }}", "-n", "--city=-n"),
            ("{% if deep %}-d{% endif %}", "-n", "-d"),
            ("{% if city == 'x' %}-x{% endif %}", "x", "-x"),
            ("{% if city %}--since={{ city }}{% endif %}", "2026-01-01", "--since=2026-01-01"),
            ("{# note #}{{ city }}", "-n", "(injected) -n"),
            (" {{- city }}", "-n", "(injected) -n"),
            ("{% if not deep %}-d{% endif %}", "", "(left out)"),
            ("{{ city }}", "", ""),
        ] {
            let arguments = json!({ "city": city, "deep": true, "empty": "", "one": 1, "two": 2 });
            let arguments = arguments.as_object().unwrap();
            let argument = ToolTemplate(source).render_argument(arguments).unwrap();
            let text = argument.map_or("(left out)".to_owned(), |argument| {
                let note = if argument.is_injected_option() { "(injected) " } else { "" };
                format!("{note}{}", argument.text)
            });
            assert_eq!(text, expected, "{source} {city}");
        }
        let with_zero = json!({ "city": "a\0b" });
        assert!(
            ToolTemplate("{{ city }}").render_argument(with_zero.as_object().unwrap()).is_err()
        );
        let rendered = ToolTemplate("{{ city }}").render(with_zero.as_object().unwrap());
        assert_eq!(rendered, Ok(Some("a\0b".to_owned())));
    }

    #[test]
    fn a_filter_makes_no_huge_text() {
        let arguments = json!({ "text": "x".repeat(100_000), "new": "y".repeat(100_000) });
        let template = ToolTemplate("{{ text | replace('', new) }}");
        let error = template.render(arguments.as_object().unwrap()).unwrap_err();
        assert!(error.to_string().contains("the text would be too long"), "{error}");
    }

    #[test]
    fn a_name_is_no_word_of_the_template_language() {
        for name in ["city", "_x9", "loop_1", "Input"] {
            assert!(ToolTemplate::is_variable_name(name), "{name}");
        }
        for name in ["", "9x", "a.b", "a-b", "true", "None", "not", "a }}{{ b", "é"] {
            assert!(!ToolTemplate::is_variable_name(name), "{name}");
        }
    }

    #[test]
    fn a_template_is_checked_before_it_is_used() {
        for (source, expected) in [
            ("{{ city | upper }}{{ arguments }}", Ok(())),
            ("{{ param.city }}", Err(TemplateError::UnknownVariable { name: "param.city".to_owned() })),
            ("{{ town }}", Err(TemplateError::UnknownVariable { name: "town".to_owned() })),
            (
                "{% for x in city %}{% endfor %}",
                Err(TemplateError::ForbiddenStatement { tag: "for".to_owned() }),
            ),
            (
                "{{ tags['city'] }}",
                Err(TemplateError::Syntax {
                    cause: "a list or an object is a text of JSON here, so a template names no part of it".to_owned(),
                }),
            ),
            (
                "{% set city = city | trim %}{{ city }}",
                Err(TemplateError::ForbiddenStatement { tag: "set".to_owned() }),
            ),
            (
                "{{ city | read }}",
                Err(TemplateError::Syntax { cause: "filter read is unknown".to_owned() }),
            ),
        ] {
            assert_eq!(ToolTemplate(source).check(&arguments()), expected, "{source}");
        }
    }
}

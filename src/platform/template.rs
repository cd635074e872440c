//! Strict templates for arguments and file names, without access to files, loops or the clock.

pub(crate) mod tool_inputs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{
    Environment, Error, ErrorKind, UndefinedBehavior, Value, filters, tests as checks,
};
use regex::Regex;

/// Greatest length of a text with replaced parts, in bytes.
const MAX_REPLACE_RESULT_BYTES: usize = 8 << 20;

/// Greatest number of steps of one rendering.
const RENDER_FUEL: u64 = 10_000;

/// Names that a template may use; `param` is used as `param.name`.
pub(crate) const EXECUTION_VARIABLE_NAMES: [&str; 24] = [
    "input",
    "input_file",
    "output_file",
    "files",
    "own_folder",
    "param",
    "execution_id",
    "agent_id",
    "context_id",
    "message_id",
    "attempt",
    "turn",
    "timestamp",
    "model",
    "home",
    "session_id",
    "uuid",
    "metadata",
    "request_metadata",
    "extensions",
    "reference_task_ids",
    "accepted_output_modes",
    "requested_extensions",
    "parts",
];

/// Statements that a template may contain.
const ALLOWED_STATEMENTS: [&str; 7] = ["if", "elif", "else", "endif", "set", "raw", "endraw"];

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(new_engine);

/// Pattern of the start of a statement; the expression is constant, so it always compiles.
static STATEMENT_PATTERN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{%[-+]?\s*(\w*)").ok());

/// Reason why a template cannot be used, or cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// The template cannot be parsed.
    #[error("the template cannot be read: {cause}")]
    Syntax {
        /// Message of the parser.
        cause: String,
    },
    /// The template contains a statement that could loop or read other templates.
    #[error("`{{% {tag} %}}` is not allowed here")]
    ForbiddenStatement {
        /// First word of the statement.
        tag: String,
    },
    /// The template uses a name without a value.
    #[error("`{name}` is not known to templates")]
    UnknownVariable {
        /// First such name.
        name: String,
    },
    /// The template uses `param` without the name of a parameter.
    #[error("`param` must be followed by the name of a parameter, as in `param.model`")]
    UnnamedParameter,
    /// The request has no such parameter, and the configuration has no default for it.
    #[error("parameter `{name}` has no value")]
    MissingParameter {
        /// Name of the parameter.
        name: String,
    },
    /// The rendering failed.
    #[error("the template cannot be filled in: {cause}")]
    Render {
        /// Message of the engine; it contains no value.
        cause: String,
    },
}

/// Values for rendering a template.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecutionValues {
    /// Redacted or raw input, as the creator of the values decides.
    pub(crate) input: String,
    /// Metadata and references of the message by their names in templates: JSON each, and empty if absent.
    pub(crate) message_details: BTreeMap<&'static str, String>,
    /// Files of the attempt.
    pub(crate) paths: AttemptPaths,
    /// Parameters of the request, on top of the configured ones.
    pub(crate) params: BTreeMap<String, String>,
    /// Ids of the request.
    pub(crate) ids: RequestIds,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u32,
    /// Number of the turn, from 1.
    pub(crate) turn: u32,
    /// Acceptance time of the execution, in RFC 3339.
    pub(crate) timestamp: String,
    /// Model of the agent; empty without one.
    pub(crate) model: String,
    /// Home of the agent's program.
    pub(crate) home: PathBuf,
    /// Program's own session that is resumed.
    pub(crate) session_id: String,
    /// Id for a new session.
    pub(crate) new_session_id: String,
}

/// Files of an attempt for rendering a template.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttemptPaths {
    /// Path of the file with the input.
    pub(crate) input_file: PathBuf,
    /// Path of the file that will contain the output.
    pub(crate) output_file: PathBuf,
    /// Paths and addresses of the files of the request, one in each line.
    pub(crate) file_list: String,
    /// Path of the execution's own folder.
    pub(crate) own_folder: PathBuf,
}

/// Ids of a request for rendering a template.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestIds {
    /// Id of the execution.
    pub(crate) execution_id: String,
    /// Id of the agent.
    pub(crate) agent_id: String,
    /// Id of the conversation.
    pub(crate) context_id: String,
    /// Id of the caller's message.
    pub(crate) message_id: String,
}

/// Source of the values of a template's names.
pub(crate) trait TemplateValues {
    /// Available names; `param` is used as `param.name`.
    const VARIABLE_NAMES: &'static [&'static str];

    /// Returns empty values with these parameters.
    fn with_params_only(params: BTreeMap<String, String>) -> Self;

    /// Returns the parameters.
    fn params(&self) -> &BTreeMap<String, String>;

    /// Returns the value of a name; undefined for an unknown name.
    fn value_of(&self, name: &str) -> Value;
}

/// Values for the template of a schedule, at one of its occurrences.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScheduleValues {
    /// Id of the schedule.
    pub(crate) schedule_id: String,
    /// Name of the schedule.
    pub(crate) schedule_name: String,
    /// Id of the agent.
    pub(crate) agent_id: String,
    /// Planned time in the schedule's zone, in RFC 3339.
    pub(crate) planned_at: String,
    /// Planned day in that zone, as `2030-01-31`.
    pub(crate) date: String,
    /// Planned time of day in that zone, as `23:59`.
    pub(crate) time: String,
    /// Parameters of the schedule.
    pub(crate) params: BTreeMap<String, String>,
}

/// Template whose names are all known.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    source: String,
    names: BTreeSet<String>,
    params: BTreeSet<String>,
}

impl Template {
    /// Checks a template of an argument or a file name.
    ///
    /// # Errors
    /// Fails if the template cannot be parsed, or uses an unknown name, filter or statement.
    pub(crate) fn new(source: &str) -> Result<Self, TemplateError> {
        Self::for_values::<ExecutionValues>(source)
    }

    /// Checks a template with the names of `V`.
    ///
    /// # Errors
    /// Fails if the template cannot be parsed, or uses an unknown name, filter or statement.
    pub(crate) fn for_values<V: TemplateValues>(source: &str) -> Result<Self, TemplateError> {
        if let Some(tag) = forbidden_statement(source) {
            return Err(TemplateError::ForbiddenStatement { tag });
        }
        let template = ENGINE.template_from_str(source).map_err(|error| syntax_error(&error))?;
        let (mut names, mut params) = (BTreeSet::new(), BTreeSet::new());
        let used_names: BTreeSet<String> =
            template.undeclared_variables(true).into_iter().collect();
        for name in used_names {
            match name.split_once('.') {
                Some(("param", param)) => {
                    params.insert(param.to_owned());
                    names.insert("param".to_owned());
                }
                None if name == "param" => return Err(TemplateError::UnnamedParameter),
                None if V::VARIABLE_NAMES.contains(&name.as_str()) => {
                    names.insert(name);
                }
                _ => return Err(TemplateError::UnknownVariable { name }),
            }
        }
        let checked_template = Self { source: source.to_owned(), names, params };
        checked_template.check_filters::<V>().map(|()| checked_template)
    }

    /// Returns the names that the template uses, without attributes.
    pub(crate) const fn used_variables(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Returns the parameters that the template uses.
    pub(crate) const fn used_params(&self) -> &BTreeSet<String> {
        &self.params
    }

    /// Renders the template.
    ///
    /// # Errors
    /// Fails if a required parameter has no value, or if the rendering takes too many steps.
    pub(crate) fn render<V: TemplateValues>(&self, values: &V) -> Result<String, TemplateError> {
        let template =
            ENGINE.template_from_str(&self.source).map_err(|error| syntax_error(&error))?;
        template.render(self.used_values(values)).map_err(|error| match error.kind() {
            ErrorKind::UndefinedError => self.undefined_error(values, &error),
            _ => TemplateError::Render { cause: engine_message(&error) },
        })
    }

    /// Renders the template once with empty values, which detects unknown filters and tests.
    fn check_filters<V: TemplateValues>(&self) -> Result<(), TemplateError> {
        let params = self.params.iter().map(|name| (name.clone(), String::new())).collect();
        match self.render(&V::with_params_only(params)) {
            Err(TemplateError::Render { cause }) => Err(TemplateError::Syntax { cause }),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Returns only the values that the template uses: the input may be long.
    fn used_values(&self, values: &impl TemplateValues) -> Value {
        let used = self.names.iter().map(|name| (name.as_str(), values.value_of(name)));
        Value::from(used.collect::<BTreeMap<_, _>>())
    }

    /// Returns the error that names the parameter behind an undefined value.
    fn undefined_error(&self, values: &impl TemplateValues, error: &Error) -> TemplateError {
        let absent = self.params.iter().find(|name| !values.params().contains_key(*name));
        match absent {
            Some(name) => TemplateError::MissingParameter { name: name.clone() },
            None => TemplateError::Render { cause: engine_message(error) },
        }
    }
}

impl TemplateValues for ExecutionValues {
    const VARIABLE_NAMES: &'static [&'static str] = &EXECUTION_VARIABLE_NAMES;

    fn with_params_only(params: BTreeMap<String, String>) -> Self {
        Self { params, ..Self::default() }
    }

    fn params(&self) -> &BTreeMap<String, String> {
        &self.params
    }

    fn value_of(&self, name: &str) -> Value {
        match name {
            "input" => Value::from(self.input.as_str()),
            "input_file" => Value::from(self.paths.input_file.to_string_lossy()),
            "output_file" => Value::from(self.paths.output_file.to_string_lossy()),
            "files" => Value::from(self.paths.file_list.as_str()),
            "own_folder" => Value::from(self.paths.own_folder.to_string_lossy()),
            "param" => Value::from(self.params.clone()),
            "execution_id" => Value::from(self.ids.execution_id.as_str()),
            "agent_id" => Value::from(self.ids.agent_id.as_str()),
            "context_id" => Value::from(self.ids.context_id.as_str()),
            "message_id" => Value::from(self.ids.message_id.as_str()),
            "attempt" => Value::from(self.attempt),
            "turn" => Value::from(self.turn),
            "timestamp" => Value::from(self.timestamp.as_str()),
            "model" => Value::from(self.model.as_str()),
            "home" => Value::from(self.home.to_string_lossy()),
            "session_id" => Value::from(self.session_id.as_str()),
            "uuid" => Value::from(self.new_session_id.as_str()),
            _ if EXECUTION_VARIABLE_NAMES.contains(&name) => {
                Value::from(self.message_details.get(name).map_or("", String::as_str))
            }
            _ => Value::UNDEFINED,
        }
    }
}

impl TemplateValues for ScheduleValues {
    const VARIABLE_NAMES: &'static [&'static str] =
        &["schedule_id", "schedule_name", "agent_id", "planned", "date", "time", "param"];

    fn with_params_only(params: BTreeMap<String, String>) -> Self {
        Self { params, ..Self::default() }
    }

    fn params(&self) -> &BTreeMap<String, String> {
        &self.params
    }

    fn value_of(&self, name: &str) -> Value {
        match name {
            "schedule_id" => Value::from(self.schedule_id.as_str()),
            "schedule_name" => Value::from(self.schedule_name.as_str()),
            "agent_id" => Value::from(self.agent_id.as_str()),
            "planned" => Value::from(self.planned_at.as_str()),
            "date" => Value::from(self.date.as_str()),
            "time" => Value::from(self.time.as_str()),
            "param" => Value::from(self.params.clone()),
            _ => Value::UNDEFINED,
        }
    }
}

/// Returns an engine with few filters and no functions, so that no template can loop or read other data.
fn new_engine() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(RENDER_FUEL));
    environment.add_filter("default", filters::default);
    environment.add_filter("length", filters::length);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("replace", replace);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_test("defined", checks::is_defined);
    environment.add_test("undefined", checks::is_undefined);
    environment
}

/// Returns the first forbidden statement.
fn forbidden_statement(source: &str) -> Option<String> {
    statement_keywords(source).find(|tag| !ALLOWED_STATEMENTS.contains(&tag.as_str()))
}

/// Returns the first words of all statements.
fn statement_keywords(source: &str) -> impl Iterator<Item = String> {
    let found = STATEMENT_PATTERN.iter().flat_map(move |pattern| pattern.captures_iter(source));
    found.filter_map(|found| found.get(1)).map(|tag| tag.as_str().to_owned())
}

/// Replaces parts of a text. The steps of a rendering do not limit the length of the result.
fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let count = text.matches(from).count();
    if text.len().saturating_add(count.saturating_mul(to.len())) > MAX_REPLACE_RESULT_BYTES {
        return Err(Error::new(ErrorKind::InvalidOperation, "the text would be too long"));
    }
    Ok(text.replace(from, to))
}

/// Returns a parse error.
fn syntax_error(error: &Error) -> TemplateError {
    TemplateError::Syntax { cause: engine_message(error) }
}

/// Returns the message of the engine in one line.
fn engine_message(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;

//! Strict templates for arguments and file names. They reach no file, no loop and no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{
    Environment, Error, ErrorKind, UndefinedBehavior, Value, filters, tests as checks,
};
use regex::Regex;

/// Steps one rendering may take.
const FUEL: u64 = 10_000;

/// Every name a template may use; `param` is used as `param.name`.
pub(crate) const NAMES: [&str; 15] = [
    "input",
    "input_file",
    "output_file",
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
];

/// Statements a template may hold.
const TAGS: [&str; 7] = ["if", "elif", "else", "endif", "set", "raw", "endraw"];

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(engine);

/// The start of a statement; the expression is fixed, so that it always compiles.
static TAG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{%[-+]?\s*(\w*)").ok());

/// Why a template cannot be used, or cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// It cannot be read.
    #[error("the template cannot be read: {cause}")]
    Syntax {
        /// What the reader of templates said.
        cause: String,
    },
    /// It holds a statement that could loop or reach elsewhere.
    #[error("`{{% {tag} %}}` is not allowed here")]
    Statement {
        /// The statement's first word.
        tag: String,
    },
    /// It uses a name that nobody gives a value.
    #[error("`{name}` is not known to templates")]
    Unknown {
        /// The first such name.
        name: String,
    },
    /// It uses all parameters at once.
    #[error("`param` must be followed by the name of a parameter, as in `param.model`")]
    AllParameters,
    /// The request gives no such parameter and the configuration has no default for it.
    #[error("parameter `{name}` has no value")]
    MissingParameter {
        /// The parameter.
        name: String,
    },
    /// Filling it in went wrong.
    #[error("the template cannot be filled in: {cause}")]
    Render {
        /// What the engine said; it holds no value.
        cause: String,
    },
}

/// What templates are filled in with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    /// The redacted or raw input, as the caller of this type chooses.
    pub(crate) input: String,
    /// Path of the file with the input.
    pub(crate) input_file: PathBuf,
    /// Path of the file that will hold the output.
    pub(crate) output_file: PathBuf,
    /// Parameters of the request over the configured ones.
    pub(crate) param: BTreeMap<String, String>,
    /// The execution.
    pub(crate) execution_id: String,
    /// The agent.
    pub(crate) agent_id: String,
    /// The conversation.
    pub(crate) context_id: String,
    /// The caller's message.
    pub(crate) message_id: String,
    /// The attempt, from 1.
    pub(crate) attempt: u32,
    /// The turn, from 1.
    pub(crate) turn: u32,
    /// When the execution began, in RFC 3339.
    pub(crate) timestamp: String,
    /// The model of the agent; empty without one.
    pub(crate) model: String,
    /// Where the agent's program has its home.
    pub(crate) home: PathBuf,
    /// The program's own session that is resumed.
    pub(crate) session_id: String,
    /// The id for a session that is begun.
    pub(crate) uuid: String,
}

/// What the names of a template stand for.
pub(crate) trait Given {
    /// The names that there are; `param` is used as `param.name`.
    const NAMES: &'static [&'static str];

    /// Nothing but these parameters.
    fn blank(param: BTreeMap<String, String>) -> Self;

    /// Its parameters.
    fn param(&self) -> &BTreeMap<String, String>;

    /// The value of a name; undefined for a name that is not among those.
    fn of(&self, name: &str) -> Value;
}

/// What the words of a schedule are filled in with, at one of its times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moment {
    /// The schedule.
    pub(crate) schedule_id: String,
    /// Its name.
    pub(crate) schedule_name: String,
    /// The agent.
    pub(crate) agent_id: String,
    /// The time in the schedule's zone, in RFC 3339.
    pub(crate) planned: String,
    /// Its day there, as `2030-01-31`.
    pub(crate) date: String,
    /// Its time of day there, as `23:59`.
    pub(crate) time: String,
    /// Parameters.
    pub(crate) param: BTreeMap<String, String>,
}

/// A template whose names are all known.
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
    /// When it cannot be read, or uses a name, filter or statement that is not known.
    pub(crate) fn new(source: &str) -> Result<Self, TemplateError> {
        Self::of::<Values>(source)
    }

    /// Checks a template of some kind.
    ///
    /// # Errors
    /// When it cannot be read, or uses a name, filter or statement that is not known.
    pub(crate) fn of<G: Given>(source: &str) -> Result<Self, TemplateError> {
        if let Some(tag) = forbidden(source) {
            return Err(TemplateError::Statement { tag });
        }
        let template = ENGINE.template_from_str(source).map_err(|error| syntax(&error))?;
        let (mut names, mut params) = (BTreeSet::new(), BTreeSet::new());
        let used: BTreeSet<String> = template.undeclared_variables(true).into_iter().collect();
        for name in used {
            match name.split_once('.') {
                Some(("param", param)) => {
                    params.insert(param.to_owned());
                    names.insert("param".to_owned());
                }
                None if name == "param" => return Err(TemplateError::AllParameters),
                None if G::NAMES.contains(&name.as_str()) => {
                    names.insert(name);
                }
                _ => return Err(TemplateError::Unknown { name }),
            }
        }
        let checked = Self { source: source.to_owned(), names, params };
        checked.try_out::<G>().map(|()| checked)
    }

    /// The names it uses, without attributes.
    pub(crate) const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Fills it in.
    ///
    /// # Errors
    /// When a parameter it needs has no value, or when it takes too many steps.
    pub(crate) fn render<G: Given>(&self, values: &G) -> Result<String, TemplateError> {
        let template = ENGINE.template_from_str(&self.source).map_err(|error| syntax(&error))?;
        template.render(self.context(values)).map_err(|error| match error.kind() {
            ErrorKind::UndefinedError => self.missing(values, &error),
            _ => TemplateError::Render { cause: cause(&error) },
        })
    }

    /// Fills it in once with nothing, which finds unknown filters and tests.
    fn try_out<G: Given>(&self) -> Result<(), TemplateError> {
        let param = self.params.iter().map(|name| (name.clone(), String::new())).collect();
        match self.render(&G::blank(param)) {
            Err(TemplateError::Render { cause }) => Err(TemplateError::Syntax { cause }),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The values it uses, and no others: the input may be long.
    fn context(&self, values: &impl Given) -> Value {
        let used = self.names.iter().map(|name| (name.as_str(), values.of(name)));
        Value::from(used.collect::<BTreeMap<_, _>>())
    }

    /// Names the parameter that an undefined value stands for.
    fn missing(&self, values: &impl Given, error: &Error) -> TemplateError {
        let absent = self.params.iter().find(|name| !values.param().contains_key(*name));
        match absent {
            Some(name) => TemplateError::MissingParameter { name: name.clone() },
            None => TemplateError::Render { cause: cause(error) },
        }
    }
}

impl Given for Values {
    const NAMES: &'static [&'static str] = &NAMES;

    fn blank(param: BTreeMap<String, String>) -> Self {
        Self { param, ..Self::default() }
    }

    fn param(&self) -> &BTreeMap<String, String> {
        &self.param
    }

    fn of(&self, name: &str) -> Value {
        match name {
            "input" => Value::from(self.input.as_str()),
            "input_file" => Value::from(self.input_file.to_string_lossy()),
            "output_file" => Value::from(self.output_file.to_string_lossy()),
            "param" => Value::from(self.param.clone()),
            "execution_id" => Value::from(self.execution_id.as_str()),
            "agent_id" => Value::from(self.agent_id.as_str()),
            "context_id" => Value::from(self.context_id.as_str()),
            "message_id" => Value::from(self.message_id.as_str()),
            "attempt" => Value::from(self.attempt),
            "turn" => Value::from(self.turn),
            "timestamp" => Value::from(self.timestamp.as_str()),
            "model" => Value::from(self.model.as_str()),
            "home" => Value::from(self.home.to_string_lossy()),
            "session_id" => Value::from(self.session_id.as_str()),
            "uuid" => Value::from(self.uuid.as_str()),
            _ => Value::UNDEFINED,
        }
    }
}

impl Given for Moment {
    const NAMES: &'static [&'static str] =
        &["schedule_id", "schedule_name", "agent_id", "planned", "date", "time", "param"];

    fn blank(param: BTreeMap<String, String>) -> Self {
        Self { param, ..Self::default() }
    }

    fn param(&self) -> &BTreeMap<String, String> {
        &self.param
    }

    fn of(&self, name: &str) -> Value {
        match name {
            "schedule_id" => Value::from(self.schedule_id.as_str()),
            "schedule_name" => Value::from(self.schedule_name.as_str()),
            "agent_id" => Value::from(self.agent_id.as_str()),
            "planned" => Value::from(self.planned.as_str()),
            "date" => Value::from(self.date.as_str()),
            "time" => Value::from(self.time.as_str()),
            "param" => Value::from(self.param.clone()),
            _ => Value::UNDEFINED,
        }
    }
}

/// An engine with few filters and no functions: nothing in it can loop or look around.
fn engine() -> Environment<'static> {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        engine.set_syntax(syntax);
    }
    engine.set_fuel(Some(FUEL));
    engine.add_filter("default", filters::default);
    engine.add_filter("length", filters::length);
    engine.add_filter("lower", filters::lower);
    engine.add_filter("replace", filters::replace);
    engine.add_filter("trim", filters::trim);
    engine.add_filter("upper", filters::upper);
    engine.add_test("defined", checks::is_defined);
    engine.add_test("undefined", checks::is_undefined);
    engine
}

/// The first statement that is not allowed.
fn forbidden(source: &str) -> Option<String> {
    let tags = TAG.as_ref()?.captures_iter(source).filter_map(|found| found.get(1));
    tags.map(|tag| tag.as_str()).find(|tag| !TAGS.contains(tag)).map(str::to_owned)
}

/// An error of reading.
fn syntax(error: &Error) -> TemplateError {
    TemplateError::Syntax { cause: cause(error) }
}

/// What the engine said, in one line.
fn cause(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;

//! Arguments and file names of a program: templates, checked against its input and output methods.

use algonius_actors::model::agent::Access;
use algonius_actors::model::program::{InputMethod, OutputMethod};
use toml::de::DeValue;

use crate::config::diagnostics::{DiagnosticBuilder, new_diagnostic};
use crate::config::table::{ConfigReader, Positioned, Section, SourcePosition, value};
use crate::platform::template::{EXECUTION_VARIABLE_NAMES, Template, TemplateError};

/// Names that a file name may use: values that the caller chooses are not among them.
const FILE_NAME_PLACEHOLDERS: [&str; 5] =
    ["execution_id", "agent_id", "attempt", "turn", "timestamp"];

/// Argument: its template, and the names that it uses.
struct Argument {
    template: Positioned<String>,
    placeholders: Vec<String>,
}

/// Arguments in their order.
pub(crate) struct Arguments {
    /// Key of the list in the configuration.
    key: &'static str,
    arguments: Vec<Argument>,
    /// Number of arguments at the end that hold the input.
    input_argument_count: usize,
    /// True if an argument could not be read, which disables some checks.
    has_faults: bool,
}

impl Arguments {
    /// Reads `args`, then `cli_args` in the order of the file, then the arguments for access and model, and last the
    /// input arguments.
    pub(crate) fn read(section: &mut Section<'_>, access: Access, has_model: bool) -> Self {
        let reader = section.reader;
        let faults_before = reader.fault_count();
        let mut texts = section.text_list("args").unwrap_or_default();
        for (key, entry) in section.section("cli_args").entries() {
            let entry = Positioned { position: entry.position.without_excerpt(), ..entry };
            match entry.value {
                DeValue::Boolean(false) => {}
                DeValue::Boolean(true) => texts.push(key),
                _ => {
                    texts.push(key);
                    let value = value::scalar(reader, &entry).filter(|text| !text.is_empty());
                    texts.extend(value.map(|value| Positioned { value, position: entry.position }));
                }
            }
        }
        texts.extend(read_access_arguments(section.section("access_args"), access));
        let model_texts = section.text_list("model_args").unwrap_or_default();
        texts.extend(model_texts.into_iter().filter(|_| has_model));
        let input_texts = section.text_list("input_args").unwrap_or_default();
        let parse = |texts: Vec<_>| -> Vec<_> {
            texts.into_iter().filter_map(|template| parse_argument(reader, template)).collect()
        };
        let (mut list, input_arguments) = (parse(texts), parse(input_texts));
        let input_count = input_arguments.len();
        list.extend(input_arguments);
        let has_faults = reader.fault_count() > faults_before;
        let arguments =
            Self { key: "args", arguments: list, input_argument_count: input_count, has_faults };
        arguments.forbid_placeholder(section, "session_id", "in `[agents.<id>.session]` only");
        arguments.forbid_placeholder(section, "uuid", "in `session.new_args` only");
        arguments
    }

    /// Reads the list of this key; `None` if there is none.
    pub(crate) fn read_list(section: &mut Section<'_>, key: &'static str) -> Option<Self> {
        let reader = section.reader;
        let faults_before = reader.fault_count();
        let texts = section.text_list(key)?;
        let arguments =
            texts.into_iter().filter_map(|template| parse_argument(reader, template)).collect();
        Some(Self {
            key,
            arguments,
            input_argument_count: 0,
            has_faults: reader.fault_count() > faults_before,
        })
    }

    /// Returns true if an argument uses this name.
    pub(crate) fn uses_placeholder(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.placeholders.iter().any(|used| used == name))
    }

    /// Checks that some argument uses this name.
    pub(crate) fn require_placeholder(&self, section: &Section<'_>, name: &str) {
        if !self.uses_placeholder(name) && !self.has_faults {
            let message = format!("needs an argument with `{{{{ {name} }}}}`");
            section
                .reader
                .report_error(&section.position.child(self.key).without_excerpt(), message);
        }
    }

    /// Checks that no argument uses this name, which has a value elsewhere.
    pub(crate) fn forbid_placeholder(&self, section: &Section<'_>, name: &str, condition: &str) {
        let uses = |argument: &&Argument| argument.placeholders.iter().any(|used| used == name);
        for argument in self.arguments.iter().filter(uses) {
            let message = format!("`{{{{ {name} }}}}` has a value {condition}");
            section
                .reader
                .report_error(&argument.template.position.clone().without_excerpt(), message);
        }
    }

    /// Returns the templates.
    pub(crate) fn templates(&self) -> Vec<String> {
        self.arguments.iter().map(|argument| argument.template.value.clone()).collect()
    }

    /// Returns the templates with others inserted before those that hold the input.
    pub(crate) fn templates_with_inserted(&self, added: Vec<String>) -> Vec<String> {
        let mut all = self.templates();
        let index = all.len().saturating_sub(self.input_argument_count);
        all.splice(index..index, added);
        all
    }

    /// Checks that a model is configured if an argument uses it, and that an argument uses it unless the service sets
    /// it in the session of the agent.
    pub(crate) fn check_model(
        &self,
        section: &Section<'_>,
        (has_model, is_set_in_session): (bool, bool),
    ) {
        let uses = |argument: &&Argument| argument.placeholders.iter().any(|used| used == "model");
        let argument = self.arguments.iter().find(uses);
        let message = match argument {
            None if has_model && !is_set_in_session && !self.has_faults => {
                "needs `model_args` with `{{ model }}`"
            }
            Some(argument) if !has_model => {
                let message = "`{{ model }}` has a value where `model` is given only";
                return section
                    .reader
                    .report_error(&argument.template.position.clone().without_excerpt(), message);
            }
            _ => return,
        };
        section.reader.report_error(&section.position.child("model").without_excerpt(), message);
    }

    /// Returns the arguments as words, for a search for options.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(|argument| argument.template.value.as_str()).collect()
    }

    /// Checks that the program gets the values that its patterns require, and no others.
    pub(crate) fn check_method_placeholders(
        &self,
        section: &Section<'_>,
        input: InputMethod,
        output: OutputMethod,
    ) {
        self.check_placeholder(section, ["input", "args", "input"], input == InputMethod::Args);
        self.check_placeholder(
            section,
            ["input_file", "file", "input"],
            input == InputMethod::File,
        );
        self.check_placeholder(
            section,
            ["output_file", "file", "output"],
            output == OutputMethod::File,
        );
    }

    /// Checks that an argument uses a name if and only if the pattern requires it.
    fn check_placeholder(
        &self,
        section: &Section<'_>,
        [name, word, key]: [&str; 3],
        is_expected: bool,
    ) {
        if !is_expected {
            let condition = format!("with `{key} = \"{word}\"` only");
            return self.forbid_placeholder(section, name, &condition);
        }
        if !self.uses_placeholder(name) && !self.has_faults {
            let message = format!("`{key} = \"{word}\"` needs an argument with `{{{{ {name} }}}}`");
            section
                .reader
                .report_error(&section.position.child(self.key).without_excerpt(), message);
        }
    }
}

/// Returns the arguments for this access.
fn read_access_arguments(mut section: Section<'_>, access: Access) -> Vec<Positioned<String>> {
    let (reading, writing) = (section.text_list("read-only"), section.text_list("read-write"));
    section.report_unknown_keys();
    match access {
        Access::ReadOnly => reading.unwrap_or_default(),
        Access::ReadWrite => writing.unwrap_or_default(),
    }
}

fn parse_argument(reader: &ConfigReader<'_>, template: Positioned<String>) -> Option<Argument> {
    let placeholders = parse_placeholders(reader, (&template.value, &template.position))?;
    Some(Argument { template, placeholders })
}

/// Returns the template of a file name within the execution's own folder.
pub(crate) fn read_file_name(
    section: &mut Section<'_>,
    key: &'static str,
    default: &str,
) -> String {
    let reader = section.reader;
    let Some(text) = section.nonblank_text(key) else { return default.to_owned() };
    let names = parse_placeholders(reader, (&text.value, &text.position)).unwrap_or_default();
    if let Some(name) = names.iter().find(|name| !FILE_NAME_PLACEHOLDERS.contains(&name.as_str())) {
        let allowed = format!("allowed: {}", FILE_NAME_PLACEHOLDERS.join(", "));
        let diagnostic = new_diagnostic(format!("`{name}` may not stand in the name of a file"))
            .with_hint(allowed);
        reader.report_error(&text.position, diagnostic);
    }
    if text.value.contains('/') || text.value.contains("..") || text.value == "." {
        reader.report_error(&text.position, "must be a file name alone, without `/` and `..`");
    }
    text.value
}

/// Returns the names that a template uses; an invalid template is a fault.
pub(crate) fn parse_placeholders(
    reader: &ConfigReader<'_>,
    (text, position): (&str, &SourcePosition),
) -> Option<Vec<String>> {
    match Template::new(text) {
        Ok(template) => Some(template.used_variables().iter().cloned().collect()),
        Err(error) => {
            reader.report_error(&position.clone().without_excerpt(), template_diagnostic(&error));
            None
        }
    }
}

/// Returns the diagnostic about a template.
fn template_diagnostic(error: &TemplateError) -> DiagnosticBuilder {
    let diagnostic = new_diagnostic(error.to_string());
    match error {
        TemplateError::UnknownVariable { name } => {
            diagnostic.suggest_from(name, EXECUTION_VARIABLE_NAMES)
        }
        TemplateError::Syntax { .. } => {
            diagnostic.with_hint("a literal `{{` is written `{{ '{{' }}`")
        }
        _ => diagnostic,
    }
}

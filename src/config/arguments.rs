//! The arguments of a program and its file names: templates, checked against its patterns.

use algonius_actors::model::agent::Access;
use algonius_actors::model::program::{InputPattern, OutputPattern};
use toml::de::DeValue;

use super::fault::{Complaint, said};
use super::reader::{Found, Place, Reader};
use super::section::Section;
use super::value;
use crate::template::{NAMES, Template, TemplateError};

/// Names that may stand in the name of a file: what the caller chooses is not among them.
const FILE_NAMES: [&str; 5] = ["execution_id", "agent_id", "attempt", "turn", "timestamp"];

/// One argument: its template, and the names it uses.
struct Argument {
    template: Found<String>,
    names: Vec<String>,
}

/// All arguments in their order.
pub(super) struct Arguments {
    /// The key under which they stand.
    key: &'static str,
    list: Vec<Argument>,
    /// Whether some argument could not be read, so that less can be said about all of them.
    is_broken: bool,
}

impl Arguments {
    /// Reads `args`, then `cli_args` in the order of the file, then what says how far the program may
    /// go and which model it uses, and at last what holds the input.
    pub(super) fn read(section: &mut Section<'_>, access: Access, has_model: bool) -> Self {
        let reader = section.reader;
        let before = reader.count();
        let mut texts = section.texts("args").unwrap_or_default();
        for (key, entry) in section.section("cli_args").entries() {
            let entry = Found { place: entry.place.hidden(), ..entry };
            match entry.value {
                DeValue::Boolean(false) => {}
                DeValue::Boolean(true) => texts.push(key),
                _ => {
                    texts.push(key);
                    let value = value::scalar(reader, &entry).filter(|text| !text.is_empty());
                    texts.extend(value.map(|value| Found { value, place: entry.place }));
                }
            }
        }
        texts.extend(of_access(section.section("access_args"), access));
        let of_model = section.texts("model_args").unwrap_or_default();
        texts.extend(of_model.into_iter().filter(|_| has_model));
        texts.extend(section.texts("input_args").unwrap_or_default());
        let list = texts.into_iter().filter_map(|template| argument(reader, template)).collect();
        let read = Self { key: "args", list, is_broken: reader.count() > before };
        read.may_not_use(section, "session_id", "in `[agents.<id>.session]` only");
        read.may_not_use(section, "uuid", "in `session.new_args` only");
        read
    }

    /// Reads the list of this key; nothing when there is none.
    pub(super) fn listed(section: &mut Section<'_>, key: &'static str) -> Option<Self> {
        let reader = section.reader;
        let before = reader.count();
        let texts = section.texts(key)?;
        let list = texts.into_iter().filter_map(|template| argument(reader, template)).collect();
        Some(Self { key, list, is_broken: reader.count() > before })
    }

    /// Whether some argument uses this name.
    pub(super) fn use_name(&self, name: &str) -> bool {
        self.list.iter().any(|argument| argument.names.iter().any(|used| used == name))
    }

    /// Checks that some argument uses this name.
    pub(super) fn must_use(&self, section: &Section<'_>, name: &str) {
        if !self.use_name(name) && !self.is_broken {
            let message = format!("needs an argument with `{{{{ {name} }}}}`");
            section.reader.error(&section.place.below(self.key).hidden(), message);
        }
    }

    /// Checks that no argument uses this name, which has a value elsewhere.
    pub(super) fn may_not_use(&self, section: &Section<'_>, name: &str, elsewhere: &str) {
        let uses = |argument: &&Argument| argument.names.iter().any(|used| used == name);
        for user in self.list.iter().filter(uses) {
            let message = format!("`{{{{ {name} }}}}` has a value {elsewhere}");
            section.reader.error(&user.template.place.clone().hidden(), message);
        }
    }

    /// The templates.
    pub(super) fn templates(&self) -> Vec<String> {
        self.list.iter().map(|argument| argument.template.value.clone()).collect()
    }

    /// Checks that a model is given exactly when an argument calls for it.
    pub(super) fn suit_model(&self, section: &Section<'_>, has_model: bool) {
        let uses = |argument: &&Argument| argument.names.iter().any(|used| used == "model");
        let user = self.list.iter().find(uses);
        let message = match user {
            None if has_model && !self.is_broken => "needs `model_args` with `{{ model }}`",
            Some(user) if !has_model => {
                let message = "`{{ model }}` has a value where `model` is given only";
                return section.reader.error(&user.template.place.clone().hidden(), message);
            }
            _ => return,
        };
        section.reader.error(&section.place.below("model").hidden(), message);
    }

    /// The arguments as words, to look for options in.
    pub(super) fn words(&self) -> Vec<&str> {
        self.list.iter().map(|argument| argument.template.value.as_str()).collect()
    }

    /// Checks that the program gets what its patterns promise, and nothing else.
    pub(super) fn suit(&self, section: &Section<'_>, input: InputPattern, output: OutputPattern) {
        self.agree(section, ["input", "args", "input"], input == InputPattern::Args);
        self.agree(section, ["input_file", "file", "input"], input == InputPattern::File);
        self.agree(section, ["output_file", "file", "output"], output == OutputPattern::File);
    }

    /// Checks that a name is used by an argument exactly when the pattern calls for it.
    fn agree(&self, section: &Section<'_>, [name, word, key]: [&str; 3], is_wanted: bool) {
        if !is_wanted {
            let elsewhere = format!("with `{key} = \"{word}\"` only");
            return self.may_not_use(section, name, &elsewhere);
        }
        if !self.use_name(name) && !self.is_broken {
            let message = format!("`{key} = \"{word}\"` needs an argument with `{{{{ {name} }}}}`");
            section.reader.error(&section.place.below(self.key).hidden(), message);
        }
    }
}

/// The arguments for this access.
fn of_access(mut section: Section<'_>, access: Access) -> Vec<Found<String>> {
    let (reading, writing) = (section.texts("read-only"), section.texts("read-write"));
    section.finish();
    match access {
        Access::ReadOnly => reading.unwrap_or_default(),
        Access::ReadWrite => writing.unwrap_or_default(),
    }
}

fn argument(reader: &Reader<'_>, template: Found<String>) -> Option<Argument> {
    let names = checked(reader, (&template.value, &template.place))?;
    Some(Argument { template, names })
}

/// The name of a file within the execution's own folder, as a template.
pub(super) fn file_name(section: &mut Section<'_>, key: &'static str, usual: &str) -> String {
    let reader = section.reader;
    let Some(text) = section.nonblank(key) else { return usual.to_owned() };
    let names = checked(reader, (&text.value, &text.place)).unwrap_or_default();
    if let Some(name) = names.iter().find(|name| !FILE_NAMES.contains(&name.as_str())) {
        let known = format!("allowed: {}", FILE_NAMES.join(", "));
        let complaint = said(format!("`{name}` may not stand in the name of a file")).hint(known);
        reader.error(&text.place, complaint);
    }
    if text.value.contains('/') || text.value.contains("..") || text.value == "." {
        reader.error(&text.place, "must be a file name alone, without `/` and `..`");
    }
    text.value
}

/// The names a template uses; a fault when it is not a good one.
pub(super) fn checked(reader: &Reader<'_>, (text, place): (&str, &Place)) -> Option<Vec<String>> {
    match Template::new(text) {
        Ok(template) => Some(template.names().iter().cloned().collect()),
        Err(error) => {
            reader.error(&place.clone().hidden(), complaint(&error));
            None
        }
    }
}

/// What is said of a template.
fn complaint(error: &TemplateError) -> Complaint {
    let complaint = said(error.to_string());
    match error {
        TemplateError::Unknown { name } => complaint.among(name, NAMES),
        TemplateError::Syntax { .. } => complaint.hint("a literal `{{` is written `{{ '{{' }}`"),
        _ => complaint,
    }
}

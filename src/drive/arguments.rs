//! Fills in a program's arguments, and refuses what no program could take or would misread.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;

use crate::template::{Template, Values};

/// The longest single argument or variable that Linux takes, without its closing zero.
const LONGEST: usize = 131_071;

/// The longest arguments and environment together; Linux takes 2 MiB at the usual stack limit.
const LONGEST_TOGETHER: usize = 1_536 * 1024;

/// What the system adds to each argument: a closing zero and a pointer.
const OVERHEAD: usize = 1 + size_of::<usize>();

/// The arguments of an attempt.
///
/// # Errors
/// When a template names what the request does not give, or an argument cannot be passed or would
/// be read as an option.
pub(super) fn arguments(
    program: &ProgramSpec,
    templates: &[String],
    values: &Values,
) -> Result<Vec<String>, Failure> {
    let mut arguments = Vec::with_capacity(templates.len());
    let mut is_guarded = false;
    for (index, template) in templates.iter().enumerate() {
        let argument = render(template, values)
            .ok_or_else(|| rejected(format!("argument {} could not be filled in", index + 1)))?;
        may_be_passed(argument.as_bytes())?;
        if !is_guarded && is_option_in_disguise(program, template, &argument) {
            return Err(rejected("the input starts with `-` and would be read as an option"));
        }
        is_guarded |= template == "--";
        arguments.push(argument);
    }
    Ok(arguments)
}

/// Fills in the name of a file in the execution's own folder.
///
/// # Errors
/// When the name is empty or leads out of the folder.
pub(super) fn file_name(template: &str, values: &Values) -> Result<String, Failure> {
    let name = render(template, values)
        .ok_or_else(|| rejected("the name of the agent's file could not be filled in"))?;
    let is_plain = !name.is_empty()
        && name.len() <= 255
        && !name.contains(['/', '\0'])
        && !matches!(name.as_str(), "." | "..");
    if is_plain { Ok(name) } else { Err(rejected("the name of the agent's file is not plain")) }
}

/// Checks what the system would refuse only after the attempt has begun.
///
/// # Errors
/// When a variable holds a zero byte, or all is too long together.
pub(super) fn fits(
    arguments: &[String],
    environment: &BTreeMap<OsString, OsString>,
) -> Result<(), Failure> {
    let mut length: usize = arguments.iter().map(|argument| argument.len() + OVERHEAD).sum();
    for (name, value) in environment {
        may_be_passed(value.as_bytes())?;
        length += name.len() + 1 + value.len() + OVERHEAD;
    }
    if length > LONGEST_TOGETHER {
        return Err(rejected("the arguments are too long together for a command line"));
    }
    Ok(())
}

/// Fills in a text of the success contract.
///
/// # Errors
/// When a template names what the request does not give, or the text cannot be passed.
pub(super) fn filled(template: &str, values: &Values) -> Result<String, Failure> {
    let text = render(template, values)
        .ok_or_else(|| rejected("what looks at the agent's work could not be filled in"))?;
    may_be_passed(text.as_bytes())?;
    Ok(text)
}

fn render(template: &str, values: &Values) -> Option<String> {
    Template::new(template).and_then(|template| template.render(values)).ok()
}

fn may_be_passed(text: &[u8]) -> Result<(), Failure> {
    if text.contains(&0) {
        return Err(rejected("the input holds a zero byte, which no command line can hold"));
    }
    if text.len() > LONGEST {
        return Err(rejected("the input is too long for one argument of a command line"));
    }
    Ok(())
}

/// Whether a value of the request stands in front of the argument and looks like an option. A
/// value that the configuration itself gives may be one.
fn is_option_in_disguise(program: &ProgramSpec, template: &str, argument: &str) -> bool {
    let starts_with_value = template.starts_with("{{") || template.starts_with("{%");
    let is_configured = program.params.values().any(|value| value == argument);
    starts_with_value && argument.starts_with('-') && !is_configured
}

fn rejected(message: impl Into<String>) -> Failure {
    Failure::new(Code::InputRejected, message)
}

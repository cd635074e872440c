//! Renders a program's arguments, and rejects those that no program could take or would misread.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::program::stdio_protocol::StdioProtocol;

use crate::platform::template::{ExecutionValues, Template};

/// Greatest length of a single argument or variable on Linux, without its closing zero byte.
const MAX_ARGUMENT_BYTES: usize = 131_071;

/// Greatest length of arguments and environment together; Linux accepts 2 MiB at the default stack limit.
const MAX_COMMAND_LINE_BYTES: usize = 1_536 * 1024;

/// Bytes that the kernel adds to each argument: a closing zero byte and a pointer.
const ARGUMENT_OVERHEAD_BYTES: usize = 1 + size_of::<usize>();

/// Returns the parameters and the details of the message that the start of a program uses, by their names in templates,
/// whether it starts a session or resumes one.
pub(in crate::drivers::program) fn start_template_values(
    program: &ProgramSpec,
    values: &ExecutionValues,
) -> BTreeMap<String, String> {
    let session_args =
        program.session_resume.iter().flat_map(|it| it.start_args.iter().chain(&it.resume_args));
    let templates = program.args.iter().chain(session_args).map(String::as_str);
    let protocol = program.stdio_protocol.as_ref();
    let templates = templates.chain(protocol.into_iter().flat_map(StdioProtocol::start_templates));
    let mut used_values = BTreeMap::new();
    for template in templates.filter_map(|source| Template::new(source).ok()) {
        let params =
            template.used_params().iter().filter_map(|name| values.params.get_key_value(name));
        used_values.extend(params.map(|(name, value)| (format!("param.{name}"), value.clone())));
        let names = template.used_variables().iter();
        let details = names.filter_map(|name| values.message_details.get_key_value(name.as_str()));
        used_values.extend(details.map(|(name, text)| ((*name).to_owned(), text.clone())));
    }
    used_values
}

/// Returns the rendered arguments of an attempt.
///
/// # Errors
/// Fails if a template names a value that the request does not have, or if an argument cannot be passed or would be
/// read as an option.
pub(super) fn render_arguments(
    program: &ProgramSpec,
    templates: &[String],
    values: &ExecutionValues,
) -> Result<Vec<String>, Failure> {
    let mut arguments = Vec::with_capacity(templates.len());
    let mut is_after_separator = false;
    for (index, template) in templates.iter().enumerate() {
        let argument = render(template, values).ok_or_else(|| {
            input_failure(format!("argument {} could not be rendered", index + 1))
        })?;
        check_argument(argument.as_bytes())?;
        if !is_after_separator && is_injected_option(program, template, &argument) {
            return Err(input_failure("the input starts with `-` and would be read as an option"));
        }
        // After `--` programs read no argument as an option.
        is_after_separator |= template == "--";
        arguments.push(argument);
    }
    Ok(arguments)
}

/// Renders the name of a file in the execution's own folder.
///
/// # Errors
/// Fails if the name is empty or leads out of the folder.
pub(super) fn render_file_name(
    template: &str,
    values: &ExecutionValues,
) -> Result<String, Failure> {
    let name = render(template, values)
        .ok_or_else(|| input_failure("the name of the agent's file could not be rendered"))?;
    let is_plain = !name.is_empty()
        // File systems of Linux have no longer names.
        && name.len() <= 255
        && !name.contains(['/', '\0'])
        && !matches!(name.as_str(), "." | "..");
    if is_plain {
        Ok(name)
    } else {
        Err(input_failure("the name of the agent's file is not a plain file name"))
    }
}

/// Checks the limits of a command line that consists of complete arguments.
///
/// # Errors
/// Fails if an argument or a variable cannot be passed, or if all together are too long.
pub(in crate::drivers::program) fn check_command_line(
    arguments: &[String],
    environment: &BTreeMap<OsString, OsString>,
) -> Result<(), Failure> {
    arguments.iter().try_for_each(|argument| check_argument(argument.as_bytes()))?;
    check_environment_and_size(arguments, environment)
}

/// Checks limits that the kernel would report only after the attempt has started.
///
/// # Errors
/// Fails if a variable holds a zero byte, or if arguments and environment are too long together.
pub(super) fn check_environment_and_size(
    arguments: &[String],
    environment: &BTreeMap<OsString, OsString>,
) -> Result<(), Failure> {
    let mut length: usize =
        arguments.iter().map(|argument| argument.len() + ARGUMENT_OVERHEAD_BYTES).sum();
    for (name, value) in environment {
        check_argument(value.as_bytes())?;
        length += name.len() + 1 + value.len() + ARGUMENT_OVERHEAD_BYTES;
    }
    if length > MAX_COMMAND_LINE_BYTES {
        return Err(input_failure(
            "the arguments and the environment together are too long for a command line",
        ));
    }
    Ok(())
}

/// Renders a text of the success contract.
///
/// # Errors
/// Fails if a template names a value that the request does not have, or if the text cannot be passed.
pub(super) fn render_success_check_text(
    template: &str,
    values: &ExecutionValues,
) -> Result<String, Failure> {
    let text = render(template, values)
        .ok_or_else(|| input_failure("a success check could not be rendered"))?;
    check_argument(text.as_bytes())?;
    Ok(text)
}

fn render(template: &str, values: &ExecutionValues) -> Option<String> {
    Template::new(template).and_then(|template| template.render(values)).ok()
}

fn check_argument(text: &[u8]) -> Result<(), Failure> {
    if text.contains(&0) {
        return Err(input_failure(
            "the input contains a zero byte, which no command line can contain",
        ));
    }
    if text.len() > MAX_ARGUMENT_BYTES {
        return Err(input_failure("the input is too long for one argument of a command line"));
    }
    Ok(())
}

/// Returns true if a value of the request stands at the start of the argument and looks like an option. A value from
/// the configuration itself may be an option.
fn is_injected_option(program: &ProgramSpec, template: &str, argument: &str) -> bool {
    let starts_with_value = template.starts_with("{{") || template.starts_with("{%");
    let is_configured = program.params.values().any(|value| value == argument);
    starts_with_value && argument.starts_with('-') && !is_configured
}

fn input_failure(message: impl Into<String>) -> Failure {
    Failure::new(Code::InputRejected, message)
}

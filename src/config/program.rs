//! The program behind an agent: how it is started, fed, read and judged.

use std::collections::BTreeMap;
use std::path::PathBuf;

use algonius_actors::model::program::{
    InputPattern, OnLoss, OutputPattern, ProgramSpec, SuccessContract, TransientContract,
};
use algonius_actors::model::resources::Resources;
use algonius_actors::model::sandbox::Sandbox;
use regex::Regex;
use toml::de::DeValue;

use super::arguments::{self, Arguments};
use super::command;
use super::continuity;
use super::dialogue;
use super::environment::{self, is_name};
use super::fault::{Severity, said};
use super::prompting;
use super::prompts;
use super::reader::{Found, Reader};
use super::section::Section;
use super::value;

const INPUTS: [(&str, InputPattern); 4] = [
    ("stdin", InputPattern::Stdin),
    ("file", InputPattern::File),
    ("args", InputPattern::Args),
    ("json-rpc", InputPattern::JsonRpc),
];

const OUTPUTS: [(&str, OutputPattern); 4] = [
    ("stdout", OutputPattern::Stdout),
    ("file", OutputPattern::File),
    ("events", OutputPattern::Events),
    ("json-rpc", OutputPattern::JsonRpc),
];

/// Reads the program of an agent. What the machine lacks weighs `lacking`.
pub(super) fn read(section: &mut Section<'_>, lacking: Severity) -> Option<ProgramSpec> {
    let env = environment::read(section, lacking);
    let working_dir = working_dir(section, lacking);
    let path = env.get("PATH").map(|path| path.value.clone());
    let path = path.or_else(|| section.reader.env("PATH"));
    let command = command::read(section, path, lacking);
    let arguments = Arguments::read(section);
    if let Some(command) = &command {
        prompting::warn(section.reader, command, &arguments.words());
    }
    let input = pattern(section, "input", &INPUTS, InputPattern::Stdin);
    let output = pattern(section, "output", &OUTPUTS, OutputPattern::Stdout);
    if let (Some(input), Some(output)) = (input, output) {
        arguments.suit(section, input, output);
    }
    let input_file = arguments::file_name(section, "input_file", "input.txt");
    let output_file = arguments::file_name(section, "output_file", "output.txt");
    let session = continuity::read(section, &arguments, input, output);
    let dialogue = dialogue::read(section, input, output);
    let on_loss = on_loss(section, dialogue.is_some());
    let program = ProgramSpec {
        on_loss,
        params: params(section),
        prompts: prompts::read(section),
        success: success(section.section("success")),
        transient: transient(section),
        command: command?.value,
        args: arguments.templates(),
        env,
        working_dir: working_dir?,
        input: input?,
        output: output?,
        input_file,
        output_file,
        sandbox: Sandbox::default(),
        resources: Resources::default(),
        session,
        dialogue,
        keeping: None,
    };
    Some(program)
}

/// What becomes of the program when the service is killed. One that is spoken to has nobody to speak
/// with then, and ends.
fn on_loss(section: &mut Section<'_>, is_spoken_to: bool) -> OnLoss {
    let losses = [("reattach", OnLoss::Reattach), ("kill", OnLoss::Kill)];
    let found = section.word("on_supervisor_loss", &losses);
    let usual = if is_spoken_to { OnLoss::Kill } else { OnLoss::default() };
    if let Some(found) = found.as_ref().filter(|found| is_spoken_to && found.value != usual) {
        let complaint = "must be \"kill\": nobody goes on to speak with the program";
        section.reader.error(&found.place, complaint);
    }
    found.map_or(usual, |found| found.value)
}

/// A pattern of input or output; nothing where an unknown one is given.
fn pattern<T: Copy>(
    section: &mut Section<'_>,
    key: &'static str,
    known: &[(&str, T)],
    usual: T,
) -> Option<T> {
    let is_absent = !section.has(key);
    section.word(key, known).map(|found| found.value).or(is_absent.then_some(usual))
}

/// The folder the program starts in: as given, or the one the service was started in.
fn working_dir(section: &mut Section<'_>, lacking: Severity) -> Option<PathBuf> {
    let reader = section.reader;
    let Some(given) = section.nonblank("working_dir") else {
        let current = std::env::current_dir();
        return current
            .map_err(|error| {
                let complaint = said(format!("the service's own folder is not known: {error}"));
                let place = section.place.below("working_dir").hidden();
                reader.record(Severity::Error, &place, complaint);
            })
            .ok();
    };
    let folder = reader.resolve(&given.value);
    if !folder.is_dir() {
        let complaint = said("there is no such folder");
        let complaint = if given.value.starts_with('~') {
            complaint.hint("`~` means nothing here: write the whole path")
        } else {
            complaint
        };
        reader.record(lacking, &given.place, complaint);
    }
    Some(folder)
}

/// The values of parameters that a request does not give.
fn params(section: &mut Section<'_>) -> BTreeMap<String, String> {
    let reader = section.reader;
    let mut params = BTreeMap::new();
    for (name, entry) in section.section("params").entries() {
        if !is_name(&name.value) {
            reader.error(&name.place, "the name of a parameter has letters, digits and `_` only");
        }
        let entry = Found { place: entry.place.hidden(), ..entry };
        params.extend(value::scalar(reader, &entry).map(|text| (name.value, text)));
    }
    params
}

/// Reads `[agents.<id>.success]`.
fn success(mut section: Section<'_>) -> SuccessContract {
    let contract = SuccessContract {
        exit_codes: exit_codes(&mut section, "exit_codes", &[0]),
        require_output: section.flag("require_output", false),
        fail_regex: regex(&mut section, "fail_regex"),
        json_pointer: pointer(&mut section, "json_pointer"),
    };
    section.finish();
    contract
}

/// Reads which failures may pass by themselves.
fn transient(section: &mut Section<'_>) -> TransientContract {
    TransientContract {
        exit_codes: exit_codes(section, "transient_exit_codes", &[75]),
        regex: regex(section, "transient_regex"),
    }
}

/// A list of exit codes; the usual ones when none is given.
pub(super) fn exit_codes(section: &mut Section<'_>, key: &'static str, usual: &[i32]) -> Vec<i32> {
    let reader = section.reader;
    let Some(items) = section.list(key) else { return usual.to_vec() };
    let code = |value: &DeValue<'_>| {
        let code = value.as_integer().and_then(value::whole)?;
        i32::try_from(code).ok().filter(|code| (0..=255).contains(code))
    };
    let mut codes = Vec::new();
    for item in items {
        match code(item.value) {
            Some(code) => codes.push(code),
            None => reader.error(&item.place, "must be an exit code from 0 to 255"),
        }
    }
    codes
}

/// A regular expression.
pub(super) fn regex(section: &mut Section<'_>, key: &'static str) -> Option<Regex> {
    let text = section.nonblank(key)?;
    regex_of(section.reader, &text)
}

/// A text as a regular expression.
pub(super) fn regex_of(reader: &Reader<'_>, text: &Found<String>) -> Option<Regex> {
    let parsed = Regex::new(&text.value);
    let last = |error: &regex::Error| error.to_string().lines().last().map(str::to_owned);
    if let Err(error) = &parsed {
        let cause = last(error).unwrap_or_default();
        let cause = cause.trim_start_matches("error: ");
        reader.error(&text.place, format!("is not a regular expression: {cause}"));
    }
    parsed.ok()
}

/// Where something stands in a JSON document.
pub(super) fn pointer(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    let text = section.text(key)?;
    let is_escaped = text.value.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if !(text.value.is_empty() || text.value.starts_with('/')) || !is_escaped {
        let complaint = "must be empty or start with `/`, with `~0` for `~` and `~1` for `/`";
        section.reader.error(&text.place, complaint);
    }
    Some(text.value)
}

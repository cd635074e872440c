//! The program behind an agent: how it is started, fed, read and judged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use algonius_actors::model::agent::Access;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::outfit::Outfit;
use algonius_actors::model::program::{Dialect, InputPattern, OnLoss, OutputPattern, ProgramSpec};
use algonius_actors::model::resources::Resources;
use algonius_actors::model::sandbox::Sandbox;
use regex::Regex;

use super::arguments::{self, Arguments};
use super::command;
use super::continuity;
use super::contract;
use super::dialogue;
use super::environment::{self, is_name};
use super::fault::{Severity, said};
use super::outfit;
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

const OUTPUTS: [(&str, OutputPattern); 9] = [
    ("stdout", OutputPattern::Stdout),
    ("file", OutputPattern::File),
    ("events", OutputPattern::Events),
    ("claude-stream-json", OutputPattern::Native(Dialect::Claude)),
    ("codex-jsonl", OutputPattern::Native(Dialect::Codex)),
    ("gemini-stream-json", OutputPattern::Native(Dialect::Gemini)),
    ("copilot-jsonl", OutputPattern::Native(Dialect::Copilot)),
    ("opencode-jsonl", OutputPattern::Native(Dialect::Opencode)),
    ("json-rpc", OutputPattern::JsonRpc),
];

/// Reads the program of an agent. What the machine lacks weighs `lacking`.
pub(super) fn read(
    section: &mut Section<'_>,
    (id, data_dir): (&AgentId, &Path),
    access: Access,
    lacking: Severity,
) -> Option<ProgramSpec> {
    let mut env = environment::read(section, access, lacking);
    let own = outfit::own_home(section, id, data_dir);
    let home = outfit::give_home(section, own.as_ref(), &mut env);
    let outfit = Outfit {
        model: outfit::model(section),
        home,
        own: own.map(Box::new),
        version: outfit::version(section).map(Box::new),
        preset: None,
    };
    let working_dir = working_dir(section, lacking);
    let path = env.get("PATH").map(|path| path.value.clone());
    let path = path.or_else(|| section.reader.env("PATH"));
    let command = command::read(section, path.clone(), lacking);
    let arguments = Arguments::read(section, access, outfit.model.is_some());
    arguments.suit_model(section, outfit.model.is_some());
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
        success: contract::success(section.section("success"), path.as_deref(), lacking),
        failures: contract::failures(section),
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
        outfit,
        session: session.map(Box::new),
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

/// A regular expression.
pub(super) fn regex(section: &mut Section<'_>, key: &'static str) -> Option<Regex> {
    let text = section.nonblank(key)?;
    regex_of(section.reader, &text)
}

/// A text as a regular expression.
pub(super) fn regex_of(reader: &Reader<'_>, text: &Found<String>) -> Option<Regex> {
    let parsed = reader.regex(&text.value);
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

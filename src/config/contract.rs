//! `[agents.<id>.success]` and `[agents.<id>.failures]`: what an attempt has to be, and what it means
//! when it is not.

use std::path::PathBuf;

use algonius_actors::model::contract::{Check, FailureContract, Signs, SuccessContract};
use serde_json::Value;
use toml::de::DeValue;

use super::command;
use super::fault::{Severity, said};
use super::program::{pointer, regex};
use super::reader::{Found, Reader};
use super::section::Section;
use super::value::{self, Bounds};
use crate::form::Form;
use crate::template::Template;

/// The exit code that says by custom that it may work later.
const TRY_AGAIN: i32 = 75;

/// Credentials that were refused are refused again.
const REFUSALS: [u16; 2] = [401, 403];

/// Reads when an attempt is a success.
pub(super) fn success(
    mut section: Section<'_>,
    path: Option<&str>,
    lacking: Severity,
) -> SuccessContract {
    let contract = SuccessContract {
        exit_codes: exit_codes(&mut section, "exit_codes").unwrap_or_else(|| vec![0]),
        require_output: section.flag("require_output", false),
        fail_regex: regex(&mut section, "fail_regex"),
        json_pointer: pointer(&mut section, "json_pointer"),
        artifact: section.nonblank("artifact").and_then(|text| template(section.reader, text)),
        schema: schema(&mut section, lacking),
        check: check(&mut section, path, lacking).map(Box::new),
    };
    section.finish();
    contract
}

/// A schema: written here, or the path of its file.
fn schema(section: &mut Section<'_>, lacking: Severity) -> Option<Value> {
    let (reader, text) = (section.reader, section.nonblank("schema")?);
    let written = if text.value.trim_start().starts_with('{') {
        text.value.clone()
    } else {
        match std::fs::read_to_string(reader.resolve(&text.value)) {
            Ok(written) => written,
            Err(error) => {
                let complaint = said(format!("could not be read: {}", error.kind()));
                reader.record(lacking, &text.place, complaint);
                return None;
            }
        }
    };
    let read = serde_json::from_str(&written).map_err(|error| error.to_string());
    let read = read.and_then(|schema: Value| Form::read(&schema).map(|_form| schema));
    read.map_err(|error| reader.error(&text.place, format!("is no JSON Schema: {error}"))).ok()
}

/// What looks at the work: its command and its arguments, and how long it may take.
fn check(section: &mut Section<'_>, path: Option<&str>, lacking: Severity) -> Option<Check> {
    let reader = section.reader;
    let limit = section.seconds("check_timeout", Bounds::new(0.1, 3600.0, 60.0));
    let mut words = section.texts("check")?.into_iter();
    let Some(name) = words.next().filter(|name| !name.value.trim().is_empty()) else {
        let place = section.entry("check")?.place.hidden();
        reader.error(&place, "must name a command, and may give its arguments after it");
        return None;
    };
    let command = command::search(reader, &name.value, path).unwrap_or_else(|| {
        reader.record(lacking, &name.place, said("there is no such program"));
        PathBuf::from(&name.value)
    });
    let args = words.filter_map(|word| template(reader, word)).collect();
    Some(Check { command, args, limit })
}

fn template(reader: &Reader<'_>, text: Found<String>) -> Option<String> {
    if let Err(error) = Template::new(&text.value) {
        reader.error(&text.place, format!("is not a template that is known: {error}"));
        return None;
    }
    Some(text.value)
}

/// Reads what failures mean. Two keys of the agent are short for two of its transient ones.
pub(super) fn failures(agent: &mut Section<'_>) -> FailureContract {
    let short = Signs {
        status: Vec::new(),
        exit_codes: exit_codes(agent, "transient_exit_codes").unwrap_or_default(),
        regex: regex(agent, "transient_regex"),
    };
    let is_said = agent.has("transient_exit_codes");
    let mut section = agent.section("failures");
    let mut transient = section.section("transient");
    for (key, whole) in [("transient_exit_codes", "exit_codes"), ("transient_regex", "regex")] {
        if let Some(entry) = agent.entry(key).filter(|_| transient.has(whole)) {
            let complaint = said(format!("says what `failures.transient.{whole}` says"));
            agent.reader.error(&entry.place.hidden(), complaint.hint("write one of them"));
        }
    }
    let is_said = is_said || transient.has("exit_codes");
    let mut read = signs(&mut transient, &REFUSALS);
    transient.finish();
    read.exit_codes.extend(short.exit_codes);
    if !is_said {
        read.exit_codes.push(TRY_AGAIN);
    }
    read.regex = read.regex.or(short.regex);
    let contract = FailureContract {
        transient: read,
        permanent: below(&mut section, "permanent", &[]),
        quota: below(&mut section, "quota", &REFUSALS),
    };
    section.finish();
    contract
}

fn below(section: &mut Section<'_>, key: &'static str, refused: &[u16]) -> Signs {
    let mut kind = section.section(key);
    let signs = signs(&mut kind, refused);
    kind.finish();
    signs
}

/// How a kind of failure is known. Some statuses are of another kind whatever is said.
fn signs(section: &mut Section<'_>, refused: &[u16]) -> Signs {
    let reader = section.reader;
    let mut status = Vec::new();
    for item in section.list("status").unwrap_or_default() {
        match whole(item.value).and_then(|number| u16::try_from(number).ok()) {
            Some(number) if refused.contains(&number) => {
                let complaint =
                    said("means that credentials were refused, which is never tried again");
                reader.error(&item.place, complaint.hint("leave it out"));
            }
            Some(number @ 400..=599) => status.push(number),
            _ => reader.error(&item.place, "must be an HTTP status from 400 to 599"),
        }
    }
    Signs {
        status,
        exit_codes: exit_codes(section, "exit_codes").unwrap_or_default(),
        regex: regex(section, "regex"),
    }
}

/// A list of exit codes, where one is given.
pub(super) fn exit_codes(section: &mut Section<'_>, key: &'static str) -> Option<Vec<i32>> {
    let reader = section.reader;
    let mut codes = Vec::new();
    for item in section.list(key)? {
        match whole(item.value).and_then(|code| u8::try_from(code).ok()) {
            Some(code) => codes.push(i32::from(code)),
            None => reader.error(&item.place, "must be an exit code from 0 to 255"),
        }
    }
    Some(codes)
}

fn whole(value: &DeValue<'_>) -> Option<i128> {
    value.as_integer().and_then(value::whole)
}

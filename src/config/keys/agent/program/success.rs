//! `[agents.<id>.success]` and `[agents.<id>.failures]`: conditions of a successful attempt, and the meaning of
//! failures.

use std::path::PathBuf;

use algonius_actors::model::agent::success_criteria::{
    CheckCommand, FailureMatchers, FailureRules, ProgramRetryRules, SuccessCriteria, UsagePattern,
};
use serde_json::Value;
use toml::de::DeValue;

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::keys::programs::command::warn_if_unexecutable;
use crate::config::keys::programs::search::find_program;
use crate::config::table::pattern::{parse_regex, read_json_pointer, read_regex};
use crate::config::table::{ConfigReader, Positioned, RangeWithDefault, Section, value};
use crate::platform::json_schema::ParsedSchema;
use crate::platform::template::Template;

/// Exit code for a temporary failure, by convention (`EX_TEMPFAIL`).
const EX_TEMPFAIL: i32 = 75;

/// HTTP statuses of refused credentials, for which a retry is pointless.
const AUTH_FAILURE_STATUSES: [u16; 2] = [401, 403];

/// Reads the conditions of a successful attempt. `is_whole_output_answer` is true if the whole output is the answer.
pub(crate) fn read_criteria(
    mut section: Section<'_>,
    is_whole_output_answer: bool,
    (search_path, machine_fault_severity): (Option<&str>, Severity),
) -> SuccessCriteria {
    let criteria = SuccessCriteria {
        exit_codes: read_exit_codes(&mut section, "exit_codes").unwrap_or_else(|| vec![0]),
        require_output: section.flag("require_output", false),
        fail_regex: read_regex(&mut section, "fail_regex"),
        json_pointer: read_json_pointer(&mut section, "json_pointer"),
        artifact_path: section
            .nonblank_text("artifact")
            .and_then(|text| validate_template(section.reader, text)),
        answer_schema: read_schema(&mut section, machine_fault_severity),
        check: read_check_command(&mut section, search_path, machine_fault_severity).map(Box::new),
    };
    if !is_whole_output_answer && let Some(entry) = section.entry("json_pointer") {
        let diagnostic =
            "has a meaning only if the output is \"stdout\" or \"file\", without a protocol";
        section.reader.report_error(&entry.position.without_excerpt(), diagnostic);
    }
    section.report_unknown_keys();
    criteria
}

/// Reads a schema: inline, or the path of its file.
fn read_schema(section: &mut Section<'_>, machine_fault_severity: Severity) -> Option<Value> {
    let (reader, text) = (section.reader, section.nonblank_text("schema")?);
    let schema_text = if text.value.trim_start().starts_with('{') {
        text.value.clone()
    } else {
        match std::fs::read_to_string(reader.resolve_path(&text.value)) {
            Ok(schema_text) => schema_text,
            Err(error) => {
                let diagnostic = new_diagnostic(format!("could not be read: {}", error.kind()));
                reader.record_fault(machine_fault_severity, &text.position, diagnostic);
                return None;
            }
        }
    };
    let parsed = serde_json::from_str(&schema_text).map_err(|error| error.to_string());
    let parsed =
        parsed.and_then(|schema: Value| ParsedSchema::parse(&schema).map(|_parsed_schema| schema));
    parsed
        .map_err(|error| reader.report_error(&text.position, format!("is no JSON Schema: {error}")))
        .ok()
}

/// Reads the check command: its program, its arguments, and its time limit.
fn read_check_command(
    section: &mut Section<'_>,
    search_path: Option<&str>,
    machine_fault_severity: Severity,
) -> Option<CheckCommand> {
    let reader = section.reader;
    let timeout = section.duration("check_timeout", RangeWithDefault::new(0.1, 3600.0, 60.0));
    let mut words = section.text_list("check")?.into_iter();
    let Some(name) = words.next().filter(|name| !name.value.trim().is_empty()) else {
        let position = section.entry("check")?.position.without_excerpt();
        reader.report_error(&position, "must name a command, and may give its arguments after it");
        return None;
    };
    let found = find_program(reader, &name.value, search_path);
    if let Some(file) = &found {
        warn_if_unexecutable(reader, (file, search_path), &name.position);
    }
    let command = found.unwrap_or_else(|| {
        reader.record_fault(
            machine_fault_severity,
            &name.position,
            new_diagnostic("there is no such program"),
        );
        PathBuf::from(&name.value)
    });
    let args = words.filter_map(|word| validate_template(reader, word)).collect();
    Some(CheckCommand { command, args, timeout })
}

fn validate_template(reader: &ConfigReader<'_>, text: Positioned<String>) -> Option<String> {
    if let Err(error) = Template::new(&text.value) {
        reader.report_error(&text.position, format!("is not a template that is known: {error}"));
        return None;
    }
    Some(text.value)
}

/// Reads the pattern of the usage that the program writes.
pub(crate) fn read_usage_pattern(agent: &mut Section<'_>) -> UsagePattern {
    let mut section = agent.section("usage");
    let found = section.nonblank_text("regex");
    let regex = found.as_ref().and_then(|text| parse_regex(section.reader, text));
    if let (Some(text), Some(regex)) = (&found, &regex)
        && regex.capture_names().flatten().next().is_none()
    {
        let diagnostic =
            new_diagnostic("has no named group").with_hint("write `(?<input_tokens>\\d+) tokens`");
        section.reader.record_fault(Severity::Error, &text.position, diagnostic);
    }
    section.report_unknown_keys();
    UsagePattern { regex }
}

/// Reads the meaning of failures. Two keys of the agent are short forms of two transient ones.
pub(crate) fn read_failure_rules(agent: &mut Section<'_>) -> FailureRules {
    let short_form = FailureMatchers {
        http_statuses: Vec::new(),
        exit_codes: read_exit_codes(agent, "transient_exit_codes").unwrap_or_default(),
        regex: read_regex(agent, "transient_regex"),
    };
    let has_exit_codes = agent.has_key("transient_exit_codes");
    let mut section = agent.section("failures");
    let mut transient_section = section.section("transient");
    for (key, full_key) in [("transient_exit_codes", "exit_codes"), ("transient_regex", "regex")] {
        if let Some(entry) = agent.entry(key).filter(|_| transient_section.has_key(full_key)) {
            let diagnostic =
                new_diagnostic(format!("says what `failures.transient.{full_key}` says"));
            agent.reader.report_error(
                &entry.position.without_excerpt(),
                diagnostic.with_hint("write one of them"),
            );
        }
    }
    let has_exit_codes = has_exit_codes || transient_section.has_key("exit_codes");
    let mut transient_matchers =
        read_failure_matchers(&mut transient_section, &AUTH_FAILURE_STATUSES);
    transient_section.report_unknown_keys();
    transient_matchers.exit_codes.extend(short_form.exit_codes);
    if !has_exit_codes {
        transient_matchers.exit_codes.push(EX_TEMPFAIL);
    }
    transient_matchers.regex = transient_matchers.regex.or(short_form.regex);
    let rules = FailureRules {
        transient: transient_matchers,
        permanent: read_kind_matchers(&mut section, "permanent", &[]),
        quota: read_kind_matchers(&mut section, "quota", &AUTH_FAILURE_STATUSES),
        program_retry_rules: read_program_retry_rules(section.section("own_retries")),
    };
    section.report_unknown_keys();
    rules
}

/// Reads the pattern of requests that the program retries by itself, and their maximum.
fn read_program_retry_rules(mut section: Section<'_>) -> ProgramRetryRules {
    let max = u32::try_from(section.count("max", RangeWithDefault::new(0, 1000, 0))).ok();
    let regex = read_regex(&mut section, "regex");
    section.report_unknown_keys();
    ProgramRetryRules {
        failed_request_regex: regex,
        max_failed_requests: max.filter(|max| *max > 0),
    }
}

fn read_kind_matchers(
    section: &mut Section<'_>,
    key: &'static str,
    excluded_statuses: &[u16],
) -> FailureMatchers {
    let mut kind_section = section.section(key);
    let matchers = read_failure_matchers(&mut kind_section, excluded_statuses);
    kind_section.report_unknown_keys();
    matchers
}

/// Reads the matchers of a kind of failure. Some statuses always belong to another kind.
fn read_failure_matchers(section: &mut Section<'_>, excluded_statuses: &[u16]) -> FailureMatchers {
    let reader = section.reader;
    let mut status = Vec::new();
    for item in section.list("status").unwrap_or_default() {
        match integer(item.value).and_then(|number| u16::try_from(number).ok()) {
            Some(number) if excluded_statuses.contains(&number) => {
                let diagnostic = new_diagnostic(
                    "means that credentials were refused, which is never tried again",
                );
                reader.report_error(&item.position, diagnostic.with_hint("leave it out"));
            }
            Some(number @ 400..=599) => status.push(number),
            _ => reader.report_error(&item.position, "must be an HTTP status from 400 to 599"),
        }
    }
    FailureMatchers {
        http_statuses: status,
        exit_codes: read_exit_codes(section, "exit_codes").unwrap_or_default(),
        regex: read_regex(section, "regex"),
    }
}

/// Reads a list of exit codes, if there is one.
pub(crate) fn read_exit_codes(section: &mut Section<'_>, key: &'static str) -> Option<Vec<i32>> {
    let reader = section.reader;
    let mut codes = Vec::new();
    for item in section.list(key)? {
        match integer(item.value).and_then(|code| u8::try_from(code).ok()) {
            Some(code) => codes.push(i32::from(code)),
            None => reader.report_error(&item.position, "must be an exit code from 0 to 255"),
        }
    }
    Some(codes)
}

fn integer(value: &DeValue<'_>) -> Option<i128> {
    value.as_integer().and_then(value::parse_integer)
}

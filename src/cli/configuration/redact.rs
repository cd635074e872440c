//! `algonius redact`: redacts the secrets of a text by the same rules as the service.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_redact::{RedactionConfig, Redactor, StreamRedactor};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::load::load;
use crate::cli::error::CliError;
use crate::cli::output::{CliOutput, lossy_text};
use crate::config::LoadedConfig;

/// Number of bytes in one read.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Redacts standard input to standard output. Exact secrets are in files, one per line; a configuration may define
/// further rules.
pub(crate) fn run(
    ndjson: bool,
    config_file: Option<&Path>,
    secret_files: Vec<PathBuf>,
    out: &CliOutput,
) -> Result<(), CliError> {
    let mut secrets = read_secrets(secret_files, out)?;
    let mut redaction_config = RedactionConfig::default();
    if let Some(config) = config_file {
        let LoadedConfig { settings, .. } = load(Some(config))?;
        secrets.extend(settings.secrecy.secrets);
        redaction_config = settings.secrecy.redaction;
    }
    let redactor = Arc::new(Redactor::new(secrets).with_configuration(redaction_config));
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    if ndjson {
        redact_documents(input, output, &redactor)
    } else {
        redact_text(input, output, redactor)
    }
}

/// Returns the lines of files. Secrets on the command line would be visible to all users of the machine.
fn read_secrets(files: Vec<PathBuf>, out: &CliOutput) -> Result<Vec<String>, CliError> {
    let mut secrets = Vec::new();
    for file in files {
        let problem = "secrets cannot be read from";
        let (name, read_result) = (file.display().to_string(), fs::read(&file));
        let bytes = read_result.map_err(|source| CliError::File { problem, file, source })?;
        // The input is decoded in the same way, so a secret in another encoding matches, but not in base64 or other
        // encodings of its bytes.
        secrets.extend(lossy_text::decode_with_note(&name, bytes, out).lines().map(str::to_owned));
    }
    Ok(secrets)
}

/// Redacts a text of any length in constant memory: safe text is written as soon as possible.
fn redact_text(
    mut input: impl Read,
    mut output: impl Write,
    redactor: Arc<Redactor>,
) -> Result<(), CliError> {
    let mut stream = StreamRedactor::new(redactor);
    let mut bytes = vec![0; READ_BUFFER_BYTES];
    loop {
        let count = input.read(&mut bytes).map_err(|source| CliError::Input { source })?;
        let redacted_chunk = match bytes.get(..count) {
            Some(piece) if count > 0 => stream.push(piece),
            _ => break,
        };
        if !write_unless_closed(&mut output, &redacted_chunk)? {
            return Ok(());
        }
    }
    write_unless_closed(&mut output, &stream.finish()).map(|_| ())
}

/// Redacts JSON documents, one per line: each is redacted separately, is written immediately, and stays valid JSON.
fn redact_documents(
    input: impl Read,
    mut output: impl Write,
    redactor: &Redactor,
) -> Result<(), CliError> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    loop {
        line.clear();
        let read_result = input.read_until(b'\n', &mut line);
        if read_result.map_err(|source| CliError::Input { source })? == 0 {
            return Ok(());
        }
        let redacted = redact_document(&String::from_utf8_lossy(&line), redactor);
        if !write_unless_closed(&mut output, &redacted)? {
            return Ok(());
        }
    }
}

/// Redacts one line. A line that is not JSON is redacted as text. A document that redaction would make invalid, for
/// example because a number is a secret, becomes one string: secrecy is more important than its structure.
fn redact_document(line: &str, redactor: &Redactor) -> String {
    let redacted = redactor.redact(line).into_owned();
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_json(line) && !is_json(&redacted) {
        return format!("{}\n", Value::String(redacted.trim_end().to_owned()));
    }
    redacted
}

/// Writes text. Returns `false` if the reader has closed the pipe.
fn write_unless_closed(output: &mut impl Write, text: &str) -> Result<bool, CliError> {
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(source) => Err(CliError::Output { source }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "correct-horse-battery";

    fn redactor() -> Redactor {
        Redactor::new([SECRET.to_owned()])
    }

    fn redact_to_string(input: &str) -> String {
        let mut output = Vec::new();
        redact_text(input.as_bytes(), &mut output, Arc::new(redactor())).expect("a text");
        String::from_utf8(output).expect("text")
    }

    #[test]
    fn a_text_is_redacted_as_by_the_service() {
        let input = format!("one {SECRET} two\nAuthorization: Bearer {}\nend", "a1B2".repeat(10));
        let redacted = redact_to_string(&input);
        assert!(!redacted.contains(SECRET) && !redacted.contains("a1B2a1B2"), "{redacted}");
        assert!(redacted.starts_with("one ") && redacted.ends_with("\nend"), "{redacted}");
    }

    #[test]
    fn a_json_line_stays_json_and_other_lines_are_redacted_as_text() {
        let redactor = redactor();
        let line = format!("{}\n", json!({"a": [format!("x {SECRET}"), 1], "n": null}));
        let document = redact_document(&line, &redactor);
        let parsed: Value = serde_json::from_str(&document).expect("JSON");
        assert_eq!((&parsed["a"][1], &parsed["n"]), (&json!(1), &Value::Null));
        assert!(document.ends_with('\n') && !document.contains(SECRET), "{document}");
        let text = super::redact_document(&format!("no json: {SECRET}"), &redactor);
        assert!(text.starts_with("no json: ") && !text.contains(SECRET), "{text}");
    }

    #[test]
    fn a_redacted_document_with_a_secret_number_stays_json() {
        let redactor = Redactor::new(["1234567890123".to_owned()]);
        for line in [
            r#"{"pin":1234567890123,"password":"Hunter22xx"}"#,
            r#"{"1234567890123":"a","pin":1234567890123}"#,
        ] {
            let document = redact_document(line, &redactor);
            assert!(serde_json::from_str::<Value>(&document).is_ok(), "{document}");
            assert!(
                !document.contains("1234567890123") && !document.contains("Hunter"),
                "{document}"
            );
        }
    }

    proptest! {
        #[test]
        fn redaction_of_any_json_document_keeps_valid_json(
            before in ".{0,40}", after in ".{0,40}", name in "[a-zA-Z_]{1,12}",
        ) {
            let line = json!({name: format!("{before} {SECRET} {after}")}).to_string();
            let document = redact_document(&line, &redactor());
            prop_assert!(serde_json::from_str::<Value>(&document).is_ok(), "{}", document);
            prop_assert!(!document.contains(SECRET), "{}", document);
        }
    }
}

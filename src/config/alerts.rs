//! `[metrics]` and `[alerts]`: what those who watch the service are shown and told.

use std::path::PathBuf;
use std::time::Duration;

use algonius_actors::model::alert::AlertSpec;

use super::command::search;
use super::environment::{is_open_to_others, secret_file};
use super::fault::said;
use super::reader::Found;
use super::section::Section;
use super::value::Bounds;

/// How long what happens once stays open.
const LINGER: Duration = Duration::from_secs(600);

/// When somebody is told, and who.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Alerts {
    /// When.
    pub spec: AlertSpec,
    /// An address that is told; it may hold a key.
    pub webhook: Option<String>,
    /// What is sent there is signed with this.
    pub secret: Option<String>,
    /// A program that is told, with its arguments.
    pub command: Option<(PathBuf, Vec<String>)>,
}

impl std::fmt::Debug for Alerts {
    /// Leaves the address and the secret out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let command = self.command.as_ref().map(|(program, _)| program);
        f.debug_struct("Alerts")
            .field("spec", &self.spec)
            .field("command", &command)
            .finish_non_exhaustive()
    }
}

/// Reads `[metrics]`: whether the numbers are shown.
pub(super) fn metrics(mut section: Section<'_>) -> bool {
    let is_enabled = section.flag("enabled", true);
    section.finish();
    is_enabled
}

/// Reads `[alerts]`.
pub(super) fn read(mut section: Section<'_>) -> Alerts {
    let from = &mut section;
    let webhook = from.nonblank("webhook").map(|url| {
        from.reader.keep_secret(&url.value);
        url.value
    });
    let alerts = Alerts {
        spec: spec(from),
        webhook,
        secret: from.nonblank("webhook_secret_file").and_then(|file| secret(from, &file)),
        command: from.texts("command").and_then(|words| command(from, words)),
    };
    section.finish();
    alerts
}

fn spec(from: &mut Section<'_>) -> AlertSpec {
    let usual = AlertSpec::default();
    let few = |usual: u32| Bounds::new(0, 10_000, usual.into());
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let room = Bounds::new(0, 1 << 60, usual.ledger_free_bytes);
    AlertSpec {
        requests_per_minute: number(
            from.count("requests_per_minute", few(usual.requests_per_minute)),
        ),
        failure_streak: number(from.count("failure_streak", few(usual.failure_streak))),
        ledger_free_bytes: from.count("ledger_free_bytes", room),
        linger: LINGER,
    }
}

/// The text of a file; registered for masking.
pub(super) fn secret(section: &Section<'_>, file: &Found<String>) -> Option<String> {
    let (reader, path) = (section.reader, section.reader.resolve(&file.value));
    if is_open_to_others(&path) {
        let complaint = said("others may read this file").hint("chmod 600 it");
        reader.warning(&file.place, complaint);
    }
    match secret_file(&path) {
        Ok(text) if !text.trim().is_empty() => {
            reader.keep_secret(&text);
            Some(text)
        }
        Ok(_) => {
            reader.error(&file.place, "is empty");
            None
        }
        Err(error) => {
            reader.error(&file.place, format!("cannot be read: {error}"));
            None
        }
    }
}

/// A program and its arguments. It is found when the configuration is read.
fn command(section: &Section<'_>, words: Vec<Found<String>>) -> Option<(PathBuf, Vec<String>)> {
    let reader = section.reader;
    let mut words = words.into_iter();
    let Some(program) = words.next() else {
        reader.error(&section.place.below("command").hidden(), "must name a program");
        return None;
    };
    let found = search(reader, &program.value, reader.env("PATH").as_deref());
    if found.is_none() {
        reader.error(&program.place, "is no executable file, and none of this name is on the PATH");
    }
    Some((found?, words.map(|word| word.value).collect()))
}

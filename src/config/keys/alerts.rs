//! `[metrics]` and `[alerts]`: metrics and notifications for the operators of the service.

use std::path::PathBuf;
use std::time::Duration;

use algonius_actors::model::observation::alert::AlertSpec;
use ipnet::IpNet;

use super::programs::search::find_program;
use super::push;
use crate::config::table::{ConfigKey, Flag, Positioned, RangeWithDefault, Section};
use crate::platform::tls::CertificateAuthorities;

/// Time for which a one-time event stays open.
const EVENT_ALERT_DURATION: Duration = Duration::from_secs(600);

/// Conditions of alerts, and their receivers.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct AlertSettings {
    /// Conditions of alerts.
    pub spec: AlertSpec,
    /// URL of the webhook; it may contain a key.
    pub webhook_url: Option<String>,
    /// Networks that the webhook may use although they are not of the public internet, in addition to those of
    /// `[push]`.
    pub allowed_networks: Vec<IpNet>,
    /// Trusted certificate authorities in addition to the built-in ones and those of `[push]`.
    pub certificate_authorities: CertificateAuthorities,
    /// Secret that signs the webhook requests.
    pub signing_secret: Option<String>,
    /// Program that receives alerts, with its arguments.
    pub command: Option<(PathBuf, Vec<String>)>,
}

impl AlertSettings {
    /// Returns the files that run outside of every sandbox when an alert is sent: the program, and scripts among its
    /// arguments.
    pub(crate) fn alert_program_files(&self) -> Vec<PathBuf> {
        let Some((program, words)) = &self.command else { return Vec::new() };
        let script_files =
            words.iter().map(PathBuf::from).filter(|it| it.is_absolute() && it.is_file());
        std::iter::once(program.clone()).chain(script_files).collect()
    }
}

impl std::fmt::Debug for AlertSettings {
    /// Omits the URL and the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let command = self.command.as_ref().map(|(program, _)| program);
        f.debug_struct("AlertSettings")
            .field("spec", &self.spec)
            .field("command", &command)
            .finish_non_exhaustive()
    }
}

const METRICS_ENABLED: ConfigKey<Flag> = ConfigKey::flag("enabled", true, "");

/// Reads `[metrics]`; returns true if metrics are enabled.
pub(crate) fn read_metrics_flag(mut section: Section<'_>) -> bool {
    let is_enabled = METRICS_ENABLED.read(&mut section);
    section.report_unknown_keys();
    is_enabled
}

/// Reads `[alerts]`.
pub(crate) fn read(mut section: Section<'_>) -> AlertSettings {
    let table = &mut section;
    let webhook_url = table.nonblank_text("webhook").map(|url| {
        table.reader.register_secret(&url.value);
        url.value
    });
    let alerts = AlertSettings {
        spec: read_spec(table),
        webhook_url,
        allowed_networks: push::read_allowed_networks(table),
        certificate_authorities: push::read_certificate_authorities(table),
        signing_secret: table
            .nonblank_text("webhook_secret_file")
            .and_then(|file| read_secret(table, &file)),
        command: table.text_list("command").and_then(|words| resolve_command(table, words)),
    };
    section.report_unknown_keys();
    alerts
}

fn read_spec(table: &mut Section<'_>) -> AlertSpec {
    let default = AlertSpec::default();
    let count_bounds = |count: u32| RangeWithDefault::new(0, 10_000, count.into());
    let to_u32 = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let size_bounds = RangeWithDefault::new(0, 1 << 60, default.min_ledger_free_bytes);
    AlertSpec {
        requests_per_minute: to_u32(
            table.count("requests_per_minute", count_bounds(default.requests_per_minute)),
        ),
        failure_streak: to_u32(table.count("failure_streak", count_bounds(default.failure_streak))),
        min_ledger_free_bytes: table.count("ledger_free_bytes", size_bounds),
        event_alert_duration: EVENT_ALERT_DURATION,
    }
}

/// Returns the text of a secret file, and registers it for redaction.
pub(crate) fn read_secret(section: &Section<'_>, file: &Positioned<String>) -> Option<String> {
    let (reader, path) = (section.reader, section.reader.resolve_path(&file.value));
    match reader.read_secret_file(&path) {
        Ok(text) if !text.trim().is_empty() => {
            reader.register_secret(&text);
            Some(text)
        }
        Ok(_) => {
            reader.report_error(&file.position, "is empty");
            None
        }
        Err(error) => {
            reader.report_error(&file.position, format!("cannot be read: {error}"));
            None
        }
    }
}

/// Returns a program and its arguments. The program is searched when the configuration is read.
fn resolve_command(
    section: &Section<'_>,
    words: Vec<Positioned<String>>,
) -> Option<(PathBuf, Vec<String>)> {
    let reader = section.reader;
    let mut words = words.into_iter();
    let Some(program) = words.next() else {
        reader.report_error(
            &section.position.child("command").without_excerpt(),
            "must name a program",
        );
        return None;
    };
    let program_file = find_program(reader, &program.value, reader.nonempty_env("PATH").as_deref());
    if program_file.is_none() {
        reader.report_error(
            &program.position,
            "is no executable file, and none of this name is on the PATH",
        );
    }
    Some((program_file?, words.map(|word| word.value).collect()))
}

//! `[telemetry]`: OpenTelemetry collector that receives traces and logs, if there is one.

use super::alerts::read_secret;
use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{ConfigKey, Flag, Section};

/// Environment variable that names the collector by convention.
const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Collector that accepts OTLP over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// Base URL, before `/v1/traces`.
    pub endpoint: String,
    /// Headers of each request, which may contain keys.
    pub headers: Vec<(String, String)>,
    /// True if the collector receives the log lines too.
    pub exports_logs: bool,
}

impl std::fmt::Debug for TelemetrySettings {
    /// Omits the URL and the headers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TelemetrySettings")
            .field("logs", &self.exports_logs)
            .finish_non_exhaustive()
    }
}

const ENABLED: ConfigKey<Flag> = ConfigKey::flag("enabled", true, "");
const LOGS: ConfigKey<Flag> = ConfigKey::flag("logs", true, "sends log lines in addition to spans");

/// Reads `[telemetry]`; `None` if no collector is named.
pub(crate) fn read(mut section: Section<'_>) -> Option<TelemetrySettings> {
    let table = &mut section;
    let is_enabled = ENABLED.read(table);
    let endpoint = read_endpoint(table);
    let telemetry = endpoint.map(|endpoint| TelemetrySettings {
        endpoint,
        headers: read_headers(table),
        exports_logs: LOGS.read(table),
    });
    if telemetry.is_none() {
        table.entry("otlp_headers_file"); // These keys are known, although unused without a collector.
        table.entry("logs");
    }
    section.report_unknown_keys();
    telemetry.filter(|_| is_enabled)
}

fn read_endpoint(table: &mut Section<'_>) -> Option<String> {
    let reader = table.reader;
    let configured = table.nonblank_text("otlp_endpoint");
    let position = configured.as_ref().map_or_else(
        || table.position.child("otlp_endpoint").without_excerpt(),
        |configured| configured.position.clone(),
    );
    let url = configured
        .map(|configured| configured.value)
        .or_else(|| reader.nonempty_env(ENDPOINT_VARIABLE))?;
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        let hint = "such as \"http://127.0.0.1:4318\"; this service speaks OTLP over HTTP";
        reader.report_error(
            &position,
            new_diagnostic("must begin with `http://` or `https://`").with_hint(hint),
        );
        return None;
    }
    Some(url.trim_end_matches('/').to_owned())
}

/// Reads the lines of a file, each a name, a colon and a value.
fn read_headers(table: &mut Section<'_>) -> Vec<(String, String)> {
    let Some(file) = table.nonblank_text("otlp_headers_file") else { return Vec::new() };
    let text = read_secret(table, &file).unwrap_or_default();
    let mut headers = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.split_once(':') {
            Some((name, value)) if is_header_name(name) && !value.trim().is_empty() => {
                table.reader.register_secret_or_warn(&file.position, value.trim());
                headers.push((name.to_lowercase(), value.trim().to_owned()));
            }
            _ => {
                let diagnostic = "must have lines such as `authorization: Bearer …`";
                table.reader.report_error(&file.position, diagnostic);
            }
        }
    }
    headers
}

fn is_header_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

//! `[telemetry]`: the collector of OpenTelemetry that is told what happens, where there is one.

use super::alerts::secret;
use super::fault::said;
use super::section::Section;

/// Where the usual environment names the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A collector that speaks OTLP over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// Its address, before `/v1/traces`.
    pub endpoint: String,
    /// Headers that it wants, which may hold keys.
    pub headers: Vec<(String, String)>,
    /// Whether it is sent the lines of the log too.
    pub logs: bool,
}

impl std::fmt::Debug for Telemetry {
    /// Leaves the address and the headers out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry").field("logs", &self.logs).finish_non_exhaustive()
    }
}

/// Reads `[telemetry]`; nothing where no collector is named.
pub(super) fn read(mut section: Section<'_>) -> Option<Telemetry> {
    let from = &mut section;
    let is_enabled = from.flag("enabled", true);
    let endpoint = endpoint(from);
    let telemetry = endpoint.map(|endpoint| Telemetry {
        endpoint,
        headers: headers(from),
        logs: from.flag("logs", true),
    });
    if telemetry.is_none() {
        from.entry("otlp_headers_file"); // Known, though of no use, as the next.
        from.entry("logs");
    }
    section.finish();
    telemetry.filter(|_| is_enabled)
}

fn endpoint(from: &mut Section<'_>) -> Option<String> {
    let reader = from.reader;
    let given = from.nonblank("otlp_endpoint");
    let place = given
        .as_ref()
        .map_or_else(|| from.place.below("otlp_endpoint").hidden(), |given| given.place.clone());
    let url = given.map(|given| given.value).or_else(|| reader.env(ENDPOINT))?;
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        let hint = "such as \"http://127.0.0.1:4318\"; this service speaks OTLP over HTTP";
        reader.error(&place, said("must begin with `http://` or `https://`").hint(hint));
        return None;
    }
    Some(url.trim_end_matches('/').to_owned())
}

/// The lines of a file, each a name, a colon and a value.
fn headers(from: &mut Section<'_>) -> Vec<(String, String)> {
    let Some(file) = from.nonblank("otlp_headers_file") else { return Vec::new() };
    let text = secret(from, &file).unwrap_or_default();
    let mut headers = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.split_once(':') {
            Some((name, value)) if is_name(name) && !value.trim().is_empty() => {
                from.reader.keep_secret(value.trim());
                headers.push((name.to_lowercase(), value.trim().to_owned()));
            }
            _ => {
                let complaint = "must have lines such as `authorization: Bearer …`";
                from.reader.error(&file.place, complaint);
            }
        }
    }
    headers
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

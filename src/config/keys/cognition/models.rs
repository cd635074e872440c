//! `[models.<prefix>]`: providers of language models.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use algonius_actors::model::agent::model_provider::ModelProvider;

use super::check_name;
use crate::config::diagnostics::Severity;
use crate::config::table::address::{UrlFaultTexts, is_local_url, validate_service_url};
use crate::config::table::credential::{CredentialKeys, read_credential};
use crate::config::table::{RangeWithDefault, Section};

/// Keys that state the provider's API key.
const API_KEY_SETTING_KEYS: CredentialKeys =
    CredentialKeys { inline: "api_key", env: "api_key_env", file: "api_key_file", noun: "key" };
/// Texts of the faults of the address.
const URL_FAULT_TEXTS: UrlFaultTexts = UrlFaultTexts {
    credential_hint: "use `api_key_file` or `api_key_env`",
    no_tls_reason: "the key and the messages would be readable",
    example: "https://models.example.org/v1",
};

/// Bounds of the time of one reply in seconds.
const TIMEOUT_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(1.0, 3600.0, 120.0);
/// Bounds of the number of calls at the same time. A model on this machine gets one call at a time by default.
const CONCURRENCY_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(1, 100, 5);
/// Bounds of the number of calls within a minute. The default for a provider on this machine is the maximum.
const RATE_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(1, 100_000, 60);

/// Reads every provider. A key that is missing is an error for the providers in `used_providers` only.
pub(super) fn read_all(
    root: &mut Section<'_>,
    used_providers: &BTreeSet<&str>,
) -> BTreeMap<String, Option<Arc<ModelProvider>>> {
    let mut providers = BTreeMap::new();
    for (name, section) in root.sections("models") {
        let is_valid = check_name(&section, &name);
        let machine_fault_severity = match used_providers.contains(name.value.as_str()) {
            true => Severity::Error,
            false => Severity::WarningWhileDisabled,
        };
        let provider = read(section, &name.value, machine_fault_severity).filter(|_| is_valid);
        providers.insert(name.value, provider.map(Arc::new));
    }
    providers
}

fn read(
    mut section: Section<'_>,
    name: &str,
    machine_fault_severity: Severity,
) -> Option<ModelProvider> {
    let table = &mut section;
    let allows_http = table.flag("insecure_http", false);
    let url = table.nonblank_text("base_url");
    table.report_if_missing("base_url");
    let url = url.and_then(|url| validate_service_url(table, url, allows_http, &URL_FAULT_TEXTS));
    let is_local = url.as_deref().is_some_and(is_local_url);
    let with_local_default = |bounds: RangeWithDefault<u64>, local_default| match is_local {
        true => RangeWithDefault { default: local_default, ..bounds },
        false => bounds,
    };
    let key = read_credential(table, &API_KEY_SETTING_KEYS, machine_fault_severity);
    let timeout = table.duration("timeout", TIMEOUT_BOUNDS);
    let max_concurrent = table.count("max_concurrent", with_local_default(CONCURRENCY_BOUNDS, 1));
    let rate = table.count("requests_per_minute", with_local_default(RATE_BOUNDS, RATE_BOUNDS.max));
    section.report_unknown_keys();
    Some(ModelProvider {
        name: name.to_owned(),
        base_url: strip_completions_path(url?),
        api_key: key,
        timeout,
        max_concurrent: to_nonzero(max_concurrent),
        requests_per_minute: to_nonzero(rate),
    })
}

/// Returns an address without the path that the service adds: both forms of the address are in use.
fn strip_completions_path(url: String) -> String {
    match url.strip_suffix("/chat/completions") {
        Some(base_url) => base_url.to_owned(),
        None => url,
    }
}

/// Converts a number within the bounds of its key.
fn to_nonzero(count: u64) -> NonZeroU32 {
    u32::try_from(count).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

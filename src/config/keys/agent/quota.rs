//! `[agents.<id>.quota]`: behaviour of an agent whose account has exhausted its quota.

use algonius_actors::model::agent::quota::{DeferralPolicy, QuotaCredential, QuotaSpec};
use algonius_actors::model::program::{ProgramSpec, VariableSecrecy};
use algonius_actors::model::push::Secret;
use sha2::{Digest, Sha256};

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{RangeWithDefault, Section};

/// Greatest pause in seconds, a week: no quota lasts longer.
const MAX_WAIT_SECONDS: f64 = 604_800.0;
/// Greatest length of a credential's name.
const MAX_CREDENTIAL_NAME_BYTES: usize = 64;

/// Reads the section. The account is the address of another service, with the secret that it receives.
pub(crate) fn read(
    mut section: Section<'_>,
    program: Option<&ProgramSpec>,
    address_and_secret: Option<(&str, &Secret)>,
) -> QuotaSpec {
    let default = QuotaSpec::default();
    let DeferralPolicy { max_wait: max, first_wait: first, max_deferrals: times } =
        default.deferral_policy;
    let bounds = |default: std::time::Duration| {
        RangeWithDefault::new(0.0, MAX_WAIT_SECONDS, default.as_secs_f64())
    };
    let times = section.count("max_deferrals", RangeWithDefault::new(0, 1000, times.into()));
    let quota = QuotaSpec {
        deferral_policy: DeferralPolicy {
            max_wait: section.duration("max_wait", bounds(max)),
            first_wait: section.duration("first_wait", bounds(first)),
            max_deferrals: u32::try_from(times).unwrap_or(u32::MAX),
        },
        credential: read_named_credential(&mut section)
            .unwrap_or_else(|| derive_credential(program, address_and_secret)),
        has_breaker: section.flag("breaker", default.has_breaker),
        credential_refusal_pause: section
            .duration("blocked_time", bounds(default.credential_refusal_pause)),
    };
    section.report_unknown_keys();
    quota
}

/// Reads the credential by its configured name.
fn read_named_credential(section: &mut Section<'_>) -> Option<QuotaCredential> {
    let name = section.nonblank_text("credential")?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.value.len() > MAX_CREDENTIAL_NAME_BYTES || !name.value.chars().all(is_plain) {
        let hint = "it is shown: give it a name, not the credential itself";
        let diagnostic =
            new_diagnostic("must be 1 to 64 letters, digits, `-`, `_` or `.`").with_hint(hint);
        section.reader.report_error(&name.position.without_excerpt(), diagnostic);
        return None;
    }
    Some(QuotaCredential::Named(name.value))
}

/// Derives the credential: agents with the same secrets share one; an agent without secrets has its own.
fn derive_credential(
    program: Option<&ProgramSpec>,
    address_and_secret: Option<(&str, &Secret)>,
) -> QuotaCredential {
    let all = program.into_iter().flat_map(|program| &program.env);
    let secrets = all.filter(|(_, variable)| variable.secrecy == VariableSecrecy::Secret);
    let address_and_secret =
        address_and_secret.map(|(address, secret)| (address, secret.0.as_str()));
    let variables = secrets.map(|(name, variable)| (name.as_str(), variable.value.as_str()));
    let secrets: Vec<(&str, &str)> = variables.chain(address_and_secret).collect();
    if secrets.is_empty() {
        return QuotaCredential::Own;
    }
    let mut hash = Sha256::new();
    for (name, secret) in secrets {
        for text in [name, secret] {
            hash.update((text.len() as u64).to_le_bytes()); // The lengths keep different pairs from the same concatenation.
            hash.update(text);
        }
    }
    QuotaCredential::SecretDigest(hash.finalize().into())
}

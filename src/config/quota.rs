//! `[agents.<id>.quota]`: what an agent does when its account has used up what it may.

use algonius_actors::model::program::{ProgramSpec, Secrecy};
use algonius_actors::model::quota::{Credential, Parking, QuotaSpec};
use sha2::{Digest, Sha256};

use super::fault::said;
use super::section::Section;
use super::value::Bounds;

/// A week: no quota lasts longer.
const LONGEST: f64 = 604_800.0;
/// The longest name of a credential.
const NAME: usize = 64;

/// Reads the section.
pub(super) fn read(mut section: Section<'_>, program: Option<&ProgramSpec>) -> QuotaSpec {
    let usual = QuotaSpec::default();
    let Parking { max, usual: first, times } = usual.parking;
    let bounds = |default: std::time::Duration| Bounds::new(0.0, LONGEST, default.as_secs_f64());
    let times = section.count("park_times", Bounds::new(0, 1000, times.into()));
    let quota = QuotaSpec {
        parking: Parking {
            max: section.seconds("park_max", bounds(max)),
            usual: section.seconds("park_default", bounds(first)),
            times: u32::try_from(times).unwrap_or(u32::MAX),
        },
        credential: named(&mut section).unwrap_or_else(|| derived(program)),
        breaker: section.flag("breaker", usual.breaker),
        refused: section.seconds("refused_pause", bounds(usual.refused)),
    };
    section.finish();
    quota
}

/// The credential by the name that it is given.
fn named(section: &mut Section<'_>) -> Option<Credential> {
    let name = section.nonblank("credential")?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.value.len() > NAME || !name.value.chars().all(is_plain) {
        let hint = "it is shown: give it a name, not the credential itself";
        let complaint = said("must be 1 to 64 letters, digits, `-`, `_` or `.`").hint(hint);
        section.reader.error(&name.place.hidden(), complaint);
        return None;
    }
    Some(Credential::Named(name.value))
}

/// Agents with the same secrets share a credential; one without any has one of its own.
fn derived(program: Option<&ProgramSpec>) -> Credential {
    let Some(program) = program else { return Credential::Own };
    let all = program.env.iter();
    let secrets: Vec<_> = all.filter(|(_, set)| set.secrecy == Secrecy::Secret).collect();
    if secrets.is_empty() {
        return Credential::Own;
    }
    let mut hash = Sha256::new();
    for (name, set) in secrets {
        for text in [name, &set.value] {
            hash.update((text.len() as u64).to_le_bytes()); // No two run together.
            hash.update(text);
        }
    }
    Credential::Secret(hash.finalize().into())
}

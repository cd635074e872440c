//! `[server.tls]`: what the service speaks TLS with.

use std::path::PathBuf;

use super::environment::is_open_to_others;
use super::fault::said;
use super::reader::Found;
use super::section::Section;
use crate::tls::Pair;

/// What was found of `[server.tls]`.
pub(super) struct Secured {
    /// Whether TLS is wanted, though it may not be had.
    pub(super) is_given: bool,
    /// What it is spoken with.
    pub(super) pair: Option<Pair>,
}

/// Reads `[server.tls]` and its files. A key that others may read is worth a warning.
pub(super) fn read(server: &mut Section<'_>) -> Secured {
    let is_given = server.has("tls");
    let mut section = server.section("tls");
    let (cert, key) = (file(&mut section, "cert", is_given), file(&mut section, "key", is_given));
    let pair = cert.zip(key).map(|(cert, key)| pair(&section, &cert, &key));
    section.finish();
    Secured { is_given, pair }
}

/// One of the two files, which belong together.
fn file(section: &mut Section<'_>, key: &'static str, is_needed: bool) -> Option<Found<PathBuf>> {
    let is_lacking = is_needed && !section.has(key);
    let path = section.nonblank(key);
    if is_lacking {
        section.reader.error(&section.place.below(key).hidden(), "is needed");
    }
    let path = path?;
    Some(Found { value: section.reader.resolve(&path.value), place: path.place })
}

fn pair(section: &Section<'_>, cert: &Found<PathBuf>, key: &Found<PathBuf>) -> Pair {
    let reader = section.reader;
    let pair = Pair { cert: cert.value.clone(), key: key.value.clone() };
    if let Err(error) = pair.read() {
        let place = if error.file() == pair.key { &key.place } else { &cert.place };
        reader.error(place, error.to_string());
    }
    if is_open_to_others(&pair.key) {
        reader.warning(&key.place, said("others may read this file").hint("chmod 600 it"));
    }
    pair
}

//! `[agents.<id>.a2a]` and `[agents.<id>.auth]`: what of an agent others can reach, and who.

use std::sync::Arc;

use algonius_actors::model::exposure::{
    Binding, Credential, Exposure, MessageIds, Operation, RateLimit, Version,
};
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Right, Scope, TokenSeed};
use sha2::{Digest, Sha256};

use super::fault::said;
use super::reader::Found;
use super::section::Section;
use super::shape::Shape;
use super::tokens;
use super::value::Bounds;

/// Beginnings of paths that are the service's own.
const OWN: [&str; 6] = ["agents", "api", "a2a", "status", "health", "metrics"];
/// Headers that cannot hold a key, because they mean something else.
const TAKEN: [&str; 7] =
    ["authorization", "connection", "content-length", "content-type", "cookie", "host", "origin"];

/// The rules about message ids, by their words.
const MESSAGE_IDS: [(&str, MessageIds); 2] =
    [("unique", MessageIds::Unique), ("reused", MessageIds::Reused)];

/// The doors of all agents, as far as they are read.
pub(super) struct Doors {
    /// Whether only this machine reaches the service.
    pub(super) is_loopback: bool,
    /// Every token so far.
    pub(super) tokens: Vec<TokenSeed>,
    /// Every path of an agent's own so far.
    pub(super) paths: Vec<String>,
    /// What most agents are: exposed as usual. They share it.
    pub(super) usual: Arc<Exposure>,
}

/// Reads what others can reach of an agent.
pub(super) fn read(agent: &mut Section<'_>, id: &AgentId, doors: &mut Doors) -> Arc<Exposure> {
    let mut section = agent.section("a2a");
    let from = &mut section;
    let usual = Arc::clone(&doors.usual);
    let exposure = Exposure {
        versions: words(from, "versions", Version::ALL, Version::as_str),
        bindings: words(from, "bindings", Binding::ALL, Binding::as_str),
        base_path: base_path(from, id, doors),
        operations: operations(from),
        input_modes: modes(from, "input_modes").unwrap_or_else(|| usual.input_modes.clone()),
        output_modes: modes(from, "output_modes").unwrap_or_else(|| usual.output_modes.clone()),
        rate_limit: rate_limit(from),
        message_ids: from
            .word("message_ids", &MESSAGE_IDS)
            .map(|word| word.value)
            .unwrap_or_default(),
        ..Exposure::default()
    };
    section.finish();
    let raw = agent.flag("return_raw", false);
    let (credential, open) = auth(agent.section("auth"), id, doors);
    let exposure = Exposure { credential, open, raw, ..exposure };
    if exposure == *usual { usual } else { Arc::new(exposure) }
}

/// Some of the words there are; all of them when none is given.
fn words<T: Copy + PartialEq>(
    section: &mut Section<'_>,
    key: &'static str,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Vec<T> {
    let reader = section.reader;
    let given = section.texts(key);
    section.note(key, || Shape::Words(all.iter().map(|word| as_str(*word).to_owned()).collect()));
    let Some(given) = given else { return all.to_vec() };
    if given.is_empty() {
        reader.error(&section.place.below(key).hidden(), "must name one at least");
    }
    let mut chosen = Vec::new();
    for word in given {
        match all.iter().find(|known| as_str(**known) == word.value) {
            Some(known) if chosen.contains(known) => {}
            Some(known) => chosen.push(*known),
            None => {
                let known = all.iter().map(|known| as_str(*known));
                reader.error(&word.place, said("is not known").among(&word.value, known));
            }
        }
    }
    chosen
}

/// What may be asked: the listed methods, less what is switched off.
fn operations(section: &mut Section<'_>) -> Vec<Operation> {
    let mut operations = words(section, "methods", Operation::ALL, Operation::as_str);
    for (key, parts) in [
        ("streaming", &[Operation::Stream, Operation::Subscribe][..]),
        ("push", &[Operation::Push]),
        ("extended_card", &[Operation::ExtendedCard]),
    ] {
        if !section.flag(key, true) {
            operations.retain(|operation| !parts.contains(operation));
        }
    }
    operations
}

/// Another beginning of the agent's paths. It may be written with the `/v1` that follows it.
fn base_path(section: &mut Section<'_>, id: &AgentId, doors: &mut Doors) -> Option<String> {
    let text = section.nonblank("base_path")?;
    let path = text.value.trim_end_matches('/');
    let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
    if path == format!("/agents/{id}") {
        return None;
    }
    let names: Vec<_> = path.split('/').skip(1).collect();
    let is_name = |name: &&str| {
        let known = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        !name.is_empty() && name.chars().all(known)
    };
    let begins = |path: &str, other: &str| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let complaint = if !path.starts_with('/') || !names.iter().all(is_name) {
        "must be a path of the characters A-Z a-z 0-9 _ -, such as \"/bots/x\""
    } else if names.first().is_some_and(|first| OWN.contains(first)) {
        "begins like a path of the service itself"
    } else if doors.paths.iter().any(|other| begins(&path, other) || begins(other, &path)) {
        "is, or lies within, the path of another agent"
    } else {
        doors.paths.push(path.clone());
        return Some(path);
    };
    section.reader.error(&text.place, complaint);
    None
}

/// Media types; `*/*` is any.
fn modes(section: &mut Section<'_>, key: &'static str) -> Option<Vec<String>> {
    let texts = section.texts(key)?;
    let is_part = |part: &str| {
        let known = |letter: char| letter.is_ascii_alphanumeric() || "-+._*".contains(letter);
        !part.is_empty() && part.chars().all(known)
    };
    if texts.is_empty() {
        section.reader.error(&section.place.below(key).hidden(), "must name one at least");
    }
    let sound = texts.into_iter().filter_map(|text| {
        let parts = text.value.split_once('/');
        if parts.is_some_and(|(whole, part)| is_part(whole) && is_part(part)) {
            return Some(text.value.to_ascii_lowercase());
        }
        section.reader.error(&text.place, "must be a media type such as \"text/plain\"");
        None
    });
    Some(sound.collect())
}

/// How many calls are taken in a time.
fn rate_limit(section: &mut Section<'_>) -> Option<RateLimit> {
    let is_given = section.has("rate_limit");
    let mut limit = section.section("rate_limit");
    let per_second = limit.number("requests_per_second", Bounds::new(0.001, 1e6, 10.0));
    let burst = limit.count("burst", Bounds::new(1, 1_000_000, 10));
    limit.finish();
    let burst = u32::try_from(burst).unwrap_or(u32::MAX);
    is_given.then_some(RateLimit { per_second, burst })
}

/// What proves who a caller is, as written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    Bearer,
    ApiKey,
    Nothing,
}

const PROOFS: [(&str, Proof); 4] = [
    ("bearer", Proof::Bearer),
    ("api_key", Proof::ApiKey),
    ("none", Proof::Nothing),
    ("bearer_token", Proof::Bearer),
];

/// Reads `auth`: how callers prove who they are, and whether they need not.
fn auth(mut section: Section<'_>, id: &AgentId, doors: &mut Doors) -> (Credential, bool) {
    let from = &mut section;
    let proof = from.word("type", &PROOFS).map_or(Proof::Bearer, |found| found.value);
    let name = from.nonblank("name");
    if proof == Proof::ApiKey || from.has("token_env") || from.has("token_file") {
        token(from, id, name, doors);
    }
    let header = header(from, proof);
    let is_open = !from.flag("required", proof != Proof::Nothing);
    let is_insecure = from.flag("insecure", false);
    if is_open && !(is_insecure && doors.is_loopback) {
        let complaint = said("lets everybody in who reaches the service")
            .hint("this needs `insecure = true`, and a `server.listen` that is on loopback");
        from.reader.error(&from.place.clone().hidden(), complaint);
    }
    if !is_open && proof == Proof::Nothing {
        from.reader.error(&from.place.below("required"), "cannot be with `type = \"none\"`");
    }
    section.finish();
    let credential = match proof {
        Proof::Bearer => Credential::Bearer,
        Proof::ApiKey => Credential::ApiKey(header),
        Proof::Nothing => Credential::Nothing,
    };
    (credential, is_open)
}

/// The agent's own token: it is good for this agent only, to read and to run.
fn token(section: &mut Section<'_>, id: &AgentId, name: Option<Found<String>>, doors: &mut Doors) {
    let place = section.place.clone().hidden();
    let name = name.map_or_else(|| format!("agent:{id}"), |name| name.value);
    let found = Found { value: name, place };
    let Some(text) = tokens::text(section, &found) else { return };
    let hash = Sha256::digest(text).into();
    if let Some(other) = doors.tokens.iter().find(|other| other.hash == hash) {
        let complaint = format!("has the same text as the token `{}`", other.name);
        section.reader.error(&found.place, complaint);
    }
    let scope = Scope { rights: vec![Right::Read, Right::Run], agents: Some(vec![id.clone()]) };
    doors.tokens.push(TokenSeed { name: found.value, hash, scope, expires: None });
}

/// The header of the key.
fn header(section: &mut Section<'_>, proof: Proof) -> String {
    let usual = "x-api-key".to_owned();
    let Some(text) = section.nonblank("header") else { return usual };
    let name = text.value.to_ascii_lowercase();
    let known = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let complaint = if proof != Proof::ApiKey {
        "has a meaning with `type = \"api_key\"` only"
    } else if !name.chars().all(known) || TAKEN.contains(&name.as_str()) {
        "must be the name of a header of its own, such as \"X-API-Key\""
    } else {
        return name;
    };
    section.reader.error(&text.place, complaint);
    usual
}

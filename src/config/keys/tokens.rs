//! `[tokens.<name>]`: tokens with their rights and agents.

use std::collections::BTreeMap;

use algonius_actors::model::access::principal::{NewToken, Right, Scope};
use algonius_actors::model::id::AgentId;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use toml::de::DeValue;

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{Positioned, Section, ValueShape, value};

/// Least number of characters of a token.
const MIN_TOKEN_CHARS: usize = 32;

/// Reads every token; `agents` are the ids that exist.
pub(crate) fn read(root: &mut Section<'_>, agents: &[AgentId]) -> Vec<NewToken> {
    let reader = root.reader;
    let mut names_by_hash: BTreeMap<[u8; 32], String> = BTreeMap::new();
    let mut new_tokens = Vec::new();
    for (name, section) in root.sections("tokens") {
        if name.value.trim().is_empty() || name.value.chars().count() > 64 {
            reader.report_error(&name.position, "the name must have 1 to 64 characters");
        }
        let Some(new_token) = read_token(section, &name, agents) else { continue };
        if let Some(other) = names_by_hash.insert(new_token.hash, name.value.clone()) {
            reader
                .report_error(&name.position, format!("has the same text as the token `{other}`"));
        }
        new_tokens.push(new_token);
    }
    new_tokens
}

/// Reads one token.
fn read_token(
    mut section: Section<'_>,
    name: &Positioned<String>,
    agents: &[AgentId],
) -> Option<NewToken> {
    let text = read_token_text(&mut section, name);
    let rights = read_rights(&mut section);
    let agents = read_allowed_agents(&mut section, agents);
    let expires = read_expiry(&mut section);
    section.report_unknown_keys();
    let hash = Sha256::digest(text?).into();
    Some(NewToken {
        name: name.value.clone(),
        hash,
        scope: Scope { rights, agents },
        expires_at: expires,
    })
}

/// Returns the token's text, from one of two sources, and registers it for redaction.
pub(crate) fn read_token_text(
    section: &mut Section<'_>,
    name: &Positioned<String>,
) -> Option<String> {
    let reader = section.reader;
    if let Some(inline) = section.entry("token") {
        let diagnostic =
            new_diagnostic("a token is not written into the configuration, which is read by many")
                .with_hint("use `token_file` or `token_env`");
        reader.report_error(&inline.position.without_excerpt(), diagnostic);
        section.entry("token_env");
        section.entry("token_file");
        return None;
    }
    let sources = (section.nonblank_text("token_env"), section.nonblank_text("token_file"));
    let (token_text, position) = match sources {
        (Some(env), None) => (reader.credential_env(&env.value), env.position),
        (None, Some(file)) => (read_token_file(section, &file), file.position),
        (Some(_), Some(file)) => {
            (Err("give one of `token_env`, `token_file`".into()), file.position)
        }
        (None, None) => (Err("needs `token_env` or `token_file`".into()), name.position.clone()),
    };
    // Editors and `echo` end a file with a line break, which is no part of the token.
    let text = token_text.and_then(|text| validate_token(text.trim_end_matches(['\n', '\r'])));
    match text {
        Ok(text) => {
            reader.register_secret(&text);
            Some(text)
        }
        Err(message) => {
            reader.report_error(&position.without_excerpt(), message);
            None
        }
    }
}

/// Returns the text of a token file.
fn read_token_file(section: &Section<'_>, file: &Positioned<String>) -> Result<String, String> {
    let path = section.reader.resolve_path(&file.value);
    section.reader.read_secret_file(&path).map_err(|error| format!("cannot be read: {error}"))
}

/// Checks that a text may be a token.
fn validate_token(text: &str) -> Result<String, String> {
    if text.chars().count() < MIN_TOKEN_CHARS {
        return Err(format!("the token must have {MIN_TOKEN_CHARS} characters at least"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the token must be of visible ASCII characters without spaces".into());
    }
    Ok(text.to_owned())
}

/// Reads the rights of a token: to read and to run by default.
fn read_rights(section: &mut Section<'_>) -> Vec<Right> {
    let reader = section.reader;
    let words = section.text_list("scopes");
    section.record_shape("scopes", || {
        ValueShape::KeywordList(Right::ALL.iter().map(|right| right.as_str().to_owned()).collect())
    });
    let Some(words) = words else { return vec![Right::Read, Right::Run] };
    if words.is_empty() {
        reader.report_error(
            &section.position.child("scopes").without_excerpt(),
            "must name one scope at least",
        );
    }
    let mut rights = Vec::new();
    for word in words {
        match Right::parse(&word.value) {
            Some(right) if rights.contains(&right) => {}
            Some(right) => rights.push(right),
            None => {
                let known = Right::ALL.iter().map(|right| right.as_str());
                reader.report_error(
                    &word.position,
                    new_diagnostic("unknown scope").suggest_from(&word.value, known),
                );
            }
        }
    }
    rights
}

/// Reads the agents for which a token is valid; `None` is all of them.
fn read_allowed_agents(section: &mut Section<'_>, agents: &[AgentId]) -> Option<Vec<AgentId>> {
    let words = section.text_list("agents")?;
    let known = words.iter().filter_map(|word| find_agent(section, word, agents));
    Some(known.collect())
}

/// Returns the agent with that id; a fault if there is none.
pub(crate) fn find_agent(
    section: &Section<'_>,
    word: &Positioned<String>,
    agents: &[AgentId],
) -> Option<AgentId> {
    let agent = agents.iter().find(|agent| agent.as_str() == word.value);
    if agent.is_none() {
        let known = agents.iter().map(AgentId::as_str);
        section.reader.report_error(
            &word.position,
            new_diagnostic("there is no such agent").suggest_from(&word.value, known),
        );
    }
    agent.cloned()
}

/// Reads the expiry time of a token.
fn read_expiry(section: &mut Section<'_>) -> Option<DateTime<Utc>> {
    section.record_shape("expires", || ValueShape::Date);
    let entry = section.entry("expires")?;
    let date_text = match entry.value {
        DeValue::Datetime(date) => date.to_string(),
        DeValue::String(text) => text.to_string(),
        _ => {
            value::report_type_mismatch(section.reader, &entry, "a date and time");
            return None;
        }
    };
    let parsed = DateTime::parse_from_rfc3339(&date_text).ok();
    if parsed.is_none() {
        let diagnostic =
            new_diagnostic("must be a date and time with its zone, such as 2030-01-31T12:00:00Z");
        section.reader.report_error(&entry.position, diagnostic);
    }
    parsed.map(|date| date.with_timezone(&Utc))
}

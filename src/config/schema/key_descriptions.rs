//! Descriptions of keys from the comments of the shipped configuration.

use std::collections::BTreeMap;

/// Returns the comment beside each key by its path: `*` stands for a name, `[]` for an item of a list. A commented-out
/// key counts like any other.
pub(in crate::config) fn from_comments(config_text: &str) -> BTreeMap<String, String> {
    let mut descriptions: BTreeMap<String, String> = BTreeMap::new();
    let (mut table, mut last_path) = (String::new(), None);
    for line in config_text.lines() {
        if let (Some(continued_text), Some(path)) = (continuation(line), &last_path) {
            let text = descriptions.entry(String::clone(path)).or_default();
            text.push(' ');
            text.push_str(continued_text);
            continue;
        }
        last_path = None;
        let line = line.strip_prefix("# ").unwrap_or(line);
        if let Some(header) = parse_table_header(line) {
            table = header;
        } else if let Some((key, rest)) = line.split_once(" = ").filter(|(key, _)| is_key(key)) {
            let path = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            let comment = rest.split_once(" # ").map_or("", |(_, comment)| comment.trim());
            descriptions.entry(path.clone()).or_insert_with(|| comment.to_owned());
            last_path = Some(path);
        }
    }
    descriptions
}

/// Returns the continuation of the previous line's comment: the line has only a comment, far to the right.
fn continuation(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('#').unwrap_or(line);
    let text = inner.trim_start().strip_prefix("# ")?;
    inner.starts_with("                ").then_some(text.trim_end())
}

/// Returns the path of the table whose header is on the line.
fn parse_table_header(line: &str) -> Option<String> {
    let list_path = line.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
    let table_path =
        line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(path, _)| path);
    let mut keys: Vec<&str> = list_path.or(table_path)?.split('.').collect();
    if !keys
        .iter()
        .all(|key| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)))
    {
        return None;
    }
    match keys.as_mut_slice() {
        ["agents" | "models" | "schedules" | "tokens" | "tools", name, ..]
        | ["mcp", "servers", name, ..] => *name = "*",
        _ => {}
    }
    // The inputs of a tool have names that its writer chooses.
    if let ["tools", _, "inputs", input] = keys.as_mut_slice() {
        *input = "*";
    }
    keys.extend(list_path.map(|_| "[]"));
    Some(keys.join("."))
}

fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte))
}

//! `algonius token`: manages tokens at run time.

use serde_json::{Value, json};

use super::args::token::CreateTokenArgs;
use super::client::ServiceClient;
use super::error::CliError;
use super::output::CliOutput;
use crate::wire::admin::{CreatedToken, TokenEntry, TokenList, TokenRequest};

/// Creates a token. Its text is the only line on standard output.
pub(super) async fn create(
    client: &ServiceClient,
    args: CreateTokenArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    let CreateTokenArgs { name, scopes, agents, expires, replace } = args;
    if out.is_discarded() {
        return Err(CliError::TokenDiscarded { name }); // Nobody could read the text again.
    }
    let non_empty = |words: Vec<String>| (!words.is_empty()).then_some(words);
    let (scopes, agents) = (non_empty(scopes), non_empty(agents));
    let request = json!(TokenRequest { name: name.clone(), scopes, agents, expires, replace });
    let created: CreatedToken = client.post("/api/v1/tokens", request).await?;
    match out.is_json() {
        true => out.print_json(&created),
        false => out.print_line(&created.token),
    }
    out.take_write_error().map_err(|source| CliError::TokenOutput { name, source })?;
    if !out.is_json() {
        out.print_note("this text is shown this once");
    }
    Ok(())
}

/// Lists tokens.
pub(super) async fn list(client: &ServiceClient, out: &CliOutput) -> Result<(), CliError> {
    let list: TokenList = client.get("/api/v1/tokens").await?;
    if out.is_json() {
        out.print_json(&list);
        return Ok(());
    }
    let rows = list.tokens.iter().map(row).collect();
    out.print_table(["NAME", "SCOPES", "AGENTS", "EXPIRES", "ORIGIN"], rows, "no tokens");
    Ok(())
}

fn row(entry: &TokenEntry) -> [String; 5] {
    let agents = entry.agents.as_ref().map_or("all".to_owned(), |agents| agents.join(","));
    let format_time =
        |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%d %H:%M:%SZ").to_string();
    let expires = entry.expires.map_or("never".to_owned(), format_time);
    [entry.name.clone(), entry.scopes.join(","), agents, expires, entry.origin.clone()]
}

/// Revokes a token.
pub(super) async fn revoke(
    client: &ServiceClient,
    name: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    let name: String = name.bytes().map(percent_encode_byte).collect();
    let response: Value = client.delete(&format!("/api/v1/tokens/{name}")).await?;
    print_result(&response, "revoked", out);
    Ok(())
}

/// Replaces the text of the operator's token.
pub(super) async fn rotate_operator_token(
    client: &ServiceClient,
    out: &CliOutput,
) -> Result<(), CliError> {
    let response: Value = client.post("/api/v1/operator/rotate", json!({})).await?;
    print_result(&response, "rotated the operator token in its file", out);
    Ok(())
}

fn print_result(response: &Value, text: &str, out: &CliOutput) {
    if out.is_json() {
        out.print_json(response);
    } else {
        out.print_line(text);
    }
}

/// Escapes a byte for a path.
fn percent_encode_byte(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

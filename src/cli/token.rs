//! `algonius token`: manages tokens at run time.

use serde_json::{Value, json};

use super::args::NewToken;
use super::client::ServiceClient;
use super::error::CliError;
use super::output::Out;
use crate::wire::admin::{CreatedToken, TokenEntry, TokenList, TokenRequest};

/// Creates a token. Its text is the only line on standard output.
pub(super) async fn create(
    client: &ServiceClient,
    new: NewToken,
    out: &Out,
) -> Result<(), CliError> {
    let NewToken { name, scopes, agents, expires, replace } = new;
    let given = |words: Vec<String>| (!words.is_empty()).then_some(words);
    let (scopes, agents) = (given(scopes), given(agents));
    let order = json!(TokenRequest { name, scopes, agents, expires, replace });
    let made: CreatedToken = client.post("/api/v1/tokens", order).await?;
    if out.is_json() {
        out.shape(&made);
        return Ok(());
    }
    out.line(&made.token);
    out.note("this text is shown this once");
    Ok(())
}

/// Lists tokens.
pub(super) async fn list(client: &ServiceClient, out: &Out) -> Result<(), CliError> {
    let list: TokenList = client.get("/api/v1/tokens").await?;
    if out.is_json() {
        out.shape(&list);
        return Ok(());
    }
    let rows = list.tokens.iter().map(row).collect();
    out.table(["NAME", "SCOPES", "AGENTS", "EXPIRES", "ORIGIN"], rows, "no tokens");
    Ok(())
}

fn row(entry: &TokenEntry) -> [String; 5] {
    let agents = entry.agents.as_ref().map_or("all".to_owned(), |agents| agents.join(","));
    let time = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%d %H:%M:%SZ").to_string();
    let expires = entry.expires.map_or("never".to_owned(), time);
    [entry.name.clone(), entry.scopes.join(","), agents, expires, entry.origin.clone()]
}

/// Revokes a token.
pub(super) async fn revoke(client: &ServiceClient, name: &str, out: &Out) -> Result<(), CliError> {
    let name: String = name.bytes().map(escaped).collect();
    let told: Value = client.delete(&format!("/api/v1/tokens/{name}")).await?;
    done(&told, "revoked", out);
    Ok(())
}

/// Replaces the text of the operator's token.
pub(super) async fn rotate(client: &ServiceClient, out: &Out) -> Result<(), CliError> {
    let told: Value = client.post("/api/v1/operator/rotate", json!({})).await?;
    done(&told, "rotated the operator token in its file", out);
    Ok(())
}

fn done(told: &Value, text: &str, out: &Out) {
    if out.is_json() {
        out.shape(told);
    } else {
        out.line(text);
    }
}

/// Escapes a byte for a path.
fn escaped(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

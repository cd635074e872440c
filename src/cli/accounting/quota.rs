//! `algonius quota`: lists accounts with their state, and reopens an account.

use algonius_actors::model::agent::quota::DeferralCause;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::observation::account_status::{AccountState, AccountStatus};
use serde_json::json;

use crate::cli::args::quota::QuotaCommand;
use crate::cli::client::ServiceClient;
use crate::cli::client::percent_encoding::percent_encode;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::wire::api::quota::AccountList;

/// Runs the command.
pub(crate) async fn run(
    client: &ServiceClient,
    command: QuotaCommand,
    out: &CliOutput,
) -> Result<(), CliError> {
    match command {
        QuotaCommand::List => list(client, out).await,
        QuotaCommand::Reopen { account } => reopen(client, &account, out).await,
    }
}

async fn list(client: &ServiceClient, out: &CliOutput) -> Result<(), CliError> {
    let list: AccountList = client.get("/api/v1/quota").await?;
    if out.is_json() {
        out.print_json(&list);
        return Ok(());
    }
    let rows = list.accounts.iter().map(account_row).collect();
    out.print_table(["ACCOUNT", "STATE", "UNTIL", "REASON", "AGENTS"], rows, "no agents");
    if list.accounts.iter().any(|account| account.state != AccountState::Available) {
        out.print_note("hint: `algonius quota reopen ACCOUNT` lets work begin at once");
    }
    Ok(())
}

fn account_row(account: &AccountStatus) -> [String; 5] {
    let until = account.until.map(|until| until.format("%Y-%m-%d %H:%M:%SZ").to_string());
    let agents: Vec<_> = account.agents.iter().map(AgentId::as_str).collect();
    [
        account.account.to_string(),
        state_text(account.state).to_owned(),
        until.unwrap_or_else(|| "-".to_owned()),
        account.cause.map_or("-", cause_text).to_owned(),
        agents.join(","),
    ]
}

const fn state_text(state: AccountState) -> &'static str {
    match state {
        AccountState::Available => "available",
        AccountState::Blocked => "blocked",
        AccountState::Probing => "probing",
    }
}

/// Returns the reason in words.
const fn cause_text(cause: DeferralCause) -> &'static str {
    match cause {
        DeferralCause::QuotaExhausted => "the quota is used up",
        DeferralCause::CredentialRefused => "the credential was not accepted",
        DeferralCause::RateLimited => "the rate of requests is limited",
        DeferralCause::Overloaded => "the provider is overloaded",
    }
}

async fn reopen(client: &ServiceClient, account: &str, out: &CliOutput) -> Result<(), CliError> {
    let path = format!("/api/v1/quota/{}/reopen", percent_encode(account));
    let account: AccountStatus = client.post(&path, json!({})).await?;
    if out.is_json() {
        out.print_json(&account);
    } else {
        out.print_line(&format!("account {} is {}", account.account, state_text(account.state)));
    }
    Ok(())
}

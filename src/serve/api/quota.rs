//! Accounts that agents use: their state, and the reopening of an account.

use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::observation::account_status::AccountStatus;
use axum::extract::State;
use axum::response::Response;

use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::quota::AccountList;

/// Lists the accounts of the agents that the caller may use.
///
/// # Errors
/// `forbidden`.
pub async fn list(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    Ok(ok_response(&to_json(&AccountList {
        accounts: visible_accounts(&app, &caller, Right::Read),
    })?))
}

/// Reopens an account, whatever the reason for which it is closed. Executions that wait for the account continue at
/// once.
///
/// # Errors
/// `account-unknown`, or `forbidden` for an account that is shared by agents outside the caller's scope.
pub async fn reopen(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(name): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Admin, None)?;
    let find_account = |accounts: Vec<AccountStatus>| {
        accounts.into_iter().find(|account| account.account.0 == name)
    };
    let unknown = || Failure::new(Code::AccountUnknown, "no agent works under this account");
    let visible_account =
        find_account(visible_accounts(&app, &caller, Right::Admin)).ok_or_else(unknown)?;
    let unfiltered_account =
        find_account(app.api.reader.account_statuses(app.agents.all().map(|spec| &**spec)));
    // Reopening an account lets all its agents send requests that may cost money.
    if unfiltered_account.is_some_and(|full_account| full_account.agents != visible_account.agents)
    {
        let message = "other agents, which the token does not allow, share this account";
        return Err(Failure::new(Code::Forbidden, message).into());
    }
    if app.api.tree.breakers().unblock(&visible_account.account) {
        tracing::info!(account = %visible_account.account, "account reopened by an operator");
    }
    let reopened_account =
        find_account(visible_accounts(&app, &caller, Right::Admin)).ok_or_else(unknown)?;
    Ok(ok_response(&to_json(&reopened_account)?))
}

fn visible_accounts(app: &AppState, caller: &Caller, right: Right) -> Vec<AccountStatus> {
    let visible_specs = app.agents.all().filter(|spec| caller.scope.allows(right, Some(&spec.id)));
    app.api.reader.account_statuses(visible_specs.map(|spec| &**spec))
}

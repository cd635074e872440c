//! Names of the set environment variables of the service, for an administrator who prepares an agent.

use std::env;
use std::path::PathBuf;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::require_global_admin;
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::admin::{EnvironmentStatus, VariableEntry};

/// Maximum number of variables in one request.
const MAX_VARIABLE_NAMES: usize = 200;
/// Maximum number of characters of a name.
const MAX_NAME_LENGTH: usize = 128;

/// Requested variables and configuration file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentQuery {
    /// Names of variables, separated by commas: at most 200.
    #[schemars(regex(
        pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}(,[A-Za-z_][A-Za-z0-9_]{0,127}){0,199}$"
    ))]
    names: Option<String>,
    /// Absolute path of a configuration file: the response states whether the service reads this file.
    file: Option<PathBuf>,
}

/// Returns the names of the variables that are set, never their values.
///
/// # Errors
/// `forbidden`, `invalid-params`.
pub async fn environment(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    query: Result<Query<EnvironmentQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    require_global_admin(caller)?;
    let query = query.map(|Query(query)| query).map_err(|_rejected| invalid_query())?;
    let names: Vec<_> = query.names.iter().flat_map(|names| names.split(',')).collect();
    if names.len() > MAX_VARIABLE_NAMES || !names.iter().all(|name| is_variable_name(name)) {
        return Err(invalid_query().into());
    }
    let variables = names
        .into_iter()
        .map(|name| VariableEntry { name: name.to_owned(), set: env::var_os(name).is_some() });
    let status = EnvironmentStatus {
        variables: variables.collect(),
        reads_file: app.admin.reads_config_file(query.file.as_deref()),
    };
    Ok(ok_response(&to_json(&status)?))
}

fn invalid_query() -> Failure {
    let message = "the query takes `names`, up to 200 names of variables with commas, and `file`";
    Failure::new(Code::InvalidParams, message)
}

fn is_variable_name(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_validly = text.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    starts_validly && text.len() <= MAX_NAME_LENGTH && text.bytes().all(is_word)
}

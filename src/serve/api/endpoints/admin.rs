//! Operations of administrators.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;

use crate::serve::api::endpoint::ApiEndpoint;
use crate::serve::ops::admin;
use crate::wire::admin::{
    CreatedToken, EnvironmentStatus, ReloadRejection, ReloadResult, TokenList, TokenRequest,
};
use crate::wire::api::service::Empty;

pub(super) fn operations() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/tokens", admin::list_tokens)
            .with_operation(
                "listTokens",
                "List tokens whose scopes the token of the caller includes.",
            )
            .with_required_right(Right::Admin)
            .with_response::<TokenList>(200, "The tokens without their secrets.")
            .with_errors(&[Code::LedgerUnavailable, Code::Draining]),
        ApiEndpoint::post("/api/v1/tokens", admin::create_token)
            .with_operation(
                "createToken",
                "Create a token. Only this response contains its secret.",
            )
            .with_required_right(Right::Admin)
            .with_body::<TokenRequest>()
            .with_response::<CreatedToken>(201, "The token with its secret.")
            .with_errors(&[Code::TokenExists, Code::LedgerUnavailable, Code::Draining]),
        ApiEndpoint::delete("/api/v1/tokens/{name}", admin::revoke_token)
            .with_operation("revokeToken", "Revoke a token that was created through this API.")
            .with_required_right(Right::Admin)
            .with_path_parameter::<String>("name", "Name of the principal of the token.")
            .with_response::<Empty>(200, "The token is revoked.")
            .with_errors(&[Code::TokenUnknown, Code::LedgerUnavailable, Code::Draining]),
        ApiEndpoint::post("/api/v1/operator/rotate", admin::rotate_operator_token)
            .with_operation("rotateOperatorToken", "Replace the token of the operator in its file.")
            .with_required_right(Right::Admin)
            .with_response::<Empty>(200, "The previous token is revoked.")
            .with_errors(&[Code::LedgerUnavailable, Code::Draining]),
        ApiEndpoint::post("/api/v1/reload", admin::reload)
            .with_operation(
                "reloadConfiguration",
                "Reload the configuration and apply its changes.",
            )
            .with_required_right(Right::Admin)
            .with_response::<ReloadResult>(200, "Result of the reload.")
            .with_error_body::<ReloadRejection>(Code::ConfigurationRejected)
            .with_errors(&[Code::LedgerUnavailable, Code::Draining]),
        ApiEndpoint::get("/api/v1/environment", admin::environment)
            .with_operation(
                "getEnvironment",
                "List which environment variables of the service are set, without their values.",
            )
            .with_required_right(Right::Admin)
            .with_query::<admin::EnvironmentQuery>()
            .with_response::<EnvironmentStatus>(200, "Variables with their state."),
    ]
}

//! Operations of administrators.

use algonius_actors::model::code::Code;
use algonius_actors::model::principal::Right;

use crate::serve::admin;
use crate::serve::api::operation::Operation;
use crate::wire::admin::{ReloadRejected, Reloaded, TokenList, TokenMade, TokenOrder};
use crate::wire::api::service::Done;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/tokens", admin::tokens)
            .called("listTokens", "Tokens that allow no more than the caller's own.")
            .needs(Right::Admin)
            .tells::<TokenList>(200, "The tokens, without their texts.")
            .refuses(&[Code::LedgerUnavailable, Code::Draining]),
        Operation::post("/api/v1/tokens", admin::make)
            .called("makeToken", "Makes a token, and tells its text this once.")
            .needs(Right::Admin)
            .takes::<TokenOrder>()
            .tells::<TokenMade>(201, "The token with its text.")
            .refuses(&[Code::TokenExists, Code::LedgerUnavailable, Code::Draining]),
        Operation::delete("/api/v1/tokens/{name}", admin::revoke)
            .called("revokeToken", "Removes a token that was made while the service ran.")
            .needs(Right::Admin)
            .names::<String>("name", "The name of the token's principal.")
            .tells::<Done>(200, "It counts no longer.")
            .refuses(&[Code::TokenUnknown, Code::LedgerUnavailable, Code::Draining]),
        Operation::post("/api/v1/operator/rotate", admin::rotate)
            .called("rotateOperator", "Gives the operator's token another text, in its file.")
            .needs(Right::Admin)
            .tells::<Done>(200, "The text before counts no longer.")
            .refuses(&[Code::LedgerUnavailable, Code::Draining]),
        Operation::post("/api/v1/reload", admin::reload)
            .called("reload", "Reads the configuration again, and applies what can be applied.")
            .needs(Right::Admin)
            .tells::<Reloaded>(200, "What came of it.")
            .refuses_with::<ReloadRejected>(Code::ConfigurationRejected)
            .refuses(&[Code::LedgerUnavailable, Code::Draining]),
    ]
}

//! Operations on accounts.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::observation::account_status::AccountStatus;

use crate::serve::api::endpoint::ApiEndpoint;
use crate::serve::api::quota;
use crate::wire::api::quota::AccountList;

pub(super) fn operations() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/quota", quota::list)
            .with_operation(
                "listAccounts",
                "List the accounts of agents with state, cause and time.",
            )
            .with_required_right(Right::Read)
            .with_response::<AccountList>(200, "The accounts."),
        ApiEndpoint::post("/api/v1/quota/{account}/reopen", quota::reopen)
            .with_operation(
                "reopenAccount",
                "Reopen an account, so that its agents start work again.",
            )
            .with_required_right(Right::Admin)
            .with_path_parameter::<String>("account", "Name of the account.")
            .with_response::<AccountStatus>(200, "The account is available.")
            .with_errors(&[Code::AccountUnknown]),
    ]
}

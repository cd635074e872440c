//! Shapes of accounts and their quotas.

use algonius_actors::model::observation::account_status::AccountStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List of the accounts that agents use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountList {
    /// Accounts in the order of their names.
    pub accounts: Vec<AccountStatus>,
}

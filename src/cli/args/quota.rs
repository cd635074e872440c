//! Arguments of `algonius quota`.

use clap::Subcommand;

/// Commands on accounts.
#[derive(Debug, Subcommand)]
pub enum QuotaCommand {
    /// List accounts with state, cause and time of reopening.
    List,
    /// Reopen an account, for example after a login or when its quota was raised.
    ///
    /// Tasks that wait for the account continue at once.
    Reopen {
        /// Name of the account, as `algonius quota list` shows it.
        account: String,
    },
}

//! Arguments of the commands on tokens.

use chrono::{DateTime, Utc};
use clap::Subcommand;

/// Commands on tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print its secret, which is shown only once.
    #[command(after_help = examples!("algonius token create ci --scope run --agent reviewer", "algonius token create dashboard --scope read --expires 2030-01-31T12:00:00Z"))]
    Create(CreateTokenArgs),
    /// List tokens without their secrets.
    List,
    /// Revoke a token that `create` made.
    Revoke {
        /// Name of the token.
        name: String,
    },
    /// Replace the operator's token in its file.
    Rotate,
}

/// Arguments of `token create`.
#[derive(Debug, clap::Args)]
pub struct CreateTokenArgs {
    /// Name of the principal. It keeps ownership of its tasks when the token is replaced.
    pub name: String,
    /// Scopes: read, run, approve, admin [default: read,run].
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub scopes: Vec<String>,
    /// Agent that the token may use; repeatable [default: all].
    #[arg(long = "agent", value_name = "ID")]
    pub agents: Vec<String>,
    /// Time of expiry, such as 2030-01-31T12:00:00Z [default: never].
    #[arg(long, value_name = "TIME")]
    pub expires: Option<DateTime<Utc>>,
    /// Replace the existing token of this name.
    #[arg(long)]
    pub replace: bool,
}

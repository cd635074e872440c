//! `algonius agents`: agents of known programs.

mod add;
mod draft;
pub(super) mod fault;
pub(super) mod look;
mod presets;

use super::args::AgentsCommand;
use super::client::Client;
use super::fault::CliError;
use super::out::Out;

/// Does what was asked. What needs no service does without a client.
pub(super) async fn run(
    client: Result<Client, CliError>,
    command: AgentsCommand,
    out: &Out,
) -> Result<(), CliError> {
    match command {
        AgentsCommand::Add(wanted) => add::run(client, wanted, out).await,
        AgentsCommand::Presets { config } => presets::run(config.as_deref(), out).await,
    }
}

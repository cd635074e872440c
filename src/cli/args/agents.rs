//! What can be typed about agents.

use std::path::PathBuf;

use clap::Subcommand;

use super::presets::AddAgent;

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// List agents: how they are, what runs and what waits.
    List,
    /// Show one agent with all its limits, what holds it, and where its card is.
    Show {
        /// The agent's id.
        id: String,
    },
    /// Switch an agent on, whatever the configuration says; that holds until it is switched off.
    Enable {
        /// The agent's id.
        id: String,
    },
    /// Switch an agent off, whatever the configuration says; that holds until it is switched on.
    ///
    /// It is listed still and refuses new work. What runs or waits goes on.
    Disable {
        /// The agent's id.
        id: String,
    },
    /// Ask an agent something short, and tell how it went or what went wrong.
    Test {
        /// The agent's id.
        id: String,
        /// What it is asked.
        #[arg(long, value_name = "TEXT")]
        input: Option<String>,
    },
    /// Add an agent of a known program to the configuration, and try it.
    Add(AddAgent),
    /// List the known programs, and which of them are here.
    Presets {
        /// The configuration, whose folder of presets counts too [default: none].
        #[arg(long, short, env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

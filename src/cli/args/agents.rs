//! Arguments of `algonius agents`.

use std::path::PathBuf;

use clap::Subcommand;

use super::add_agent::AddAgentArgs;

/// Commands on agents.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// List agents with health, running and queued executions.
    List,
    /// Show one agent with its limits, isolation and card URL.
    Show {
        /// Id of the agent.
        id: String,
    },
    /// Enable an agent. This overrides the configuration until `disable`.
    Enable {
        /// Id of the agent.
        id: String,
    },
    /// Disable an agent. This overrides the configuration until `enable`.
    ///
    /// The agent stays listed and refuses new requests. Accepted executions continue.
    Disable {
        /// Id of the agent.
        id: String,
    },
    /// Test an agent with a short request, and report the result.
    #[command(after_help = examples!("algonius agents test reviewer", "algonius agents test reviewer --input \"Reply with the word ok\""))]
    Test {
        /// Id of the agent.
        id: String,
        /// Text of the request.
        #[arg(long, value_name = "TEXT")]
        input: Option<String>,
    },
    /// Add an agent from a preset to the configuration, and test it.
    #[command(after_help = examples!("algonius agents add claude-code", "algonius agents add codex --id fixer --read-write --working-dir ./repository"))]
    Add(AddAgentArgs),
    /// List presets, and which programs are installed.
    #[command(after_help = examples!("algonius agents presets", "algonius agents presets --config ./supervisor.toml"))]
    Presets {
        /// Configuration file, which may name a folder of further presets [default: the first file of the order
        /// that `algonius --help` prints].
        #[arg(long, short, env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

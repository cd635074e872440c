//! Arguments of `algonius agents add`.

use std::path::PathBuf;

/// Arguments of `agents add`.
#[derive(Debug, clap::Args)]
pub struct AddAgentArgs {
    /// Name of the preset, as `algonius agents presets` lists it.
    pub preset: String,
    /// Id of the agent [default: the name of the preset].
    #[arg(long)]
    pub id: Option<String>,
    /// Model [default: the default of the program].
    #[arg(long)]
    pub model: Option<String>,
    /// Allow the agent to change files. Its executions run one at a time.
    #[arg(long)]
    pub read_write: bool,
    /// Working folder [default: the folder in which the service was started].
    #[arg(long, value_name = "FOLDER")]
    pub working_dir: Option<PathBuf>,
    /// Configuration file to change [default: the first file of the order that `algonius --help` prints; if there
    /// is none, ~/.config/algonius/supervisor.toml is created].
    #[arg(long, short, env = "ALGONIUS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write without confirmation.
    #[arg(long, short)]
    pub yes: bool,
}

//! What can be typed about agents of known programs.

use std::path::PathBuf;

/// An agent that is wanted.
#[derive(Debug, clap::Args)]
pub struct AddAgent {
    /// The known program, as `algonius agents presets` lists them.
    pub preset: String,
    /// The id of the agent [default: the name of the preset].
    #[arg(long)]
    pub id: Option<String>,
    /// The model that it is to use [default: the program's own choice].
    #[arg(long)]
    pub model: Option<String>,
    /// Let it change files; it runs alone then.
    #[arg(long)]
    pub read_write: bool,
    /// The folder that it works in [default: the one the service was started in].
    #[arg(long, value_name = "FOLDER")]
    pub working_dir: Option<PathBuf>,
    /// The configuration to write into.
    #[arg(
        long,
        short,
        env = "ALGONIUS_CONFIG",
        value_name = "FILE",
        default_value = "supervisor.toml"
    )]
    pub config: PathBuf,
    /// Do not ask before it is written.
    #[arg(long, short)]
    pub yes: bool,
}

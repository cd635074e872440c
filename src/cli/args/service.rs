//! Arguments of `algonius service`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on the systemd unit.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Install a unit that starts the service now and at each login or boot.
    #[command(after_help = examples!("algonius service install", "algonius service install --system --dry-run"))]
    Install {
        /// Scope of the unit.
        #[command(flatten)]
        scope: InstallScope,
        /// Content of the unit.
        #[command(flatten)]
        options: UnitOptions,
        /// Print the unit and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Overwrite a unit that this command did not write.
        #[arg(long)]
        force: bool,
    },
    /// Stop the service and remove its unit. Data and configuration stay.
    #[command(after_help = examples!("algonius service uninstall", "algonius service uninstall --system"))]
    Uninstall {
        /// Scope of the unit.
        #[command(flatten)]
        scope: InstallScope,
    },
    /// Show the installed unit and its state.
    #[command(after_help = examples!("algonius service status", "algonius service status --system"))]
    Status {
        /// Scope of the unit.
        #[command(flatten)]
        scope: InstallScope,
    },
}

/// Scope of the unit.
#[derive(Debug, clap::Args)]
pub struct InstallScope {
    /// Install for the machine, as the user `algonius`, instead of for the present user.
    #[arg(long)]
    pub system: bool,
}

/// Content of the unit.
#[derive(Debug, clap::Args)]
pub struct UnitOptions {
    /// Configuration file [default: ~/.config/algonius/supervisor.toml; with --system
    /// /etc/algonius/supervisor.toml].
    #[arg(long, short, env = "ALGONIUS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Program [default: this program].
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Search path for agents [default: the present PATH; with --system the PATH of the system].
    #[arg(long, value_name = "FOLDERS")]
    pub path: Option<String>,
}

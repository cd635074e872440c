//! What can be typed about the service under systemd.

use std::path::PathBuf;

use clap::Subcommand;

/// What systemd is to do.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Write a unit, start the service, and have it started at every login or boot.
    Install {
        /// Whose service it is.
        #[command(flatten)]
        scope: Scope,
        /// What the unit says.
        #[command(flatten)]
        wish: Wish,
        /// Print the unit and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Write over a unit that this command has not written.
        #[arg(long)]
        force: bool,
    },
    /// Stop the service and remove its unit. What it knows stays.
    Uninstall {
        /// Whose service it is.
        #[command(flatten)]
        scope: Scope,
    },
    /// Tell what is installed, and whether it runs.
    Status {
        /// Whose service it is.
        #[command(flatten)]
        scope: Scope,
    },
}

/// Whose service it is.
#[derive(Debug, clap::Args)]
pub struct Scope {
    /// Of the machine, as the user `algonius`, instead of the present user's own.
    #[arg(long)]
    pub system: bool,
}

/// What a unit says.
#[derive(Debug, clap::Args)]
pub struct Wish {
    /// The configuration [default: ~/.config/algonius/supervisor.toml; with --system
    /// /etc/algonius/supervisor.toml].
    #[arg(long, short, env = "ALGONIUS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The program [default: this one].
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Where agents are looked up, as in PATH [default: the present PATH; with --system that of
    /// the system].
    #[arg(long, value_name = "FOLDERS")]
    pub path: Option<String>,
}

//! What can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub mod agents;
pub mod presets;
pub mod schedule;
pub mod send;
pub mod service;

use super::filters::Filters;
use agents::AgentsCommand;
pub use presets::AddAgent;
use schedule::ScheduleCommand;
use send::Send;
use service::ServiceCommand;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the service could not be reached, or something else went wrong
  2  the token is missing, wrong, or does not allow this
  3  there is no such agent, task or schedule
  4  the command line or the configuration is wrong
  5  the agent was asked and did not succeed";

/// Serves command-line AI agents as supervised A2A agents.
#[derive(Debug, Parser)]
#[command(name = "algonius", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Args {
    /// Where the service is.
    #[arg(long, global = true, env = "ALGONIUS_URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The file with the token [default: the one that a service of this user made].
    #[arg(long, global = true, env = "ALGONIUS_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The authorities to trust when the address is `https://` [default: the usual ones].
    #[arg(long, global = true, env = "ALGONIUS_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print JSON for programs.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a configuration of your own and a token.
    Init {
        /// The folder to write into; made if it is not there.
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Write over what is there.
        #[arg(long)]
        force: bool,
    },
    /// Start the service.
    Serve {
        /// The configuration [default: the shipped one].
        #[arg(long, short, env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
        /// Listen here instead of where the configuration says.
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<SocketAddr>,
    },
    /// Check a configuration and tell every fault in it.
    Check {
        /// Print the JSON schema of configurations instead, for editors.
        #[arg(long)]
        schema: bool,
        /// Print the OpenAPI description of the API for programs instead.
        #[arg(long, conflicts_with = "schema")]
        openapi: bool,
        /// The configuration [default: the shipped one].
        #[arg(env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Look at this machine: what keeps the service from working, and how to mend it.
    Doctor {
        /// The configuration [default: that of the installed service, or the shipped one].
        #[arg(env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Have systemd start the service, and look whether it does.
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Mask the secrets in a text, from standard input to standard output.
    Redact {
        /// Each line is one JSON document, and stays one.
        #[arg(long)]
        ndjson: bool,
        /// Mask what this configuration has masked besides, and its secrets.
        #[arg(long, short, value_name = "FILE")]
        config: Option<PathBuf>,
        /// A file with further secrets, one on a line of eight characters or more.
        #[arg(long = "secret-file", value_name = "FILE")]
        secret_files: Vec<PathBuf>,
    },
    /// Have the service read its configuration again, and tell what came of it.
    Reload,
    /// Tokens: make one, list them, revoke one, rotate the operator's own.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Send a message to an agent and print its answer.
    Send(Send),
    /// Look into the supervision tree.
    Status {
        /// Go on looking, until Ctrl-C.
        #[arg(long, short)]
        watch: bool,
        /// Seconds from one look to the next.
        #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
        every: Duration,
    },
    /// Look at agents, switch them on or off, try whether they work.
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Show the output and the events of the latest tasks, line by line.
    Logs {
        /// Go on with what comes.
        #[arg(long, short)]
        follow: bool,
        /// Only those of this agent.
        #[arg(long)]
        agent: Option<String>,
        /// Of so many tasks.
        #[arg(long, default_value_t = 10)]
        tasks: u32,
    },
    /// Look at tasks, follow, repeat, call off, remove or export them.
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Look at what is asked for at set times, or change it.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Print what a shell needs to complete these commands.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, or write one for each command.
    Man {
        /// The folder to write them into; made if it is not there.
        folder: Option<PathBuf>,
    },
}

/// What to do with tasks.
#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// List tasks, newest first.
    List {
        /// Which.
        #[command(flatten)]
        filters: Filters,
        /// At most so many.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Those that follow a page, by the word that it ended with.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show one task with its history.
    Show {
        /// The task's id.
        id: String,
    },
    /// Follow a task to its end: its output and its events. The exit code says how it ended.
    Watch {
        /// The task's id.
        id: String,
    },
    /// Ask once more what a task was asked; prints the id of the new task.
    Retry {
        /// The task's id.
        id: String,
    },
    /// Call a task off.
    Cancel {
        /// The task's id.
        id: String,
    },
    /// Remove a task that has ended, with its history.
    Delete {
        /// The task's id.
        id: String,
    },
    /// Write tasks with their events to standard output, one JSON document a line.
    Export {
        /// Which.
        #[command(flatten)]
        filters: Filters,
        /// With all texts: input, output, standard error.
        #[arg(long)]
        text: bool,
        /// At most so many.
        #[arg(long)]
        limit: Option<u32>,
    },
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print its text, which is shown this once.
    Create(NewToken),
    /// List tokens, never their texts.
    List,
    /// Revoke a token that was made by `create`; it counts no longer.
    Revoke {
        /// The token's name.
        name: String,
    },
    /// Give the operator's token another text, in the file where the service keeps it.
    Rotate,
}

/// A token that is wanted.
#[derive(Debug, clap::Args)]
pub struct NewToken {
    /// The name of who it is for. What that name owns stays its own, whatever its token.
    pub name: String,
    /// What it allows: read, run, approve, admin [default: read,run].
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub scopes: Vec<String>,
    /// An agent that it is good for; may be given several times [default: all].
    #[arg(long = "agent", value_name = "ID")]
    pub agents: Vec<String>,
    /// When it stops to count, such as 2030-01-31T12:00:00Z [default: never].
    #[arg(long, value_name = "TIME")]
    pub expires: Option<DateTime<Utc>>,
    /// Take the place of the token of that name.
    #[arg(long)]
    pub replace: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "it must be 0.1 to 3600 seconds".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

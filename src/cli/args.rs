//! What can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub mod presets;
pub mod schedule;
pub mod service;

use super::filters::Filters;
pub use presets::{AddAgent, AgentsCommand};
use schedule::ScheduleCommand;
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
        /// The configuration [default: the shipped one].
        #[arg(env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Look at this machine: what keeps the service from working, and what agents are held by.
    Doctor {
        /// The configuration [default: the shipped one].
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
    /// Add an agent of a known program, or list those programs.
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Tokens: make one, list them, revoke one, rotate the operator's own.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Send a message to an agent and print its answer.
    Send(Send),
    /// Look into the supervision tree.
    Status,
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

/// A message to an agent.
#[derive(Debug, clap::Args)]
pub struct Send {
    /// The agent's id.
    pub agent: String,
    /// The message; `-` or nothing reads it from standard input.
    pub text: Option<String>,
    /// Do not wait for the answer; print the task's id.
    #[arg(long)]
    pub no_wait: bool,
    /// A value for `{{ param.NAME }}` of the agent; may be given several times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    pub params: Vec<(String, String)>,
    /// The folder to start in, where the agent allows it.
    #[arg(long, value_name = "FOLDER")]
    pub working_dir: Option<PathBuf>,
    /// A variable of the agent's environment, where the agent allows it; may be given several times.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// The message's id: the same id is the same request, and is not run twice.
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// The conversation it belongs to.
    #[arg(long, value_name = "ID")]
    pub context: Option<String>,
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

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

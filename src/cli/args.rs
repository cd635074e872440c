//! Arguments of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

/// Text after the help of a command: two command lines.
macro_rules! examples {
    ($first:literal, $second:literal) => {
        concat!("Examples:\n  ", $first, "\n  ", $second)
    };
}

pub mod add_agent;
pub mod agents;
pub mod approvals;
pub mod filters;
mod listen_address;
mod lossy_arguments;
pub mod quota;
pub mod schedule;
pub mod send;
pub mod service;
pub mod token;
pub mod usage;

pub use add_agent::AddAgentArgs;
use agents::AgentsCommand;
use approvals::{AnswerArgs, ApprovalsArgs, DenyArgs};
use filters::Filters;
use listen_address::parse_listen_address;
use quota::QuotaCommand;
use schedule::ScheduleCommand;
use send::SendArgs;
use service::ServiceCommand;
use token::TokenCommand;
use usage::UsageArgs;

/// Search order of configurations, as `configuration` implements it.
const CONFIG_SEARCH_ORDER: &str = "\
Configuration, for `serve`, `check`, `doctor`, `agents add` and `agents presets`: the first of
  1. the file that the command names (--config FILE, or FILE with `check` and `doctor`)
  2. the file that ALGONIUS_CONFIG names
  3. the file on which the unit of `algonius service install` starts the service
  4. $XDG_CONFIG_HOME/algonius/supervisor.toml (~/.config/algonius/supervisor.toml)
  5. /etc/algonius/supervisor.toml
  6. the shipped configuration";

/// Text after the help: order of configurations and exit codes.
fn after_help() -> String {
    format!("{CONFIG_SEARCH_ORDER}\n\n{EXIT_CODES}")
}

/// Heading of the options that all commands have.
const GLOBAL_OPTIONS_HEADING: &str = "Global options";

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  the service cannot be reached, or another error occurred
  2  the token is missing, invalid or lacks the scope
  3  the agent, task or schedule does not exist
  4  the command line or the configuration is invalid
  5  the execution did not succeed";

/// Serve command-line AI agents as supervised A2A agents.
#[derive(Debug, Parser)]
#[command(name = "algonius", version, arg_required_else_help = true, after_help = after_help())]
pub struct Args {
    /// URL of the service.
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS_HEADING)]
    #[arg(env = "ALGONIUS_URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// File that contains the token [default: the token file that a service of this user wrote].
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS_HEADING, env = "ALGONIUS_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// File with root certificates for `https://` [default: the built-in root certificates].
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS_HEADING, env = "ALGONIUS_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print JSON for programs.
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS_HEADING)]
    pub json: bool,
    /// Print texts of agents unchanged, with control characters. Without this option, colours reach a terminal and
    /// all other control characters are shown as text.
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS_HEADING)]
    pub raw: bool,
    /// Command to run.
    #[command(subcommand)]
    pub command: CliCommand,
}

impl Args {
    /// Reads the command line of this process, and the variables that stand for options. An empty variable counts as
    /// absent. Bytes of a text that are not UTF-8 become U+FFFD, with a note on standard error.
    ///
    /// # Errors
    /// Returns the help, the version, or the fault of the arguments.
    pub fn read() -> Result<Self, clap::Error> {
        let mut command = without_empty_variables(Self::command());
        let matches = lossy_arguments::parse(&mut command, std::env::args_os().collect())?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty =
        |arg: &Arg| arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    let without_empty = |arg: Arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg };
    command.mut_args(without_empty).mut_subcommands(without_empty_variables)
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Write a new configuration and a token.
    #[command(after_help = examples!("algonius init", "algonius init --force ./configuration"))]
    Init {
        /// Folder for the files, created if it is missing [default: ~/.config/algonius, where all commands look for
        /// the configuration].
        folder: Option<PathBuf>,
        /// Overwrite existing files.
        #[arg(long)]
        force: bool,
    },
    /// Start the service.
    #[command(after_help = examples!("algonius serve", "algonius serve --config ./supervisor.toml --listen 127.0.0.1:9090"))]
    Serve {
        /// Configuration file [default: the first file of the order that `algonius --help` prints].
        #[arg(long, short, env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
        /// Listen on this address instead of the configured one.
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen_address)]
        listen: Option<SocketAddr>,
    },
    /// Check a configuration and report all errors.
    #[command(after_help = examples!("algonius check --strict", "algonius check --schema > schema.json"))]
    Check {
        /// Print the JSON schema of configurations, for editors.
        #[arg(long)]
        schema: bool,
        /// Print the OpenAPI description of the API for programs.
        #[arg(long, conflicts_with = "schema")]
        openapi: bool,
        /// Also fail if the program of an enabled agent is not installed.
        #[arg(long)]
        strict: bool,
        /// Configuration file [default: the first file of the order that `algonius --help` prints].
        #[arg(env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Diagnose problems and suggest fixes.
    Doctor {
        /// Configuration file [default: the first file of the order that `algonius --help` prints].
        #[arg(env = "ALGONIUS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Explain an error code, or list all codes.
    Explain {
        /// Code of the error, such as queue-full.
        code: Option<String>,
    },
    /// Manage the systemd unit of the service.
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Redact secrets in a text, from standard input to standard output.
    #[command(after_help = examples!("algonius redact < agent.log", "algonius redact --ndjson --config ./supervisor.toml < events.ndjson"))]
    Redact {
        /// Treat each line as a JSON document and keep it valid.
        #[arg(long)]
        ndjson: bool,
        /// Also apply the redaction rules and secrets of this configuration.
        #[arg(long, short, value_name = "FILE")]
        config: Option<PathBuf>,
        /// File with further secrets, one per line, each at least eight characters long.
        #[arg(long = "secret-file", value_name = "FILE")]
        secret_files: Vec<PathBuf>,
    },
    /// Reload the configuration of the service.
    Reload,
    /// Manage tokens.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Send a message to an agent and print its answer.
    #[command(after_help = examples!("algonius send reviewer \"Review the last commit\"", "algonius send fixer --param branch=main --no-wait < task.md"))]
    Send(SendArgs),
    /// Show the supervision tree.
    #[command(after_help = examples!("algonius status", "algonius status --watch --every 5"))]
    Status {
        /// Refresh until Ctrl-C.
        #[arg(long, short)]
        watch: bool,
        /// Seconds between refreshes.
        #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
        every: Duration,
    },
    /// Manage agents.
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Show accounts with an exhausted quota or a rate limit, and reopen one.
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// List questions of agents to people, and the verdicts about tool calls.
    #[command(after_help = examples!("algonius approvals", "algonius approvals show 4f2a"))]
    Approvals(ApprovalsArgs),
    /// Allow a tool call once.
    Approve {
        /// Id of the interaction, or the start or the end of it.
        id: String,
    },
    /// Deny a tool call.
    #[command(after_help = examples!("algonius deny 4f2a", "algonius deny 4f2a --reason \"use the staging database\""))]
    Deny(DenyArgs),
    /// Answer a question of an agent.
    #[command(after_help = examples!("algonius answer 4f2a \"the blue one\"", "algonius answer 4f2a --option second"))]
    Answer(AnswerArgs),
    /// Show the output and the events of the latest tasks, line by line.
    #[command(after_help = examples!("algonius logs --follow", "algonius logs --agent reviewer --tasks 3"))]
    Logs {
        /// Follow new output and events.
        #[arg(long, short)]
        follow: bool,
        /// Show this agent only.
        #[arg(long)]
        agent: Option<String>,
        /// Number of tasks.
        #[arg(long, default_value_t = 10)]
        tasks: u32,
        /// Show standard output of the program unchanged, even if it consists of JSON events.
        #[arg(long)]
        output: bool,
    },
    /// Manage tasks.
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Show tokens and cost of agents by day, or of single tasks.
    #[command(after_help = examples!("algonius usage --days 30", "algonius usage --agent reviewer --tasks"))]
    Usage(UsageArgs),
    /// Manage schedules.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Print the completion script for a shell.
    Completions {
        /// Shell.
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands.
    Man {
        /// Folder for the pages, created if it is missing.
        folder: Option<PathBuf>,
    },
}

/// Commands on tasks.
#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// List tasks, newest first.
    #[command(after_help = examples!("algonius tasks list --agent reviewer --unfinished", "algonius tasks list --outcome failed --since 2h"))]
    List {
        /// Filters.
        #[command(flatten)]
        filters: Filters,
        /// Maximum number of tasks.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Continue after a page: the cursor that the page ended with.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show one task with its history.
    #[command(after_help = examples!("algonius tasks show 01a20a46", "algonius tasks show 01a20a46 --events"))]
    Show {
        /// Id of the task, or its unique beginning or end.
        id: String,
        /// Show all recorded events with their numbers and fields.
        #[arg(long)]
        events: bool,
        /// Show the task of a team with the tasks of its steps, instead of the history.
        #[arg(long, conflicts_with = "events")]
        tree: bool,
        /// Show the steps of a cognitive agent's task, instead of the history.
        #[arg(long, conflicts_with_all = ["events", "tree"])]
        steps: bool,
    },
    /// Follow a task until it ends: its answer and its events. The exit code reports the outcome.
    #[command(after_help = examples!("algonius tasks watch 01a20a46", "algonius tasks watch 01a20a46 --output"))]
    Watch {
        /// Id of the task, or its unique beginning or end.
        id: String,
        /// Show standard output of the program unchanged, even if it consists of JSON events.
        #[arg(long)]
        output: bool,
    },
    /// Retry a task, and print the id of the new task.
    Retry {
        /// Id of the task, or its unique beginning or end.
        id: String,
    },
    /// Cancel a task.
    Cancel {
        /// Id of the task, or its unique beginning or end.
        id: String,
    },
    /// Delete an ended task with its history.
    Delete {
        /// Complete id of the task.
        id: String,
    },
    /// Export tasks with their events, one JSON document per line.
    #[command(after_help = examples!("algonius tasks export --since 24h > tasks.ndjson", "algonius tasks export --agent reviewer --text --limit 100"))]
    Export {
        /// Filters.
        #[command(flatten)]
        filters: Filters,
        /// Include all texts: input, standard output, standard error.
        #[arg(long)]
        text: bool,
        /// Maximum number of tasks.
        #[arg(long)]
        limit: Option<u32>,
    },
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "must be 0.1 to 3600 seconds".to_owned())
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::Args;

    /// Calls `check` with each command that has no commands of its own, and with its words.
    fn for_each_command(
        command: &Command,
        command_line: &str,
        check: &mut impl FnMut(&Command, &str),
    ) {
        for subcommand in
            command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help")
        {
            let command_line = format!("{command_line} {}", subcommand.get_name());
            match subcommand.has_subcommands() {
                true => for_each_command(subcommand, &command_line, check),
                false => check(subcommand, &command_line),
            }
        }
    }

    #[test]
    fn a_command_with_options_has_two_examples_that_can_be_parsed() {
        let mut example_count = 0;
        for_each_command(&Args::command(), "algonius", &mut |command, command_line| {
            if !command.get_opts().any(|option| !option.is_global_set()) {
                return;
            }
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<_> = text.lines().skip(1).map(str::trim).collect();
            assert_eq!(examples.len(), 2, "{command_line}: {text}");
            for example in examples {
                assert!(example.starts_with(command_line), "{example}");
                let line = example.split(" < ").next().unwrap_or_default();
                let line = line.split(" > ").next().unwrap_or_default();
                let parsed = Args::command().try_get_matches_from(split_arguments(line));
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
                example_count += 1;
            }
        });
        assert!(example_count > 40, "{example_count}");
    }

    /// Arguments of a command line with double quotes.
    fn split_arguments(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    }
}

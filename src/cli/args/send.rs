//! What can be typed about a message.

use std::path::PathBuf;

use super::pair;

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
    /// Wait for the whole answer instead of showing it as it comes.
    #[arg(long)]
    pub no_stream: bool,
    /// Answer what this task asks, instead of beginning a new one.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
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

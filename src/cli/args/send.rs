//! Arguments of `algonius send`.

use std::path::PathBuf;

use super::parse_pair;

/// Arguments of `send`.
#[derive(Debug, clap::Args)]
pub struct SendArgs {
    /// Id of the agent.
    pub agent: String,
    /// Text of the message. `-` or no text reads standard input.
    pub text: Option<String>,
    /// Print the id of the task and do not wait for the answer.
    #[arg(long)]
    pub no_wait: bool,
    /// Print the complete answer at the end instead of streaming it.
    #[arg(long)]
    pub no_stream: bool,
    /// Show standard error of the program while it runs. A terminal always shows it.
    #[arg(long, conflicts_with_all = ["no_wait", "no_stream"])]
    pub stderr: bool,
    /// Answer the question of this task instead of creating a new task.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Value for `{{ param.NAME }}` of the agent; repeatable.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub params: Vec<(String, String)>,
    /// Working folder, if the agent allows this override.
    #[arg(long, value_name = "FOLDER")]
    pub working_dir: Option<PathBuf>,
    /// Environment variable, if the agent allows this override; repeatable.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub env: Vec<(String, String)>,
    /// Id of the message. A repeated id returns the same task.
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// Id of the conversation.
    #[arg(long, value_name = "ID")]
    pub context: Option<String>,
}

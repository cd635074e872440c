//! Arguments of the commands about questions of agents.

use clap::{Args, Subcommand};

/// Options of `approvals`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ApprovalsArgs {
    /// Also list closed interactions.
    #[arg(long)]
    pub all: bool,
    /// Restrict the list to this task: an id, or the start or the end of one.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Show one interaction instead of the list.
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

/// Commands below `approvals`.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// Show an interaction with its tool call, options and answer.
    Show {
        /// Id of the interaction, or the start or the end of it.
        id: String,
    },
    /// List the verdicts about tool calls.
    #[command(after_help = examples!("algonius approvals decisions", "algonius approvals decisions --agent coder --json"))]
    Decisions {
        /// Restrict the list to this agent.
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
}

/// Options of `deny`.
#[derive(Debug, Args)]
pub struct DenyArgs {
    /// Id of the interaction, or the start or the end of it.
    pub id: String,
    /// Reason for the agent.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Options of `answer`.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// Id of the interaction, or the start or the end of it.
    pub id: String,
    /// Text of the answer.
    #[arg(required_unless_present_any = ["option", "values", "decline"])]
    pub text: Option<String>,
    /// Select this option of the agent, by its id.
    #[arg(long, value_name = "ID", conflicts_with_all = ["text", "values", "decline"])]
    pub option: Option<String>,
    /// Values of a form as a JSON object.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["text", "decline"])]
    pub values: Option<String>,
    /// Decline the question.
    #[arg(long, conflicts_with = "text")]
    pub decline: bool,
}

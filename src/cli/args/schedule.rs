//! Arguments of `algonius schedule`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on schedules.
#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// List schedules.
    List,
    /// Show one schedule with its next due times and statistics.
    Show {
        /// Id of the schedule.
        id: String,
    },
    /// Create a schedule.
    #[command(after_help = examples!("algonius schedule create nightly --agent reviewer --cron \"0 2 * * *\" --input \"Review the changes of today\"", "algonius schedule create pulse --agent monitor --cron \"@every 15m\" --input-file ./prompt.txt --overlap skip"))]
    Create {
        /// Id of the schedule.
        id: String,
        /// Settings of the schedule.
        #[command(flatten)]
        options: ScheduleOptions,
    },
    /// Change the given settings of a schedule.
    #[command(after_help = examples!("algonius schedule update nightly --cron \"30 2 * * *\"", "algonius schedule update nightly --enabled false"))]
    Update {
        /// Id of the schedule.
        id: String,
        /// Settings of the schedule.
        #[command(flatten)]
        options: ScheduleOptions,
    },
    /// Delete a schedule. Its executions continue.
    Delete {
        /// Id of the schedule.
        id: String,
    },
    /// Pause a schedule.
    Pause {
        /// Id of the schedule.
        id: String,
    },
    /// Resume a schedule from now on.
    Resume {
        /// Id of the schedule.
        id: String,
    },
    /// Trigger a schedule now.
    Run {
        /// Id of the schedule.
        id: String,
    },
    /// List the next due times of a schedule.
    #[command(after_help = examples!("algonius schedule next nightly", "algonius schedule next nightly --count 3"))]
    Next {
        /// Id of the schedule.
        id: String,
        /// Number of times.
        #[arg(long, short = 'n', default_value_t = 10)]
        count: u32,
    },
    /// Explain a cron expression and list its next due times.
    #[command(after_help = examples!("algonius schedule explain \"0 2 * * 1-5\"", "algonius schedule explain \"@daily\" --timezone Europe/Zurich --count 3"))]
    Explain {
        /// Cron expression in quotes.
        cron: String,
        /// Time zone, such as `Europe/Zurich` [default: the time zone of the service].
        #[arg(long, value_name = "ZONE")]
        timezone: Option<String>,
        /// Number of times.
        #[arg(long, short = 'n', default_value_t = 10)]
        count: u32,
    },
    /// Show past runs of a schedule, newest first.
    #[command(after_help = examples!("algonius schedule history nightly", "algonius schedule history nightly --status missed --limit 5"))]
    History {
        /// Id of the schedule.
        id: String,
        /// Show runs with this status only.
        #[arg(long, value_parser = ["pending", "fired", "skipped", "missed", "coalesced", "refused"])]
        status: Option<String>,
        /// Maximum number of runs.
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
}

/// Settings of a schedule.
#[derive(Debug, clap::Args)]
pub struct ScheduleOptions {
    /// Id of the agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Cron expression in quotes, or `@every 15m`.
    #[arg(long, value_name = "EXPRESSION")]
    pub cron: Option<String>,
    /// Message to the agent. It may contain `{{ date }}`, `{{ time }}` and `{{ planned }}`.
    #[arg(long, value_name = "TEXT", conflicts_with = "input_file")]
    pub input: Option<String>,
    /// File that contains the message.
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// Name for people.
    #[arg(long)]
    pub name: Option<String>,
    /// Time zone, such as `Europe/Zurich`.
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Value for `{{ param.NAME }}`; repeatable.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = super::parse_pair)]
    pub params: Vec<(String, String)>,
    /// Treatment of missed due times.
    #[command(flatten)]
    pub missed: MissedOccurrenceOptions,
    /// Treatment of single runs.
    #[command(flatten)]
    pub runs: ScheduledRunOptions,
    /// Number of consecutive failures that raise an alert; 0 disables the alert.
    #[arg(long, value_name = "COUNT")]
    pub alert_after: Option<u32>,
    /// Activate (true) or pause (false) the schedule.
    #[arg(long)]
    pub enabled: Option<bool>,
}

/// Treatment of due times at which the service was down.
#[derive(Debug, clap::Args)]
pub struct MissedOccurrenceOptions {
    /// Policy for due times while the service was down.
    #[arg(long, value_parser = ["skip", "once", "all"])]
    pub missed: Option<String>,
    /// Maximum age of a missed due time, in seconds.
    #[arg(long, value_name = "SECONDS")]
    pub missed_window: Option<u64>,
    /// Maximum number of missed due times to run with `--missed all`.
    #[arg(long, value_name = "COUNT")]
    pub missed_max: Option<u32>,
}

/// Treatment of the runs of a schedule.
#[derive(Debug, clap::Args)]
pub struct ScheduledRunOptions {
    /// Policy for due times while a previous run has not ended.
    #[arg(long, value_parser = ["skip", "queue", "cancel_previous", "allow"])]
    pub overlap: Option<String>,
    /// Maximum random delay, in seconds.
    #[arg(long, value_name = "SECONDS")]
    pub jitter: Option<u64>,
    /// Seconds after the due time at which a run is cancelled.
    #[arg(long, value_name = "SECONDS")]
    pub deadline: Option<u64>,
}

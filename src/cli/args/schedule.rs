//! What can be typed about schedules.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// List schedules.
    List,
    /// Show one schedule: when it is due, and how it did.
    Show {
        /// The schedule's id.
        id: String,
    },
    /// Make a schedule.
    Create {
        /// Its id.
        id: String,
        /// What it says.
        #[command(flatten)]
        terms: Terms,
    },
    /// Change a schedule: what is given takes the place of what it says.
    Update {
        /// Its id.
        id: String,
        /// What it says.
        #[command(flatten)]
        terms: Terms,
    },
    /// Remove a schedule. What it asked for goes on.
    Delete {
        /// The schedule's id.
        id: String,
    },
    /// Hold a schedule back.
    Pause {
        /// The schedule's id.
        id: String,
    },
    /// Let a schedule go on from now.
    Resume {
        /// The schedule's id.
        id: String,
    },
    /// Ask for what a schedule asks for, now.
    Run {
        /// The schedule's id.
        id: String,
    },
    /// Tell the next times of a schedule.
    Next {
        /// The schedule's id.
        id: String,
        /// How many.
        #[arg(long, short = 'n', default_value_t = 10)]
        count: u32,
    },
    /// Tell what a cron expression means, and when it would be due.
    Explain {
        /// The expression, in quotes.
        cron: String,
        /// Its zone, such as `Europe/Zurich` [default: that of the service].
        #[arg(long, value_name = "ZONE")]
        timezone: Option<String>,
        /// How many times.
        #[arg(long, short = 'n', default_value_t = 10)]
        count: u32,
    },
    /// Tell what became of a schedule's times, the latest first.
    History {
        /// The schedule's id.
        id: String,
        /// Only those with this verdict.
        #[arg(long, value_parser = ["pending", "fired", "skipped", "missed", "coalesced", "refused"])]
        verdict: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
}

/// What a schedule says.
#[derive(Debug, clap::Args)]
pub struct Terms {
    /// The agent that is asked.
    #[arg(long)]
    pub agent: Option<String>,
    /// When: a cron expression in quotes, or `@every 15m`.
    #[arg(long, value_name = "EXPRESSION")]
    pub cron: Option<String>,
    /// What it is asked, in which `{{ date }}`, `{{ time }}` and `{{ planned }}` have values.
    #[arg(long, value_name = "TEXT", conflicts_with = "input_file")]
    pub input: Option<String>,
    /// The same from a file.
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// Its name.
    #[arg(long)]
    pub name: Option<String>,
    /// Its zone, such as `Europe/Zurich`.
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// A value for `{{ param.NAME }}`; may be given several times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = super::pair)]
    pub params: Vec<(String, String)>,
    /// What becomes of times while the service was down.
    #[arg(long, value_parser = ["skip", "once", "all"])]
    pub missed: Option<String>,
    /// How late such a time may be, in seconds.
    #[arg(long, value_name = "SECONDS")]
    pub missed_window: Option<u64>,
    /// How many such times are made up for, with `--missed all`.
    #[arg(long, value_name = "COUNT")]
    pub missed_max: Option<u32>,
    /// What becomes of times at which it is still busy.
    #[arg(long, value_parser = ["skip", "queue", "cancel_previous", "allow"])]
    pub overlap: Option<String>,
    /// By how much it is put off at most, in seconds.
    #[arg(long, value_name = "SECONDS")]
    pub jitter: Option<u64>,
    /// How long after it was due its work may go on, in seconds.
    #[arg(long, value_name = "SECONDS")]
    pub deadline: Option<u64>,
    /// Failures in a row that are told as an alert; 0 is never.
    #[arg(long, value_name = "COUNT")]
    pub alert_after: Option<u32>,
    /// Whether it is due at all.
    #[arg(long)]
    pub enabled: Option<bool>,
}

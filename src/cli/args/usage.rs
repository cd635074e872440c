//! Arguments of `algonius usage`.

/// Arguments of `usage`.
#[derive(Debug, clap::Args)]
pub struct UsageArgs {
    /// Show this agent only.
    #[arg(long, value_name = "ID")]
    pub agent: Option<String>,
    /// Number of days, including today.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub days: u32,
    /// Show this number of latest tasks instead of days.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "20", conflicts_with = "days")]
    pub tasks: Option<u32>,
}

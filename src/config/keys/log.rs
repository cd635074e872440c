//! `[log]`: level and format of the log.

use crate::config::table::{ConfigKey, Keyword, Section};

/// Format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Human-readable text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Human-readable text.
    Human,
    /// One JSON object per line.
    Json,
}

/// Log settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// Lowest level that is written.
    pub level: tracing::Level,
    /// Format of the lines.
    pub format: LogFormat,
}

const LEVELS: [(&str, tracing::Level); 5] = [
    ("error", tracing::Level::ERROR),
    ("warn", tracing::Level::WARN),
    ("info", tracing::Level::INFO),
    ("debug", tracing::Level::DEBUG),
    ("trace", tracing::Level::TRACE),
];

const FORMATS: [(&str, LogFormat); 4] = [
    ("auto", LogFormat::Auto),
    ("human", LogFormat::Human),
    ("text", LogFormat::Human), // Name in earlier releases.
    ("json", LogFormat::Json),
];

const LEVEL: ConfigKey<Keyword<tracing::Level>> =
    ConfigKey::keyword("level", (&LEVELS, tracing::Level::INFO), "error, warn, info, debug, trace");
const FORMAT: ConfigKey<Keyword<LogFormat>> = ConfigKey::keyword(
    "format",
    (&FORMATS, LogFormat::Auto),
    "\"human\", \"json\"; auto: \"human\" on a terminal, \"json\" otherwise",
);

/// Reads `[log]`.
pub(crate) fn read(mut section: Section<'_>) -> LogSettings {
    let settings =
        LogSettings { level: LEVEL.read(&mut section), format: FORMAT.read(&mut section) };
    section.report_unknown_keys();
    settings
}

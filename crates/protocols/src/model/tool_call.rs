//! Tool calls: what an agent does or wants to do.

use serde_json::Value;

/// State of a tool call. The fields from `name` to `url` are the subject of permission rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// Id of the call within its session.
    pub id: String,
    /// Name of the tool.
    pub name: Option<String>,
    /// Title for display, chosen by the agent.
    pub title: Option<String>,
    /// Kind of effect.
    pub kind: ToolKind,
    /// Progress.
    pub status: ToolStatus,
    /// Command line. A list of arguments is joined, with quotes where a shell needs them.
    pub command: Option<String>,
    /// Paths that the call names, in the order of their appearance.
    pub paths: Vec<String>,
    /// Address that the call names.
    pub url: Option<String>,
    /// Arguments as the agent reports them.
    pub args: Value,
    /// Changes of files.
    pub diffs: Vec<FileDiff>,
}

/// Change of a file. Agents show complete files or fragments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Path of the file.
    pub path: String,
    /// Text before; `None` for a new file.
    pub old: Option<String>,
    /// Text after.
    pub new: String,
}

/// Kind of effect of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Deletes files.
    Delete,
    /// Moves files.
    Move,
    /// Searches files or the web.
    Search,
    /// Runs a command.
    Execute,
    /// Thinks, plans or delegates.
    Think,
    /// Fetches an address.
    Fetch,
    /// Changes the mode of the agent.
    SwitchMode,
    /// Unknown or any other effect.
    #[default]
    Other,
}

const TOOL_KIND_NAMES: &[(ToolKind, &str)] = &[
    (ToolKind::Read, "read"),
    (ToolKind::Edit, "edit"),
    (ToolKind::Delete, "delete"),
    (ToolKind::Move, "move"),
    (ToolKind::Search, "search"),
    (ToolKind::Execute, "execute"),
    (ToolKind::Think, "think"),
    (ToolKind::Fetch, "fetch"),
    (ToolKind::SwitchMode, "switch_mode"),
];

impl ToolKind {
    /// Returns the name that ACP gives to the kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        TOOL_KIND_NAMES.iter().find(|(kind, _)| *kind == self).map_or("other", |(_, name)| name)
    }

    /// Returns the kind of an ACP name; an unknown name is `Other`.
    pub(crate) fn parse(name: &str) -> Self {
        TOOL_KIND_NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map_or(Self::Other, |(kind, _)| *kind)
    }
}

/// Progress of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ToolStatus {
    /// The call has not begun, or its status is unknown.
    #[default]
    Pending,
    /// The tool runs. Some agents report this before they request permission.
    InProgress,
    /// The tool succeeded.
    Completed,
    /// The tool failed or was denied.
    Failed,
}

impl ToolStatus {
    /// Returns the status of an ACP name, or `None` if the name is unknown.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "pending" => Some(Self::Pending),
            "in_progress" => Some(Self::InProgress),
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }

    /// Returns the name that ACP gives to the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

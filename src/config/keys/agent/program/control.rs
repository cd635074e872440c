//! `protocol` and the keys of `session` that only interactive agents have.

use std::collections::BTreeMap;

use algonius_actors::model::program::stdio_protocol::{InteractiveProtocol, InteractiveSpec};

use crate::config::table::{Positioned, Section, value};

const PROTOCOLS: [(&str, InteractiveProtocol); 3] = [
    ("acp", InteractiveProtocol::Acp),
    ("claude-control", InteractiveProtocol::ClaudeControl),
    ("codex-app-server", InteractiveProtocol::CodexAppServer),
];

/// Keys that say how a program without a control protocol is spoken to.
const CONFLICTING_KEYS: [&str; 6] = ["input", "output", "json_rpc", "turn", "mode", "prompts"];

/// Reads the protocol of an interactive agent; `None` for every other program.
pub(super) fn read_protocol(section: &mut Section<'_>) -> Option<InteractiveProtocol> {
    let protocol = section.keyword("protocol", &PROTOCOLS)?;
    for key in CONFLICTING_KEYS {
        if section.has_key(key) {
            let position = section.position.child(key).without_excerpt();
            section.reader.report_error(&position, "has no meaning with `protocol`");
        }
    }
    Some(protocol.value)
}

/// Settings of a session that only interactive agents have.
#[derive(Default)]
pub(super) struct InteractiveSessionSettings {
    mode: Option<String>,
    options: BTreeMap<String, String>,
}

impl InteractiveSessionSettings {
    /// Reads the settings from the section of the session.
    pub(super) fn read(section: &mut Section<'_>, has_control_protocol: bool) -> Self {
        let mode = section.nonblank_text("mode");
        if let Some(mode) = mode.as_ref().filter(|_| !has_control_protocol) {
            section.reader.report_error(&mode.position, "has a meaning with `protocol` only");
        }
        if section.has_key("options") && !has_control_protocol {
            let position = section.position.child("options").without_excerpt();
            section.reader.report_error(&position, "has a meaning with `protocol` only");
        }
        let reader = section.reader;
        let mut options = BTreeMap::new();
        for (name, entry) in section.section("options").entries() {
            let entry = Positioned { position: entry.position.without_excerpt(), ..entry };
            options.extend(value::scalar(reader, &entry).map(|text| (name.value, text)));
        }
        Self { mode: mode.map(|mode| mode.value), options }
    }

    /// Returns the settings of an agent with this protocol.
    pub(super) fn into_interactive_spec(self, protocol: InteractiveProtocol) -> InteractiveSpec {
        InteractiveSpec { protocol, mode: self.mode, options: self.options }
    }
}

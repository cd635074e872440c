//! Plan of an agent's turn: its session, its settings and its message.

use std::path::Path;

use algonius_actors::model::execution::content::{Content, Part};
use algonius_actors::model::program::stdio_protocol::{ControlProtocol, ControlSpec};
use algonius_protocols::{PromptPart, ProtocolKind, ResourceBody};

use super::AttemptStart;
use crate::drivers::output::line_limit::max_line_bytes;
use crate::drivers::program::session_resume::AttemptSession;
use crate::drivers::stdio::agent_turn::{ToolCallMonitor, TurnPlan};

/// Name of a part without a file name.
const DEFAULT_FILE_NAME: &str = "attachment";

/// Returns the plan of an attempt that works in a folder.
pub(super) fn plan_turn(control: &ControlSpec, attempt: &AttemptStart, cwd: &Path) -> TurnPlan {
    let resumed_session = match &attempt.session {
        AttemptSession::Resumed(id) => Some(id.expose().to_owned()),
        AttemptSession::Stateless | AttemptSession::New => None,
    };
    let options = control.options.iter().map(|(id, value)| (id.clone(), value.clone()));
    TurnPlan {
        protocol: match control.protocol {
            ControlProtocol::Acp => ProtocolKind::Acp,
            ControlProtocol::ClaudeControl => ProtocolKind::ClaudeControl,
            ControlProtocol::CodexAppServer => ProtocolKind::CodexAppServer,
        },
        resumed_session,
        cwd: cwd.to_string_lossy().into_owned(),
        mode: control.mode.clone(),
        model: attempt.program.program_runtime.model.clone(),
        options: options.collect(),
        prompt: attempt.work.request.input.parts.iter().map(prompt_part).collect(),
        open_timeout: attempt.work.spec.limits.timeouts.start,
        max_line_bytes: max_line_bytes(attempt.work.spec.limits.sizes.output),
        tool_call_monitor: ToolCallMonitor::new(&attempt.work),
    }
}

/// Converts a part of the message. Data is sent as text, because no protocol has a part for it.
fn prompt_part(part: &Part) -> PromptPart {
    let mime = part.media_type.clone();
    let name = part.filename.clone().unwrap_or_else(|| DEFAULT_FILE_NAME.to_owned());
    match &part.content {
        Content::Text(text) => PromptPart::Text(text.clone()),
        Content::Data(data) => PromptPart::Text(data.to_string()),
        Content::Url(uri) => PromptPart::ResourceLink { uri: uri.clone(), name, mime },
        Content::Bytes(base64) => {
            let base64 = base64.clone();
            match mime {
                Some(mime) if mime.starts_with("image/") => PromptPart::Image { mime, base64 },
                Some(mime) if mime.starts_with("audio/") => PromptPart::Audio { mime, base64 },
                mime => {
                    let body = ResourceBody::Base64(base64);
                    PromptPart::Resource { uri: format!("attachment:///{name}"), mime, body }
                }
            }
        }
    }
}

//! Plan of an agent's turn: its session, its settings and its message.

use std::path::Path;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part, decode_base64};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::stdio_protocol::{InteractiveProtocol, InteractiveSpec};
use algonius_protocols::{PromptPart, ProtocolKind, ResourceBody};

use super::PendingAttempt;
use crate::drivers::output::line_limit::max_line_bytes;
use crate::drivers::program::session_resume::AttemptSession;
use crate::drivers::stdio::agent_turn::{ToolCallMonitor, TurnPlan};

/// Name of a part without a file name.
const DEFAULT_FILE_NAME: &str = "attachment";

/// Returns the plan of an attempt that works in a folder.
///
/// # Errors
/// `input-rejected` if the protocol of the agent has no part for a file of the message.
pub(super) fn plan_turn(
    interactive_spec: &InteractiveSpec,
    attempt: &PendingAttempt,
    cwd: &Path,
) -> Result<TurnPlan, Failure> {
    let resumed_session = match &attempt.session {
        AttemptSession::Resumed(id) => Some(id.expose().to_owned()),
        AttemptSession::Stateless | AttemptSession::New => None,
    };
    let options = interactive_spec.options.iter().map(|(id, value)| (id.clone(), value.clone()));
    let protocol = match interactive_spec.protocol {
        InteractiveProtocol::Acp => ProtocolKind::Acp,
        InteractiveProtocol::ClaudeControl => ProtocolKind::ClaudeControl,
        InteractiveProtocol::CodexAppServer => ProtocolKind::CodexAppServer,
    };
    let parts = attempt.work.request.input.parts.iter();
    let prompt = parts.map(|part| prompt_part(protocol, part)).collect::<Result<_, _>>()?;
    Ok(TurnPlan {
        protocol,
        resumed_session,
        cwd: cwd.to_string_lossy().into_owned(),
        mode: interactive_spec.mode.clone(),
        model: attempt.program.runtime_settings.model.clone(),
        options: options.collect(),
        prompt,
        session_open_timeout: attempt.work.spec.limits.timeouts.start,
        max_line_bytes: max_line_bytes(attempt.work.spec.limits.sizes.max_output_bytes),
        tool_call_monitor: ToolCallMonitor::new(&attempt.work),
    })
}

/// Converts a part of the message. Data is sent as text, because no protocol has a part for it.
fn prompt_part(protocol: ProtocolKind, part: &Part) -> Result<PromptPart, Failure> {
    let mime = part.media_type.clone();
    let name = part.filename.clone().unwrap_or_else(|| DEFAULT_FILE_NAME.to_owned());
    match &part.content {
        Content::Text(text) => Ok(PromptPart::Text(text.clone())),
        Content::Data(data) => Ok(PromptPart::Text(data.to_string())),
        Content::Url(uri) => Ok(PromptPart::ResourceLink { uri: uri.clone(), name, mime }),
        Content::Bytes(base64) => file_part(protocol, (&name, mime), base64),
    }
}

/// Converts a file. A text is sent as text, which every protocol has.
fn file_part(
    protocol: ProtocolKind,
    (name, mime): (&str, Option<String>),
    base64: &str,
) -> Result<PromptPart, Failure> {
    let is_kind = |kind: &str| mime.as_deref().is_some_and(|mime| mime.starts_with(kind));
    let base64 = base64.to_owned();
    let bytes = decode_base64(&base64);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let uri = format!("attachment:///{}", encode_name(name));
    match (protocol, text) {
        _ if is_kind("image/") => Ok(PromptPart::Image { mime: mime.unwrap_or_default(), base64 }),
        (ProtocolKind::Acp, _) if is_kind("audio/") => {
            Ok(PromptPart::Audio { mime: mime.unwrap_or_default(), base64 })
        }
        (_, Some(text)) if !text.contains('\0') => {
            Ok(PromptPart::Resource { uri, mime, body: ResourceBody::Text(text) })
        }
        (ProtocolKind::Acp, _) => {
            Ok(PromptPart::Resource { uri, mime, body: ResourceBody::Base64(base64) })
        }
        (ProtocolKind::ClaudeControl, _) if is_kind("application/pdf") => {
            Ok(PromptPart::Resource { uri, mime, body: ResourceBody::Base64(base64) })
        }
        (ProtocolKind::ClaudeControl | ProtocolKind::CodexAppServer, _) => {
            let message = "the protocol of the agent has no part for a file of this type";
            Err(Failure::new(Code::InputRejected, message))
        }
    }
}

/// Encodes the characters of a name that would end the path of an address. Others stay readable.
fn encode_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_whitespace() || letter.is_control() || "%?#<>\"\\".contains(letter) {
            let bytes = letter.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
            encoded.extend(bytes.iter().map(|byte| format!("%{byte:02X}")));
        } else {
            encoded.push(letter);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_name_stays_within_its_address() {
        for (name, expected) in [
            ("build.log", "build.log"),
            ("été 1?.txt", "été%201%3F.txt"),
            ("a#b%20\n", "a%23b%2520%0A"),
        ] {
            assert_eq!(encode_name(name), expected);
        }
    }

    #[test]
    fn a_file_is_sent_in_a_form_of_the_protocol_or_refused() {
        let file = |bytes: &[u8], mime: &str| Part {
            content: Content::Bytes(STANDARD.encode(bytes)),
            filename: Some("a".to_owned()),
            media_type: Some(mime.to_owned()).filter(|mime| !mime.is_empty()),
        };
        let form = |protocol, part: &Part| match prompt_part(protocol, part) {
            Ok(PromptPart::Image { .. }) => "image",
            Ok(PromptPart::Audio { .. }) => "audio",
            Ok(PromptPart::Resource { body: ResourceBody::Text(text), .. }) if text == "note" => {
                "text"
            }
            Ok(PromptPart::Resource { body: ResourceBody::Base64(_), .. }) => "bytes",
            Ok(_) => "other",
            Err(_) => "refused",
        };
        for (bytes, mime, expected) in [
            (&b"note"[..], "text/plain", ["text"; 3]),
            (b"note", "", ["text"; 3]),
            (b"note", "application/json", ["text"; 3]),
            (b"\x89PNG\0\xff", "image/png", ["image"; 3]),
            (b"\xff\0", "audio/wav", ["audio", "refused", "refused"]),
            (b"%PDF\xff", "application/pdf", ["bytes", "bytes", "refused"]),
            (b"\xff\0", "application/zip", ["bytes", "refused", "refused"]),
            (b"\0", "", ["bytes", "refused", "refused"]),
        ] {
            let protocols =
                [ProtocolKind::Acp, ProtocolKind::ClaudeControl, ProtocolKind::CodexAppServer];
            let forms = protocols.map(|protocol| form(protocol, &file(bytes, mime)));
            assert_eq!(forms, expected, "{mime}");
        }
    }
}

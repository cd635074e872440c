//! Short form of steps, for comparison with a file that people can read.

use algonius_protocols::{AgentRequestKind, ProtocolStep, ToolCall};

/// Returns one line for the step; `None` for a line to send, which other checks compare.
pub(crate) fn step_text(step: &ProtocolStep) -> Option<String> {
    let text = match step {
        ProtocolStep::Send(_) => return None,
        ProtocolStep::Initialized(info) => {
            format!("initialized {} {} {:?}", info.name, info.version, info.capabilities)
        }
        ProtocolStep::SessionOpened { native_id: id, modes, mode, model, .. } => {
            format!("opened {id} mode={mode:?} of {modes:?} model={model:?}")
        }
        ProtocolStep::OpenFailed { fault, message, .. } => {
            format!("open failed {fault:?}: {message}")
        }
        ProtocolStep::Text { message_id, role, text, .. } => {
            format!("{role:?} {message_id:?} {text:?}")
        }
        ProtocolStep::Tool { call, is_new, .. } => {
            format!("{} {}", if *is_new { "tool" } else { "tool update" }, call_text(call))
        }
        ProtocolStep::Request { request, .. } => match &request.kind {
            AgentRequestKind::Permission { call, options } => {
                let options: Vec<_> = options.iter().map(|it| (&it.id, it.kind)).collect();
                format!("ask {} {} options={options:?}", request.id, call_text(call))
            }
            AgentRequestKind::Form { message, schema, call_id } => {
                let fields =
                    schema["properties"].as_object().map(|all| all.keys().collect::<Vec<_>>());
                format!("ask {} form {message:?} {fields:?} {call_id:?}", request.id)
            }
        },
        ProtocolStep::TurnEnded { outcome, usage, .. } => match usage {
            Some(usage) => {
                format!("end {outcome:?} tokens {:?} to {:?}", usage.input, usage.output)
            }
            None => format!("end {outcome:?}"),
        },
        other => format!("{other:?}"),
    };
    Some(text)
}

fn call_text(call: &ToolCall) -> String {
    let (kind, status) = (call.kind.as_str(), call.status.as_str());
    let mut text = format!("{} {kind} {status}", call.id);
    for (name, value) in [("name", &call.name), ("command", &call.command), ("url", &call.url)] {
        if let Some(value) = value {
            text.push_str(&format!(" {name}={value:?}"));
        }
    }
    if !call.paths.is_empty() {
        text.push_str(&format!(" paths={:?}", call.paths));
    }
    for diff in &call.diffs {
        text.push_str(&format!(" diff {} {:?} -> {:?}", diff.path, diff.old, diff.new));
    }
    text
}

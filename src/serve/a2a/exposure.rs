//! Checks that an agent offers the requested operation, independent of the protocol.

use algonius_a2a::v1::{A2aPart, PartContent};
use algonius_actors::model::access::endpoint_config::{
    Binding, EndpointConfig, ProtocolOperation, ProtocolVersion,
};
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;

/// Checks that an agent offers an operation in this version over this binding.
///
/// # Errors
/// `version-unsupported`, `push-unsupported` or `operation-unsupported`.
pub fn check_operation(
    spec: &AgentSpec,
    version: ProtocolVersion,
    binding: Binding,
    operation: ProtocolOperation,
) -> Result<(), Failure> {
    let endpoint_config = &spec.endpoint_config;
    if !endpoint_config.versions.contains(&version) {
        let message = format!("this agent does not support A2A {}", version.as_str());
        return Err(Failure::new(Code::VersionUnsupported, message));
    }
    if !endpoint_config.bindings.contains(&binding) {
        let message = format!("this agent cannot be called over {}", binding.as_str());
        return Err(Failure::new(Code::Unsupported, message));
    }
    match operation {
        _ if endpoint_config.offers(operation) => Ok(()),
        ProtocolOperation::Push => Err(push_unsupported()),
        ProtocolOperation::Send
        | ProtocolOperation::Stream
        | ProtocolOperation::Get
        | ProtocolOperation::List
        | ProtocolOperation::Cancel
        | ProtocolOperation::Subscribe
        | ProtocolOperation::ExtendedCard => {
            let message = "this agent does not offer this operation; see its card";
            Err(Failure::new(Code::Unsupported, message))
        }
    }
}

/// Checks that an agent sends push notifications, for a message with a push configuration.
///
/// # Errors
/// `push-unsupported`.
pub fn check_push(spec: &AgentSpec) -> Result<(), Failure> {
    if spec.endpoint_config.offers(ProtocolOperation::Push) {
        Ok(())
    } else {
        Err(push_unsupported())
    }
}

fn push_unsupported() -> Failure {
    Failure::new(Code::PushUnsupported, "this agent does not send push notifications")
}

/// Checks that an agent reads the media types of these parts.
///
/// # Errors
/// `content-type-unsupported`.
pub fn check_media_types(spec: &AgentSpec, parts: &[A2aPart]) -> Result<(), Failure> {
    let modes = &spec.endpoint_config.input_modes;
    if parts.iter().all(|part| modes.iter().any(|mode| mode_matches(mode, media_type(part)))) {
        return Ok(());
    }
    let message = "a part is of a media type that this agent does not read; see its card";
    Err(Failure::new(Code::ContentType, message))
}

/// Checks that an agent whose configuration names its media types answers in one that the caller can read, itself or by
/// one of its skills. An empty list allows all.
///
/// # Errors
/// `content-type-unsupported`.
pub fn check_output_modes(spec: &AgentSpec, accepted: &[String]) -> Result<(), Failure> {
    let modes = &spec.endpoint_config.output_modes;
    // Nobody chose the default for this agent, so it may answer in other types.
    if accepted.is_empty() || *modes == EndpointConfig::default().output_modes {
        return Ok(());
    }
    let skill_modes = spec.profile.skills.iter().flat_map(|skill| &skill.output_modes);
    let mut offered = modes.iter().chain(skill_modes);
    if offered.any(|mode| accepted.iter().any(|accepted| modes_overlap(accepted, mode))) {
        return Ok(());
    }
    let message = "the agent answers in none of the accepted output modes; see its card";
    Err(Failure::new(Code::ContentType, message))
}

/// Returns true if a media type may match both. Some clients name only the first half of a media type.
fn modes_overlap(accepted: &str, offered: &str) -> bool {
    let accepted = accepted.split(';').next().unwrap_or_default().trim();
    let accepted = match accepted.contains('/') {
        true => accepted.to_owned(),
        false if accepted == "*" => "*/*".to_owned(),
        false => format!("{accepted}/*"),
    };
    mode_matches(&accepted, offered) || mode_matches(offered, &accepted)
}

/// Returns the media type of a part: its own, or the default for its kind.
fn media_type(part: &A2aPart) -> &str {
    let default_type = match &part.content {
        PartContent::Text(_) => "text/plain",
        PartContent::Data(_) => "application/json",
        PartContent::Raw(_) | PartContent::Url(_) => "application/octet-stream",
    };
    // Parameters such as `charset` do not change what an agent can read.
    let declared_type = part.media_type.as_deref().and_then(|text| text.split(';').next());
    declared_type.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(default_type)
}

fn mode_matches(mode: &str, media_type: &str) -> bool {
    let Some((kind, _)) = media_type.split_once('/') else { return mode == "*/*" };
    match mode.split_once('/') {
        Some(("*", "*")) => true,
        Some((mode_kind, "*")) => mode_kind.eq_ignore_ascii_case(kind),
        _ => mode.eq_ignore_ascii_case(media_type),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn media_types_match_by_wildcard_without_parameters() {
        let part_of = |content, own: Option<&str>| A2aPart {
            media_type: own.map(str::to_owned),
            ..A2aPart { content, ..A2aPart::text(String::new()) }
        };
        let text = || PartContent::Text(String::new());
        for (part, mode, is_match) in [
            (part_of(text(), None), "text/plain", true),
            (part_of(text(), Some("Text/Plain; charset=utf-8")), "text/plain", true),
            (part_of(text(), Some("text/html")), "text/plain", false),
            (part_of(text(), Some("text/html")), "text/*", true),
            (part_of(text(), Some("nonsense")), "text/*", false),
            (part_of(PartContent::Data(json!(1)), None), "application/json", true),
            (part_of(PartContent::Raw(String::new()), None), "text/plain", false),
            (part_of(PartContent::Raw(String::new()), Some("image/png")), "*/*", true),
        ] {
            assert_eq!(mode_matches(mode, media_type(&part)), is_match, "{part:?} {mode}");
        }
    }

    #[test]
    fn accepted_output_modes_need_one_that_the_agent_has() {
        let endpoint_config = EndpointConfig {
            output_modes: vec!["text/plain".to_owned(), "image/*".to_owned()],
            ..EndpointConfig::default()
        };
        let spec = crate::serve::tests::agent_spec("a", endpoint_config);
        for (accepted, is_match) in [
            (&[][..], true),
            (&["text/plain"], true),
            (&["Text/Plain; charset=utf-8"], true),
            (&["text"], true),
            (&["*"], true),
            (&["*/*"], true),
            (&["application/json", "image/png"], true),
            (&["application/json"], false),
            (&["text/html", ""], false),
            (&["plain"], false),
        ] {
            let accepted: Vec<_> = accepted.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(check_output_modes(&spec, &accepted).is_ok(), is_match, "{accepted:?}");
        }
        let spec = crate::serve::tests::agent_spec("a", EndpointConfig::default());
        assert_eq!(check_output_modes(&spec, &["application/json".to_owned()]), Ok(()));
    }

    #[test]
    fn disabled_operations_are_refused_by_their_own_code() {
        let endpoint_config = EndpointConfig {
            versions: vec![ProtocolVersion::V1_0],
            bindings: vec![Binding::JsonRpc],
            operations: vec![ProtocolOperation::Send],
            ..EndpointConfig::default()
        };
        let spec = crate::serve::tests::agent_spec("a", endpoint_config);
        let code = |version, binding, operation| {
            check_operation(&spec, version, binding, operation).err().map(|failure| failure.code)
        };
        let (v1, jsonrpc) = (ProtocolVersion::V1_0, Binding::JsonRpc);
        assert_eq!(code(v1, jsonrpc, ProtocolOperation::Send), None);
        assert_eq!(
            code(ProtocolVersion::V0_3, jsonrpc, ProtocolOperation::Send),
            Some(Code::VersionUnsupported)
        );
        assert_eq!(code(v1, Binding::Grpc, ProtocolOperation::Send), Some(Code::Unsupported));
        assert_eq!(code(v1, jsonrpc, ProtocolOperation::Stream), Some(Code::Unsupported));
        assert_eq!(code(v1, jsonrpc, ProtocolOperation::Push), Some(Code::PushUnsupported));
    }
}

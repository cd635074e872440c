//! What an agent does not offer is refused, whichever way it is asked for.

use std::collections::BTreeMap;

use algonius_actors::decide::rate::{Bucket, step};
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Binding, Operation, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::answer::Refused;
use crate::wire::a2a::v1::{Content, Part};

/// Checks that an agent offers an operation in this version over this binding.
///
/// # Errors
/// `version-unsupported`, `push-unsupported` or `operation-unsupported`.
pub fn check(
    spec: &AgentSpec,
    version: Version,
    binding: Binding,
    operation: Operation,
) -> Result<(), Failure> {
    let exposure = &spec.exposure;
    if !exposure.versions.contains(&version) {
        let message = format!("this agent does not speak A2A {}", version.as_str());
        return Err(Failure::new(Code::VersionUnsupported, message));
    }
    if !exposure.bindings.contains(&binding) {
        let message = format!("this agent cannot be called over {}", binding.as_str());
        return Err(Failure::new(Code::Unsupported, message));
    }
    match operation {
        _ if exposure.offers(operation) => Ok(()),
        Operation::Push => Err(no_push()),
        Operation::Send
        | Operation::Stream
        | Operation::Get
        | Operation::List
        | Operation::Cancel
        | Operation::Subscribe
        | Operation::ExtendedCard => {
            let message = "this agent does not offer this operation; see its card";
            Err(Failure::new(Code::Unsupported, message))
        }
    }
}

/// Checks that an agent lets its callers be told, where a message brings an address.
///
/// # Errors
/// `push-unsupported`.
pub fn pushes(spec: &AgentSpec) -> Result<(), Failure> {
    if spec.exposure.offers(Operation::Push) { Ok(()) } else { Err(no_push()) }
}

fn no_push() -> Failure {
    Failure::new(Code::PushUnsupported, "this agent does not send push notifications")
}

/// Checks that an agent reads the media types of these parts.
///
/// # Errors
/// `content-type-unsupported`.
pub fn reads(spec: &AgentSpec, parts: &[Part]) -> Result<(), Failure> {
    let modes = &spec.exposure.input_modes;
    if parts.iter().all(|part| modes.iter().any(|mode| fits(mode, media_type(part)))) {
        return Ok(());
    }
    let message = "a part is of a media type that this agent does not read; see its card";
    Err(Failure::new(Code::ContentType, message))
}

/// The media type of a part: its own word, or what its kind usually is.
fn media_type(part: &Part) -> &str {
    let usual = match &part.content {
        Content::Text(_) => "text/plain",
        Content::Data(_) => "application/json",
        Content::Raw(_) | Content::Url(_) => "application/octet-stream",
    };
    let own = part.media_type.as_deref().and_then(|text| text.split(';').next());
    own.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(usual)
}

fn fits(mode: &str, media_type: &str) -> bool {
    let Some((kind, _)) = media_type.split_once('/') else { return mode == "*/*" };
    match mode.split_once('/') {
        Some(("*", "*")) => true,
        Some((whole, "*")) => whole.eq_ignore_ascii_case(kind),
        _ => mode.eq_ignore_ascii_case(media_type),
    }
}

/// How many calls each agent with a limit may still take.
pub struct Rates {
    buckets: Mutex<BTreeMap<AgentId, Bucket>>,
    begun: Instant,
}

impl Default for Rates {
    fn default() -> Self {
        Self { buckets: Mutex::default(), begun: Instant::now() }
    }
}

impl Rates {
    /// Counts a call to an agent.
    ///
    /// # Errors
    /// `rate-limited`.
    pub async fn count(&self, spec: &AgentSpec) -> Result<(), Refused> {
        let Some(limit) = spec.exposure.rate_limit else { return Ok(()) };
        let now = self.begun.elapsed();
        let mut buckets = self.buckets.lock().await;
        let bucket = buckets.get(&spec.id).copied().unwrap_or_else(|| Bucket::full(limit, now));
        let (bucket, verdict) = step(bucket, now, limit);
        buckets.insert(spec.id.clone(), bucket);
        let message = "the agent takes no more calls just now";
        verdict.map_err(|wait| Refused {
            failure: Failure::new(Code::RateLimited, message),
            wait: Some(wait),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use algonius_actors::model::exposure::Exposure;
    use serde_json::json;

    #[test]
    fn media_types_are_compared_by_kind_and_without_parameters() {
        let of = |content, own: Option<&str>| Part {
            media_type: own.map(str::to_owned),
            ..Part { content, ..Part::text(String::new()) }
        };
        let text = || Content::Text(String::new());
        for (part, wanted, fit) in [
            (of(text(), None), "text/plain", true),
            (of(text(), Some("Text/Plain; charset=utf-8")), "text/plain", true),
            (of(text(), Some("text/html")), "text/plain", false),
            (of(text(), Some("text/html")), "text/*", true),
            (of(text(), Some("nonsense")), "text/*", false),
            (of(Content::Data(json!(1)), None), "application/json", true),
            (of(Content::Raw(String::new()), None), "text/plain", false),
            (of(Content::Raw(String::new()), Some("image/png")), "*/*", true),
        ] {
            assert_eq!(fits(wanted, media_type(&part)), fit, "{part:?} {wanted}");
        }
    }

    #[test]
    fn what_is_switched_off_is_refused_by_its_own_code() {
        let exposure = Exposure {
            versions: vec![Version::V1_0],
            bindings: vec![Binding::JsonRpc],
            operations: vec![Operation::Send],
            ..Exposure::default()
        };
        let spec = super::super::tests::spec("a", exposure);
        let code = |version, binding, operation| {
            check(&spec, version, binding, operation).err().map(|failure| failure.code)
        };
        let (v1, jsonrpc) = (Version::V1_0, Binding::JsonRpc);
        assert_eq!(code(v1, jsonrpc, Operation::Send), None);
        assert_eq!(code(Version::V0_3, jsonrpc, Operation::Send), Some(Code::VersionUnsupported));
        assert_eq!(code(v1, Binding::Grpc, Operation::Send), Some(Code::Unsupported));
        assert_eq!(code(v1, jsonrpc, Operation::Stream), Some(Code::Unsupported));
        assert_eq!(code(v1, jsonrpc, Operation::Push), Some(Code::PushUnsupported));
    }
}

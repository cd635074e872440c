//! Keys of requests: keyed digests with the key of this instance, so that contents cannot be guessed from them.

use std::borrow::Cow;
use std::sync::Arc;

use hmac::digest::Key;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::model::execution::content::{Content, Part};
use crate::model::execution::message_details::details_to_json;
use crate::model::execution::request::{DedupKeys, Overrides, Request, RequestIdentity};
use crate::model::id::ExecutionId;
use crate::model::interaction::Question;

/// Hasher that computes digests with the key of one instance. Clones are cheap.
#[derive(Clone)]
pub struct KeyedHasher {
    /// HMAC state after the key. The key cannot be recovered from it.
    keyed_hmac: Arc<Hmac<Sha256>>,
}

impl std::fmt::Debug for KeyedHasher {
    /// Hides the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedHasher")
    }
}

impl KeyedHasher {
    /// Creates a hasher from the persisted key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        let mut block = Key::<Hmac<Sha256>>::default(); // A short key is one with zeros behind it.
        block.iter_mut().zip(key).for_each(|(byte, key_byte)| *byte = key_byte);
        Self { keyed_hmac: Arc::new(Hmac::new(&block)) }
    }

    /// Returns the keys of a request: by its message id, and by its idempotency key.
    #[must_use]
    pub fn dedup_keys(&self, request: &Request) -> DedupKeys {
        let idempotency_key = request.idempotency_key.as_deref();
        DedupKeys {
            message_key: self.message_key(request),
            idempotency_key: idempotency_key
                .map(|name| self.owner_scoped_key(request, "idempotency", name)),
        }
    }

    /// Returns the keys of a request with the digest of its content.
    #[must_use]
    pub fn request_identity(&self, request: &Request) -> RequestIdentity {
        RequestIdentity {
            dedup_keys: self.dedup_keys(request),
            content_digest: self.content_digest(request),
        }
    }

    /// Returns the key of a request by its message id alone. A hop is identified by its run and its number, so that no
    /// caller can send a message with the key of a hop.
    #[must_use]
    pub fn message_key(&self, request: &Request) -> [u8; 32] {
        match request.origin.trigger.hop_position() {
            Some(hop) => self.hop_key(hop.parent, hop.number),
            None => self.owner_scoped_key(request, "message", &request.message_id.0),
        }
    }

    /// Returns the key of the hop with this number in a run.
    #[must_use]
    pub fn hop_key(&self, run: ExecutionId, number: u32) -> [u8; 32] {
        self.digest(["hop", &run.to_string(), &number.to_string()])
    }

    fn owner_scoped_key(&self, request: &Request, kind: &str, name: &str) -> [u8; 32] {
        self.digest([kind, &request.origin.owner.to_string(), request.agent.as_str(), name])
    }

    /// Returns the key of a request whose message id has no meaning: each request has another key.
    #[must_use]
    pub fn turn_key(&self, id: ExecutionId, turn: u32) -> [u8; 32] {
        self.digest(["execution", &id.to_string(), &turn.to_string()])
    }

    /// Returns the digest of the content: the same key with another digest is a conflict. The digest excludes the
    /// context, because a caller that names no context receives a new one each time, and the details of the request
    /// that carries the message, because a repeated request may have others.
    #[must_use]
    pub fn content_digest(&self, request: &Request) -> [u8; 32] {
        let mut builder = self.digest_builder();
        builder.add("body");
        for part in &request.input.parts {
            builder.add(content_kind(part));
            builder.add(&content_text(part));
            builder.add_all(part.filename.iter().flat_map(|name| ["filename", name]));
            builder.add_all(part.media_type.iter().flat_map(|name| ["media type", name]));
        }
        let Overrides { working_dir, env } = &request.input.overrides;
        if !request.input.overrides.is_empty() {
            let count = env.len().to_string(); // The following names are arbitrary.
            builder.add_all(["overrides", working_dir.as_deref().unwrap_or_default(), &count]);
            builder.add_all(env.iter().flat_map(|(name, value)| [&**name, &**value]));
        }
        builder.add("params");
        builder.add_all(request.input.params.iter().flat_map(|(name, value)| [&**name, &**value]));
        let details = details_to_json(&request.input.details.without_request());
        if !details.is_empty() {
            // An odd number of texts cannot be mistaken for parameters.
            builder.add_all(["details", &details, ""]);
        }
        builder.finish()
    }

    /// Returns the key of the content of a request, regardless of the message id. The key includes the context of a
    /// named conversation, because the same text may have another meaning there.
    #[must_use]
    pub fn coalescing_key(&self, request: &Request, content_digest: [u8; 32]) -> [u8; 32] {
        let (owner, body) = (request.origin.owner.to_string(), content_digest);
        let body: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
        let context = if request.starts_context { "" } else { &request.context.0 };
        let request_details = details_to_json(&request.input.details.request);
        let request_details = Some(&*request_details).filter(|details| !details.is_empty());
        let parts = ["content", &owner, request.agent.as_str(), context, &body];
        self.digest(parts.into_iter().chain(request_details))
    }

    /// Returns the digest of a question: the tool and its arguments, or the message. An approval binds to it.
    #[must_use]
    pub fn question_digest(&self, question: &Question) -> String {
        let subject = question.subject.as_ref();
        let tool = subject.map_or("", |call| &*call.tool);
        // Objects of serde_json are sorted by their keys, so equal arguments have one text.
        let args = subject.map(|call| call.args.to_string()).unwrap_or_default();
        let digest =
            self.digest(["question", question.kind.as_str(), &question.message, tool, &args]);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns a short fingerprint of the secrets with this digest, for display.
    #[must_use]
    pub fn credential_fingerprint(&self, digest: &[u8; 32]) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let [a, b, c, d, ..] = self.digest(["credential", &hex(digest)]);
        hex(&[a, b, c, d])
    }

    fn digest<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> [u8; 32] {
        let mut builder = self.digest_builder();
        builder.add_all(parts);
        builder.finish()
    }

    fn digest_builder(&self) -> DigestBuilder {
        DigestBuilder(Hmac::clone(&self.keyed_hmac))
    }
}

/// Digest state that grows by parts.
struct DigestBuilder(Hmac<Sha256>);

impl DigestBuilder {
    /// Adds a part with its length before it, so that different lists of parts have different digests.
    fn add(&mut self, part: &str) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part.as_bytes());
    }

    fn add_all<'p>(&mut self, parts: impl IntoIterator<Item = &'p str>) {
        parts.into_iter().for_each(|part| self.add(part));
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into_bytes().into()
    }
}

const fn content_kind(part: &Part) -> &'static str {
    match part.content {
        Content::Text(_) => "text",
        Content::Data(_) => "data",
        Content::Bytes(_) => "bytes",
        Content::Url(_) => "url",
    }
}

fn content_text(part: &Part) -> Cow<'_, str> {
    match &part.content {
        Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.into(),
        Content::Data(data) => data.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use crate::model::execution::message_details::{PartMetadata, RequestDetails};
    use crate::model::execution::request::{Input, RequestOrigin, Trigger};
    use crate::model::id::{AgentId, ContextId, MessageId, PrincipalId};

    #[test]
    fn part_boundaries_change_the_digest() {
        let keyed_hasher = KeyedHasher::new([7; 32]);
        assert_ne!(keyed_hasher.digest(["ab", "c"]), keyed_hasher.digest(["a", "bc"]));
        assert_ne!(keyed_hasher.digest(["ab"]), keyed_hasher.digest(["ab", ""]));
        assert_eq!(keyed_hasher.digest(["ab", "c"]), keyed_hasher.digest(["ab", "c"]));
    }

    /// Stored keys must have the same value after a restart.
    #[test]
    fn a_digest_is_an_hmac_of_length_prefixed_parts() {
        let digest = KeyedHasher::new([7; 32]).digest(["ab", "c"]);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "cb26cbd8f92f96666adb85ea48780f04962ec8ae8998cd24c8bfb1721f19bb3c");
    }

    #[test]
    fn the_digest_covers_everything_the_agent_sees() {
        let keyed_hasher = KeyedHasher::new([7; 32]);
        let digest_with = |change: &dyn Fn(&mut Request)| {
            let mut request = request();
            change(&mut request);
            keyed_hasher.content_digest(&request)
        };
        let single_entry = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        let part_with_filename = |name: &str| {
            let mut part = Part::text("x");
            part.filename = Some(name.to_owned());
            vec![part]
        };
        let part_with_media_type = || {
            let mut part = Part::text("x");
            part.media_type = Some("a.md".to_owned());
            vec![part]
        };
        let metadata = || Map::from_iter([("a".to_owned(), Value::Null)]);
        let digests = [
            digest_with(&|_| {}),
            digest_with(&|request| request.input.parts = part_with_filename("a.csv")),
            digest_with(&|request| request.input.parts = part_with_filename("a.md")),
            digest_with(&|request| request.input.parts = part_with_media_type()),
            digest_with(&|request| request.input.params = single_entry("overrides", "/a")),
            digest_with(&|request| request.input.overrides.working_dir = Some("/a".to_owned())),
            digest_with(&|request| request.input.overrides.env = single_entry("params", "/a")),
            digest_with(&|request| request.input.params = single_entry("params", "/a")),
            digest_with(&|request| request.input.details.metadata = metadata()),
            digest_with(&|request| {
                request.input.details.part_metadata =
                    vec![PartMetadata { part: 0, metadata: metadata() }];
            }),
            digest_with(&|request| request.input.details.extensions = vec!["a".to_owned()]),
            digest_with(&|request| request.input.details.reference_tasks = vec!["a".to_owned()]),
        ];
        let with_request =
            digest_with(&|request| request.input.details.request = request_details());
        assert_eq!(with_request, digest_with(&|_| {}));
        let distinct_digests: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(distinct_digests.len(), digests.len());
    }

    #[test]
    fn a_result_is_shared_only_by_requests_with_equal_details() {
        let keyed_hasher = KeyedHasher::new([7; 32]);
        let key = |request: &Request| {
            keyed_hasher.coalescing_key(request, keyed_hasher.content_digest(request))
        };
        let (plain, mut detailed) = (request(), request());
        detailed.input.details.request = request_details();
        assert_ne!(key(&plain), key(&detailed));
        assert_eq!(key(&detailed), key(&detailed.clone()));
    }

    fn request_details() -> RequestDetails {
        let accepted_output_modes = vec!["text/plain".to_owned()];
        RequestDetails { accepted_output_modes, ..RequestDetails::default() }
    }

    fn request() -> Request {
        Request {
            agent: AgentId::new("a").expect("an id"),
            origin: RequestOrigin::for_direct_request(PrincipalId(uuid::Uuid::nil()), Trigger::Api),
            message_id: MessageId("m".to_owned()),
            context: ContextId("c".to_owned()),
            starts_context: true,
            idempotency_key: None,
            continued_execution: None,
            inherited_overrides: Overrides::default(),
            input: Input::from_text("x"),
        }
    }

    #[test]
    fn each_instance_has_keys_of_its_own() {
        assert_ne!(
            KeyedHasher::new([7; 32]).digest(["a"]),
            KeyedHasher::new([8; 32]).digest(["a"])
        );
    }
}

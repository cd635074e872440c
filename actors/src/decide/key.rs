//! Keys of requests: digests under a key of this instance, so that nothing can be guessed back.

use std::borrow::Cow;
use std::sync::Arc;

use hmac::digest::Key;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::model::content::{Content, Part};
use crate::model::id::ExecutionId;
use crate::model::request::{Keys, Overrides, Request};

/// Makes digests under one instance's key. Cheap to clone.
#[derive(Clone)]
pub struct Keyring {
    /// What every digest begins with. The key cannot be read back from it.
    begun: Arc<Hmac<Sha256>>,
}

impl std::fmt::Debug for Keyring {
    /// Hides the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring")
    }
}

impl Keyring {
    /// A keyring of the persisted key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        let mut block = Key::<Hmac<Sha256>>::default(); // A short key is one with zeros behind it.
        block.iter_mut().zip(key).for_each(|(byte, given)| *byte = given);
        Self { begun: Arc::new(Hmac::new(&block)) }
    }

    /// The keys of a request: by its message, and by the name that the caller gave it.
    #[must_use]
    pub fn keys(&self, request: &Request) -> Keys {
        let named = request.idempotency.as_deref();
        Keys {
            message: self.message(request),
            named: named.map(|name| self.named(request, "idempotency", name)),
        }
    }

    /// The key of a request by its message alone.
    #[must_use]
    pub fn message(&self, request: &Request) -> [u8; 32] {
        self.named(request, "message", &request.message.0)
    }

    fn named(&self, request: &Request, kind: &str, name: &str) -> [u8; 32] {
        self.digest([kind, &request.owner.to_string(), request.agent.as_str(), name])
    }

    /// The key of a request whose message id means nothing: each is another one.
    #[must_use]
    pub fn key_of(&self, id: ExecutionId, turn: u32) -> [u8; 32] {
        self.digest(["execution", &id.to_string(), &turn.to_string()])
    }

    /// The digest of what is asked: the same key with another digest is a conflict. The context
    /// is not part of it, since a caller that names none gets a new one each time.
    #[must_use]
    pub fn body(&self, request: &Request) -> [u8; 32] {
        let mut said = self.begin();
        said.add("body");
        for part in &request.input.parts {
            said.add(kind(part));
            said.add(&text(part));
            said.add_all(part.filename.iter().flat_map(|name| ["filename", name]));
            said.add_all(part.media_type.iter().flat_map(|name| ["media type", name]));
        }
        let Overrides { working_dir, env } = &request.input.overrides;
        if !request.input.overrides.is_empty() {
            let count = env.len().to_string(); // What follows may be called anything.
            said.add_all(["overrides", working_dir.as_deref().unwrap_or_default(), &count]);
            said.add_all(env.iter().flat_map(|(name, value)| [&**name, &**value]));
        }
        said.add("params");
        said.add_all(request.input.params.iter().flat_map(|(name, value)| [&**name, &**value]));
        said.end()
    }

    /// The key of what a caller asks of an agent, whatever the message is called. In a conversation
    /// that is named the same words may mean something else than in another.
    #[must_use]
    pub fn content(&self, request: &Request) -> [u8; 32] {
        let (owner, body) = (request.owner.to_string(), self.body(request));
        let body: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
        let context = if request.opens { "" } else { &request.context.0 };
        self.digest(["content", &owner, request.agent.as_str(), context, &body])
    }

    /// A short name for secrets of which this is the digest.
    #[must_use]
    pub fn credential(&self, digest: &[u8; 32]) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let [a, b, c, d, ..] = self.digest(["credential", &hex(digest)]);
        hex(&[a, b, c, d])
    }

    fn digest<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> [u8; 32] {
        let mut said = self.begin();
        said.add_all(parts);
        said.end()
    }

    fn begin(&self) -> Said {
        Said(Hmac::clone(&self.begun))
    }
}

/// A digest that grows by parts.
struct Said(Hmac<Sha256>);

impl Said {
    /// A part is preceded by its length, so that no two lists of parts run together.
    fn add(&mut self, part: &str) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part.as_bytes());
    }

    fn add_all<'p>(&mut self, parts: impl IntoIterator<Item = &'p str>) {
        parts.into_iter().for_each(|part| self.add(part));
    }

    fn end(self) -> [u8; 32] {
        self.0.finalize().into_bytes().into()
    }
}

const fn kind(part: &Part) -> &'static str {
    match part.content {
        Content::Text(_) => "text",
        Content::Data(_) => "data",
        Content::Bytes(_) => "bytes",
        Content::Url(_) => "url",
    }
}

fn text(part: &Part) -> Cow<'_, str> {
    match &part.content {
        Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.into(),
        Content::Data(data) => data.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{AgentId, ContextId, MessageId, PrincipalId};
    use crate::model::request::{Input, Trigger};

    #[test]
    fn parts_do_not_run_together() {
        let ring = Keyring::new([7; 32]);
        assert_ne!(ring.digest(["ab", "c"]), ring.digest(["a", "bc"]));
        assert_ne!(ring.digest(["ab"]), ring.digest(["ab", ""]));
        assert_eq!(ring.digest(["ab", "c"]), ring.digest(["ab", "c"]));
    }

    /// What is kept from one life to the next has to be found by the next.
    #[test]
    fn a_digest_is_the_hmac_of_parts_with_their_lengths_before_them() {
        let digest = Keyring::new([7; 32]).digest(["ab", "c"]);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "cb26cbd8f92f96666adb85ea48780f04962ec8ae8998cd24c8bfb1721f19bb3c");
    }

    #[test]
    fn what_an_agent_would_see_of_a_request_is_in_its_digest() {
        let ring = Keyring::new([7; 32]);
        let asked = |change: &dyn Fn(&mut Request)| {
            let mut request = request();
            change(&mut request);
            ring.body(&request)
        };
        let pair = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        let named = |name: &str| {
            let mut part = Part::text("x");
            part.filename = Some(name.to_owned());
            vec![part]
        };
        let typed = || {
            let mut part = Part::text("x");
            part.media_type = Some("a.md".to_owned());
            vec![part]
        };
        let digests = [
            asked(&|_| {}),
            asked(&|request| request.input.parts = named("a.csv")),
            asked(&|request| request.input.parts = named("a.md")),
            asked(&|request| request.input.parts = typed()),
            asked(&|request| request.input.params = pair("overrides", "/a")),
            asked(&|request| request.input.overrides.working_dir = Some("/a".to_owned())),
            asked(&|request| request.input.overrides.env = pair("params", "/a")),
            asked(&|request| request.input.params = pair("params", "/a")),
        ];
        let different: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(different.len(), digests.len());
    }

    fn request() -> Request {
        Request {
            agent: AgentId::new("a").expect("an id"),
            owner: PrincipalId(uuid::Uuid::nil()),
            message: MessageId("m".to_owned()),
            context: ContextId("c".to_owned()),
            opens: true,
            idempotency: None,
            continues: None,
            standing: Overrides::default(),
            trigger: Trigger::Api,
            trace: None,
            input: Input::text_of("x"),
        }
    }

    #[test]
    fn another_instance_has_other_keys() {
        assert_ne!(Keyring::new([7; 32]).digest(["a"]), Keyring::new([8; 32]).digest(["a"]));
    }
}

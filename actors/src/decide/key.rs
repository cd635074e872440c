//! Keys of requests: digests under a key of this instance, so that nothing can be guessed back.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::model::content::{Content, Part};
use crate::model::id::ExecutionId;
use crate::model::request::{Keys, Overrides, Request};

/// Makes digests under one instance's key.
#[derive(Clone)]
pub struct Keyring {
    key: [u8; 32],
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
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The keys of a request: by its message, and by the name that the caller gave it.
    #[must_use]
    pub fn keys(&self, request: &Request) -> Keys {
        let (owner, agent) = (request.owner.to_string(), request.agent.as_str());
        let key = |kind, name: &str| self.digest([kind, owner.as_str(), agent, name]);
        let named = request.idempotency.as_deref();
        Keys {
            message: key("message", &request.message.0),
            named: named.map(|name| key("idempotency", name)),
        }
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
        let texts: Vec<_> = request.input.parts.iter().map(text).collect();
        let mut said = vec!["body"];
        for (part, text) in request.input.parts.iter().zip(&texts) {
            said.extend([kind(part), text]);
            said.extend(part.filename.iter().flat_map(|name| ["filename", name]));
            said.extend(part.media_type.iter().flat_map(|name| ["media type", name]));
        }
        let Overrides { working_dir, env } = &request.input.overrides;
        let count = env.len().to_string(); // What follows may be called anything.
        if !request.input.overrides.is_empty() {
            said.extend(["overrides", working_dir.as_deref().unwrap_or_default(), &count]);
            said.extend(env.iter().flat_map(|(name, value)| [&**name, &**value]));
        }
        said.push("params");
        said.extend(request.input.params.iter().flat_map(|(name, value)| [&**name, &**value]));
        self.digest(said)
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

    /// Each part is preceded by its length, so that no two lists of parts run together.
    fn digest<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> [u8; 32] {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            return [0; 32]; // An HMAC takes a key of any length.
        };
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes().into()
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

fn text(part: &Part) -> String {
    match &part.content {
        Content::Text(text) | Content::Bytes(text) | Content::Url(text) => text.clone(),
        Content::Data(data) => data.to_string(),
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

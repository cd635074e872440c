//! The extensions of the protocol that agents offer: on their cards, and told back to who uses them.

use algonius_actors::model::agent::AgentSpec;
use axum::http::HeaderValue;
use axum::response::Response;

use super::observed::Endpoint;
use crate::wire::a2a::{CURSOR, OVERRIDES, PARAMETERS};

/// What is said of an extension on cards.
const ALWAYS: [(&str, &str); 2] = [
    (PARAMETERS, "Values for the templates of the agent, in the metadata of a message."),
    (CURSOR, "Each event of a stream tells the number after which it can be taken up again."),
];

/// What is said of the extension of agents that leave something to callers.
const CHOICE: (&str, &str) = (
    OVERRIDES,
    "A folder to start in and variables of the environment, as far as the agent allows, in the \
     metadata of a message.",
);

/// What is known of an extension: its address, a description, whether callers must use it.
type Extension = (String, String, bool);

/// The extensions of an agent.
pub(super) fn offered(spec: &AgentSpec) -> Vec<Extension> {
    let further = (!spec.allowance.is_empty()).then(|| extension(&CHOICE));
    always().into_iter().chain(further).collect()
}

/// The extensions of every agent.
pub(super) fn always() -> Vec<Extension> {
    ALWAYS.iter().map(extension).collect()
}

fn extension((uri, text): &(&str, &str)) -> Extension {
    ((*uri).to_owned(), (*text).to_owned(), false)
}

/// Tells a caller over HTTP which of the extensions that it wants are in use.
pub(super) fn tell(endpoint: &Endpoint, wanted: &[String], response: &mut Response) {
    if let Some(spec) = endpoint.agent.as_ref().filter(|_| endpoint.speaks_a2a()) {
        name(response, wanted, &offered(spec));
    }
}

/// Names in an answer what of the wanted is offered.
pub(super) fn name(response: &mut Response, wanted: &[String], offered: &[Extension]) {
    let is_wanted = |uri: &&str| wanted.iter().any(|wanted| wanted == uri);
    let used = offered.iter().map(|(uri, ..)| uri.as_str()).filter(is_wanted);
    let line = used.collect::<Vec<_>>().join(", ");
    if let Ok(line) = HeaderValue::from_str(&line)
        && !line.is_empty()
    {
        response.headers_mut().insert("a2a-extensions", line.clone());
        response.headers_mut().insert("x-a2a-extensions", line);
    }
}

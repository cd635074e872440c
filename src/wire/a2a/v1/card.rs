//! An agent's public face.

pub use algonius_actors::model::exposure::{Binding, Version};

/// One way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Where.
    pub url: String,
    /// How calls travel.
    pub binding: Binding,
    /// Which version is spoken.
    pub version: Version,
    /// What a call must name where the address does not.
    pub tenant: Option<String>,
}

/// One thing an agent can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSkill {
    /// Id, unique on the card.
    pub id: String,
    /// Name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// How callers prove who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardSecurity {
    /// `Authorization: Bearer`.
    Bearer,
    /// A key in a header of this name.
    ApiKey(String),
    /// Not at all.
    Nothing,
}

/// What a card tells about an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// Name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The agent's own version.
    pub version: String,
    /// The ways in, the preferred one first.
    pub interfaces: Vec<Interface>,
    /// Whether it streams.
    pub streaming: bool,
    /// Whether it pushes.
    pub push: bool,
    /// Whether an authenticated caller sees more.
    pub extended: bool,
    /// Extensions that it offers: address, description, whether callers must use it.
    pub extensions: Vec<(String, String, bool)>,
    /// Media types that it reads.
    pub input_modes: Vec<String>,
    /// Media types that it writes.
    pub output_modes: Vec<String>,
    /// What it can do.
    pub skills: Vec<CardSkill>,
    /// How callers prove who they are.
    pub security: CardSecurity,
}

//! Parts of a prompt in forms that the agent accepts. An agent that speaks ACP declares them when it initializes.

use std::collections::BTreeSet;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_protocols::{AgentCapability, PromptPart, ProtocolKind, ResourceBody};

use super::TurnPlan;

impl TurnPlan {
    /// Returns the message in parts that an agent with these capabilities accepts. A file of text becomes a text.
    ///
    /// # Errors
    /// `input-rejected` for an image, a sound or a binary file that the agent does not accept.
    pub(super) fn acceptable_prompt(
        &self,
        capabilities: &BTreeSet<AgentCapability>,
    ) -> Result<Vec<PromptPart>, Failure> {
        match self.protocol {
            ProtocolKind::Acp => {
                self.prompt.iter().map(|part| acceptable_part(part, capabilities)).collect()
            }
            // These protocols declare no kinds of parts.
            ProtocolKind::ClaudeControl | ProtocolKind::CodexAppServer => Ok(self.prompt.clone()),
        }
    }
}

fn acceptable_part(
    part: &PromptPart,
    capabilities: &BTreeSet<AgentCapability>,
) -> Result<PromptPart, Failure> {
    let (capability, kind) = match part {
        PromptPart::Text(_) | PromptPart::ResourceLink { .. } => return Ok(part.clone()),
        PromptPart::Image { .. } => (AgentCapability::Image, "images"),
        PromptPart::Audio { .. } => (AgentCapability::Audio, "sounds"),
        PromptPart::Resource { .. } => (AgentCapability::EmbeddedContext, "files other than text"),
    };
    match part {
        _ if capabilities.contains(&capability) => Ok(part.clone()),
        PromptPart::Resource { uri, body: ResourceBody::Text(text), .. } => {
            Ok(PromptPart::Text(format!("{uri}:\n{text}")))
        }
        _ => {
            let message = format!("the program states that it accepts no {kind} in a message");
            Err(Failure::new(Code::InputRejected, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(body: ResourceBody) -> PromptPart {
        PromptPart::Resource { uri: "attachment:///a".to_owned(), mime: None, body }
    }

    #[test]
    fn each_part_needs_the_capability_for_its_kind() {
        let mime = || "x/y".to_owned();
        let text = resource(ResourceBody::Text("note".to_owned()));
        let parts = [
            (PromptPart::Image { mime: mime(), base64: String::new() }, AgentCapability::Image),
            (PromptPart::Audio { mime: mime(), base64: String::new() }, AgentCapability::Audio),
            (resource(ResourceBody::Base64(String::new())), AgentCapability::EmbeddedContext),
            (text, AgentCapability::EmbeddedContext),
        ];
        for (part, needed) in &parts {
            let own = BTreeSet::from([*needed]);
            assert_eq!(acceptable_part(part, &own), Ok(part.clone()));
            let others = parts.iter().map(|(_, other)| *other).filter(|other| other != needed);
            let result = acceptable_part(part, &others.collect());
            match part {
                PromptPart::Resource { body: ResourceBody::Text(_), .. } => {
                    let expected = PromptPart::Text("attachment:///a:\nnote".to_owned());
                    assert_eq!(result, Ok(expected));
                }
                _ => assert_eq!(result.unwrap_err().code, Code::InputRejected),
            }
        }
        let link =
            PromptPart::ResourceLink { uri: "https://e".to_owned(), name: mime(), mime: None };
        assert_eq!(acceptable_part(&link, &BTreeSet::new()), Ok(link));
    }
}

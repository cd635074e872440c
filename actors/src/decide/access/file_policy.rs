//! File policy: decides whether an agent accepts a message with files.

use crate::model::agent::file_delivery::FileDelivery;
use crate::model::code::Code;
use crate::model::execution::content::Content;
use crate::model::execution::request::Input;
use crate::model::failure::Failure;

/// Checks that the agent receives the files of an input, if it has any: no file is accepted and then dropped. The
/// address of a file must not look like a path of this machine.
///
/// # Errors
/// Returns `content-type-unsupported` or `invalid-params`.
pub fn check_files(delivery: FileDelivery, input: &Input) -> Result<(), Failure> {
    match delivery {
        FileDelivery::None if input.has_files() => {
            let message = "this agent accepts no files; send their content as text";
            Err(Failure::new(Code::ContentType, message))
        }
        FileDelivery::ListInVariable | FileDelivery::ListInPrompt | FileDelivery::AgentProtocol
            if input.parts.iter().any(|part| has_non_http_url(&part.content)) =>
        {
            let message = "the address of a file must begin with `https://` or `http://`";
            Err(Failure::new(Code::InvalidParams, message))
        }
        FileDelivery::None
        | FileDelivery::ListInVariable
        | FileDelivery::ListInPrompt
        | FileDelivery::AgentProtocol
        | FileDelivery::Forward => Ok(()),
    }
}

fn has_non_http_url(content: &Content) -> bool {
    let is_remote = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    matches!(content, Content::Url(url) if !is_remote(url))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::execution::content::Part;

    #[test]
    fn only_an_agent_without_delivery_refuses_files() {
        let input_with = |content| {
            let part = Part { content, ..Part::text("") };
            Input { parts: vec![Part::text("look"), part], ..Input::default() }
        };
        let contents = [
            (Content::Text("x".to_owned()), false),
            (Content::Data(json!({"file": "x"})), false),
            (Content::Bytes("eA==".to_owned()), true),
            (Content::Url("https://example.com/x".to_owned()), true),
        ];
        for (content, is_file) in contents {
            let input = input_with(content.clone());
            let refusal = check_files(FileDelivery::None, &input).map_err(|failure| failure.code);
            let expected = if is_file { Err(Code::ContentType) } else { Ok(()) };
            assert_eq!(refusal, expected, "{content:?}");
            for delivery in [
                FileDelivery::ListInVariable,
                FileDelivery::ListInPrompt,
                FileDelivery::AgentProtocol,
            ] {
                assert_eq!(check_files(delivery, &input), Ok(()), "{content:?} {delivery:?}");
            }
        }
    }

    #[test]
    fn an_address_is_never_a_path_of_this_machine() {
        for (url, is_accepted) in [
            ("https://example.com/x", true),
            ("http://127.0.0.1/x", true),
            ("/etc/passwd", false),
            ("file:///etc/passwd", false),
            ("../secret", false),
            ("-rf", false),
            ("", false),
        ] {
            let part = Part { content: Content::Url(url.to_owned()), ..Part::text("") };
            let input = Input { parts: vec![part], ..Input::default() };
            for delivery in [
                FileDelivery::ListInVariable,
                FileDelivery::ListInPrompt,
                FileDelivery::AgentProtocol,
            ] {
                assert_eq!(check_files(delivery, &input).is_ok(), is_accepted, "{url}");
            }
            assert_eq!(check_files(FileDelivery::Forward, &input), Ok(()), "{url}");
        }
    }
}

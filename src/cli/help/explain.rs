//! `algonius explain`: the page about an error, which the binary contains.

use algonius_actors::model::code::Code;
use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::config::nearest_word;

/// Prints the page about a code, or lists all codes.
///
/// # Errors
/// Fails if no error has this code.
pub(crate) fn run(requested_code: Option<&str>, out: &CliOutput) -> Result<(), CliError> {
    let Some(requested_code) = requested_code else {
        list(out);
        return Ok(());
    };
    let Some(code) = Code::ALL.iter().find(|code| code.as_str() == requested_code) else {
        let known_codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let suggestion = nearest_word(requested_code, &known_codes)
            .map(|suggestion| format!("did you mean `{suggestion}`?"));
        let hint = suggestion.unwrap_or_else(|| "`algonius explain` lists all codes".to_owned());
        return Err(CliError::UnknownCode { code: requested_code.to_owned(), hint });
    };
    if out.is_json() {
        out.print_json(&json!({
            "code": code.as_str(),
            "category": code.category().as_str(),
            "hint": code.hint(),
            "text": code.page(),
        }));
        return Ok(());
    }
    out.print_text(code.page());
    Ok(())
}

fn list(out: &CliOutput) {
    let entries =
        Code::ALL.iter().map(|code| [code.as_str(), code.category().as_str(), code.hint()]);
    if out.is_json() {
        let to_json = |[code, category, hint]: [&str; 3]| json!({"code": code, "category": category, "hint": hint});
        return out.print_json(&entries.map(to_json).collect::<Vec<_>>());
    }
    let rows = entries.map(|entry| entry.map(str::to_owned)).collect();
    out.print_table(["CODE", "CATEGORY", "HINT"], rows, "");
}

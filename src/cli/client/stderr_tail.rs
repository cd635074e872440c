//! End of the standard error of a task, of which the document of the task has the beginning.

use algonius_actors::model::execution::event::TextChannel;

use super::ServiceClient;
use crate::wire::api::history::{ExecutionDetail, TextEntry, TextPart};

/// Number of bytes at the end of a long text that are fetched.
const TAIL_BYTES: u64 = 64 << 10;

/// Returns the end of the standard error of a task in complete lines, or all of a short one, with true if the beginning
/// is missing. Returns the beginning, as the document has it, if the end cannot be read.
pub(in crate::cli) async fn fetch_stderr_tail(
    client: &ServiceClient,
    detail: &ExecutionDetail,
) -> (String, bool) {
    if !detail.cut.iter().any(|name| name == TextChannel::Stderr.as_str()) {
        return (detail.stderr.clone(), false);
    }
    let is_stderr = |text: &&TextEntry| text.channel == TextChannel::Stderr;
    let Some(text) = detail.texts.iter().filter(is_stderr).max_by_key(|text| text.attempt_id)
    else {
        return (detail.stderr.clone(), false);
    };
    let (turn, attempt) = (text.attempt_id.turn, text.attempt_id.attempt);
    let from = text.bytes.saturating_sub(TAIL_BYTES);
    let query =
        format!("turn={turn}&attempt={attempt}&channel=stderr&from={from}&limit={TAIL_BYTES}");
    let path = format!("/api/v1/executions/{}/text?{query}", detail.entry.id);
    match client.get::<TextPart>(&path).await {
        Ok(part) => match part.text.split_once('\n') {
            Some((_, lines)) if part.from > 0 && !lines.trim().is_empty() => {
                (lines.to_owned(), true)
            }
            _ => (part.text, part.from > 0),
        },
        Err(_unreadable) => (detail.stderr.clone(), false),
    }
}

//! Present state of one task: the output of its program so far, and its events.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::{Event, TextChannel};

use super::ServiceClient;
use crate::cli::error::CliError;
use crate::wire::api::history::{EventList, TextPart};

/// Item of a task.
pub(crate) enum FeedItem {
    /// Event of the task.
    Event(Box<Event>),
    /// Output of the program.
    Text(TextChannel, String),
}

/// Returns all present items of a task: the texts of these channels of its first and of its latest attempt, then its
/// events.
pub(crate) async fn fetch_items(
    client: &ServiceClient,
    id: &str,
    channels: [TextChannel; 2],
) -> Result<Vec<FeedItem>, CliError> {
    let (mut events, mut after) = (Vec::new(), 0);
    let attempt_id = loop {
        let list: EventList =
            client.get(&format!("/api/v1/executions/{id}/events?after={after}")).await?;
        events.extend(list.events.into_iter().map(|event| FeedItem::Event(Box::new(event))));
        after = list.after;
        if !list.more {
            break list.attempt_id;
        }
    };
    let mut items = Vec::new();
    let latest_attempt = (attempt_id != AttemptId::FIRST).then_some(attempt_id);
    for attempt_id in [AttemptId::FIRST].into_iter().chain(latest_attempt) {
        for channel in channels {
            read_text_parts(client, id, (attempt_id, channel), &mut items).await?;
        }
    }
    items.extend(events);
    Ok(items)
}

/// Reads one text in parts.
async fn read_text_parts(
    client: &ServiceClient,
    id: &str,
    (attempt_id, channel): (AttemptId, TextChannel),
    items: &mut Vec<FeedItem>,
) -> Result<(), CliError> {
    let AttemptId { turn, attempt } = attempt_id;
    let (mut offset, channel_name) = (0, channel.as_str());
    loop {
        let query = format!("turn={turn}&attempt={attempt}&channel={channel_name}&from={offset}");
        let part: TextPart = client.get(&format!("/api/v1/executions/{id}/text?{query}")).await?;
        if part.text.is_empty() {
            return Ok(());
        }
        offset = part.to;
        items.push(FeedItem::Text(channel, part.text));
    }
}

//! One task as it goes on: its events and its output, each told once.

use std::collections::BTreeMap;

use algonius_actors::model::event::{Channel, Event};
use algonius_actors::model::execution::Stamp;

use super::client::Client;
use super::fault::CliError;
use crate::wire::api::history::{EventList, TextPart};

/// The output of a program.
const STREAMS: [Channel; 2] = [Channel::Stdout, Channel::Stderr];

/// What is told next.
pub(super) enum Told {
    /// Something happened.
    Event(Box<Event>),
    /// Output.
    Text(Channel, String),
}

/// How far a task has been told.
pub(super) struct Tail {
    /// Its id.
    pub(super) id: String,
    after: u64,
    stamp: Stamp,
    /// How far each stream of this attempt has been told.
    told: BTreeMap<&'static str, u64>,
    /// Whether it has ended, and all of it has been told.
    pub(super) is_over: bool,
}

impl Tail {
    /// A task of which nothing has been told.
    pub(super) fn of(id: &str) -> Self {
        let (id, told) = (id.to_owned(), BTreeMap::new());
        Self { id, after: 0, stamp: Stamp::FIRST, told, is_over: false }
    }

    /// What is new. Output comes before the events that follow it.
    pub(super) async fn next(&mut self, client: &Client) -> Result<Vec<Told>, CliError> {
        let Self { id, after, .. } = self;
        let list: EventList =
            client.get(&format!("/api/v1/executions/{id}/events?after={after}")).await?;
        let mut told = self.output(client).await?;
        if list.stamp != self.stamp {
            (self.stamp, self.told) = (list.stamp, BTreeMap::new());
            told.extend(self.output(client).await?);
        }
        self.after = list.after;
        self.is_over = list.ended && !list.more;
        told.extend(list.events.into_iter().map(|event| Told::Event(Box::new(event))));
        Ok(told)
    }

    async fn output(&mut self, client: &Client) -> Result<Vec<Told>, CliError> {
        let mut told = Vec::new();
        for channel in STREAMS {
            loop {
                let part = self.part(client, channel).await?;
                if part.text.is_empty() {
                    break;
                }
                self.told.insert(channel.as_str(), part.to);
                told.push(Told::Text(channel, part.text));
            }
        }
        Ok(told)
    }

    async fn part(&self, client: &Client, channel: Channel) -> Result<TextPart, CliError> {
        let Stamp { turn, attempt } = self.stamp;
        let (id, channel) = (&self.id, channel.as_str());
        let from = self.told.get(channel).copied().unwrap_or_default();
        let query = format!("turn={turn}&attempt={attempt}&channel={channel}&from={from}");
        client.get(&format!("/api/v1/executions/{id}/text?{query}")).await
    }
}

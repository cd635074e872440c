//! Losses of the artifacts of a remote agent: its service states them in metadata, which are no part of the answer.

use std::collections::BTreeMap;

use algonius_a2a::v1::{Artifact, Metadata};
use algonius_a2a::{DROPPED_BYTES_MEMBER, REDACTED_MEMBER, TRUNCATED_MEMBER};
use serde_json::Value;

/// Greatest number of artifacts whose losses are added up.
const MAX_ARTIFACTS: usize = 1000;

/// Number of artifacts that a warning names, and the longest name in characters.
const MAX_NAMES: usize = 3;
const MAX_NAME_CHARS: usize = 100;

/// Losses of the artifacts of one remote task, by the id of the artifact.
#[derive(Debug, Default)]
pub(super) struct RemoteLosses {
    losses_by_id: BTreeMap<String, LossCounts>,
}

/// Losses of one artifact.
#[derive(Debug, Clone, Copy, Default)]
struct LossCounts {
    dropped_bytes: u64,
    redacted_places: u64,
}

impl RemoteLosses {
    /// Records the losses of an artifact or of a piece of one. A whole artifact that is not appended states all losses.
    pub(super) fn record(&mut self, artifact: &Artifact, append: bool) {
        let id = &artifact.artifact_id;
        let added = LossCounts::from_metadata(&artifact.metadata);
        let is_known = self.losses_by_id.contains_key(id);
        let is_loss = added.dropped_bytes > 0 || added.redacted_places > 0;
        if !is_known && (!is_loss || self.losses_by_id.len() == MAX_ARTIFACTS) {
            return;
        }
        let losses = self.losses_by_id.entry(id.clone()).or_default();
        let before = if append { *losses } else { LossCounts::default() };
        *losses = LossCounts {
            dropped_bytes: before.dropped_bytes.saturating_add(added.dropped_bytes),
            redacted_places: before.redacted_places.saturating_add(added.redacted_places),
        };
    }

    /// Returns one sentence for each kind of loss.
    pub(super) fn into_warnings(self) -> Vec<String> {
        let dropped = self.sum_and_names(|losses| losses.dropped_bytes);
        let redacted = self.sum_and_names(|losses| losses.redacted_places);
        let dropped = dropped.map(|(sum, names)| {
            format!("{sum} bytes are missing, because the remote service truncated {names}")
        });
        let redacted = redacted.map(|(sum, names)| {
            format!("the remote service redacted {names}, places in all: {sum}")
        });
        dropped.into_iter().chain(redacted).collect()
    }

    /// Returns the sum of one kind of loss and the names of the artifacts with it; `None` without such a loss.
    fn sum_and_names(&self, loss: impl Fn(&LossCounts) -> u64) -> Option<(u64, String)> {
        let lossy = || self.losses_by_id.iter().filter(|(_, counts)| loss(counts) > 0);
        let sum = lossy().map(|(_, counts)| loss(counts)).fold(0, u64::saturating_add);
        let quote = |id: &str| format!("`{}`", id.chars().take(MAX_NAME_CHARS).collect::<String>());
        let names: Vec<_> = lossy().take(MAX_NAMES).map(|(id, _)| quote(id)).collect();
        let unnamed_count = lossy().count() - names.len();
        let suffix =
            if unnamed_count > 0 { format!(" and {unnamed_count} more") } else { String::new() };
        (sum > 0).then(|| (sum, format!("artifact {}{suffix}", names.join(", "))))
    }
}

impl LossCounts {
    fn from_metadata(metadata: &Metadata) -> Self {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
        let truncated = metadata.get(TRUNCATED_MEMBER).and_then(|it| it.get(DROPPED_BYTES_MEMBER));
        Self {
            dropped_bytes: number(truncated),
            redacted_places: number(metadata.get(REDACTED_MEMBER)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn artifact(id: &str, redacted: u64, dropped: u64) -> Artifact {
        let metadata = json!({"redacted": redacted, "truncated": {"droppedBytes": dropped}});
        Artifact {
            artifact_id: id.to_owned(),
            name: None,
            description: None,
            parts: Vec::new(),
            metadata: metadata.as_object().cloned().unwrap(),
            extensions: Vec::new(),
        }
    }

    /// A snapshot of the task repeats the losses of the pieces.
    #[test]
    fn a_repeated_artifact_states_its_losses_once() {
        let mut losses = RemoteLosses::default();
        losses.record(&artifact("a", 1, 0), false);
        losses.record(&artifact("a", 2, 7), true);
        losses.record(&artifact("a", 3, 7), false);
        losses.record(&artifact("b", 0, 0), false);
        for id in ["c", "d", "e"] {
            losses.record(&artifact(id, 1, 0), false);
        }
        let expected = [
            "7 bytes are missing, because the remote service truncated artifact `a`",
            "the remote service redacted artifact `a`, `c`, `d` and 1 more, places in all: 6",
        ];
        assert_eq!(losses.into_warnings(), expected);
    }
}

//! Losses of the artifacts of a remote agent: its service states them in metadata, which are no part of the answer.

use std::collections::BTreeMap;

use algonius_a2a::v1::{Artifact, Metadata};
use serde_json::Value;

/// Greatest number of artifacts with losses that are remembered.
const MAX_ARTIFACTS: usize = 20;

/// Longest name of an artifact in a warning, in characters.
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

    /// Returns one sentence for each loss.
    pub(super) fn into_warnings(self) -> Vec<String> {
        let sentences = |(id, losses): (String, LossCounts)| {
            let name: String = id.chars().take(MAX_NAME_CHARS).collect();
            let LossCounts { dropped_bytes, redacted_places } = losses;
            let dropped = (dropped_bytes > 0).then(|| {
                format!("{dropped_bytes} bytes of artifact `{name}` are missing: the remote service truncated it")
            });
            let redacted = (redacted_places > 0).then(|| {
                format!("redactions by the remote service in artifact `{name}`: {redacted_places}")
            });
            dropped.into_iter().chain(redacted)
        };
        self.losses_by_id.into_iter().flat_map(sentences).collect()
    }
}

impl LossCounts {
    fn from_metadata(metadata: &Metadata) -> Self {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
        let truncated = metadata.get("truncated").and_then(|it| it.get("droppedBytes"));
        Self { dropped_bytes: number(truncated), redacted_places: number(metadata.get("redacted")) }
    }
}

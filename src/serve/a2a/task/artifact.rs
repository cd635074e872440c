//! Artifacts as callers see them: parts, and metadata about the missing parts.

use algonius_a2a::v1::{A2aPart, Artifact, Metadata, PartContent};
use algonius_a2a::{DROPPED_BYTES_MEMBER, REDACTED_MEMBER, TRUNCATED_MEMBER};
use algonius_actors::model::execution::content::StoredPart;
use serde_json::{Value, json};

/// The parts of an artifact that its callers do not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArtifactLosses {
    /// Number of redacted places.
    redacted_count: u64,
    /// Number of dropped bytes.
    dropped_bytes: u64,
}

impl ArtifactLosses {
    /// Sums up the losses of pieces.
    #[must_use]
    pub fn from_parts(parts: &[StoredPart]) -> Self {
        let losses = parts.iter().map(|piece| Self::from((piece.redacted, piece.dropped)));
        losses.fold(Self::default(), Self::plus)
    }

    /// Reads the losses back from an artifact's metadata.
    fn from_metadata(metadata: &Metadata) -> Self {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
        let truncated = metadata
            .get(TRUNCATED_MEMBER)
            .and_then(|truncated| truncated.get(DROPPED_BYTES_MEMBER));
        Self::from((number(metadata.get(REDACTED_MEMBER)), number(truncated)))
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            redacted_count: self.redacted_count + other.redacted_count,
            dropped_bytes: self.dropped_bytes + other.dropped_bytes,
        }
    }

    /// The metadata of an artifact with these losses.
    #[must_use]
    pub fn metadata(self) -> Metadata {
        let redacted = (self.redacted_count > 0)
            .then(|| (REDACTED_MEMBER.to_owned(), self.redacted_count.into()));
        let dropped =
            (self.dropped_bytes > 0).then(|| json!({ DROPPED_BYTES_MEMBER: self.dropped_bytes }));
        redacted
            .into_iter()
            .chain(dropped.map(|value| (TRUNCATED_MEMBER.to_owned(), value)))
            .collect()
    }
}

impl From<(u64, u64)> for ArtifactLosses {
    /// Losses of so many redacted places and so many dropped bytes.
    fn from((redacted, dropped): (u64, u64)) -> Self {
        Self { redacted_count: redacted, dropped_bytes: dropped }
    }
}

/// Creates an artifact of these parts, with the losses of its text.
#[must_use]
pub fn build_artifact(
    id: &str,
    name: Option<String>,
    description: Option<String>,
    (parts, losses): (Vec<A2aPart>, ArtifactLosses),
) -> Artifact {
    let (metadata, extensions) = (losses.metadata(), Vec::new());
    Artifact { artifact_id: id.to_owned(), name, description, parts, metadata, extensions }
}

/// Appends parts to an artifact. Texts that follow each other become one text.
pub fn append_parts(artifact: &mut Artifact, parts: Vec<A2aPart>, losses: ArtifactLosses) {
    // The artifact holds no losses beside its metadata, so the sum is read back from there.
    artifact.metadata = losses.plus(ArtifactLosses::from_metadata(&artifact.metadata)).metadata();
    for part in parts {
        match (artifact.parts.last_mut(), part) {
            (
                Some(A2aPart { content: PartContent::Text(text), filename: None, .. }),
                A2aPart { content: PartContent::Text(next_text), filename: None, .. },
            ) => text.push_str(&next_text),
            (_, part) => artifact.parts.push(part),
        }
    }
}

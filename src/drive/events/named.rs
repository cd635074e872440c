//! Parts as a program tells them, and what becomes of the files that it only names.

use std::path::Path;

use algonius_actors::model::content::{Content, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::drive::reach::{Reach, Refusal};

/// A part as a program tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// The part itself.
    Part(Part),
    /// A file that is to be read.
    Named(Named),
}

/// A file that a program has made and names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Where it is; if relative, as seen from the agent's working directory.
    pub(super) path: String,
    /// The name that it is to have.
    pub(super) name: Option<String>,
    /// What it is.
    pub(super) media_type: Option<String>,
}

/// A file that is not delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    /// The last part of its path, raw.
    pub(super) name: String,
    /// Why.
    pub(super) refusal: Refusal,
}

/// Reads the files among the items, into parts that take up no more than `room` all in all.
///
/// They are read when the event comes, not when the program ends: a follower sees them while it
/// works, a name can be used again for the next file, and the execution's folder is still there,
/// because it is removed only after the last event was heard.
///
/// # Errors
/// The first file that was not read.
pub(super) async fn parts(
    items: Vec<Item>,
    reach: &Reach,
    mut room: usize,
) -> Result<Vec<Part>, Undelivered> {
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        let part = match item {
            Item::Part(part) => part,
            Item::Named(named) => named.part(reach, room).await?,
        };
        if let Content::Bytes(encoded) = &part.content {
            room = room.saturating_sub(encoded.len());
        }
        parts.push(part);
    }
    Ok(parts)
}

impl Named {
    async fn part(self, reach: &Reach, room: usize) -> Result<Part, Undelivered> {
        let last = self.last();
        match reach.read(&self.path, room / 4 * 3, |bytes| STANDARD.encode(bytes)).await {
            Ok(encoded) => Ok(Part {
                content: Content::Bytes(encoded),
                filename: Some(self.name.unwrap_or(last)),
                media_type: self.media_type,
            }),
            Err(refusal) => Err(Undelivered { name: last, refusal }),
        }
    }

    fn last(&self) -> String {
        let last = Path::new(&self.path).file_name().unwrap_or_default();
        last.to_string_lossy().into_owned()
    }
}

impl Undelivered {
    /// What is said about it. It names no folder.
    pub(super) fn sentence(&self, shown: impl FnOnce(&str) -> String) -> String {
        let clause = self.refusal.clause();
        match shown(&self.name).as_str() {
            "" => format!("a file was not delivered: {clause}"),
            name => format!("the file `{name}` was not delivered: {clause}"),
        }
    }

    /// What it would have taken up, where it was only too large.
    pub(super) const fn excess(&self) -> Option<u64> {
        match self.refusal {
            Refusal::TooLarge(length) => Some(length.div_ceil(3).saturating_mul(4)),
            _ => None,
        }
    }
}

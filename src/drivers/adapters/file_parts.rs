//! Parts that a program reports, and the reading of files that it only names.

use std::path::Path;

use algonius_actors::model::execution::content::{Content, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::drivers::files::file_access::{AllowedFolders, NamedFileRefusal};

/// Part that a program reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReportedPart {
    /// Part with its content.
    Part(Part),
    /// File to read.
    NamedFile(NamedFile),
}

/// File that a program has made and names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFile {
    /// Path of the file; a relative path starts at the agent's working directory.
    pub(super) path: String,
    /// Display name of the file.
    pub(super) name: Option<String>,
    /// Media type of the file.
    pub(super) media_type: Option<String>,
}

/// File that is not delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UndeliveredFile {
    /// Last component of its path, raw.
    pub(super) name: String,
    /// Reason of the refusal.
    pub(super) refusal: NamedFileRefusal,
}

/// Reads the files among the reported parts into parts that use at most `available_bytes` together.
///
/// # Errors
/// The first file that was not read.
pub(super) async fn read_parts(
    reported_parts: Vec<ReportedPart>,
    allowed_folders: &AllowedFolders,
    mut available_bytes: usize,
) -> Result<Vec<Part>, UndeliveredFile> {
    // Read when the event arrives, not when the program ends: a follower sees the file while the program works, the
    // program can use the path again, and the execution's folder still exists.
    let mut parts = Vec::with_capacity(reported_parts.len());
    for reported_part in reported_parts {
        let part = match reported_part {
            ReportedPart::Part(part) => part,
            ReportedPart::NamedFile(file) => {
                file.read_part(allowed_folders, available_bytes).await?
            }
        };
        if let Content::Bytes(encoded) = &part.content {
            available_bytes = available_bytes.saturating_sub(encoded.len());
        }
        parts.push(part);
    }
    Ok(parts)
}

impl NamedFile {
    async fn read_part(
        self,
        allowed_folders: &AllowedFolders,
        available_bytes: usize,
    ) -> Result<Part, UndeliveredFile> {
        let file_name = self.file_name();
        // Base64 has four characters for three bytes.
        match allowed_folders
            .read(&self.path, available_bytes / 4 * 3, |bytes| STANDARD.encode(bytes))
            .await
        {
            Ok(encoded) => Ok(Part {
                content: Content::Bytes(encoded),
                filename: Some(self.name.unwrap_or(file_name)),
                media_type: self.media_type,
            }),
            Err(refusal) => Err(UndeliveredFile { name: file_name, refusal }),
        }
    }

    fn file_name(&self) -> String {
        let last = Path::new(&self.path).file_name().unwrap_or_default();
        last.to_string_lossy().into_owned()
    }
}

impl UndeliveredFile {
    /// Returns the warning about the file. It names no folder.
    pub(super) fn warning_text(&self, redact: impl FnOnce(&str) -> String) -> String {
        let clause = self.refusal.clause();
        match redact(&self.name).as_str() {
            "" => format!("a file was not delivered: {clause}"),
            name => format!("the file `{name}` was not delivered: {clause}"),
        }
    }

    /// Returns the encoded size of a file that is too large; 0 for another fault.
    pub(super) const fn encoded_size_if_too_large(&self) -> u64 {
        match self.refusal {
            NamedFileRefusal::TooLarge(length) => length.div_ceil(3).saturating_mul(4),
            _ => 0,
        }
    }
}

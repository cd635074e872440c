//! Files of a request: written into the program's folder, and listed in a variable.

use std::path::Path;

use algonius_actors::decide::classify::success_evaluation::files_failure;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part};
use algonius_actors::model::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Map, Value};

use super::scratch_dir::ScratchDir;

/// Variable that lists the files: a JSON array of objects with `path` or `url`, and with `name` and `mediaType` if the
/// caller gave them.
pub(in crate::drivers) const FILES_VARIABLE: &str = "ALGONIUS_FILES";

/// Directory of the files in the execution's own folder.
const FILES_FOLDER: &str = "files";

/// Greatest length of a name in bytes; of a longer name the end is used.
const MAX_NAME_BYTES: usize = 100;

/// Returns true if there are files to write.
pub(in crate::drivers) fn has_files(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part.content, Content::Bytes(_)))
}

/// Returns the list for the program, or `None` if there are no files.
pub(in crate::drivers) fn file_list_json(parts: &[Part], folder: &Path) -> Option<String> {
    let entries: Vec<Value> = numbered_files(parts)
        .filter_map(|(number, part)| file_entry(number, part, folder))
        .collect();
    (!entries.is_empty()).then(|| Value::Array(entries).to_string())
}

/// Writes the files with mode 0600.
///
/// # Errors
/// Fails if the base64 of a file cannot be decoded, or if it cannot be written.
pub(in crate::drivers) fn write_files(parts: &[Part], folder: &ScratchDir) -> Result<(), Failure> {
    folder.create_folder(FILES_FOLDER).map_err(|error| write_failure(&error))?;
    for (number, part) in numbered_files(parts) {
        let Content::Bytes(encoded) = &part.content else { continue };
        let bytes = decode_base64(encoded).ok_or_else(|| {
            Failure::new(Code::InputRejected, format!("file {number} is not valid base64"))
        })?;
        let written = folder.write(&file_path(number, part), &bytes);
        written.map_err(|error| write_failure(&error))?;
    }
    Ok(())
}

/// Returns the parts that are files, numbered from 1.
fn numbered_files(parts: &[Part]) -> impl Iterator<Item = (usize, &Part)> {
    let files =
        parts.iter().filter(|part| matches!(part.content, Content::Bytes(_) | Content::Url(_)));
    (1..).zip(files)
}

fn file_entry(number: usize, part: &Part, folder: &Path) -> Option<Value> {
    let (key, location) = match &part.content {
        Content::Bytes(_) => ("path", folder.join(file_path(number, part)).display().to_string()),
        Content::Url(url) => ("url", url.clone()),
        Content::Text(_) | Content::Data(_) => return None,
    };
    let entry_fields = [
        (key, Some(location)),
        ("name", part.filename.clone()),
        ("mediaType", part.media_type.clone()),
    ];
    let fields =
        entry_fields.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.into())));
    Some(Value::Object(fields.collect::<Map<_, _>>()))
}

fn file_path(number: usize, part: &Part) -> String {
    format!("{FILES_FOLDER}/{number}-{}", safe_name(part.filename.as_deref().unwrap_or_default()))
}

/// Returns a name without folders, leading dots and characters that a shell would interpret.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default().trim_start_matches('.');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let safe: String = last.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    match safe.get(safe.len().saturating_sub(MAX_NAME_BYTES)..) {
        None | Some("") => "file".to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// Decodes base64 of either alphabet, with or without padding, as the JSON forms of A2A allow.
fn decode_base64(encoded: &str) -> Option<Vec<u8>> {
    let standard = encoded.trim_end_matches('=').replace('-', "+").replace('_', "/");
    STANDARD_NO_PAD.decode(standard).ok()
}

fn write_failure(error: &std::io::Error) -> Failure {
    tracing::error!(%error, "failed to write file of a request");
    files_failure(error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::{decode_base64, safe_name};

    #[test]
    fn a_file_name_is_made_safe() {
        for (name, safe) in [
            ("a.txt", "a.txt"),
            ("../../etc/passwd", "passwd"),
            (r"C:\temp\ü b.png", "__b.png"),
            ("..", "file"),
            ("", "file"),
            (".profile", "profile"),
            ("a/", "file"),
            ("$(x)\n", "__x__"),
        ] {
            assert_eq!(safe_name(name), safe, "{name}");
        }
        assert_eq!(safe_name(&format!("{}.txt", "n".repeat(300))).len(), 100);
    }

    #[test]
    fn base64_is_read_in_either_alphabet() {
        for encoded in ["+/8=", "-_8=", "-_8"] {
            assert_eq!(decode_base64(encoded), Some(vec![0xfb, 0xff]), "{encoded}");
        }
        assert_eq!((decode_base64("a"), decode_base64("a b?")), (None, None));
    }
}

//! Files of a request: written into the program's folder, and listed in a variable.

use std::path::Path;

use algonius_actors::decide::classify::success_evaluation::file_write_failure;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part, decode_base64};
use algonius_actors::model::failure::Failure;
use serde_json::{Map, Value};

use super::scratch_dir::ScratchDir;

/// Variable that lists the files: a JSON array of objects with `path` or `url`, and with `name` and `mediaType` if the
/// caller gave them.
pub(in crate::drivers) const FILES_VARIABLE: &str = "ALGONIUS_FILES";

/// Directory of the files in the execution's own folder.
const FILES_FOLDER: &str = "files";

/// Greatest length of a name in bytes; of a longer name the end is used.
const MAX_NAME_BYTES: usize = 100;

/// Sentence before the files in the text of a message.
const PROMPT_HEADING: &str = "The message has these files:";

/// File of a request, as the program finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::drivers) struct ListedFile {
    location: FileLocation,
    name: Option<String>,
    media_type: Option<String>,
}

/// Location of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileLocation {
    /// Path of a file that the service wrote.
    Path(String),
    /// Address that the caller named.
    Url(String),
}

/// Returns true if there are files to write.
pub(in crate::drivers) fn has_files_to_write(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part.content, Content::Bytes(_)))
}

/// Returns the files of a request whose execution has this folder.
pub(in crate::drivers) fn list_files(parts: &[Part], folder: &Path) -> Vec<ListedFile> {
    let listed = numbered_files(parts).filter_map(|(number, part)| {
        let location = match &part.content {
            Content::Bytes(_) => {
                FileLocation::Path(folder.join(file_path(number, part)).display().to_string())
            }
            Content::Url(url) => FileLocation::Url(url.clone()),
            Content::Text(_) | Content::Data(_) => return None,
        };
        let Part { filename, media_type, .. } = part.clone();
        Some(ListedFile { location, name: filename, media_type })
    });
    listed.collect()
}

/// Returns the files as the value of [`FILES_VARIABLE`], or `None` if there are no files.
pub(in crate::drivers) fn to_json(files: &[ListedFile]) -> Option<String> {
    let entries: Vec<Value> = files.iter().map(ListedFile::to_json).collect();
    (!entries.is_empty()).then(|| Value::Array(entries).to_string())
}

/// Returns the paths and addresses of the files, one in each line.
pub(in crate::drivers) fn to_lines(files: &[ListedFile]) -> String {
    files.iter().map(ListedFile::location_line).collect::<Vec<_>>().join("\n")
}

/// Adds the files to the text of a message.
pub(in crate::drivers) fn add_to_prompt(text: &mut String, files: &[ListedFile]) {
    if files.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(PROMPT_HEADING);
    for file in files {
        text.push_str("\n- ");
        text.push_str(&file.location_line());
        if let Some(media_type) = file.media_type.as_deref().filter(|it| is_media_type(it)) {
            text.push_str(" (");
            text.push_str(media_type);
            text.push(')');
        }
    }
}

impl ListedFile {
    fn to_json(&self) -> Value {
        let (key, location) = match &self.location {
            FileLocation::Path(path) => ("path", path),
            FileLocation::Url(url) => ("url", url),
        };
        let members = [
            (key, Some(location)),
            ("name", self.name.as_ref()),
            ("mediaType", self.media_type.as_ref()),
        ];
        let members = members
            .into_iter()
            .filter_map(|(key, text)| Some((key.to_owned(), text?.clone().into())));
        Value::Object(members.collect::<Map<_, _>>())
    }

    /// Returns the path or the address, without line breaks: the caller chose the address.
    fn location_line(&self) -> String {
        match &self.location {
            FileLocation::Path(path) => path.clone(),
            FileLocation::Url(url) => encode_blanks(url),
        }
    }
}

/// Encodes the characters of an address that no address contains: blanks and controls.
fn encode_blanks(url: &str) -> String {
    let mut encoded = String::with_capacity(url.len());
    for letter in url.chars() {
        if letter.is_whitespace() || letter.is_control() {
            let bytes = letter.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
            encoded.extend(bytes.iter().map(|byte| format!("%{byte:02X}")));
        } else {
            encoded.push(letter);
        }
    }
    encoded
}

/// Returns true for a media type without parameters.
fn is_media_type(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "!#$&^_.+-/".contains(c);
    text.contains('/') && text.chars().all(is_plain)
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

fn file_path(number: usize, part: &Part) -> String {
    format!(
        "{FILES_FOLDER}/{number}-{}",
        sanitize_file_name(part.filename.as_deref().unwrap_or_default())
    )
}

/// Returns a name without folders, leading dots and characters that a shell would interpret.
fn sanitize_file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default().trim_start_matches('.');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let safe: String = last.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    match safe.get(safe.len().saturating_sub(MAX_NAME_BYTES)..) {
        None | Some("") => "file".to_owned(),
        Some(name) => name.to_owned(),
    }
}

fn write_failure(error: &std::io::Error) -> Failure {
    tracing::error!(%error, "failed to write file of a request");
    file_write_failure(error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use algonius_actors::model::execution::content::{Content, Part};

    use super::{add_to_prompt, list_files, sanitize_file_name, to_json, to_lines};

    #[test]
    fn files_are_listed_on_lines_of_their_own() {
        let file = |content, media_type: &str| Part {
            content,
            filename: Some("a\nb".to_owned()),
            media_type: Some(media_type.to_owned()),
        };
        let parts = [
            Part::text("look"),
            file(Content::Bytes("eA==".to_owned()), "text/plain"),
            file(Content::Url("https://e.example/a\n- /etc/passwd\u{2028}".to_owned()), "x/y)\n"),
            file(Content::Url("https://e.example/b".to_owned()), "image"),
        ];
        let files = list_files(&parts, Path::new("/own"));
        let lines =
            "/own/files/1-a_b\nhttps://e.example/a%0A-%20/etc/passwd%E2%80%A8\nhttps://e.example/b";
        assert_eq!(to_lines(&files), lines);
        let listed = "The message has these files:\n- /own/files/1-a_b (text/plain)\n\
                      - https://e.example/a%0A-%20/etc/passwd%E2%80%A8\n- https://e.example/b";
        for (text, expected) in [("look", format!("look\n\n{listed}")), ("", listed.to_owned())] {
            let mut prompt = text.to_owned();
            add_to_prompt(&mut prompt, &files);
            assert_eq!(prompt, expected);
        }
    }

    #[test]
    fn a_message_without_files_stays_as_it_is() {
        let files = list_files(&[Part::text("look")], Path::new("/own"));
        let mut prompt = "look".to_owned();
        add_to_prompt(&mut prompt, &files);
        assert_eq!(
            (prompt.as_str(), to_lines(&files).as_str(), to_json(&files)),
            ("look", "", None)
        );
    }

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
            assert_eq!(sanitize_file_name(name), safe, "{name}");
        }
        assert_eq!(sanitize_file_name(&format!("{}.txt", "n".repeat(300))).len(), 100);
    }
}

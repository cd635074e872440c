//! `[inputs]`: storage of inputs that contain a secret.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix::unistd::Uid;

use crate::config::diagnostics::{DiagnosticBuilder, new_diagnostic};
use crate::config::table::{ConfigKey, RangeWithDefault, Seconds, Section};

/// Command that creates a key file.
const KEY_FILE_HINT: &str = "(umask 077; head -c 32 /dev/urandom | base64 > FILE) makes one";

/// Seconds of a week, and of a day.
const WEEK_SECONDS: f64 = 7.0 * DAY_SECONDS;
const DAY_SECONDS: f64 = 86_400.0;

/// Secret key of sealed inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InputSealingKey(pub [u8; 32]);

impl fmt::Debug for InputSealingKey {
    /// Hides the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputKey")
    }
}

/// Settings of inputs that contain a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSettings {
    /// File of the keys, if there is one.
    pub key_file: Option<PathBuf>,
    /// Keys of the file. The first one seals, all of them open.
    pub keys: Vec<InputSealingKey>,
    /// Time for which the input of a failed execution is stored after its end.
    pub retry_window: Duration,
}

const RETRY_WINDOW: ConfigKey<Seconds> = ConfigKey::seconds(
    "retry_window",
    RangeWithDefault::new(0.0, WEEK_SECONDS, DAY_SECONDS),
    "how long the input of a failed execution can be retried; 0: not at all",
);

/// Reads `[inputs]` and its key file.
pub(crate) fn read(mut section: Section<'_>, data_dir: &Path) -> InputSettings {
    let retry_window = RETRY_WINDOW.read(&mut section);
    let found = section.nonblank_text("key_file");
    let reader = section.reader;
    let key_file = found.as_ref().map(|found| reader.resolve_path(&found.value));
    let mut keys = Vec::new();
    if let Some((file, found)) = key_file.as_ref().zip(found) {
        match read_keys(&section, file, data_dir) {
            Ok(found) => keys = found,
            Err(diagnostic) => reader.report_error(&found.position, diagnostic),
        }
    }
    section.report_unknown_keys();
    InputSettings { key_file, keys, retry_window }
}

fn read_keys(
    section: &Section<'_>,
    file: &Path,
    data_dir: &Path,
) -> Result<Vec<InputSealingKey>, DiagnosticBuilder> {
    let reader = section.reader;
    let text = reader.read_secret_file(file);
    let text = text.map_err(|error| {
        new_diagnostic(format!("cannot be read: {error}")).with_hint(KEY_FILE_HINT)
    })?;
    let real_path = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real_path(file).starts_with(real_path(data_dir)) {
        let diagnostic = "is in `server.data_dir`, so a backup of the ledger would have the key";
        return Err(new_diagnostic(diagnostic).with_hint("keep it elsewhere"));
    }
    let metadata = std::fs::metadata(file);
    let metadata = metadata.map_err(|error| new_diagnostic(format!("cannot be read: {error}")))?;
    if metadata.uid() != 0 && metadata.uid() != Uid::effective().as_raw() {
        return Err(new_diagnostic("belongs to another user")
            .with_hint("chown it to the user of the service"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(new_diagnostic("others may read this file").with_hint("chmod 600 it"));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys: Option<Vec<_>> = lines
        .map(|line| {
            reader.register_secret(line);
            parse_key(line)
        })
        .collect();
    let keys = keys.filter(|keys| !keys.is_empty());
    keys.ok_or_else(|| {
        new_diagnostic("has no key: each line is 32 bytes in base64 or hexadecimal")
            .with_hint(KEY_FILE_HINT)
    })
}

/// Parses 32 bytes in base64 or as hexadecimal digits.
fn parse_key(line: &str) -> Option<InputSealingKey> {
    let hex = |index: usize| u8::from_str_radix(line.get(2 * index..2 * index + 2)?, 16).ok();
    let bytes = if line.len() == 64 {
        (0..32).map(hex).collect::<Option<Vec<u8>>>()?
    } else {
        STANDARD.decode(line).ok()?
    };
    bytes.try_into().ok().map(InputSealingKey)
}

//! Where the service keeps its things: whose they are, who can read secrets, how much room there is.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use super::Finding;
use crate::config::Settings;

/// With less room the ledger will soon not commit.
const LEAST: u64 = 100_000_000;
/// With less room somebody should look.
const LITTLE: u64 = 1_000_000_000;

/// Looks at folders, at files with secrets, and at the room there is.
pub(super) fn look(settings: &Settings, variables: Option<&Path>) -> Vec<Finding> {
    let server = &settings.server;
    let folders = [("data_dir", &server.data_dir), ("runtime_dir", &server.runtime_dir)];
    let mut findings: Vec<_> = folders.iter().map(|(name, place)| folder(name, place)).collect();
    findings.push(room(&server.data_dir));
    let key = server.tls.as_ref().map(|pair| ("server.tls.key", pair.key.as_path()));
    let token = Some(("token_file", server.token_file.as_path()));
    let variables = variables.map(|file| ("environment", file));
    let secrets = [token, key, variables].into_iter().flatten();
    findings.extend(secrets.filter_map(|(name, file)| secret(name, file)));
    findings
}

/// A folder of ours, which nobody else may look into.
fn folder(name: &str, folder: &Path) -> Finding {
    let shown = folder.display();
    let own = format!("name another by `server.{name}`");
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Finding::good(name, format!("{shown} will be made"))
        }
        Err(error) => Finding::bad(name, format!("{shown} cannot be looked at: {error}"), own),
        Ok(facts) if !facts.is_dir() => Finding::bad(name, format!("{shown} is no folder"), own),
        Ok(facts) if facts.uid() != geteuid().as_raw() => {
            let fix = format!("look as the user of the service, or {own}");
            Finding::bad(name, format!("{shown} is another user's"), fix)
        }
        Ok(facts) if facts.permissions().mode() & 0o077 != 0 => Finding::warning(
            name,
            format!("{shown} is open to others"),
            format!("chmod 700 {shown}"),
        ),
        Ok(_) => Finding::good(name, format!("{shown} is ours alone")),
    }
}

/// A file with a secret, which nobody else may read; nothing is said of one that is not there.
fn secret(name: &str, file: &Path) -> Option<Finding> {
    let (shown, facts) = (file.display(), fs::metadata(file).ok()?);
    Some(match facts.permissions().mode() & 0o077 {
        0 => Finding::good(name, format!("{shown} is for its owner alone")),
        _ => Finding::bad(
            name,
            format!("{shown} can be read by others"),
            format!("chmod 600 {shown}"),
        ),
    })
}

/// How much room there is where the ledger is, or will be.
fn room(data_dir: &Path) -> Finding {
    let there = data_dir.ancestors().find(|folder| folder.exists()).map(Path::to_owned);
    let free = there.as_ref().and_then(|folder: &PathBuf| statvfs(folder).ok());
    let Some(free) = free.map(|facts| facts.blocks_available() * facts.fragment_size()) else {
        return Finding::warning("disk", "the room there is cannot be told", "look by `df`");
    };
    let (text, fix) =
        (format!("{} MB free", free / 1_000_000), "make room, or lower `[retention]`");
    match free {
        ..LEAST => Finding::bad("disk", text, fix),
        LEAST..LITTLE => Finding::warning("disk", text, fix),
        LITTLE.. => Finding::good("disk", text),
    }
}

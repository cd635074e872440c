//! Checks of the service's files: owner, permissions and free disk space.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use nix::sys::statvfs::statvfs;

use super::finding::Finding;
use crate::app::file_trust;
use crate::cli::service::installed_unit::InstalledUnit;
use crate::config::{ServiceFiles, Settings};

/// Number of free bytes below which commits will soon fail.
const MIN_FREE_BYTES: u64 = 100_000_000;
/// Folder of the shared memory of the machine.
const SHARED_MEMORY_FOLDER: &str = "/dev/shm";
/// Number of free bytes below which a warning is shown.
const LOW_FREE_BYTES: u64 = 1_000_000_000;

/// Checks the owner and the permissions of the service's files, and the free disk space. `config` is the
/// configuration file, if there is one, and `environment_file` the environment file of a unit.
pub(super) fn check(
    settings: &Settings,
    config_file: Option<&Path>,
    environment_file: Option<&Path>,
) -> Vec<Finding> {
    let server = &settings.server;
    let faults = file_trust::trust_faults(
        settings,
        config_file,
        InstalledUnit::service_account(config_file),
    );
    let mut findings: Vec<_> = faults.iter().map(untrusted_file_finding).collect();
    let folders =
        [("server.data_dir", &server.data_dir), ("server.runtime_dir", &server.runtime_dir)];
    for (name, path) in folders {
        if !faults.iter().any(|fault| fault.file_label == name) {
            findings.push(folder_finding(name, path));
        }
    }
    findings.extend(shared_memory_finding(&settings.service_files));
    if !faults.iter().any(|fault| fault.file_label == "server.token_file")
        && server.token_file.exists()
    {
        let text = format!("only its owner can access {}", server.token_file.display());
        findings.push(Finding::good("server.token_file", text));
    }
    findings.push(free_space_finding(&server.data_dir));
    findings.extend(environment_file.and_then(|file| secret_file_finding("environment", file)));
    findings
}

/// Returns the finding about a file that `serve` rejects.
fn untrusted_file_finding(fault: &file_trust::TrustFault) -> Finding {
    let text = format!("{} {}; the service does not start", fault.path.display(), fault.reason);
    Finding::bad(fault.file_label, text, fault.repair_command.clone())
}

/// Checks a directory of the service that is trusted or does not exist yet.
fn folder_finding(name: &str, folder: &Path) -> Finding {
    let path_text = folder.display();
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Finding::good(name, format!("{path_text} will be created"))
        }
        Err(error) => {
            let fix = format!("name another folder in `{name}`");
            Finding::bad(name, format!("{path_text} cannot be examined: {error}"), fix)
        }
        Ok(metadata) if !metadata.is_dir() => {
            let fix = format!("name another folder in `{name}`");
            Finding::bad(name, format!("{path_text} is not a folder"), fix)
        }
        Ok(metadata) if metadata.permissions().mode() & 0o066 != 0 => Finding::warning(
            name,
            format!(
                "{path_text} is accessible to other users; the service changes that when it starts"
            ),
            format!("chmod 700 {path_text}"),
        ),
        Ok(_) => Finding::good(name, format!("only the service's user can read {path_text}")),
    }
}

/// Returns a finding about a file of the service that prevents agents from using shared memory.
fn shared_memory_finding(service_files: &ServiceFiles) -> Option<Finding> {
    let folder = Path::new(SHARED_MEMORY_FOLDER);
    let real_path = |path: &Path| path.canonicalize().unwrap_or_else(|_missing| path.to_owned());
    let real_folder = real_path(folder);
    let is_inside = |path: &&PathBuf| {
        path.starts_with(folder) || real_path(path.as_path()).starts_with(&real_folder)
    };
    let mut files = service_files.hidden_paths.iter().chain(&service_files.read_only_paths);
    let file = files.find(is_inside)?;
    let text = format!(
        "{} is in {SHARED_MEMORY_FOLDER}; agents that Landlock confines can then use no shared memory, as Python's \
         `multiprocessing` does",
        file.display()
    );
    let fix =
        "move it elsewhere (`server.runtime_dir`), or set `sandbox.isolation` to \"bubblewrap\"";
    Some(Finding::warning("shared memory", text, fix))
}

/// Checks a file with a secret, which no other user may read; returns `None` if the file does not exist.
fn secret_file_finding(name: &str, file: &Path) -> Option<Finding> {
    let (path_text, metadata) = (file.display(), fs::metadata(file).ok()?);
    Some(match metadata.permissions().mode() & 0o077 {
        0 => Finding::good(name, format!("only its owner can access {path_text}")),
        _ => Finding::bad(
            name,
            format!("{path_text} can be read by others"),
            format!("chmod 600 {path_text}"),
        ),
    })
}

/// Checks the free disk space at the present or future location of the ledger.
fn free_space_finding(data_dir: &Path) -> Finding {
    let existing_folder = data_dir.ancestors().find(|folder| folder.exists()).map(Path::to_owned);
    let statistics = existing_folder.as_ref().and_then(|folder: &PathBuf| statvfs(folder).ok());
    let Some(free_bytes) =
        statistics.map(|statistics| statistics.blocks_available() * statistics.fragment_size())
    else {
        return Finding::warning("disk", "the free space is unknown", "look by `df`");
    };
    let (text, fix) =
        (format!("{} MB free", free_bytes / 1_000_000), "make room, or lower `[retention]`");
    match free_bytes {
        ..MIN_FREE_BYTES => Finding::bad("disk", text, fix),
        MIN_FREE_BYTES..LOW_FREE_BYTES => Finding::warning("disk", text, fix),
        LOW_FREE_BYTES.. => Finding::good("disk", text),
    }
}

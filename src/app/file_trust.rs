//! Checks that no other user of the machine can read or change the files that the service relies on.
//!
//! The service refuses to start with a file that fails the check: a user who can write the
//! configuration chooses which programs run, and a user who can read the token can send any request.
//! Access control lists are not examined. The bits of the mode limit them too, except for the group,
//! whose bits are the limit of the whole list.

mod automatic_reload;
mod exposed_secrets;
mod group;
mod mode_watcher;
mod path_components;
mod recorded_permissions;
mod service_account;

use std::fmt::{self, Display};
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{Uid, User, geteuid};

use crate::config::Settings;

pub(crate) use automatic_reload::automatic_reload_obstacle;
pub(crate) use mode_watcher::ModeWatcher;
pub(crate) use recorded_permissions::{ChangedFile, RecordedPermissions, service_created_files};
pub(crate) use service_account::ServiceAccount;

use self::exposed_secrets::exposed_secret_faults;
use self::path_components::{PathComponent, PathComponentKind, PathResolution};

/// Bits of a mode.
const GROUP_WRITE_BIT: u32 = 0o020;
const OTHERS_WRITE_BIT: u32 = 0o002;
const STICKY_BIT: u32 = 0o1000;

/// Variable that systemd sets for each start of a unit, and that its child processes inherit.
const SYSTEMD_UNIT_VARIABLE: &str = "INVOCATION_ID";

/// Role of a path for the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileRole {
    /// Token of the command line. Only its owner may read it.
    Token,
    /// Private key of the listener. A group may read a key that belongs to root, as distributions arrange it.
    PrivateKey,
    /// File or folder that the configuration consists of or names.
    Configuration,
    /// Folder in which the service keeps its own files.
    ServiceFolder,
}

/// Path that cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustFault {
    /// Kind of the file: `server.token_file`, `the configuration`, …
    pub(crate) file_label: &'static str,
    pub(crate) path: PathBuf,
    /// Description of the problem, as the end of a sentence.
    pub(crate) reason: String,
    /// Command that repairs it.
    pub(crate) repair_command: String,
}

impl TrustFault {
    fn describe_without_path(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).display();
        format!("{}: `{name}` {}", self.file_label, self.reason)
    }
}

impl Display for TrustFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file_label: label, path, reason, repair_command: repair } = self;
        write!(f, "{label}: {} {reason}; run `{repair}`", path.display())
    }
}

/// Files that cannot be trusted; never empty.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
pub struct UntrustedFiles(pub(crate) Vec<TrustFault>);

impl UntrustedFiles {
    /// Returns the same text for callers, with the names of the files and without their folders.
    pub(crate) fn describe_without_paths(&self) -> String {
        let descriptions: Vec<_> = self.0.iter().map(TrustFault::describe_without_path).collect();
        format!("{}; the log has the command that repairs it", descriptions.join("; "))
    }
}

/// Requires that every file of a configuration can be trusted, and closes folders of the service to readers.
///
/// # Errors
/// Fails if files cannot be trusted, and names all of them.
pub(crate) fn check_trust_and_close_folders(
    settings: &Settings,
    config_file: Option<&Path>,
) -> Result<(), UntrustedFiles> {
    let faults = trust_faults(settings, config_file, ServiceAccount::of_process());
    if !faults.is_empty() {
        return Err(UntrustedFiles(faults));
    }
    for folder in [&settings.server.data_dir, &settings.server.runtime_dir] {
        if let Err(error) = remove_access_of_others(folder) {
            let folder = folder.display();
            tracing::warn!(%folder, %error, "cannot take other users' access to a folder of the service");
        }
    }
    Ok(())
}

/// Returns the reasons why the service cannot trust the files of a configuration. A file that does not exist is no
/// fault. `config_file` is the configuration itself, if it is a file.
pub(crate) fn trust_faults(
    settings: &Settings,
    config_file: Option<&Path>,
    account: ServiceAccount,
) -> Vec<TrustFault> {
    let server = &settings.server;
    let key_file =
        server.tls.iter().map(|pair| ("server.tls.key", &*pair.key_file, FileRole::PrivateKey));
    let own_paths = [
        ("server.data_dir", &*server.data_dir, FileRole::ServiceFolder),
        ("server.runtime_dir", &*server.runtime_dir, FileRole::ServiceFolder),
        ("server.token_file", &*server.token_file, FileRole::Token),
    ];
    let mut faults: Vec<TrustFault> = Vec::new();
    let own_faults = own_paths
        .into_iter()
        .chain(key_file)
        .flat_map(|(kind, path, role)| examine_path(kind, path, role, account));
    let secret_faults = exposed_secret_faults(settings, config_file, account);
    let configuration_faults = configuration_faults(settings, config_file, account);
    for fault in own_faults.chain(secret_faults).chain(configuration_faults) {
        // Several files may lie in the same untrusted folder.
        let is_same =
            |known: &TrustFault| (&known.path, &known.reason) == (&fault.path, &fault.reason);
        if !faults.iter().any(is_same) {
            faults.push(fault);
        }
    }
    faults
}

/// Returns the faults that let another user change the configuration.
fn configuration_faults(
    settings: &Settings,
    config_file: Option<&Path>,
    account: ServiceAccount,
) -> Vec<TrustFault> {
    let paths = configuration_paths(settings, config_file);
    paths
        .into_iter()
        .flat_map(|(kind, path)| examine_path(kind, path, FileRole::Configuration, account))
        .collect()
}

/// Returns the files of the configuration and those that it names, with the kind of each.
fn configuration_paths<'s>(
    settings: &'s Settings,
    config_file: Option<&'s Path>,
) -> Vec<(&'static str, &'s Path)> {
    let certificate = settings.server.tls.iter().map(|pair| ("server.tls.cert", &*pair.cert_file));
    let named_files = settings
        .referenced_files
        .iter()
        .map(|path| ("a file that the configuration names", &**path));
    let paths = config_file.map(|path| ("the configuration", path)).into_iter().chain(named_files);
    let programs = settings.service_files.unsandboxed_programs.iter();
    let programs = programs.map(|path| ("a program that the service runs", &**path));
    let paths = paths
        .chain([("server.presets", &*settings.server.configuration.presets_dir)])
        .chain(certificate);
    let paths = paths.chain(programs);
    // A relative path results from a folder that the environment does not name, such as a home.
    let paths = paths.filter(|(kind, path)| *kind == "the configuration" || path.is_absolute());
    paths.collect()
}

/// Returns the faults of a path, and of the folders and links that lead to it.
fn examine_path(
    file_label: &'static str,
    path: &Path,
    role: FileRole,
    account: ServiceAccount,
) -> Vec<TrustFault> {
    let components = match PathResolution::resolve(path) {
        Ok(PathResolution(components)) => components,
        Err(error) => {
            let reason = format!("cannot be examined ({error})");
            let repair_command = format!("ls -ld {}", quote_for_shell(path));
            return vec![TrustFault { file_label, path: path.to_owned(), reason, repair_command }];
        }
    };
    let to_fault = |component: &PathComponent| {
        let (reason, repair) = problem_and_repair(component, role, account)?;
        if is_on_read_only_mount(&component.path) {
            return None; // No user of this mount can change the file.
        }
        Some(TrustFault {
            file_label,
            path: component.path.clone(),
            reason,
            repair_command: repair,
        })
    };
    components.iter().filter_map(to_fault).collect()
}

/// Returns the problem of a place on the path, and the command that repairs it.
fn problem_and_repair(
    component: &PathComponent,
    role: FileRole,
    account: ServiceAccount,
) -> Option<(String, String)> {
    let PathComponent { path, kind, metadata } = component;
    let (owner, mode, path) =
        (Uid::from_raw(metadata.uid()), metadata.mode(), quote_for_shell(path));
    if !is_trusted_owner(owner, *kind, account) {
        let owner_name =
            User::from_uid(owner).ok().flatten().map_or(owner.to_string(), |it| it.name);
        let chown_option = if *kind == PathComponentKind::Link { "-h " } else { "" };
        return Some((
            format!("belongs to the user `{owner_name}`"),
            format!("chown {chown_option}{} {path}", account.user_name()),
        ));
    }
    let is_writable = mode & OTHERS_WRITE_BIT != 0
        || mode & GROUP_WRITE_BIT != 0 && !group::is_private(metadata.gid(), owner, account);
    match (kind, role) {
        (PathComponentKind::Link, _) => None,
        // A user who may write a sticky folder can neither rename nor remove the files of another user.
        (PathComponentKind::Folder, _) if mode & STICKY_BIT != 0 => None,
        (PathComponentKind::Target, FileRole::Token) if mode & 0o077 != 0 => {
            Some(("is accessible to other users".into(), format!("chmod 600 {path}")))
        }
        (PathComponentKind::Target, FileRole::PrivateKey)
            if mode & forbidden_key_bits(metadata) != 0 =>
        {
            Some(("is accessible to other users".into(), format!("chmod 600 {path}")))
        }
        _ if is_writable => {
            Some(("is writable by other users".into(), format!("chmod go-w {path}")))
        }
        _ => None,
    }
}

/// Returns the bits that the mode of a private key must not have.
fn forbidden_key_bits(metadata: &Metadata) -> u32 {
    if metadata.uid() == 0 { 0o037 } else { 0o077 }
}

/// Returns true if the service may rely on a file that this owner can change.
fn is_trusted_owner(owner: Uid, kind: PathComponentKind, account: ServiceAccount) -> bool {
    owner.is_root()
        || owner == account.uid
        || kind == PathComponentKind::Folder && is_outside_user_namespace(owner)
}

/// Returns true if a user id stands for all users outside of the user namespace of this process. In such a namespace,
/// the root of the file system belongs to that id.
fn is_outside_user_namespace(owner: Uid) -> bool {
    let overflow_uid = fs::read_to_string("/proc/sys/kernel/overflowuid");
    let uid_map = fs::read_to_string("/proc/self/uid_map");
    let is_overflow = overflow_uid.is_ok_and(|text| text.trim() == owner.to_string());
    let is_mapped = |map: String| {
        map.lines().any(|line| {
            let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
            let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
            let owner = u64::from(owner.as_raw());
            first.zip(count).is_some_and(|(first, count)| (first..first + count).contains(&owner))
        })
    };
    is_overflow && uid_map.is_ok_and(|uid_map| !is_mapped(uid_map))
}

/// Returns true if a file is on a read-only mount, as in a container, where no user can change it. Under systemd the
/// result is false: units have read-only mounts too (`ProtectSystem`), and other users change the same files from
/// outside of the unit.
fn is_on_read_only_mount(path: &Path) -> bool {
    let is_in_unit = std::env::var_os(SYSTEMD_UNIT_VARIABLE).is_some();
    !is_in_unit
        && statvfs(path).is_ok_and(|statistics| statistics.flags().contains(FsFlags::ST_RDONLY))
}

/// Removes other users' read access to a folder of the service. Only the right to pass through remains, because agents
/// with their own users need it.
fn remove_access_of_others(folder: &Path) -> io::Result<()> {
    let metadata = match fs::metadata(folder) {
        Ok(metadata) if Uid::from_raw(metadata.uid()) == geteuid() => metadata,
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if metadata.mode() & 0o066 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(metadata.mode() & 0o7700))?;
        let folder = folder.display();
        tracing::warn!(%folder, "removed access of other users to a folder of the service");
    }
    Ok(())
}

/// Returns a path in the quoting of a shell.
fn quote_for_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+@:,".contains(it);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests;

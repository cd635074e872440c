//! Files of the service itself, which no agent may read or change.

mod inline_secrets;
mod mounts;

use std::path::{Path, PathBuf};

use super::keys::programs::environment::is_secret_name;
use super::keys::server::ServerSettings;
use super::table::ConfigTextFile;
use super::table::secret::read_secret_file;
use inline_secrets::{SearchResult, SecretSearch};
use mounts::Mounts;

/// Name of the file with the secrets of an installed unit, in the folder of the configuration.
const UNIT_ENVIRONMENT_FILE: &str = "environment";

/// Files and folders of the service. All paths are absolute; some may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceFiles {
    /// Files and folders that contain secrets or the history. An agent may neither read nor change them.
    pub hidden_paths: Vec<PathBuf>,
    /// Files and folders that the service trusts. An agent may read them, but not change them.
    pub read_only_paths: Vec<PathBuf>,
    /// Folder of the configuration, in which a new file may become a part of it. An agent may change it only if it is
    /// the working directory or the home of the agent.
    pub config_folder: Option<PathBuf>,
    /// Programs that the service starts outside of every sandbox.
    pub unsandboxed_programs: Vec<PathBuf>,
    /// Files with secrets whose possible readers the service examines.
    pub files_with_secrets: FilesWithSecrets,
}

/// Files with secrets that the configuration names or contains, and the environment of a unit: absolute paths. The
/// token of the command line and the TLS key are not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesWithSecrets {
    /// Files that contain secrets only.
    pub secret_files: Vec<PathBuf>,
    /// The configuration and presets in which a secret was found.
    pub config_files: Vec<PathBuf>,
}

impl FilesWithSecrets {
    /// Returns all of the files.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.secret_files.iter().chain(&self.config_files).map(PathBuf::as_path)
    }
}

/// Files that the configuration names for the service itself.
pub(super) struct ConfiguredFiles {
    pub(super) secret_files: Vec<PathBuf>,
    pub(super) unsandboxed_programs: Vec<PathBuf>,
}

impl ServiceFiles {
    /// Collects the files of a configuration. `file` is the configuration itself, if it is a file.
    pub(super) fn new(
        server: &ServerSettings,
        file: Option<&Path>,
        configured_files: ConfiguredFiles,
        (config_text_files, secrets): (&[ConfigTextFile], &[String]),
    ) -> Self {
        let ConfiguredFiles { secret_files, unsandboxed_programs } = configured_files;
        let mut hidden_paths =
            vec![server.data_dir.clone(), server.runtime_dir.clone(), server.token_file.clone()];
        hidden_paths.extend(server.tls.iter().map(|files| files.key_file.clone()));
        hidden_paths.extend(secret_files.iter().cloned());
        hidden_paths.extend(file.map(|file| file.with_file_name(UNIT_ENVIRONMENT_FILE)));
        let mut read_only_paths = vec![server.configuration.presets_dir.clone()];
        read_only_paths.extend(std::env::current_exe());
        read_only_paths.extend(unsandboxed_programs.iter().cloned());
        read_only_paths.extend(server.tls.iter().map(|files| files.cert_file.clone()));
        let search = SecretSearch::new(secrets);
        let mut files_with_secrets = FilesWithSecrets { secret_files, config_files: Vec::new() };
        let environment = file.map(|file| file.with_file_name(UNIT_ENVIRONMENT_FILE));
        files_with_secrets.secret_files.extend(environment.filter(|file| sets_secret(file)));
        for ConfigTextFile { file, text } in config_text_files {
            match text.as_ref().map_or(SearchResult::Unparsed, |text| search.search(text)) {
                SearchResult::NoSecret => read_only_paths.push(file.clone()),
                SearchResult::SecretFound => {
                    hidden_paths.push(file.clone());
                    files_with_secrets.config_files.push(file.clone());
                }
                // The service does not know whether it contains a secret, so no agent may read it.
                SearchResult::Unparsed => hidden_paths.push(file.clone()),
            }
        }
        // A built-in preset has a name in place of a path.
        for list in [
            &mut hidden_paths,
            &mut read_only_paths,
            &mut files_with_secrets.config_files,
            &mut files_with_secrets.secret_files,
        ] {
            list.retain(|path| path.is_absolute());
            list.sort();
            list.dedup();
        }
        // The content of a hidden folder needs no entry of its own.
        let folders = hidden_paths.clone();
        hidden_paths.retain(|path| !folders.iter().any(|it| path != it && path.starts_with(it)));
        let config_folder = file.and_then(Path::parent).map(Path::to_owned);
        let mut service_files = Self {
            hidden_paths,
            read_only_paths,
            config_folder,
            unsandboxed_programs,
            files_with_secrets,
        };
        service_files.add_aliases(&Mounts::read());
        service_files
    }

    /// Adds the other paths of each file if a part of its file system is mounted more than once.
    fn add_aliases(&mut self, mounts: &Mounts) {
        let FilesWithSecrets { secret_files, config_files } = &mut self.files_with_secrets;
        for list in [&mut self.hidden_paths, &mut self.read_only_paths, secret_files, config_files]
        {
            let aliases: Vec<_> = list.iter().flat_map(|path| mounts.aliases(path)).collect();
            list.extend(aliases);
        }
        // A new file appears under every name of the folder.
        let folder_aliases =
            self.config_folder.iter().flat_map(|config_folder| mounts.aliases(config_folder));
        self.read_only_paths.extend(folder_aliases);
    }

    /// Adds the files of another configuration.
    pub fn extend(&mut self, other: &Self) {
        for (list, more) in [
            (&mut self.hidden_paths, &other.hidden_paths),
            (&mut self.read_only_paths, &other.read_only_paths),
        ] {
            list.extend(more.iter().cloned());
            list.sort();
            list.dedup();
        }
    }

    /// Returns all files and folders that an agent may not change.
    pub fn protected_paths(&self) -> impl Iterator<Item = &Path> {
        self.hidden_paths.iter().chain(&self.read_only_paths).map(PathBuf::as_path)
    }

    /// Returns the files and folders that an agent may not read. The environment of a unit counts only if it exists,
    /// because every configuration has a place for one.
    pub fn secret_paths(&self) -> impl Iterator<Item = &Path> {
        let is_unused = |path: &Path| path.ends_with(UNIT_ENVIRONMENT_FILE) && !path.exists();
        self.hidden_paths.iter().map(PathBuf::as_path).filter(move |path| !is_unused(path))
    }
}

/// Returns true if the environment of a unit sets a variable whose name marks a secret. A file that cannot be read as
/// text may do so.
fn sets_secret(environment: &Path) -> bool {
    if !environment.exists() {
        return false;
    }
    let Ok(text) = read_secret_file(environment) else { return true };
    text.lines()
        .filter_map(|line| line.split_once('='))
        .any(|(name, value)| !value.trim().is_empty() && is_secret_name(name.trim()))
}

//! Installation of the agents, in folders of their own: once for each version.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::agents::{Package, TestedAgent};
use crate::package_install::{NPM_OPTIONS, PIP_OPTIONS, run_install_step};

/// Node version that several agents require; on an older one npm silently installs older releases of them.
const NODE_VERSION: &str = "22";

/// Folders of an agent and of its runtime.
pub(crate) struct InstallFolders {
    pub(crate) agent_folder: PathBuf,
    /// Folder that is prepended to the search path.
    pub(crate) programs_folder: PathBuf,
}

/// Returns the reason why an agent cannot be installed here, if there is one.
pub(crate) fn missing_requirement(agent: &TestedAgent) -> Option<String> {
    let version_output = |program: &str| Command::new(program).arg("--version").output();
    let required_programs: &[&str] = match agent.package {
        Package::Npm(_) => &["node", "npm"],
        Package::Pip(_) => &["python3"],
    };
    let is_missing =
        |program: &&&str| !version_output(program).is_ok_and(|output| output.status.success());
    required_programs.iter().find(is_missing).map(|program| format!("{program} is not installed"))
}

/// Returns the folders of an agent, which are created if they are missing or of another version.
///
/// # Errors
///
/// The reason why a registry did not deliver the agent.
pub(crate) fn install_agent(agent: &TestedAgent) -> Result<InstallFolders, String> {
    match agent.package {
        Package::Npm(package) => {
            // The name of the machine in package names.
            let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
            let node_package = format!("node-linux-{architecture}");
            let programs_folder = install_package(
                "node",
                &format!("{node_package}@{NODE_VERSION}"),
                npm_installer(None),
            )?;
            let programs_folder = programs_folder.join(format!("node_modules/{node_package}/bin"));
            Ok(InstallFolders {
                agent_folder: install_package(
                    agent.name,
                    package,
                    npm_installer(Some(&programs_folder)),
                )?,
                programs_folder,
            })
        }
        Package::Pip(package) => {
            let folder = install_package(agent.name, package, |folder, package| {
                run_install_step(
                    Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder),
                )?;
                let mut pip = Command::new(folder.join("bin/python"));
                run_install_step(pip.args(["-m", "pip"]).args(PIP_OPTIONS).arg(package))
            })?;
            Ok(InstallFolders { programs_folder: folder.join("bin"), agent_folder: folder })
        }
    }
}

/// Installs a package with the Node of this folder, without running its scripts.
fn npm_installer(programs_folder: Option<&Path>) -> impl Fn(&Path, &str) -> Result<(), String> {
    let path_prefix = programs_folder
        .map(|programs_folder| format!("{}:", programs_folder.display()))
        .unwrap_or_default();
    move |folder, package| {
        fs::write(folder.join("package.json"), "{\"private\": true}").expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("npm");
        command.args(NPM_OPTIONS).arg("--ignore-scripts").arg("--prefix").arg(folder).arg(package);
        run_install_step(command.env("PATH", format!("{path_prefix}{path}")))
    }
}

/// Returns the folder of this name with this package in it.
fn install_package(
    name: &str,
    package: &str,
    install_into: impl Fn(&Path, &str) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{name}"));
    fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).expect("a folder for what tests make");
    let lock = File::create(folder.with_extension("lock")).expect("a lock file");
    lock.lock().expect("one test at a time makes the folder");
    let version_marker = folder.join("stamp");
    if fs::read_to_string(&version_marker).is_ok_and(|installed| installed == package) {
        return Ok(folder);
    }
    _ = fs::remove_dir_all(&folder); // It may not be there.
    fs::create_dir_all(&folder).expect("a folder");
    install_into(&folder, package)?;
    fs::write(version_marker, package).expect("a stamp");
    Ok(folder)
}

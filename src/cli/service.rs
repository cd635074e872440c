//! `algonius service`: installs the service under systemd, for a user or for the machine.

pub(super) mod install_paths;
pub(super) mod installed;
mod systemd;
mod unit;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::service::{InstallScope, ServiceCommand, UnitScope};
use super::error::CliError;
use super::error::service::ServiceError;
use super::output::Out;
use crate::config::{self, Severity};

use install_paths::{DirectoryVariables, Owner};
use systemd::Systemd;
use unit::Unit;

/// Installs, removes or shows the unit.
pub(super) fn run(command: ServiceCommand, out: &Out) -> Result<(), CliError> {
    match command {
        ServiceCommand::Install { scope, wish, dry_run: true, force: _ } => {
            out.text(&wanted(&owner(&scope), wish)?.text());
            Ok(())
        }
        ServiceCommand::Install { scope, wish, dry_run: false, force } => {
            install(&owner(&scope), wish, force, out)
        }
        ServiceCommand::Uninstall { scope } => uninstall(&owner(&scope), out),
        ServiceCommand::Status { scope } => status(&owner(&scope), out),
    }
}

fn owner(scope: &InstallScope) -> Owner {
    if scope.system { Owner::Machine } else { Owner::User }
}

/// Returns the requested unit.
fn wanted(owner: &Owner, wish: UnitScope) -> Result<Unit, ServiceError> {
    let here = DirectoryVariables::of_this_process();
    let program = match wish.program {
        Some(program) => absolute(&program)?,
        None => std::env::current_exe().map_err(|source| ServiceError::Unknown { source })?,
    };
    let config = match wish.config {
        Some(config) => absolute(&config)?,
        None => owner.configuration(&here)?,
    };
    let path = wish.path.unwrap_or_else(|| owner.path(&here));
    Unit::new(owner.clone(), &program, &config, path)
}

fn absolute(file: &Path) -> Result<PathBuf, ServiceError> {
    std::path::absolute(file).map_err(|source| ServiceError::Unknown { source })
}

/// Installs the unit, but writes nothing if the service could not start with it.
fn install(owner: &Owner, wish: UnitScope, force: bool, out: &Out) -> Result<(), CliError> {
    let systemd = Systemd::of(owner)?;
    let unit = wanted(owner, wish)?;
    sound(&unit)?;
    owner.exists()?;
    let file = owner.unit_file(&DirectoryVariables::of_this_process())?;
    if !force {
        ours(&file)?;
    }
    write(&file, &unit.text())?;
    systemd.query(&["daemon-reload"])?;
    systemd.query(&["enable", "--now", install_paths::NAME])?;
    if out.is_json() {
        let unit_file = file.display().to_string();
        out.shape(
            &json!({"unit": unit_file, "configuration": unit.config(), "log": systemd.log()}),
        );
        return Ok(());
    }
    out.line(&format!("unit           {}", file.display()));
    out.line(&format!("configuration  {}", unit.config()));
    out.line(&format!("log            {}", systemd.log()));
    if let Some(more) = owner.remark() {
        out.note(more);
    }
    Ok(())
}

/// Checks that the configuration exists and is valid, with the search path of the service.
fn sound(unit: &Unit) -> Result<(), CliError> {
    let file = Path::new(unit.config());
    if !file.exists() {
        return Err(ServiceError::NoConfiguration { file: file.to_owned() }.into());
    }
    let env = |name: &str| {
        if name == "PATH" { Some(unit.path().to_owned()) } else { std::env::var(name).ok() }
    };
    let checked = config::load(file, &env).map_err(CliError::Configuration)?;
    // The user can first install the program or set another path.
    let missing = checked.warnings.iter().filter(|it| it.severity == Severity::Unavailable);
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    if missing.is_empty() { Ok(()) } else { Err(CliError::NotInstalled(missing)) }
}

/// Checks that an existing file was written by this command.
fn ours(file: &Path) -> Result<(), CliError> {
    match fs::read_to_string(file) {
        Ok(text) if unit::is_ours(&text) => Ok(()),
        Ok(_) => Err(ServiceError::Foreign { file: file.to_owned() }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(CliError::File { what: "cannot read", file: file.to_owned(), source }),
    }
}

/// Replaces the file atomically, because systemd may read it at any time.
fn write(file: &Path, text: &str) -> Result<(), CliError> {
    let fault = |source| CliError::File { what: "cannot write", file: file.to_owned(), source };
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(fault)?;
    let fresh = folder.join(format!(".{}.new", install_paths::NAME));
    fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, file)).map_err(fault)
}

fn uninstall(owner: &Owner, out: &Out) -> Result<(), CliError> {
    let systemd = Systemd::of(owner)?;
    let file = installed(owner)?;
    ours(&file)?;
    systemd.query(&["disable", "--now", install_paths::NAME])?;
    fs::remove_file(&file).map_err(|source| {
        let (what, file) = ("cannot remove", file.clone());
        CliError::File { what, file, source }
    })?;
    systemd.query(&["daemon-reload"])?;
    if out.is_json() {
        out.shape(&json!({"removed": file.display().to_string()}));
    } else {
        out.line(&format!("removed  {}", file.display()));
    }
    Ok(())
}

/// Returns the path of the installed unit.
fn installed(owner: &Owner) -> Result<PathBuf, ServiceError> {
    let file = owner.unit_file(&DirectoryVariables::of_this_process())?;
    if file.exists() { Ok(file) } else { Err(ServiceError::NotInstalled { file }) }
}

fn status(owner: &Owner, out: &Out) -> Result<(), CliError> {
    let systemd = Systemd::of(owner)?;
    let file = installed(owner)?;
    let told = systemd.show()?;
    if out.is_json() {
        out.shape(&json!({
            "unit": file.display().to_string(),
            "active": told.active,
            "enabled": told.enabled,
            "pid": told.pid,
            "says": told.says,
        }));
        return Ok(());
    }
    let pid = told.pid.map_or(String::new(), |pid| format!(", pid {pid}"));
    out.line(&format!("unit     {}", file.display()));
    out.line(&format!("at boot  {}", told.enabled));
    out.line(&format!("now      {}{pid}", told.active));
    if !told.says.is_empty() {
        out.line(&format!("says     {}", told.says));
    }
    Ok(())
}

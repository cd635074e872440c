//! `algonius service`: has systemd start the service, as a user's own or as the machine's.

mod fault;
pub(super) mod installed;
mod place;
mod systemd;
mod unit;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::service::{Scope, ServiceCommand, Wish};
use super::fault::CliError;
use super::out::Out;
use crate::config;

pub(super) use fault::ServiceError;
use place::{Environment, Owner};
use systemd::Systemd;
use unit::Unit;

/// Installs, removes or looks.
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

fn owner(scope: &Scope) -> Owner {
    if scope.system { Owner::Machine } else { Owner::User }
}

/// The unit that is asked for.
fn wanted(owner: &Owner, wish: Wish) -> Result<Unit, ServiceError> {
    let here = Environment::of_this_process();
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

/// Nothing is written unless the service could start by it.
fn install(owner: &Owner, wish: Wish, force: bool, out: &Out) -> Result<(), CliError> {
    let systemd = Systemd::of(owner)?;
    let unit = wanted(owner, wish)?;
    sound(&unit)?;
    owner.exists()?;
    let file = owner.unit_file(&Environment::of_this_process())?;
    if !force {
        ours(&file)?;
    }
    write(&file, &unit.text())?;
    systemd.ask(&["daemon-reload"])?;
    systemd.ask(&["enable", "--now", place::NAME])?;
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

/// The configuration is there and without a fault, seen with the path that the service will have.
fn sound(unit: &Unit) -> Result<(), CliError> {
    let file = Path::new(unit.config());
    if !file.exists() {
        return Err(ServiceError::NoConfiguration { file: file.to_owned() }.into());
    }
    let env = |name: &str| {
        if name == "PATH" { Some(unit.path().to_owned()) } else { std::env::var(name).ok() }
    };
    config::load(file, &env).map(|_| ()).map_err(CliError::Configuration)
}

/// A file that is there was written by this command.
fn ours(file: &Path) -> Result<(), CliError> {
    match fs::read_to_string(file) {
        Ok(text) if unit::is_ours(&text) => Ok(()),
        Ok(_) => Err(ServiceError::Foreign { file: file.to_owned() }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(CliError::File { what: "cannot read", file: file.to_owned(), source }),
    }
}

/// At once or not at all: systemd may read at any time.
fn write(file: &Path, text: &str) -> Result<(), CliError> {
    let fault = |source| CliError::File { what: "cannot write", file: file.to_owned(), source };
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(fault)?;
    let fresh = folder.join(format!(".{}.new", place::NAME));
    fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, file)).map_err(fault)
}

fn uninstall(owner: &Owner, out: &Out) -> Result<(), CliError> {
    let systemd = Systemd::of(owner)?;
    let file = installed(owner)?;
    ours(&file)?;
    systemd.ask(&["disable", "--now", place::NAME])?;
    fs::remove_file(&file).map_err(|source| {
        let (what, file) = ("cannot remove", file.clone());
        CliError::File { what, file, source }
    })?;
    systemd.ask(&["daemon-reload"])?;
    if out.is_json() {
        out.shape(&json!({"removed": file.display().to_string()}));
    } else {
        out.line(&format!("removed  {}", file.display()));
    }
    Ok(())
}

/// Where the unit is.
fn installed(owner: &Owner) -> Result<PathBuf, ServiceError> {
    let file = owner.unit_file(&Environment::of_this_process())?;
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

//! `algonius service`: installs the service under systemd, for a user or for the machine.

pub(super) mod install_paths;
pub(super) mod installed_unit;
mod systemd;
mod unit;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::service::{InstallScope, ServiceCommand, UnitOptions};
use super::error::CliError;
use super::error::service::ServiceCommandError;
use super::output::CliOutput;
use crate::config::{self, Severity};

use install_paths::{DirectoryVariables, UnitOwner};
use systemd::Systemd;
use unit::Unit;

/// Installs, removes or shows the unit.
pub(super) async fn run(command: ServiceCommand, out: &CliOutput) -> Result<(), CliError> {
    match command {
        ServiceCommand::Install { scope, options, dry_run: true, force: _ } => {
            out.print_text(&requested_unit(&unit_owner(&scope), options)?.text());
            Ok(())
        }
        ServiceCommand::Install { scope, options, dry_run: false, force } => {
            install(&unit_owner(&scope), options, force, out).await
        }
        ServiceCommand::Uninstall { scope } => uninstall(&unit_owner(&scope), out).await,
        ServiceCommand::Status { scope } => status(&unit_owner(&scope), out).await,
    }
}

fn unit_owner(scope: &InstallScope) -> UnitOwner {
    if scope.system { UnitOwner::Machine } else { UnitOwner::User }
}

/// Returns the requested unit.
fn requested_unit(owner: &UnitOwner, options: UnitOptions) -> Result<Unit, ServiceCommandError> {
    let directories = DirectoryVariables::from_env();
    let program = match options.program {
        Some(program) => absolute_path(&program)?,
        None => std::env::current_exe()
            .map_err(|source| ServiceCommandError::UnknownProgramPath { source })?,
    };
    let config_file = match options.config {
        Some(config_file) => absolute_path(&config_file)?,
        None => owner.config_file(&directories)?,
    };
    let search_path =
        options.path.map_or_else(|| owner.search_path(&directories), std::ffi::OsString::from);
    Unit::new(owner.clone(), &program, &config_file, &search_path)
}

fn absolute_path(file: &Path) -> Result<PathBuf, ServiceCommandError> {
    std::path::absolute(file).map_err(|source| ServiceCommandError::UnknownProgramPath { source })
}

/// Installs the unit, but writes nothing if the service could not start with it.
async fn install(
    owner: &UnitOwner,
    options: UnitOptions,
    force: bool,
    out: &CliOutput,
) -> Result<(), CliError> {
    let systemd = Systemd::for_owner(owner)?;
    let unit = requested_unit(owner, options)?;
    check_configuration(&unit)?;
    owner.check_user_exists()?;
    let file = owner.unit_file(&DirectoryVariables::from_env())?;
    if !force {
        reject_foreign_unit(&file)?;
    }
    write_unit(&file, &unit.text())?;
    systemd.run_systemctl(&["daemon-reload"]).await?;
    systemd.run_systemctl(&["enable", "--now", install_paths::UNIT_NAME]).await?;
    if out.is_json() {
        let unit_file = file.display().to_string();
        out.print_json(
            &json!({"unit": unit_file, "configuration": unit.config_file(), "log": systemd.log_command()}),
        );
        return Ok(());
    }
    out.print_line(&format!("unit           {}", file.display()));
    out.print_line(&format!("configuration  {}", unit.config_file()));
    out.print_line(&format!("log            {}", systemd.log_command()));
    if let Some(remark) = owner.install_note() {
        out.print_note(remark);
    }
    Ok(())
}

/// Checks that the configuration exists and is valid, with the search path of the service.
fn check_configuration(unit: &Unit) -> Result<(), CliError> {
    let file = Path::new(unit.config_file());
    if !file.exists() {
        return Err(ServiceCommandError::NoConfiguration { file: file.to_owned() }.into());
    }
    let env = |name: &str| {
        if name == "PATH" { Some(unit.search_path().into()) } else { std::env::var_os(name) }
    };
    let loaded = config::load(file, &env).map_err(CliError::InvalidConfiguration)?;
    // The user can first install the program or set another path.
    let missing_programs =
        loaded.warnings.iter().filter(|it| it.severity == Severity::AgentUnavailable);
    let missing_programs: Vec<_> = missing_programs.map(ToString::to_string).collect();
    if missing_programs.is_empty() {
        Ok(())
    } else {
        Err(CliError::MissingPrograms(missing_programs))
    }
}

/// Checks that an existing file was written by this command.
fn reject_foreign_unit(file: &Path) -> Result<(), CliError> {
    match fs::read_to_string(file) {
        Ok(text) if unit::is_generated(&text) => Ok(()),
        Ok(_) => Err(ServiceCommandError::ForeignUnit { file: file.to_owned() }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => {
            Err(CliError::File { problem: "cannot read", file: file.to_owned(), source })
        }
    }
}

/// Replaces the file atomically, because systemd may read it at any time.
fn write_unit(file: &Path, text: &str) -> Result<(), CliError> {
    let file_error =
        |source| CliError::File { problem: "cannot write", file: file.to_owned(), source };
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(file_error)?;
    let temporary_path = folder.join(format!(".{}.new", install_paths::UNIT_NAME));
    let write_result =
        fs::write(&temporary_path, text).and_then(|()| fs::rename(&temporary_path, file));
    if write_result.is_err() {
        _ = fs::remove_file(&temporary_path); // The first fault is the one to report.
    }
    write_result.map_err(file_error)
}

async fn uninstall(owner: &UnitOwner, out: &CliOutput) -> Result<(), CliError> {
    let systemd = Systemd::for_owner(owner)?;
    let file = installed_unit_file(owner)?;
    reject_foreign_unit(&file)?;
    systemd.run_systemctl(&["disable", "--now", install_paths::UNIT_NAME]).await?;
    fs::remove_file(&file).map_err(|source| {
        let (problem, file) = ("cannot remove", file.clone());
        CliError::File { problem, file, source }
    })?;
    systemd.run_systemctl(&["daemon-reload"]).await?;
    if out.is_json() {
        out.print_json(&json!({"removed": file.display().to_string()}));
    } else {
        out.print_line(&format!("removed  {}", file.display()));
    }
    Ok(())
}

/// Returns the path of the installed unit.
fn installed_unit_file(owner: &UnitOwner) -> Result<PathBuf, ServiceCommandError> {
    let file = owner.unit_file(&DirectoryVariables::from_env())?;
    if file.exists() { Ok(file) } else { Err(ServiceCommandError::NotInstalled { file }) }
}

async fn status(owner: &UnitOwner, out: &CliOutput) -> Result<(), CliError> {
    let systemd = Systemd::for_owner(owner)?;
    let file = installed_unit_file(owner)?;
    let state = systemd.query_state().await?;
    if out.is_json() {
        out.print_json(&json!({
            "unit": file.display().to_string(),
            "active": state.active_state,
            "enabled": state.enabled_state,
            "pid": state.pid,
            "says": state.status_text,
        }));
        return Ok(());
    }
    let pid = state.pid.map_or(String::new(), |pid| format!(", pid {pid}"));
    out.print_line(&format!("unit     {}", file.display()));
    out.print_line(&format!("at boot  {}", state.enabled_state));
    out.print_line(&format!("now      {}{pid}", state.active_state));
    if !state.status_text.is_empty() {
        out.print_line(&format!("says     {}", state.status_text));
    }
    Ok(())
}

//! `algonius init`: a configuration of one's own, and a token that nobody else can read.

use std::path::Path;

use serde_json::json;

use super::fault::CliError;
use super::out::Out;
use crate::config;
use crate::token;

/// Writes both, and says how to go on.
pub(super) fn run(folder: &Path, force: bool, out: &Out) -> Result<(), CliError> {
    let fault = |what, file: &Path| {
        let file = file.to_owned();
        move |source| CliError::File { what, file, source }
    };
    std::fs::create_dir_all(folder).map_err(fault("cannot make", folder))?;
    let file = folder.join("supervisor.toml");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(!force).create(force).truncate(force);
    let opened = options.open(&file).map_err(fault("cannot write", &file))?;
    std::io::Write::write_all(&mut { opened }, config::SHIPPED.as_bytes())
        .map_err(fault("cannot write", &file))?;
    let env = |name: &str| std::env::var(name).ok();
    let token_file = config::usual_token_file(&env);
    token::ensure(&token_file).map_err(fault("cannot write", &token_file))?;
    if out.is_json() {
        let shown = |file: &Path| file.display().to_string();
        out.shape(&json!({"configuration": shown(&file), "token": shown(&token_file)}));
        return Ok(());
    }
    out.line(&format!("configuration  {}", file.display()));
    out.line(&format!("token          {}", token_file.display()));
    out.line(&format!("next           algonius serve --config {}", file.display()));
    Ok(())
}

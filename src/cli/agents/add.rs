//! `algonius agents add`: looks whether an agent of a known program could work, writes it into the
//! configuration, has the service take it, and tries it.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use serde_json::{Value, json};

use super::draft::Draft;
use super::fault::AddError;
use super::{look, probe};
use crate::cli::args::AddAgent;
use crate::cli::client::Client;
use crate::cli::doctor::{self, Finding, Weight};
use crate::cli::fault::CliError;
use crate::cli::out::Out;
use crate::cli::service::installed::Installed;
use crate::config::{self, Agent, Settings};
use crate::wire::admin::Reloaded;

/// What became of it, for programs that read.
#[derive(Default)]
struct Told {
    findings: Vec<Finding>,
    is_applied: bool,
    probe: Option<Value>,
}

/// Looks, writes, reloads, tries.
pub(super) async fn run(
    client: Result<Client, CliError>,
    wanted: AddAgent,
    out: &Out,
) -> Result<(), CliError> {
    let id = wanted.id.clone().unwrap_or_else(|| wanted.preset.clone());
    let draft = Draft::new(&wanted, &id)?;
    let place = Place::of(draft.file());
    let agent = drafted(&draft, &place, &id)?;
    let mut told = Told { findings: place.finding(), ..Told::default() };
    told.findings.extend(look::of(&agent).await);
    if !out.is_json() {
        doctor::print_findings(&told.findings, out);
        agent.about.notes.iter().for_each(|note| out.line(&format!("note     {note}")));
    }
    if told.findings.iter().any(|finding| finding.weight == Weight::Bad) {
        shape(&told, &draft, &id, out);
        return Err(AddError::NotReady.into());
    }
    place.read(&draft.after(), &draft)?;
    agree(&wanted, &draft, out)?;
    draft.write()?;
    if !out.is_json() {
        out.line(&format!("written  {}", draft.file().display()));
    }
    let done = try_out(client, &draft, &id, (&mut told, out)).await;
    shape(&told, &draft, &id, out);
    done
}

/// The agent as it would be; that its program may be missing is looked at by itself.
fn drafted(draft: &Draft, place: &Place, id: &str) -> Result<Agent, CliError> {
    let is_it = |agent: &Agent| agent.spec.id.as_str() == id;
    // A configuration whose only fault is that it is empty may be added to.
    if place.read(draft.before(), draft).is_ok_and(|settings| settings.agents.iter().any(is_it)) {
        return Err(AddError::Exists { id: id.to_owned() }.into());
    }
    let settings = place.read(&draft.switched_off(), draft)?;
    settings.agents.into_iter().find(is_it).ok_or_else(|| AddError::NotReady.into())
}

/// Where the service will find programs and keys: as its unit has them, where one is installed that
/// starts it on this file, or else as this terminal has.
struct Place(Option<Installed>);

impl Place {
    fn of(file: &Path) -> Self {
        Self(Installed::find().filter(|unit| unit.starts(file)))
    }

    fn finding(&self) -> Vec<Finding> {
        self.0.iter().map(Installed::finding).collect()
    }

    /// A text, as if it stood in the file.
    fn read(&self, text: &str, draft: &Draft) -> Result<Settings, CliError> {
        let env = |name: &str| Installed::variable_of(self.0.as_ref(), name);
        let checked = config::load_text(draft.file(), text, &env);
        checked.map(|checked| checked.settings).map_err(CliError::Configuration)
    }
}

/// Asks the person at the terminal, unless it was said before.
fn agree(wanted: &AddAgent, draft: &Draft, out: &Out) -> Result<(), CliError> {
    if wanted.yes {
        return Ok(());
    }
    out.note(&format!("to be added to {}:\n\n{}", draft.file().display(), draft.table()));
    if !std::io::stdin().is_terminal() {
        return Err(AddError::NotAgreed.into());
    }
    out.aside("Add it? [Y/n] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|source| CliError::Input { source })?;
    let is_yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes");
    if is_yes { Ok(()) } else { Err(AddError::NotAgreed.into()) }
}

/// Has the service that runs take it, and asks it something. That none runs is no fault.
async fn try_out(
    client: Result<Client, CliError>,
    draft: &Draft,
    id: &str,
    (told, out): (&mut Told, &Out),
) -> Result<(), CliError> {
    let reloaded = match &client {
        Ok(client) => client.post::<Reloaded>("/api/v1/reload", json!({})).await.map(|_| client),
        Err(_) => return no_service(draft, id, out),
    };
    let client = match reloaded {
        Ok(client) => client,
        Err(CliError::Unreachable { .. }) => return no_service(draft, id, out),
        Err(error @ CliError::Rejected { .. }) => {
            draft.take_back()?;
            let (file, told) = (draft.file().to_owned(), error.to_string());
            return Err(AddError::NotTaken { file, told }.into());
        }
        Err(error) => return Err(error),
    };
    let known: Result<Value, _> = client.get(&format!("/api/v1/agents/{id}")).await;
    if known.is_err() {
        return Err(AddError::Elsewhere { file: draft.file().to_owned() }.into());
    }
    told.is_applied = true;
    let probed = probe::ask(client, id, None, out).await?;
    told.probe = Some(probed.shape());
    probed.report(out)
}

fn no_service(draft: &Draft, id: &str, out: &Out) -> Result<(), CliError> {
    if !out.is_json() {
        out.line("next     no service runs here yet:");
        out.line(&format!("           algonius serve --config {}", draft.file().display()));
        out.line(&format!("           algonius agents test {id}"));
    }
    Ok(())
}

/// What became of it, for programs that read.
fn shape(told: &Told, draft: &Draft, id: &str, out: &Out) {
    if out.is_json() {
        out.shape(&json!({
            "agent": id,
            "file": draft.file(),
            "table": draft.table(),
            "findings": told.findings,
            "applied": told.is_applied,
            "probe": told.probe,
        }));
    }
}

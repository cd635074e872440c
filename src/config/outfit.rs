//! What a program is given beside its arguments: a model, a home, and a look at its version.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use algonius_actors::model::id::AgentId;
use algonius_actors::model::outfit::{OwnHome, VersionSpec};
use algonius_actors::model::program::{Secrecy, Variable};
use algonius_actors::model::version::VersionRange;

use super::fault::said;
use super::program::regex_of;
use super::reader::Found;
use super::section::Section;
use super::value;

/// Whose HOME a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Home {
    #[default]
    Shared,
    Private,
}

const HOMES: [(&str, Home); 2] = [("shared", Home::Shared), ("private", Home::Private)];
/// Where the homes of agents are, below the folder of the ledger.
const FOLDER: &str = "homes";
/// What a version looks like when nobody says.
const VERSION: &str = r"\d+(?:\.\d+)+";

/// The model that the program is to use. One that begins with `-` would be read as an option.
pub(super) fn model(section: &mut Section<'_>) -> Option<String> {
    let model = section.nonblank("model")?;
    if model.value.starts_with('-') {
        section.reader.error(&model.place, "must not begin with `-`");
    }
    Some(model.value)
}

/// The home of the agent's own, where it has one, and what is written into it.
pub(super) fn own_home(
    section: &mut Section<'_>,
    id: &AgentId,
    data_dir: &Path,
) -> Option<OwnHome> {
    let home = section.word("home", &HOMES);
    let given = section.has("home_files");
    let files = home_files(section.section("home_files"));
    let home = home.filter(|home| home.value == Home::Private);
    let Some(home) = home else {
        if given {
            let place = section.place.below("home_files").hidden();
            section.reader.error(&place, "has a meaning with `home = \"private\"` only");
        }
        return None;
    };
    if data_dir.starts_with("/tmp") {
        let complaint =
            said("the agent's home is below /tmp, where some programs cannot confine themselves")
                .hint("set `server.data_dir` to a folder elsewhere");
        section.reader.warning(&home.place, complaint);
    }
    Some(OwnHome { path: data_dir.join(FOLDER).join(id.as_str()), files })
}

/// Texts by their paths in the home.
fn home_files(section: Section<'_>) -> BTreeMap<String, String> {
    let reader = section.reader;
    let mut files = BTreeMap::new();
    for (name, entry) in section.entries() {
        let entry = Found { place: entry.place.hidden(), ..entry };
        let mut parts = Path::new(&name.value).components().peekable();
        let is_below =
            parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            reader.error(&name.place, "must be a path in the home, without `..`");
        }
        let text = value::text(reader, &entry).map(str::to_owned);
        files.extend(text.map(|text| (name.value, text)));
    }
    files
}

/// Gives the program its own home as HOME; a fault where the file sets another one.
pub(super) fn give_home(
    section: &Section<'_>,
    own: Option<&OwnHome>,
    env: &mut BTreeMap<String, Variable>,
) -> PathBuf {
    if let Some(own) = own {
        let value = own.path.display().to_string();
        let home = Variable { value, secrecy: Secrecy::Plain };
        if env.insert("HOME".to_owned(), home).is_some() {
            let place = section.place.below("env.HOME").hidden();
            let complaint = said("the agent has a home of its own already")
                .hint("leave it out, or set `home = \"shared\"`");
            section.reader.error(&place, complaint);
        }
    }
    let home = env.get("HOME").map(|home| home.value.clone());
    home.or_else(|| section.reader.env("HOME")).map(PathBuf::from).unwrap_or_default()
}

/// Reads `[agents.<id>.program_version]`: how the program is asked for its version.
pub(super) fn version(agent: &mut Section<'_>) -> Option<VersionSpec> {
    let is_given = agent.has("program_version");
    let mut section = agent.section("program_version");
    let args = section.texts("args");
    let regex = section.nonblank("regex").map(|text| regex_of(section.reader, &text));
    let tested = section.nonblank("tested");
    section.finish();
    let tested = tested.and_then(|text| {
        let range = VersionRange::parse(&text.value);
        if range.is_none() {
            let complaint =
                said("must be bounds with commas between them").hint("write `>=2.1, <3`");
            agent.reader.error(&text.place, complaint);
        }
        range
    });
    let args = args.map(|args| args.into_iter().map(|arg| arg.value).collect());
    if !is_given {
        return None;
    }
    Some(VersionSpec {
        args: args.unwrap_or_else(|| vec!["--version".to_owned()]),
        regex: regex.unwrap_or_else(|| agent.reader.regex(VERSION).ok())?,
        tested,
    })
}

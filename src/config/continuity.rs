//! `[agents.<id>.session]`: how a program that ends with its answer goes on with a conversation.

use std::time::Duration;

use algonius_actors::model::program::{InputPattern, OutputPattern};
use algonius_actors::model::session::{Continuity, LostContract};

use super::arguments::Arguments;
use super::contract::exit_codes;
use super::fault::said;
use super::program::{pointer, regex};
use super::section::Section;
use super::value::{self, Bounds};

/// Seconds for which a session is resumed: up to a year.
const TTL: Bounds<f64> = Bounds::new(0.1, 31_536_000.0, 86_400.0);

const NO_ID: &str = "nothing tells the id of a session: give `new_args` with `{{ uuid }}`, `regex` or \
                     `json_pointer`, or let the program tell it by events";

/// Reads the section; nothing when there is none.
pub(super) fn read(
    agent: &mut Section<'_>,
    usual: &Arguments,
    input: Option<InputPattern>,
    output: Option<OutputPattern>,
) -> Option<Continuity> {
    let is_given = agent.has("session");
    let mut from = agent.section("session");
    let section = &mut from;
    let added = Arguments::listed(section, "resume_args");
    let whole = Arguments::listed(section, "args");
    let new = Arguments::listed(section, "new_args");
    let templates = |of: &Option<Arguments>| of.as_ref().map(Arguments::templates);
    let after = |of: Vec<String>| [usual.templates(), of].concat();
    let continuity = Continuity {
        begin: after(templates(&new).unwrap_or_default()),
        resume: templates(&whole).unwrap_or_else(|| after(templates(&added).unwrap_or_default())),
        gives_id: new.as_ref().is_some_and(|new| new.use_name("uuid")),
        ttl: ttl(section),
        regex: regex(section, "regex"),
        json_pointer: pointer(section, "json_pointer"),
        lost: LostContract {
            exit_codes: exit_codes(section, "lost_exit_codes").unwrap_or_default(),
            regex: regex(section, "lost_regex"),
        },
    };
    if is_given {
        if let (Some(whole), Some(input), Some(output)) = (&whole, input, output) {
            whole.suit(section, input, output);
        }
        judge(section, [&added, &whole, &new], &continuity, output);
    }
    from.finish();
    is_given.then_some(continuity)
}

/// Checks that there is a way to resume, and something to resume.
fn judge(
    section: &Section<'_>,
    [added, whole, new]: [&Option<Arguments>; 3],
    continuity: &Continuity,
    output: Option<OutputPattern>,
) {
    let at = |key: &str| section.place.below(key).hidden();
    match (added, whole) {
        (Some(_), Some(_)) => {
            let complaint =
                "give `args`, which are all, or `resume_args`, which are added: not both";
            section.reader.error(&at("args"), complaint);
        }
        (Some(resume), None) | (None, Some(resume)) => {
            resume.must_use(section, "session_id");
            resume.may_not_use(section, "uuid", "with `new_args` only");
        }
        (None, None) => {
            let complaint = said("is needed").hint("write `[\"--resume\", \"{{ session_id }}\"]`");
            section.reader.record(super::fault::Severity::Error, &at("resume_args"), complaint);
        }
    }
    if let Some(new) = new {
        new.may_not_use(section, "session_id", "when a session is resumed only");
    }
    let is_told = continuity.regex.is_some() || continuity.json_pointer.is_some();
    let is_plain = matches!(output, Some(OutputPattern::Stdout | OutputPattern::File));
    if is_plain && !is_told && !continuity.gives_id {
        section.reader.error(&section.place.clone().hidden(), NO_ID);
    }
}

fn ttl(section: &mut Section<'_>) -> Option<Duration> {
    let entry = section.entry("ttl")?;
    let seconds = value::seconds(section.reader, &entry, TTL)?;
    Duration::try_from_secs_f64(seconds).ok()
}

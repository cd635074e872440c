//! The whole document, read subject by subject into settings.

use std::collections::BTreeMap;
use std::path::Path;

use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::ProgramUser;

use super::keys::agent::exposure::ExposureReadState;
use super::keys::agent::program::user;
use super::keys::agent::{self, AgentReadContext, ConfiguredAgent, card};
use super::keys::cognition::CognitionCatalog;
use super::keys::limits::AgentSettingBounds;
use super::keys::server::{self, access};
use super::keys::{
    alerts, inputs, log, pressure, push, redaction, retention, schedules, telemetry, tokens,
};
use super::presets::MergedDocument;
use super::service_files::ServiceFiles;
use super::settings::{CallerSettings, ObservabilitySettings, SecrecySettings, Settings};
use super::table::{ConfigReader, Positioned, Section, SourcePosition};

/// Reads the whole document. Returns `None` if settings cannot be built; a fault gives the reason.
pub(super) fn read<'c>(
    reader: &'c ConfigReader<'c>,
    merged_document: &'c MergedDocument<'c>,
) -> Option<Settings> {
    let root_position =
        SourcePosition { key_path: String::new(), span: 0..0, may_quote_source: true };
    let mut root = Section::new(reader, root_position, Some(&merged_document.document));
    // The bounds of most numbers below follow from these limits.
    let bounds = AgentSettingBounds::read(root.section("limits"));
    // The ids are read before all else that may name an agent.
    let mut sections = parse_agent_sections(reader, root.sections("agents"));
    if sections.is_empty() {
        reader.report_error(&root.position.child("agents"), "one agent at least is needed");
    }
    let ids: Vec<AgentId> = sections.iter().map(|(id, _)| id.value.clone()).collect();
    let mut server_section = root.section("server");
    let has_agent_users = server_section.has_key("agent_users");
    let card_provider = card::read_provider(&mut server_section);
    let (server, default_agent) = server::read(server_section, &ids);
    if !has_agent_users {
        sections.iter_mut().for_each(|(_, section)| user::refuse_dynamic_user(section));
    }
    let log = log::read(root.section("log"));
    let lockout = access::read_lockout(root.section("lockout"));
    // A wrong address has its own fault, and must not cause others about open agents.
    let is_loopback = server.as_ref().is_none_or(|server| server.listen_address.ip().is_loopback());
    let pressure = pressure::read(root.section("pressure"));
    let push = push::read(root.section("push"));
    let retention = retention::read(root.section("retention"));
    let redaction = redaction::read(root.section("redaction"));
    let serves_metrics = alerts::read_metrics_flag(root.section("metrics"));
    let alerts = Box::new(alerts::read(root.section("alerts")));
    let telemetry = telemetry::read(root.section("telemetry"));
    let tokens = tokens::read(&mut root, &ids);
    let mut exposure_state = ExposureReadState::new(is_loopback, tokens, card_provider);
    let data_dir = server.as_ref().map_or(Path::new(""), |server| &server.data_dir);
    let inputs = inputs::read(root.section("inputs"), data_dir);
    let cognition = CognitionCatalog::read(&mut root, &sections);
    let context = AgentReadContext {
        bounds: &bounds,
        data_dir,
        cognition: &cognition,
        agent_presets: &merged_document.agent_presets,
    };
    let agents = agent::read_all(reader, sections, &context, &mut exposure_state);
    let reference_targets = schedules::ScheduleReferenceTargets {
        agents: agents.iter().collect(),
        tokens: exposure_state.tokens.iter().map(|token| token.name.as_str()).collect(),
    };
    let scheduling = schedules::read(&mut root, &reference_targets);
    root.report_unknown_keys();
    // Every table was read before a missing server ends the function, so that each fault is reported.
    let (tokens, secrets, server) = (exposure_state.tokens, Vec::new(), server?);
    let settings = Settings {
        agents: with_shared_users_marked(agents, server.programs.agent_uid_range),
        server,
        pressure,
        push,
        retention,
        default_agent,
        callers: CallerSettings { tokens, lockout },
        secrecy: SecrecySettings { secrets, redaction, inputs },
        observability: ObservabilitySettings { log, serves_metrics, alerts, telemetry },
        scheduling,
        referenced_files: Vec::new(),
        service_files: ServiceFiles::default(),
    };
    Some(settings)
}

/// Returns the agents, with a mark on each program whose user another agent has too. Disabled agents count, because
/// they can be enabled. The service may pick each number of `dynamic_uids` for a dynamic user.
fn with_shared_users_marked(
    mut agents: Vec<ConfiguredAgent>,
    dynamic_uids: Option<(u32, u32)>,
) -> Vec<ConfiguredAgent> {
    let users: Vec<ProgramUser> =
        agents.iter().filter_map(ConfiguredAgent::program).map(|program| program.user).collect();
    let has_dynamic_users = users.iter().any(|user| user.is_dynamic);
    let is_dynamic_uid =
        |uid: u32| dynamic_uids.is_some_and(|(first, last)| (first..=last).contains(&uid));
    let mut agent_counts = BTreeMap::<u32, usize>::new();
    for uid in users.iter().filter_map(|user| user.ids).map(|ids| ids.uid) {
        *agent_counts.entry(uid).or_default() += 1;
    }
    for program in agents.iter_mut().filter_map(ConfiguredAgent::program_mut) {
        program.user.is_shared = match program.user.ids.map(|ids| ids.uid) {
            Some(uid) => {
                agent_counts.get(&uid).is_some_and(|count| *count > 1)
                    || has_dynamic_users && is_dynamic_uid(uid)
            }
            None => program.user.is_dynamic && agent_counts.keys().copied().any(is_dynamic_uid),
        };
    }
    agents
}

/// Returns the sections whose name is a valid id.
fn parse_agent_sections<'c>(
    reader: &ConfigReader<'c>,
    sections: Vec<(Positioned<String>, Section<'c>)>,
) -> Vec<(Positioned<AgentId>, Section<'c>)> {
    let mut identified_sections = Vec::new();
    for (name, section) in sections {
        match AgentId::new(name.value.as_str()) {
            Ok(value) => {
                identified_sections.push((Positioned { value, position: name.position }, section));
            }
            Err(error) => reader.report_error(&name.position, error.to_string()),
        }
    }
    identified_sections
}

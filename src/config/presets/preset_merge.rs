//! Merges presets under the agents of a document: the file overrides table by table and key by key, and a value of a
//! preset keeps the position where it is written.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::{PresetCatalog, PresetMetadata, PresetText, child_table, preset_metadata};
use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{ConfigReader, Section, SourcePosition};

/// Document with presets merged under its agents.
pub(in crate::config) struct MergedDocument<'d> {
    /// Merged document.
    pub(in crate::config) document: DeTable<'d>,
    /// Preset of each agent; `None` for a preset that cannot be used.
    pub(in crate::config) agent_presets: BTreeMap<String, Option<AgentPreset>>,
}

impl<'d> MergedDocument<'d> {
    /// Returns a document without presets.
    pub(in crate::config) fn without_presets(document: &DeTable<'d>) -> Self {
        Self { document: document.clone(), agent_presets: BTreeMap::new() }
    }
}

/// Preset of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct AgentPreset {
    pub(in crate::config) name: String,
    pub(in crate::config) metadata: PresetMetadata,
}

/// Merges the presets that a document names under its agents. A fault of a preset is reported at its own position, and
/// a fault of its name at the position of the name.
pub(in crate::config) fn merge<'d>(
    document: &DeTable<'d>,
    preset_catalog: &'d PresetCatalog,
    reader: &ConfigReader<'_>,
) -> MergedDocument<'d> {
    let (mut agent_presets, mut preset_tables) = (BTreeMap::new(), DeTable::new());
    for (id, agent) in child_table(document, "agents").into_iter().flat_map(DeTable::iter) {
        let Some(preset_name) = agent.get_ref().as_table().and_then(|agent| agent.get("preset"))
        else {
            continue;
        };
        let Some(name) = preset_name.get_ref().as_str() else { continue };
        let key_path = format!("agents.{}.preset", id.get_ref());
        let position =
            SourcePosition { key_path, span: preset_name.span(), may_quote_source: true };
        let preset = preset_catalog
            .find(name, reader, &position)
            .and_then(|preset_text| parse_preset(preset_text, reader));
        let preset = preset.map(|(metadata, table)| {
            preset_tables.insert(id.clone(), Spanned::new(agent.span(), DeValue::Table(table)));
            AgentPreset { name: name.to_owned(), metadata }
        });
        agent_presets.insert(id.get_ref().to_string(), preset);
    }
    if agent_presets.is_empty() {
        return MergedDocument::without_presets(document);
    }
    preset_catalog.register_referenced_files(reader);
    let agents = Spanned::new(0..0, DeValue::Table(preset_tables));
    let preset_document = DeTable::from_iter([(Spanned::new(0..0, "agents".into()), agents)]);
    MergedDocument { document: merge_tables(document, &preset_document), agent_presets }
}

impl PresetCatalog {
    /// Returns the preset of that name; a fault if there is none.
    fn find(
        &self,
        name: &str,
        reader: &ConfigReader<'_>,
        position: &SourcePosition,
    ) -> Option<&PresetText> {
        if let Some((error, folder)) = self.folder_error.as_ref().zip(self.folder.as_ref()) {
            // One of its files may replace the built-in preset of that name.
            let folder = folder.display();
            reader.report_error(
                position,
                format!("the folder of presets, {folder}, cannot be read: {error}"),
            );
            return None;
        }
        if let Some((_, error)) = self.unreadable_files.get(name) {
            reader
                .report_error(position, format!("the file of this preset cannot be read: {error}"));
            return None;
        }
        let found = self.presets.get(name);
        if found.is_none() {
            reader.report_error(
                position,
                new_diagnostic("there is no such preset").suggest_from(name, self.names()),
            );
        }
        found
    }
}

/// Returns the description of a preset, and its part of an agent's table.
fn parse_preset<'d>(
    preset: &'d PresetText,
    reader: &ConfigReader<'_>,
) -> Option<(PresetMetadata, DeTable<'d>)> {
    let offset = reader.add_text(preset.file.clone(), &preset.text);
    let (document, syntax_errors) = DeTable::parse_recoverable(&preset.text);
    for error in &syntax_errors {
        let span = error.span().unwrap_or_default();
        let span = span.start + offset..span.end + offset;
        reader.report_error(
            &SourcePosition { key_path: String::new(), span, may_quote_source: false },
            error.message(),
        );
    }
    if !syntax_errors.is_empty() {
        return None;
    }
    let document = shift_table_spans(document.get_ref(), offset);
    let root_position =
        SourcePosition { key_path: String::new(), span: offset..offset, may_quote_source: true };
    let mut root = Section::new(reader, root_position, Some(&document));
    let metadata = preset_metadata::read(root.section("about"));
    root.section("agent");
    root.report_unknown_keys();
    let agent = child_table(&document, "agent").into_iter().flatten();
    Some((metadata, agent.map(|(key, value)| (key.clone(), value.clone())).collect()))
}

/// Merges two tables: `overriding` takes precedence, and tables of both are merged.
fn merge_tables<'d>(overriding: &DeTable<'d>, base: &DeTable<'d>) -> DeTable<'d> {
    let mut merged = overriding.clone();
    for (key, base_value) in base {
        let Some(overriding_value) = overriding.get(&**key.get_ref()) else {
            merged.insert(key.clone(), base_value.clone());
            continue;
        };
        if let (DeValue::Table(overriding_table), DeValue::Table(base_table)) =
            (overriding_value.get_ref(), base_value.get_ref())
        {
            let table = DeValue::Table(merge_tables(overriding_table, base_table));
            merged.insert(key.clone(), Spanned::new(overriding_value.span(), table));
        }
    }
    merged
}

/// Returns the value with its spans moved by `offset` bytes.
fn shift_spans<'d>(value: &Spanned<DeValue<'d>>, offset: usize) -> Spanned<DeValue<'d>> {
    let shifted = match value.get_ref() {
        DeValue::Table(table) => DeValue::Table(shift_table_spans(table, offset)),
        DeValue::Array(items) => {
            let mut array = DeArray::new();
            items.iter().for_each(|item| array.push(shift_spans(item, offset)));
            DeValue::Array(array)
        }
        scalar => scalar.clone(),
    };
    let span = value.span();
    Spanned::new(span.start + offset..span.end + offset, shifted)
}

fn shift_table_spans<'d>(table: &DeTable<'d>, offset: usize) -> DeTable<'d> {
    let entries = table.iter().map(|(key, value)| {
        let span = key.span();
        let key = Spanned::new(span.start + offset..span.end + offset, key.get_ref().clone());
        (key, shift_spans(value, offset))
    });
    entries.collect()
}

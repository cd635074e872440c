//! `[tools.<name>.inputs]`: the arguments of a tool whose handler has no inputs of its own.

use std::collections::{BTreeMap, BTreeSet};

use algonius_actors::model::agent::cognitive::{InputType, ToolInput};
use serde_json::{Map, Value, json};

use crate::config::table::{Positioned, Section, SourcePosition};
use crate::platform::template::tool_inputs::{ALL_ARGUMENTS_NAME, ToolTemplate};

/// Greatest number of inputs of a tool.
const MAX_INPUTS: usize = 64;

/// Inputs by name, with the positions of their tables.
#[derive(Default)]
pub(super) struct ConfiguredToolInputs(BTreeMap<String, (ToolInput, SourcePosition)>);

/// Reads the inputs.
pub(super) fn read(tool: &mut Section<'_>) -> ConfiguredToolInputs {
    let reader = tool.reader;
    let position = tool.position.child("inputs").without_excerpt();
    let sections = tool.sections("inputs");
    if sections.len() > MAX_INPUTS {
        reader.report_error(&position, format!("must have {MAX_INPUTS} inputs at most"));
    }
    let inputs = sections.into_iter().map(|(name, section)| {
        check_input_name(&section, &name.value, &name.position);
        (name.value, (read_input(section), name.position))
    });
    ConfiguredToolInputs(inputs.collect())
}

/// Checks the name of an input, which is also a name in templates.
fn check_input_name(section: &Section<'_>, name: &str, position: &SourcePosition) {
    if name == ALL_ARGUMENTS_NAME {
        let message = format!("`{ALL_ARGUMENTS_NAME}` is the name of all arguments together");
        section.reader.report_error(position, message);
    } else if !ToolTemplate::is_variable_name(name) {
        let message =
            "must be a name with letters, digits and `_`, and no word of templates such as `true`";
        section.reader.report_error(position, message);
    }
}

fn read_input(mut section: Section<'_>) -> ToolInput {
    let words: Vec<_> = InputType::ALL.iter().map(|known| (known.as_str(), *known)).collect();
    let input_type = section.keyword("type", &words);
    section.report_if_missing("type");
    let description = section.nonblank_text("description");
    let optional = section.flag("optional", false);
    section.report_unknown_keys();
    ToolInput {
        input_type: input_type.map_or(InputType::Any, |Positioned { value, .. }| value),
        description: description.map(|text| text.value).unwrap_or_default(),
        optional,
    }
}

impl ConfiguredToolInputs {
    /// Returns the inputs without their positions.
    pub(super) fn into_inputs(self) -> BTreeMap<String, ToolInput> {
        self.0.into_iter().map(|(name, (input, _))| (name, input)).collect()
    }

    /// Returns an argument for each input, to check templates.
    pub(super) fn sample_arguments(&self) -> Map<String, Value> {
        let sample = |input: &ToolInput| match input.input_type {
            InputType::String | InputType::Any => json!(""),
            InputType::Integer => json!(1),
            InputType::Number => json!(1.5),
            InputType::Boolean => json!(true),
            InputType::Array => json!([]),
            InputType::Object => json!({}),
        };
        self.0.iter().map(|(name, (input, _))| (name.clone(), sample(input))).collect()
    }

    /// Warns about inputs that no template uses: the model would give arguments without an effect.
    pub(super) fn warn_about_unused<'t>(
        &self,
        tool: &Section<'_>,
        templates: impl Iterator<Item = ToolTemplate<'t>>,
    ) {
        let used: BTreeSet<String> = templates.flat_map(ToolTemplate::used_variables).collect();
        let is_unused = |name: &str| !used.contains(ALL_ARGUMENTS_NAME) && !used.contains(name);
        for (name, (_, position)) in self.0.iter().filter(|(name, _)| is_unused(name)) {
            let message = format!("no template of the handler uses `{name}`");
            tool.reader.report_warning(position, message);
        }
    }
}

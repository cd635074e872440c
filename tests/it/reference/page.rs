//! Reads the shipped configuration for what it tells its reader, and writes that as a page.

use std::fmt::Write as _;

use regex::Regex;

/// A table of the configuration.
pub(super) struct ReferenceTable {
    /// Its name, with `<id>` for one that its writer chooses.
    pub(super) name: String,
    parts: Vec<TablePart>,
}

enum TablePart {
    Prose(String),
    Row(KeyRow),
}

/// A key.
pub(super) struct KeyRow {
    pub(super) key: String,
    pub(super) value: String,
    description: String,
}

impl ReferenceTable {
    pub(super) fn rows(&self) -> impl Iterator<Item = &KeyRow> {
        self.parts.iter().filter_map(|part| match part {
            TablePart::Row(row) => Some(row),
            TablePart::Prose(_) => None,
        })
    }
}

/// The tables of both files: of agents those of the second, and what is commented out in the first.
pub(super) fn merge_tables(shipped_text: &str, example_text: &str) -> Vec<ReferenceTable> {
    let mut tables = parse_tables(shipped_text);
    let index =
        tables.iter().position(|table| table.name.starts_with("agents")).unwrap_or(tables.len());
    tables.splice(index..index, parse_tables(example_text));
    tables
}

/// What a line is.
enum ConfigLine<'l> {
    Blank,
    Banner,
    ParagraphBreak,
    TableHeader { name: &'l str, is_shown: bool },
    Key { key: &'l str, value_and_comment: &'l str },
    CommentContinuation(&'l str),
    Prose(&'l str),
    Other,
}

struct LinePatterns {
    table_header: Regex,
    key: Regex,
    comment_continuation: Regex,
}

impl LinePatterns {
    fn new() -> Self {
        let regex = |pattern| Regex::new(pattern).unwrap();
        Self {
            table_header: regex(r"^(# )?\[\[?([\w.-]+)\]\]?( +#.*)?$"),
            key: regex(r"^(?:# )?([A-Za-z_][\w-]*(?:\.[\w-]+)*) = (.+)$"),
            comment_continuation: regex(r"^#?\s{8,}# (.+)$"),
        }
    }

    fn classify<'l>(&self, line: &'l str, is_main_config: bool) -> ConfigLine<'l> {
        let group =
            |captures: &regex::Captures<'l>, at| captures.get(at).map_or("", |it| it.as_str());
        if let Some(captures) = self.table_header.captures(line) {
            let (is_uncommented, name) = (captures.get(1).is_none(), group(&captures, 2));
            // The agents that are shipped are there to be run; the other file tells of all.
            let is_shown = !(is_main_config && is_uncommented && name.starts_with("agents."));
            return ConfigLine::TableHeader { name, is_shown };
        }
        if let Some(captures) = self.key.captures(line) {
            return ConfigLine::Key {
                key: group(&captures, 1),
                value_and_comment: group(&captures, 2),
            };
        }
        if let Some(captures) = self.comment_continuation.captures(line) {
            return ConfigLine::CommentContinuation(group(&captures, 1));
        }
        match line {
            "" => ConfigLine::Blank,
            "#" => ConfigLine::ParagraphBreak,
            _ if line.starts_with("# ---") => ConfigLine::Banner,
            _ => line.strip_prefix("# ").map_or(ConfigLine::Other, ConfigLine::Prose),
        }
    }
}

fn parse_tables(text: &str) -> Vec<ReferenceTable> {
    let (patterns, is_main_config) = (LinePatterns::new(), text.contains("[server]"));
    let mut parser = TableParser::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match patterns.classify(line, is_main_config) {
            ConfigLine::Blank => parser.flush_prose(),
            ConfigLine::ParagraphBreak => parser.prose.push("\n\n".to_owned()),
            ConfigLine::Banner | ConfigLine::Other => {
                parser.flush_prose();
                parser.is_shown = false;
            }
            ConfigLine::TableHeader { name, is_shown } => parser.start_table(name, is_shown),
            ConfigLine::Key { key, value_and_comment: rest } => {
                parser.push_row(key, &join_value_lines(rest, &mut lines));
            }
            ConfigLine::CommentContinuation(text) => parser.extend_description(text),
            ConfigLine::Prose(text) => parser.prose.push(format!("{text} ")),
        }
    }
    parser.flush_prose();
    parser.tables
}

/// A value that goes on over several lines as one line, with its remark.
fn join_value_lines<'l>(first_line: &str, lines: &mut impl Iterator<Item = &'l str>) -> String {
    let mut joined = first_line.to_owned();
    while has_open_bracket(split_comment(&joined).0) {
        let Some(line) = lines.next() else { break };
        let line = line.trim_start_matches("# ").trim();
        joined = format!("{} {line}", split_comment(&joined).0.trim());
    }
    joined
}

fn has_open_bracket(value: &str) -> bool {
    let count = |chars: [char; 2]| value.matches(chars).count();
    count(['[', '{']) > count([']', '}'])
}

/// A value and its remark.
fn split_comment(text: &str) -> (&str, &str) {
    let mut comment_starts =
        text.match_indices(" # ").filter_map(|(at, _)| text.split_at_checked(at));
    let comment_outside_string =
        comment_starts.find(|(value, _)| value.matches('"').count().is_multiple_of(2));
    comment_outside_string
        .map_or((text, ""), |(value, about)| (value.trim(), about.trim_start_matches(" # ").trim()))
}

#[derive(Default)]
struct TableParser {
    tables: Vec<ReferenceTable>,
    prose: Vec<String>,
    is_shown: bool,
}

impl TableParser {
    fn take_prose(&mut self) -> Option<TablePart> {
        let prose = self.prose.concat().replace(" \n", "\n").trim().to_owned();
        self.prose.clear();
        (!prose.is_empty()).then_some(TablePart::Prose(prose))
    }

    /// Prose that stands alone belongs to what is before it.
    fn flush_prose(&mut self) {
        let part = self.take_prose().filter(|_| self.is_shown);
        if let (Some(part), Some(table)) = (part, self.tables.last_mut()) {
            table.parts.push(part);
        }
    }

    fn start_table(&mut self, name: &str, is_shown: bool) {
        let parts: Vec<_> = self.take_prose().into_iter().collect();
        self.is_shown = is_shown;
        if is_shown {
            self.tables.push(ReferenceTable { name: name_with_placeholders(name), parts });
        }
    }

    fn push_row(&mut self, key: &str, value_and_comment: &str) {
        let prose = self.take_prose();
        let Some(table) = self.tables.last_mut().filter(|_| self.is_shown) else { return };
        let (value, description) = split_comment(value_and_comment);
        let (key, value, description) =
            (key.to_owned(), value.trim().to_owned(), description.to_owned());
        table.parts.extend(prose);
        table.parts.push(TablePart::Row(KeyRow { key, value, description }));
    }

    fn extend_description(&mut self, text: &str) {
        let last_table = self.tables.last_mut().filter(|_| self.is_shown);
        if let Some(TablePart::Row(row)) = last_table.and_then(|table| table.parts.last_mut()) {
            row.description = format!("{} {text}", row.description);
        }
    }
}

/// The name of a table with `<id>` for what its writer chooses.
fn name_with_placeholders(name: &str) -> String {
    let mut name_parts = name.split('.');
    let (first, second) = (name_parts.next().unwrap_or_default(), name_parts.next());
    let mut segments = vec![first];
    segments.extend(second.map(|word| match first {
        "agents" | "schedules" => "<id>",
        "models" => "<prefix>",
        "tokens" | "tools" => "<name>",
        _ => word,
    }));
    segments.extend(name_parts);
    // These names are not in the second place.
    match segments.as_mut_slice() {
        ["tools", _, "inputs", input] => *input = "<input>",
        ["mcp", "servers", name, ..] => *name = "<name>",
        _ => {}
    }
    segments.join(".")
}

const INTRO: &str = "\
# Configuration

<!-- Made of config/supervisor.toml and config/examples/your-own.toml by tests/it/reference.rs. -->

One TOML file. `algonius init FOLDER` writes an initial one, and `algonius check FILE` reports all of its
faults. Every key has a default, except those that a program, a provider, a tool or a kind of agent needs. The values
below are the defaults; for agents, models, tools, MCP servers, schedules and tokens they are examples.

Times are seconds (`300`, `0.5`) or text (`\"300s\"`, `\"5m\"`, `\"1h\"`). Relative paths start at the folder
of the file. A key that is not in these tables is a fault.
The limits that no key sets are in [Fixed limits](limits.md).
";

/// The tables as a page.
pub(super) fn render_page(tables: &[ReferenceTable]) -> String {
    let mut page = INTRO.to_owned();
    for table in tables {
        _ = write!(page, "\n## `[{}]`\n", table.name);
        let mut is_in_rows = false;
        for part in &table.parts {
            match part {
                TablePart::Prose(text) => {
                    _ = write!(page, "\n{}\n", wrap_lines(&escape_markdown(text)));
                }
                TablePart::Row(row) => {
                    let table_head =
                        if is_in_rows { "" } else { "\n| key | value | |\n|---|---|---|\n" };
                    _ = writeln!(page, "{table_head}{}", render_row(row));
                }
            }
            is_in_rows = matches!(part, TablePart::Row(_));
        }
    }
    page
}

fn render_row(KeyRow { key, value, description }: &KeyRow) -> String {
    let escape_cell = |text: &str| text.replace('|', "\\|");
    let value = if value.contains('`') { value.clone() } else { format!("`{value}`") };
    format!(
        "| `{key}` | {} | {} |",
        escape_cell(&value),
        escape_cell(&escape_markdown(description))
    )
    .replace("|  |", "| |")
}

/// Text in which nothing but code means anything to Markdown.
fn escape_markdown(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        let is_code = index % 2 == 1;
        if is_code { part.to_owned() } else { part.replace('<', "\\<").replace('*', "\\*") }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// In lines that a terminal shows whole.
fn wrap_lines(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let mut lines = vec![String::new()];
        for word in paragraph.split_whitespace() {
            let last_index = lines.len() - 1;
            if lines[last_index].len() + word.len() > 100 {
                lines.push(word.to_owned());
            } else {
                lines[last_index] = format!("{} {word}", lines[last_index]).trim().to_owned();
            }
        }
        lines.join("\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

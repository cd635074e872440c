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
    about: String,
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
pub(super) fn merge_tables(shipped: &str, own: &str) -> Vec<ReferenceTable> {
    let mut tables = parse_tables(shipped);
    let index =
        tables.iter().position(|table| table.name.starts_with("agents")).unwrap_or(tables.len());
    tables.splice(index..index, parse_tables(own));
    tables
}

/// What a line is.
enum ConfigLine<'l> {
    Blank,
    Banner,
    Break,
    TableHeader { name: &'l str, is_shown: bool },
    Key { key: &'l str, rest: &'l str },
    Continuation(&'l str),
    Prose(&'l str),
    Other,
}

struct LinePatterns {
    head: Regex,
    key: Regex,
    continuation: Regex,
}

impl LinePatterns {
    fn new() -> Self {
        let regex = |pattern| Regex::new(pattern).unwrap();
        Self {
            head: regex(r"^(# )?\[\[?([\w.-]+)\]\]?( +#.*)?$"),
            key: regex(r"^(?:# )?([A-Za-z_][\w-]*(?:\.[\w-]+)*) = (.+)$"),
            continuation: regex(r"^#?\s{8,}# (.+)$"),
        }
    }

    fn classify<'l>(&self, line: &'l str, is_shipped: bool) -> ConfigLine<'l> {
        let group = |found: &regex::Captures<'l>, at| found.get(at).map_or("", |it| it.as_str());
        if let Some(found) = self.head.captures(line) {
            let (is_example, name) = (found.get(1).is_none(), group(&found, 2));
            // The agents that are shipped are there to be run; the other file tells of all.
            let is_shown = !(is_shipped && is_example && name.starts_with("agents."));
            return ConfigLine::TableHeader { name, is_shown };
        }
        if let Some(found) = self.key.captures(line) {
            return ConfigLine::Key { key: group(&found, 1), rest: group(&found, 2) };
        }
        if let Some(found) = self.continuation.captures(line) {
            return ConfigLine::Continuation(group(&found, 1));
        }
        match line {
            "" => ConfigLine::Blank,
            "#" => ConfigLine::Break,
            _ if line.starts_with("# ---") => ConfigLine::Banner,
            _ => line.strip_prefix("# ").map_or(ConfigLine::Other, ConfigLine::Prose),
        }
    }
}

fn parse_tables(text: &str) -> Vec<ReferenceTable> {
    let (patterns, is_shipped) = (LinePatterns::new(), text.contains("[server]"));
    let mut state = TableParser::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match patterns.classify(line, is_shipped) {
            ConfigLine::Blank => state.flush_prose(),
            ConfigLine::Break => state.prose.push("\n\n".to_owned()),
            ConfigLine::Banner | ConfigLine::Other => {
                state.flush_prose();
                state.is_shown = false;
            }
            ConfigLine::TableHeader { name, is_shown } => state.start_table(name, is_shown),
            ConfigLine::Key { key, rest } => state.push_row(key, &join_lines(rest, &mut lines)),
            ConfigLine::Continuation(text) => state.continue_row(text),
            ConfigLine::Prose(text) => state.prose.push(format!("{text} ")),
        }
    }
    state.flush_prose();
    state.tables
}

/// A value that goes on over several lines as one line, with its remark.
fn join_lines<'l>(first: &str, lines: &mut impl Iterator<Item = &'l str>) -> String {
    let mut joined = first.to_owned();
    while is_open(split_comment(&joined).0) {
        let Some(line) = lines.next() else { break };
        let line = line.trim_start_matches("# ").trim();
        joined = format!("{} {line}", split_comment(&joined).0.trim());
    }
    joined
}

fn is_open(value: &str) -> bool {
    let count = |chars: [char; 2]| value.matches(chars).count();
    count(['[', '{']) > count([']', '}'])
}

/// A value and its remark.
fn split_comment(text: &str) -> (&str, &str) {
    let mut marks = text.match_indices(" # ").filter_map(|(at, _)| text.split_at_checked(at));
    let outside = marks.find(|(value, _)| value.matches('"').count().is_multiple_of(2));
    outside
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

    fn push_row(&mut self, key: &str, rest: &str) {
        let prose = self.take_prose();
        let Some(table) = self.tables.last_mut().filter(|_| self.is_shown) else { return };
        let (value, about) = split_comment(rest);
        let (key, value, about) = (key.to_owned(), value.trim().to_owned(), about.to_owned());
        table.parts.extend(prose);
        table.parts.push(TablePart::Row(KeyRow { key, value, about }));
    }

    fn continue_row(&mut self, text: &str) {
        let last_table = self.tables.last_mut().filter(|_| self.is_shown);
        if let Some(TablePart::Row(row)) = last_table.and_then(|table| table.parts.last_mut()) {
            row.about = format!("{} {text}", row.about);
        }
    }
}

/// The name of a table with `<id>` for what its writer chooses.
fn name_with_placeholders(name: &str) -> String {
    let mut words = name.split('.');
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    let mut segments = vec![first];
    segments.extend(second.map(|word| match first {
        "agents" | "schedules" => "<id>",
        "models" => "<prefix>",
        "tokens" | "tools" => "<name>",
        _ => word,
    }));
    segments.extend(words);
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
                    let head = if is_in_rows { "" } else { "\n| key | value | |\n|---|---|---|\n" };
                    _ = writeln!(page, "{head}{}", table_row(row));
                }
            }
            is_in_rows = matches!(part, TablePart::Row(_));
        }
    }
    page
}

fn table_row(KeyRow { key, value, about }: &KeyRow) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let value = if value.contains('`') { value.clone() } else { format!("`{value}`") };
    format!("| `{key}` | {} | {} |", cell(&value), cell(&escape_markdown(about)))
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

//! Minimal lexer for Rust: code without comments and literals, its tokens and its paths, and the words of names.

/// Returns the source with spaces in place of comments and literals. Every line keeps its number.
pub(crate) fn strip_comments_and_literals(source: &str) -> String {
    let source: Vec<char> = source.chars().collect();
    let mut code = String::new();
    let mut index = 0;
    while let Some(&char) = source.get(index) {
        let previous_char = index.checked_sub(1).and_then(|index| source.get(index)).copied();
        let non_code_length =
            non_code_length(source.get(index..).unwrap_or_default(), previous_char);
        let non_code_chars = source.iter().skip(index).take(non_code_length);
        code.extend(non_code_chars.map(|&char| if char == '\n' { '\n' } else { ' ' }));
        if non_code_length == 0 {
            code.push(char);
        }
        index += non_code_length.max(1);
    }
    code
}

/// Returns the length of the comment or literal at the start of `rest`, in characters; 0 if `rest` starts with code.
fn non_code_length(rest: &[char], previous_char: Option<char>) -> usize {
    let is_in_word = previous_char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    match rest {
        ['/', '/', ..] => rest.iter().take_while(|&&char| char != '\n').count(),
        ['/', '*', ..] => block_comment_length(rest),
        ['"', ..] => string_length(rest),
        ['r', '"' | '#', ..] if !is_in_word => raw_string_length(rest, 1),
        ['b' | 'c', 'r', '"' | '#', ..] if !is_in_word => raw_string_length(rest, 2),
        ['\'', '\\', _, after @ ..] => {
            3 + after.iter().take_while(|&&char| char != '\'').count() + 1
        }
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

fn block_comment_length(rest: &[char]) -> usize {
    let (mut depth, mut index) = (0_usize, 0);
    while index < rest.len() {
        match rest.get(index..).unwrap_or_default() {
            ['/', '*', ..] => (depth, index) = (depth + 1, index + 2),
            ['*', '/', ..] if depth == 1 => return index + 2,
            ['*', '/', ..] => (depth, index) = (depth - 1, index + 2),
            _ => index += 1,
        }
    }
    index
}

fn string_length(rest: &[char]) -> usize {
    let mut index = 1;
    loop {
        match rest.get(index) {
            Some('"') => return index + 1,
            Some('\\') => index += 2,
            Some(_) => index += 1,
            None => return rest.len(),
        }
    }
}

fn raw_string_length(rest: &[char], prefix_length: usize) -> usize {
    let hashes = rest.iter().skip(prefix_length).take_while(|&&char| char == '#').count();
    if rest.get(prefix_length + hashes) != Some(&'"') {
        return 0; // A raw identifier.
    }
    let start = prefix_length + hashes + 1;
    let is_end = |window: &[char]| {
        window.first() == Some(&'"') && window.iter().skip(1).all(|&char| char == '#')
    };
    let body = rest.get(start..).unwrap_or_default();
    body.windows(hashes + 1)
        .position(is_end)
        .map_or(rest.len(), |length| start + length + hashes + 1)
}

/// Word, `::`, or any other single character of code.
pub(crate) struct RustToken {
    /// Line of the token; the first line is 1.
    pub(crate) line: usize,
    /// Characters of the token.
    pub(crate) text: String,
}

impl RustToken {
    /// Returns whether the token is a name or a keyword.
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphabetic() || first == '_')
    }
}

/// Returns the tokens of a source, without comments and literals.
pub(crate) fn tokenize(source: &str) -> Vec<RustToken> {
    let mut tokens: Vec<RustToken> = Vec::new();
    for (index, line) in strip_comments_and_literals(source).lines().enumerate() {
        let mut can_extend = false; // The next character can extend the last token.
        for char in line.chars() {
            let is_word_char = char.is_alphanumeric() || char == '_';
            let extends_last = tokens.last().is_some_and(|last| {
                can_extend && (is_word_char && last.text != ":" || char == ':' && last.text == ":")
            });
            match tokens.last_mut() {
                Some(last) if extends_last => last.text.push(char),
                _ if char.is_whitespace() => {}
                _ => tokens.push(RustToken { line: index + 1, text: char.to_string() }),
            }
            can_extend = is_word_char || char == ':' && !extends_last;
        }
    }
    tokens
}

/// Path such as `crate::model::code`. A `use` group gives one path for each of its members.
pub(crate) struct CodePath {
    /// Line of the path; the first line is 1.
    pub(crate) line: usize,
    /// Names between the `::`.
    pub(crate) names: Vec<String>,
}

impl CodePath {
    /// Returns whether the path starts with these names, which `::` separates.
    pub(crate) fn starts_with(&self, prefix: &str) -> bool {
        let mut names = self.names.iter();
        prefix.split("::").all(|expected| names.next().is_some_and(|name| name == expected))
    }

    /// Returns the names, separated by `::`.
    pub(crate) fn join_names(&self) -> String {
        self.names.join("::")
    }
}

/// Returns every path of a source. A single name is a path with one name.
pub(crate) fn code_paths(source: &str) -> Vec<CodePath> {
    let tokens = tokenize(source);
    let mut paths = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index = if token.is_word() {
            parse_path_branch(&tokens, index, &[], &mut paths)
        } else {
            index + 1
        };
    }
    paths
}

/// Adds the paths of one branch of a `use` tree; returns the index of the token after the branch.
fn parse_path_branch(
    tokens: &[RustToken],
    mut index: usize,
    prefix: &[String],
    paths: &mut Vec<CodePath>,
) -> usize {
    let token_text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let line = tokens.get(index).map_or(0, |token| token.line);
    let mut names = prefix.to_vec();
    loop {
        if token_text(index) == "{" {
            return parse_path_group(tokens, index + 1, &names, paths);
        }
        let is_name = tokens.get(index).is_some_and(RustToken::is_word) || token_text(index) == "*";
        if is_name && (token_text(index) != "self" || names.is_empty()) {
            names.push(token_text(index).to_owned());
        }
        if !is_name || token_text(index + 1) != "::" {
            paths.push(CodePath { line, names });
            return if is_name { index + 1 } else { index };
        }
        index += 2;
    }
}

fn parse_path_group(
    tokens: &[RustToken],
    mut index: usize,
    prefix: &[String],
    paths: &mut Vec<CodePath>,
) -> usize {
    while let Some(token) = tokens.get(index) {
        match token.text.as_str() {
            "}" => return index + 1,
            "as" => index += 2,
            "{" | "*" => index = parse_path_branch(tokens, index, prefix, paths),
            _ if token.is_word() => index = parse_path_branch(tokens, index, prefix, paths),
            _ => index += 1,
        }
    }
    index
}

/// Returns the words of a name in lower case: `XActorMsg` and `x_actor_msg` have the same three.
pub(crate) fn split_into_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_after_lower = false;
    for char in name.chars() {
        if char == '_' || char == '-' || char == '.' || char.is_uppercase() && is_after_lower {
            words.push(String::new());
        }
        is_after_lower = char.is_lowercase() || char.is_numeric();
        if char.is_alphanumeric() {
            match words.last_mut() {
                Some(word) => word.extend(char.to_lowercase()),
                None => words.push(char.to_lowercase().collect()),
            }
        }
    }
    words
}

#[test]
fn comments_and_literals_are_not_code() {
    let source = "a /* b /* c */ d */ 'e' \"f\\\"g\" r#\"h\"i\"# b\"j\" '\\'' k // l\n&'m n";
    let words: Vec<_> =
        tokenize(source).into_iter().filter(RustToken::is_word).map(|token| token.text).collect();
    assert_eq!(words, ["a", "b", "k", "m", "n"]);
}

#[test]
fn use_groups_are_expanded() {
    let source = "use a::{self, b::{c as x, d::*}, e};\nlet f = g::h::<i>(j);";
    let paths: Vec<_> = code_paths(source).iter().map(CodePath::join_names).collect();
    for expected in ["a", "a::b::c", "a::b::d::*", "a::e", "g::h", "i", "j"] {
        assert!(paths.iter().any(|path| path == expected), "{expected} is not among {paths:?}");
    }
}

#[test]
fn names_are_split_into_words() {
    assert_eq!(split_into_words("HttpHandler2"), ["http", "handler2"]);
    assert_eq!(split_into_words("get_task_id"), ["get", "task", "id"]);
    assert_eq!(split_into_words("A2aTaskState"), ["a2a", "task", "state"]);
}

//! Reads Rust just well enough: code without comments and literals, its words, its paths.

/// The source with comments and literals blanked. Every line keeps its number.
pub(crate) fn code(source: &str) -> String {
    let source: Vec<char> = source.chars().collect();
    let mut code = String::new();
    let mut at = 0;
    while let Some(&char) = source.get(at) {
        let before = at.checked_sub(1).and_then(|index| source.get(index)).copied();
        let blank = blank_length(source.get(at..).unwrap_or_default(), before);
        let blanked = source.iter().skip(at).take(blank);
        code.extend(blanked.map(|&char| if char == '\n' { '\n' } else { ' ' }));
        if blank == 0 {
            code.push(char);
        }
        at += blank.max(1);
    }
    code
}

/// How many characters the comment or literal takes that starts here; 0 when none does.
fn blank_length(rest: &[char], before: Option<char>) -> usize {
    let in_word = before.is_some_and(|char| char.is_alphanumeric() || char == '_');
    match rest {
        ['/', '/', ..] => rest.iter().take_while(|&&char| char != '\n').count(),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => text(rest),
        ['r', '"' | '#', ..] if !in_word => raw_text(rest, 1),
        ['b' | 'c', 'r', '"' | '#', ..] if !in_word => raw_text(rest, 2),
        ['\'', '\\', _, after @ ..] => {
            3 + after.iter().take_while(|&&char| char != '\'').count() + 1
        }
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match rest.get(at..).unwrap_or_default() {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] if depth == 1 => return at + 2,
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

fn text(rest: &[char]) -> usize {
    let mut at = 1;
    loop {
        match rest.get(at) {
            Some('"') => return at + 1,
            Some('\\') => at += 2,
            Some(_) => at += 1,
            None => return rest.len(),
        }
    }
}

fn raw_text(rest: &[char], prefix: usize) -> usize {
    let hashes = rest.iter().skip(prefix).take_while(|&&char| char == '#').count();
    if rest.get(prefix + hashes) != Some(&'"') {
        return 0; // A raw identifier.
    }
    let start = prefix + hashes + 1;
    let ends = |window: &[char]| {
        window.first() == Some(&'"') && window.iter().skip(1).all(|&char| char == '#')
    };
    let body = rest.get(start..).unwrap_or_default();
    body.windows(hashes + 1).position(ends).map_or(rest.len(), |length| start + length + hashes + 1)
}

/// A word, `::` or another character of code.
pub(crate) struct Token {
    /// Its line, from 1.
    pub(crate) line: usize,
    /// Its text.
    pub(crate) text: String,
}

impl Token {
    /// Whether it is a name or a keyword.
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphabetic() || first == '_')
    }
}

/// The tokens of a source, without comments and literals.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    for (index, line) in code(source).lines().enumerate() {
        let mut open = false; // Whether the next character may join the last token.
        for char in line.chars() {
            let wordy = char.is_alphanumeric() || char == '_';
            let joins = tokens.last().is_some_and(|last| {
                open && (wordy && last.text != ":" || char == ':' && last.text == ":")
            });
            match tokens.last_mut() {
                Some(last) if joins => last.text.push(char),
                _ if char.is_whitespace() => {}
                _ => tokens.push(Token { line: index + 1, text: char.to_string() }),
            }
            open = wordy || char == ':' && !joins;
        }
    }
    tokens
}

/// A path such as `crate::model::code`, with the groups of `use` spread out.
pub(crate) struct Path {
    /// Its line, from 1.
    pub(crate) line: usize,
    /// Its names.
    pub(crate) names: Vec<String>,
}

impl Path {
    /// Whether it starts with these names, written with `::`.
    pub(crate) fn starts_with(&self, prefix: &str) -> bool {
        let mut names = self.names.iter();
        prefix.split("::").all(|wanted| names.next().is_some_and(|name| name == wanted))
    }

    /// It, as written.
    pub(crate) fn show(&self) -> String {
        self.names.join("::")
    }
}

/// Every path of a source. A lone name is a path of one.
pub(crate) fn paths(source: &str) -> Vec<Path> {
    let tokens = tokens(source);
    let mut paths = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at = if token.is_word() { branch(&tokens, at, &[], &mut paths) } else { at + 1 };
    }
    paths
}

/// Reads one branch of a tree of paths and tells where the next one may start.
fn branch(tokens: &[Token], mut at: usize, prefix: &[String], paths: &mut Vec<Path>) -> usize {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let line = tokens.get(at).map_or(0, |token| token.line);
    let mut names = prefix.to_vec();
    loop {
        if word(at) == "{" {
            return group(tokens, at + 1, &names, paths);
        }
        let is_name = tokens.get(at).is_some_and(Token::is_word) || word(at) == "*";
        if is_name && (word(at) != "self" || names.is_empty()) {
            names.push(word(at).to_owned());
        }
        if !is_name || word(at + 1) != "::" {
            paths.push(Path { line, names });
            return if is_name { at + 1 } else { at };
        }
        at += 2;
    }
}

fn group(tokens: &[Token], mut at: usize, prefix: &[String], paths: &mut Vec<Path>) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "}" => return at + 1,
            "as" => at += 2,
            "{" | "*" => at = branch(tokens, at, prefix, paths),
            _ if token.is_word() => at = branch(tokens, at, prefix, paths),
            _ => at += 1,
        }
    }
    at
}

/// The words of a name: `XActorMsg`, `x_actor_msg` and `X_ACTOR_MSG` have the same three.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut after_lower = false;
    for char in name.chars() {
        if char == '_' || char == '-' || char == '.' || char.is_uppercase() && after_lower {
            words.push(String::new());
        }
        after_lower = char.is_lowercase() || char.is_numeric();
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
        tokens(source).into_iter().filter(Token::is_word).map(|token| token.text).collect();
    assert_eq!(words, ["a", "b", "k", "m", "n"]);
}

#[test]
fn use_groups_are_spread_out() {
    let source = "use a::{self, b::{c as x, d::*}, e};\nlet f = g::h::<i>(j);";
    let paths: Vec<_> = paths(source).iter().map(Path::show).collect();
    for wanted in ["a", "a::b::c", "a::b::d::*", "a::e", "g::h", "i", "j"] {
        assert!(paths.iter().any(|path| path == wanted), "{wanted} is not among {paths:?}");
    }
}

#[test]
fn names_fall_into_words() {
    assert_eq!(words("HttpHandler2"), ["http", "handler2"]);
    assert_eq!(words("get_task_id"), ["get", "task", "id"]);
    assert_eq!(words("A2aTaskState"), ["a2a", "task", "state"]);
}

//! Directives of a prompt to an interactive fake agent: `[[tool Bash kind=execute command="git status"]]`.

use std::collections::BTreeMap;

/// Instruction for the agent: a name, words, and settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    pub(crate) settings: BTreeMap<String, String>,
}

impl Instruction {
    /// Returns the word at a position, or the empty text.
    pub(crate) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// Returns all words as one text.
    pub(crate) fn text(&self) -> String {
        self.words.join(" ")
    }

    pub(crate) fn first_number(&self) -> u64 {
        self.word(0).parse().unwrap_or_default()
    }

    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }
}

/// Returns the instructions of a prompt. A prompt without any is echoed.
pub(crate) fn parse_instructions(prompt: &str) -> Vec<Instruction> {
    let bodies = prompt.split("[[").skip(1).filter_map(|rest| rest.split_once("]]"));
    let instructions: Vec<_> = bodies.map(|(inside, _)| parse_instruction(inside)).collect();
    if instructions.is_empty() {
        let words = vec![format!("ECHO: {prompt}")];
        return vec![Instruction { name: "say".to_owned(), words, ..Instruction::default() }];
    }
    instructions
}

fn parse_instruction(body: &str) -> Instruction {
    let mut instruction = Instruction::default();
    let mut tokens = tokenize(body).into_iter();
    instruction.name = tokens.next().unwrap_or_default().0;
    for (token, equals_index) in tokens {
        match equals_index.and_then(|index| token.split_at_checked(index)) {
            Some((name, value)) => {
                instruction.settings.insert(name.to_owned(), value.to_owned());
            }
            None => instruction.words.push(token),
        }
    }
    instruction
}

/// Returns the tokens, without quotes, and the place of the `=` that was removed from an unquoted name.
fn tokenize(body: &str) -> Vec<(String, Option<usize>)> {
    let mut tokens = Vec::new();
    let (mut token, mut equals_index, mut is_quoted, mut has_token) =
        (String::new(), None, false, false);
    for char in body.chars() {
        match char {
            '"' => (is_quoted, has_token) = (!is_quoted, true),
            '=' if !is_quoted && equals_index.is_none() && !token.is_empty() => {
                equals_index = Some(token.len());
            }
            char if char.is_whitespace() && !is_quoted => {
                if std::mem::take(&mut has_token) {
                    tokens.push((std::mem::take(&mut token), equals_index.take()));
                }
            }
            char => {
                token.push(char);
                has_token = true;
            }
        }
    }
    if has_token {
        tokens.push((token, equals_index));
    }
    tokens
}

//! Filters of tasks, as a query of the service.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::{ExecutionState, Outcome};

use crate::cli::client::percent_encoding::percent_encode;
use crate::config::nearest_word;

/// Filters of tasks.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Filters {
    /// Tasks of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Tasks in this state: idle, starting, running, waiting, completed, failed, timeout, …
    #[arg(long, value_parser = parse_state)]
    pub state: Option<String>,
    /// Tasks with this outcome: completed, failed, timeout or cancelled.
    #[arg(long, value_parser = parse_outcome)]
    pub outcome: Option<String>,
    /// Tasks that failed with this code, such as agent-exit.
    #[arg(long, value_name = "CODE", value_parser = parse_failure_code)]
    pub failure: Option<String>,
    /// Tasks that failed with this category: transient, permanent, agent or system.
    #[arg(long, value_parser = parse_category)]
    pub class: Option<String>,
    /// Tasks of this owner.
    #[arg(long, value_name = "NAME")]
    pub caller: Option<String>,
    /// Tasks with this trigger: api, hop, probe or schedule.
    #[arg(long, value_parser = parse_trigger)]
    pub trigger: Option<String>,
    /// Tasks of this schedule.
    #[arg(long, value_name = "ID")]
    pub schedule: Option<String>,
    /// Tasks of this conversation.
    #[arg(long, value_name = "ID")]
    pub context: Option<String>,
    /// Tasks accepted at or after this time: RFC 3339, or an age such as 2h.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Tasks accepted before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Tasks that have not ended.
    #[arg(long)]
    pub unfinished: bool,
}

impl Filters {
    /// The query of a path, with further pairs.
    pub(crate) fn query(&self, extra_pairs: &[(&str, String)]) -> String {
        let filters = [
            ("agent", &self.agent),
            ("state", &self.state),
            ("outcome", &self.outcome),
            ("failure", &self.failure),
            ("class", &self.class),
            ("caller", &self.caller),
            ("trigger", &self.trigger),
            ("schedule", &self.schedule),
            ("context", &self.context),
            ("since", &self.since),
            ("until", &self.until),
        ];
        let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        let unfinished = self.unfinished.then(|| ("unfinished", "true".to_owned()));
        let pairs = filters.chain(unfinished).chain(extra_pairs.iter().cloned());
        let pairs: Vec<_> =
            pairs.map(|(name, value)| format!("{name}={}", percent_encode(&value))).collect();
        pairs.join("&")
    }
}

fn parse_state(text: &str) -> Result<String, String> {
    parse_keyword(text, &ExecutionState::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>())
}

fn parse_outcome(text: &str) -> Result<String, String> {
    parse_keyword(text, &Outcome::ALL.iter().map(|it| it.state().as_str()).collect::<Vec<_>>())
}

fn parse_failure_code(text: &str) -> Result<String, String> {
    parse_keyword(text, &Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>())
}

fn parse_category(text: &str) -> Result<String, String> {
    parse_keyword(text, &Category::ALL.iter().map(|category| category.as_str()).collect::<Vec<_>>())
}

fn parse_trigger(text: &str) -> Result<String, String> {
    parse_keyword(text, &["api", "hop", "probe", "schedule"])
}

/// Returns a word that is known, or says which one is near; all of them where there are few.
fn parse_keyword(text: &str, known_words: &[&str]) -> Result<String, String> {
    if known_words.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(match nearest_word(text, known_words) {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None if known_words.len() <= 12 => format!("known: {}", known_words.join(", ")),
        None => "`algonius explain` lists the codes".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_suggests_the_nearest() {
        assert_eq!(parse_outcome("completed"), Ok("completed".to_owned()));
        assert_eq!(parse_outcome("complete"), Err("did you mean `completed`?".to_owned()));
        assert_eq!(parse_failure_code("agent-exti"), Err("did you mean `agent-exit`?".to_owned()));
        assert_eq!(parse_trigger("x"), Err("known: api, hop, probe, schedule".to_owned()));
        assert!(
            parse_failure_code("nonsense")
                .is_err_and(|message| message.contains("algonius explain"))
        );
    }

    #[test]
    fn filter_values_are_encoded_in_the_query() {
        let filters =
            Filters { agent: Some("a b&c=é".to_owned()), unfinished: true, ..Filters::default() };
        let query = filters.query(&[("limit", "5".to_owned())]);
        assert_eq!(query, "agent=a%20b%26c%3D%C3%A9&unfinished=true&limit=5");
    }
}

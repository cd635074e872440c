//! Filters of tasks, as a query of the service.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::{Outcome, State};

use crate::cli::client::query::percent_encode;
use crate::config::nearest;

/// Filters of tasks.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Filters {
    /// Tasks of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Tasks in this state: idle, starting, running, waiting, completed, failed, timeout, …
    #[arg(long, value_parser = state)]
    pub state: Option<String>,
    /// Tasks with this outcome: completed, failed, timeout or cancelled.
    #[arg(long, value_parser = outcome)]
    pub outcome: Option<String>,
    /// Tasks that failed with this code, such as agent-exit.
    #[arg(long, value_name = "CODE", value_parser = failure)]
    pub failure: Option<String>,
    /// Tasks that failed with this category: transient, permanent, agent or system.
    #[arg(long, value_parser = class)]
    pub class: Option<String>,
    /// Tasks of this owner.
    #[arg(long, value_name = "NAME")]
    pub caller: Option<String>,
    /// Tasks with this trigger: api, probe or schedule.
    #[arg(long, value_parser = trigger)]
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
    pub(crate) fn query(&self, extra: &[(&str, String)]) -> String {
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
        let pairs = filters.chain(unfinished).chain(extra.iter().cloned());
        let pairs: Vec<_> =
            pairs.map(|(name, value)| format!("{name}={}", percent_encode(&value))).collect();
        pairs.join("&")
    }
}

fn state(text: &str) -> Result<String, String> {
    keyword(text, &State::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>())
}

fn outcome(text: &str) -> Result<String, String> {
    keyword(text, &Outcome::ALL.iter().map(|it| it.state().as_str()).collect::<Vec<_>>())
}

fn failure(text: &str) -> Result<String, String> {
    keyword(text, &Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>())
}

fn class(text: &str) -> Result<String, String> {
    keyword(text, &Category::ALL.iter().map(|class| class.as_str()).collect::<Vec<_>>())
}

fn trigger(text: &str) -> Result<String, String> {
    keyword(text, &["api", "probe", "schedule"])
}

/// Returns a word that is known, or says which one is near; all of them where there are few.
fn keyword(text: &str, known: &[&str]) -> Result<String, String> {
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(match nearest(text, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.len() <= 12 => format!("known: {}", known.join(", ")),
        None => "`algonius explain` lists the codes".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_suggests_the_nearest() {
        assert_eq!(outcome("completed"), Ok("completed".to_owned()));
        assert_eq!(outcome("complete"), Err("did you mean `completed`?".to_owned()));
        assert_eq!(failure("agent-exti"), Err("did you mean `agent-exit`?".to_owned()));
        assert_eq!(trigger("x"), Err("known: api, probe, schedule".to_owned()));
        assert!(failure("nonsense").is_err_and(|message| message.contains("algonius explain")));
    }

    #[test]
    fn filter_values_are_encoded_in_the_query() {
        let filters =
            Filters { agent: Some("a b&c=é".to_owned()), unfinished: true, ..Filters::default() };
        let query = filters.query(&[("limit", "5".to_owned())]);
        assert_eq!(query, "agent=a%20b%26c%3D%C3%A9&unfinished=true&limit=5");
    }
}

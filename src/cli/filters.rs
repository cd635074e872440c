//! Which tasks: the filters that can be typed, as a query of the service.

/// Which tasks.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Filters {
    /// Only those of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Only those in this state: idle, starting, running, waiting, completed, failed, timeout, …
    #[arg(long)]
    pub state: Option<String>,
    /// Only those that ended so: completed, failed, timeout or cancelled.
    #[arg(long)]
    pub outcome: Option<String>,
    /// Only those that did not work for this reason, such as agent-exit.
    #[arg(long, value_name = "CODE")]
    pub failure: Option<String>,
    /// Only those whose reason is of this class: transient, permanent, agent or system.
    #[arg(long)]
    pub class: Option<String>,
    /// Only those of the owner of this name.
    #[arg(long, value_name = "NAME")]
    pub caller: Option<String>,
    /// Only those that were made so: api, probe or schedule.
    #[arg(long)]
    pub trigger: Option<String>,
    /// Only those that this schedule made.
    #[arg(long, value_name = "ID")]
    pub schedule: Option<String>,
    /// Only those of this conversation.
    #[arg(long, value_name = "ID")]
    pub context: Option<String>,
    /// Only those accepted then or later: a time of RFC 3339, or how long ago, such as 2h.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only those accepted before.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only those that have not ended.
    #[arg(long)]
    pub unfinished: bool,
}

impl Filters {
    /// The query of a path, with further pairs.
    pub(super) fn query(&self, further: &[(&str, String)]) -> String {
        let given = [
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
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        let unfinished = self.unfinished.then(|| ("unfinished", "true".to_owned()));
        let pairs = given.chain(unfinished).chain(further.iter().cloned());
        let pairs: Vec<_> =
            pairs.map(|(name, value)| format!("{name}={}", escaped(&value))).collect();
        pairs.join("&")
    }
}

/// A value as it may stand in a query.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let each = value.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_a_query_whatever_is_in_it() {
        let filters =
            Filters { agent: Some("a b&c=é".to_owned()), unfinished: true, ..Filters::default() };
        let query = filters.query(&[("limit", "5".to_owned())]);
        assert_eq!(query, "agent=a%20b%26c%3D%C3%A9&unfinished=true&limit=5");
    }
}

//! Basis of the integration tests: a service, a client of it, gates for its agents, waits with deadlines.

pub(crate) mod authority;
pub(crate) mod client;
pub(crate) mod disk;
pub(crate) mod embedded_service;
pub(crate) mod fault_injection;
pub(crate) mod mock_model;
pub(crate) mod processes;
pub(crate) mod service;
mod startup;
pub(crate) mod steps;
pub(crate) mod wait;

pub(crate) use client::{ServiceClient, TestResponse, json_rpc_call, message, message_with_id};
pub(crate) use embedded_service::EmbeddedService;
pub(crate) use service::{Service, Setup};
pub(crate) use wait::{DEADLINE, poll_until, within_deadline};

/// An agent that writes `start WORD` into `HERE/log`, waits for the file `HERE/go-WORD` or
/// `HERE/go`, writes `end WORD`, and answers with its word.
pub(crate) const GATED: &str = r#"
command = "sh"
args = ["-c", '''
read word
echo "start $word" >> HERE/log
until [ -e HERE/go ] || [ -e "HERE/go-$word" ]; do sleep 0.05; done
echo "end $word" >> HERE/log
echo "$word"
''']
sandbox.writable = ['HERE']
"#;

/// A gated agent of this id with further settings.
pub(crate) fn gated_agent(id: &str, settings: &str) -> String {
    format!("[agents.{id}]\n{settings}\n{GATED}")
}

/// An agent that is the fake agent in this part, with further settings.
pub(crate) fn fake_agent(id: &str, behavior: &str, settings: &str) -> String {
    let words: Vec<_> = behavior.split(' ').map(|word| format!("'{word}'")).collect();
    format!("[agents.{id}]\ncommand = 'FAKE'\nargs = [{}]\n{settings}\n", words.join(", "))
}

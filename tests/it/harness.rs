//! Basis of the integration tests: a service, a client of it, gates for its agents, waits with deadlines.

pub(crate) mod certificate_authority;
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

pub(crate) use client::{
    ServiceClient, TestResponse, json_rpc_request_body, message_params, message_params_with_id,
};
pub(crate) use embedded_service::EmbeddedService;
pub(crate) use service::{ServiceProcess, Setup};
pub(crate) use wait::{WAIT_TIMEOUT, poll_until, within_deadline};

/// An agent that writes `start WORD` into `HERE/log`, waits for the file `HERE/go-WORD` or
/// `HERE/go`, writes `end WORD`, and answers with its word.
pub(crate) const GATED_PROGRAM_SETTINGS: &str = r#"
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
pub(crate) fn gated_agent_config(id: &str, settings: &str) -> String {
    format!("[agents.{id}]\n{settings}\n{GATED_PROGRAM_SETTINGS}")
}

/// An agent that is the fake agent in this part, with further settings.
pub(crate) fn fake_agent_config(id: &str, role_and_args: &str, settings: &str) -> String {
    let words: Vec<_> = role_and_args.split(' ').map(|word| format!("'{word}'")).collect();
    format!("[agents.{id}]\ncommand = 'FAKE'\nargs = [{}]\n{settings}\n", words.join(", "))
}

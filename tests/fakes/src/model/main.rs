//! Simulated model: it implements the APIs of Anthropic, `OpenAI` and Google, and answers as the prompt directs.
//! `scripted_answer` lists the directives.
//!
//! ```text
//! mock-model [--listen 127.0.0.1:4010] [--key KEY] [--names 127.0.0.1:53]
//! ```
//!
//! It prints `listening on ADDRESS` on standard output. With `--key` any other key is answered with 401. With `--names`
//! it is the name server too, and first prints `names on ADDRESS`: every name has an unreachable address, and `GET
//! /_mock/names` lists the lookups.

#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value reads as null where it has no such member"
)]

mod anthropic;
mod dialect;
mod directive;
mod gemini;
mod http;
mod model_request;
mod name_server;
mod openai_chat;
mod openai_responses;
mod refusal;
mod schema;
mod scripted_answer;
mod transmission;

use std::error::Error;
use std::io::{Write as _, stdout};
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, UdpSocket};

use http::ModelServer;

/// Options of the command line.
struct CommandLineOptions {
    listen_address: SocketAddr,
    key: Option<String>,
    name_server_address: Option<SocketAddr>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = parse_options(std::env::args().skip(1))?;
    let server = Arc::new(ModelServer::new(options.key));
    if let Some(address) = options.name_server_address {
        let socket = UdpSocket::bind(address).await?;
        writeln!(stdout(), "names on {}", socket.local_addr()?)?;
        tokio::spawn(name_server::serve(socket, Arc::clone(&server)));
    }
    let listener = TcpListener::bind(options.listen_address).await?;
    writeln!(stdout(), "listening on {}", listener.local_addr()?)?;
    axum::serve(listener, http::routes(server)).await?;
    Ok(())
}

fn parse_options(
    mut arguments: impl Iterator<Item = String>,
) -> Result<CommandLineOptions, Box<dyn Error>> {
    let mut options = CommandLineOptions {
        listen_address: SocketAddr::from(([127, 0, 0, 1], 4010)),
        key: None,
        name_server_address: None,
    };
    while let Some(word) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{word}` needs a value"))?;
        match word.as_str() {
            "--listen" => options.listen_address = value.parse()?,
            "--key" => options.key = Some(value),
            "--names" => options.name_server_address = Some(value.parse()?),
            _ => {
                return Err(
                    format!("no option `{word}`; there are --listen, --key, --names").into()
                );
            }
        }
    }
    Ok(options)
}

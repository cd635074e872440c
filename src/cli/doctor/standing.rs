//! Whether the address is free, ours already, or somebody else's.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Finding;
use crate::config::Server;

/// How long whoever listens may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks where the service is to listen.
pub(super) async fn door(server: &Server) -> Finding {
    let address = server.listen;
    let about = "address";
    let other = "name another by `server.listen`, or by --listen";
    match TcpListener::bind(address).map_err(|error| (error.kind(), error)) {
        Ok(_) => Finding::good(about, format!("{address} is free")),
        Err((io::ErrorKind::AddrInUse, _)) if is_ours(address).await => {
            Finding::good(about, format!("{address} is where a service answers now"))
        }
        Err((io::ErrorKind::AddrInUse, _)) if server.tls.is_some() => Finding::warning(
            about,
            format!("{address} is taken, by this service or by another program"),
            format!("`algonius status --url https://{address}` tells; or {other}"),
        ),
        Err((io::ErrorKind::AddrInUse, _)) => {
            Finding::bad(about, format!("{address} is taken by another program"), other)
        }
        Err((_, error)) => Finding::bad(about, format!("{address} cannot be had: {error}"), other),
    }
}

/// Whether a service of ours answers there in the clear.
async fn is_ours(address: SocketAddr) -> bool {
    timeout(PATIENCE, health(address))
        .await
        .is_ok_and(|told| told.is_ok_and(|told| told.contains("\r\n\r\n{\"status\":\"ok\"}")))
}

async fn health(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut told = Vec::new();
    stream.take(4096).read_to_end(&mut told).await?;
    Ok(String::from_utf8_lossy(&told).into_owned())
}

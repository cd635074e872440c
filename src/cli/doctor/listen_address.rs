//! Check of the listening address: free, in use by this service, or in use by another program.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::finding::Finding;
use crate::config::ServerSettings;

/// Maximum time for the response of a listening program.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks the listening address.
pub(super) async fn check(server: &ServerSettings) -> Finding {
    let address = server.listen_address;
    let subject = "address";
    let fix = "name another by `server.listen`, or by --listen";
    match TcpListener::bind(address).map_err(|error| (error.kind(), error)) {
        Ok(_) => Finding::good(subject, format!("{address} is free")),
        Err((io::ErrorKind::AddrInUse, _)) if is_algonius(address).await => {
            Finding::good(subject, format!("{address} is where a service answers now"))
        }
        Err((io::ErrorKind::AddrInUse, _)) if server.tls.is_some() => Finding::warning(
            subject,
            format!("{address} is taken, by this service or by another program"),
            format!("`algonius status --url https://{address}` shows which; or {fix}"),
        ),
        Err((io::ErrorKind::AddrInUse, _)) => {
            Finding::bad(subject, format!("{address} is taken by another program"), fix)
        }
        Err((_, error)) => Finding::bad(subject, format!("{address} cannot be had: {error}"), fix),
    }
}

/// True if a service of this kind responds there over plain HTTP.
async fn is_algonius(address: SocketAddr) -> bool {
    timeout(HEALTH_TIMEOUT, request_health(address)).await.is_ok_and(|response| {
        response.is_ok_and(|response| response.contains("\r\n\r\n{\"status\":\"ok\"}"))
    })
}

async fn request_health(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    stream.take(4096).read_to_end(&mut response).await?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

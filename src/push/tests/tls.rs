//! Tests with receivers that use TLS: trusted and untrusted certificates.
//!
//! The authority of these files signs no other certificate, and its private key was deleted.

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::*;
use crate::push::webhook_client::{WebhookClient, WebhookError, WebhookRequest};

/// Accepts one notification over TLS. Its certificate is valid for 127.0.0.1 and localhost.
async fn serve_tls() -> (u16, JoinHandle<Option<ReceivedRequest>>) {
    let certificate = CertificateDer::from(&include_bytes!("tls/receiver.der")[..]);
    let key = PrivatePkcs8KeyDer::from(&include_bytes!("tls/receiver.key.der")[..]);
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key))
        .unwrap();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server_handle = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.ok()?;
        let request = read_request(&mut stream).await?;
        stream.write_all(b"HTTP/1.1 204 Fine\r\n\r\n").await.unwrap();
        Some(request)
    });
    (port, server_handle)
}

fn root_store() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(&include_bytes!("tls/authority.der")[..])).unwrap();
    roots
}

/// Sends a notification to `host`; returns the result, and true if the receiver got it.
async fn send_notification(
    host: &str,
    roots: Option<RootCertStore>,
) -> (Result<(), WebhookError>, bool) {
    let (port, server_handle) = serve_tls().await;
    let policy = DeliveryPolicy { timeout: Duration::from_secs(10), ..policy() };
    let webhook_client = match roots {
        Some(roots) => WebhookClient::with_roots(policy, roots),
        None => WebhookClient::new(policy),
    };
    let url = format!("https://{host}:{port}/hook");
    let target = target(ExecutionId::generate(), ProtocolVersion::V1_0, &url);
    let result = webhook_client
        .unwrap()
        .send(&WebhookRequest::for_notification(&target, b"{}".to_vec(), None))
        .await;
    (result, server_handle.await.unwrap().is_some())
}

#[tokio::test]
async fn a_trusted_certificate_is_accepted_by_address_and_name() {
    for host in ["127.0.0.1", "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]"] {
        let (result, was_received) = send_notification(host, Some(root_store())).await;
        result.unwrap_or_else(|error| panic!("{host}: {}", error_chain_text(&error)));
        assert!(was_received, "{host}");
    }
}

#[tokio::test]
async fn an_untrusted_receiver_gets_no_push() {
    for (host, roots) in [("127.0.0.1", None), ("127.0.0.2", Some(root_store()))] {
        let (result, was_received) = send_notification(host, roots).await;
        assert!(
            matches!(result, Err(WebhookError::Connect(_))) && !was_received,
            "{host}: {result:?}"
        );
    }
}

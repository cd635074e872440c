//! Connector to the service: plain or over TLS, with the reasons of a failed connection.

use std::path::Path;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as HttpError};
use hyper_util::rt::TokioExecutor;
use tokio_rustls::rustls::{self, CertificateError, InvalidMessage};

use crate::cli::error::CliError;
use crate::platform::http_client::find_cause;
use crate::platform::tls;

/// HTTP client of the command line.
pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Creates a client that trusts only the authorities of a file, or the built-in root certificates without a file.
pub(crate) fn new_client(ca_file: Option<&Path>) -> Result<HttpClient, CliError> {
    let config = tls::client_config(ca_file).map_err(CliError::InvalidCertificateAuthorities)?;
    let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    Ok(Client::builder(TokioExecutor::new()).build(connector.enable_http1().build()))
}

/// Converts the error of a failed connection.
pub(crate) fn connection_error(url: &str, error: HttpError) -> CliError {
    let url = url.to_owned();
    if let Some(tls_error) = find_cause::<rustls::Error>(&error) {
        return CliError::InsecureConnection { url, reason: describe_tls_error(tls_error) };
    }
    let is_not_http = find_cause::<hyper::Error>(&error).is_some_and(hyper::Error::is_parse);
    if is_not_http && url.starts_with("http://") {
        let reason = "what answers there does not speak HTTP; if it speaks TLS, write `https://`";
        return CliError::InsecureConnection { url, reason: reason.to_owned() };
    }
    CliError::Unreachable { url, source: error }
}

/// Describes a TLS error with a hint.
fn describe_tls_error(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(certificate_error) = error else {
        let is_not_tls = matches!(
            error,
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)
                | rustls::Error::PeerMisbehaved(_)
        );
        return match is_not_tls {
            true => "what answers there does not speak TLS; try `http://`".to_owned(),
            false => error.to_string(),
        };
    };
    match certificate_error {
        CertificateError::UnknownIssuer => "its certificate is of an authority that is not \
            trusted; name the authority's file by --ca"
            .to_owned(),
        // Authorities with the same name and different keys.
        CertificateError::BadSignature => {
            "its certificate was not signed by the authority of that name that is trusted"
                .to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for other names".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("its certificate is for other names ({})", presented.join(", "))
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; is this machine's clock right?".to_owned()
        }
        _ if certificate_error.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an \
            authority, which may not serve; make one with `basicConstraints = CA:FALSE`"
                .to_owned()
        }
        _ => format!("its certificate is not accepted: {certificate_error}"),
    }
}

//! Alert webhook, under the same policy as push notifications.

use std::fmt::Write as _;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::push::Secret;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::push::{DeliveryPolicy, WebhookClient, WebhookError, WebhookRequest, check_url};

/// Header with the signature, by which the receiver authenticates the service.
const SIGNATURE_HEADER: &str = "x-algonius-signature";

/// Time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Webhook that receives alerts.
pub(super) struct Webhook {
    url: Secret,
    signing_secret: Option<Secret>,
    client: WebhookClient,
}

impl Webhook {
    /// Returns the webhook of a permitted URL.
    ///
    /// # Errors
    /// Fails if the URL is not permitted.
    pub(super) fn new(
        url: Secret,
        signing_secret: Option<Secret>,
        policy: DeliveryPolicy,
    ) -> Result<Self, Failure> {
        check_url(&url.0, &policy)?;
        let webhook_client =
            WebhookClient::new(DeliveryPolicy { timeout: ATTEMPT_TIMEOUT, ..policy });
        let webhook_client = webhook_client.map_err(|error| {
            tracing::error!(%error, "TLS could not be set up");
            Failure::new(Code::Internal, "TLS could not be set up")
        })?;
        Ok(Self { url, signing_secret, client: webhook_client })
    }

    /// Sends the body once.
    pub(super) async fn send(&self, body: &[u8]) -> Result<(), WebhookError> {
        let signature = self.signing_secret.as_ref().and_then(|secret| signature(secret, body));
        let headers = signature.map(|text| (SIGNATURE_HEADER.to_owned(), Secret(text)));
        let webhook_request = WebhookRequest {
            url: self.url.clone(),
            media_type: "application/json",
            headers: headers.into_iter().collect(),
            body: body.to_vec().into(),
        };
        self.client.send(&webhook_request).await
    }
}

/// Returns `sha256=` and the HMAC of the body in hexadecimal digits.
fn signature(secret: &Secret, body: &[u8]) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.0.as_bytes()).ok()?;
    mac.update(body);
    let mut text = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        _ = write!(text, "{byte:02x}"); // Writing to memory does not fail.
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test with case 2 of RFC 4231.
    #[test]
    fn a_webhook_body_is_signed_by_the_standard() {
        let signed = signature(&Secret("Jefe".to_owned()), b"what do ya want for nothing?");
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signed.as_deref(), Some(expected));
    }
}

//! Name server for a namespace without a route: every name has an unreachable address, so each connection attempt shows
//! twice, here and in the kernel, which finds no route.

use std::sync::Arc;

use tokio::net::UdpSocket;

use crate::http::ModelServer;

/// Address in 192.0.2.0/24, which is reserved for documentation.
const UNREACHABLE_ADDRESS: [u8; 4] = [192, 0, 2, 1];
const DNS_HEADER_BYTES: usize = 12;
const A_RECORD_TYPE: [u8; 2] = [0, 1];

/// Answers queries until the process ends.
pub(crate) async fn serve(socket: UdpSocket, server: Arc<ModelServer>) {
    let mut buffer = [0; 1500];
    // A datagram that cannot be read or answered is ignored.
    loop {
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else { continue };
        let query = buffer.get(..length).unwrap_or_default();
        if let Some((name, answer)) = queried_name_and_answer(query) {
            server.record_name_lookup(name).await;
            _ = socket.send_to(&answer, client).await;
        }
    }
}

/// Returns the name in a query, and its answer.
fn queried_name_and_answer(query: &[u8]) -> Option<(String, Vec<u8>)> {
    let (name, name_end) = parse_name_and_end(query)?;
    let question = query.get(DNS_HEADER_BYTES..name_end + 4)?;
    let is_address_query = query.get(name_end..name_end + 2)? == A_RECORD_TYPE;
    let mut answer = query.get(..2)?.to_vec();
    // A response without error, with recursion; one question, one answer or none.
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_address_query), 0, 0, 0, 0]);
    answer.extend(question);
    if is_address_query {
        // The name of the question, an internet address, a time to live of zero, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(UNREACHABLE_ADDRESS);
    }
    Some((name, answer))
}

/// Returns the name in the question, and its end.
fn parse_name_and_end(query: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut position) = (Vec::new(), DNS_HEADER_BYTES);
    loop {
        let length = usize::from(*query.get(position)?);
        position += 1;
        if length == 0 {
            return Some((labels.join("."), position));
        }
        labels
            .push(String::from_utf8_lossy(query.get(position..position + length)?).to_lowercase());
        position += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &[u8] =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03Api\x04test\x00\x00\x01\x00\x01";

    #[test]
    fn a_name_resolves_to_an_unreachable_address() {
        let (name, answer) = queried_name_and_answer(QUERY).unwrap_or_default();
        assert_eq!(name, "api.test");
        assert!(answer.starts_with(b"\x12\x34\x81\x80\x00\x01\x00\x01"), "{answer:?}");
        assert!(answer.ends_with(&UNREACHABLE_ADDRESS), "{answer:?}");
    }

    #[test]
    fn an_incomplete_query_is_ignored() {
        for end in 0..QUERY.len() {
            assert_eq!(queried_name_and_answer(QUERY.get(..end).unwrap_or_default()), None);
        }
    }
}

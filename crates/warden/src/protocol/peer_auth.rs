//! Key for mutual authentication of the service and its process holders.
//!
//! The key is in a file of the runtime directory that only the service's user may read, and in the memory of each
//! process holder. An agent of the same user cannot read it at any isolation level above `none`. Ancestors alone do not
//! identify a process: a process that outlives a killed process holder becomes a child of the service or of init.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hmac::{Hmac, Mac};
use nix::unistd::geteuid;
use sha2::Sha256;
use tokio::io::Interest;
use uuid::Uuid;

use super::frame::{HolderEvent, HolderOrder, SecretValue};
use super::packet::{receive_packet, register_fd, send_packet};

/// Length of a key, and of a nonce, in bytes.
const KEY_BYTES: usize = 32;

/// Key of one data directory.
#[derive(Debug, Clone)]
pub(crate) struct HolderKey(SecretValue);

/// Side that proves the key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeerSide {
    Service,
    Holder,
}

/// Nonces of the service and of the process holder.
pub(crate) type Nonces = [Vec<u8>; 2];

impl HolderKey {
    /// Reads the key of a data directory, or creates one. A mode that an agent has changed does not stop the service:
    /// the folder is closed to other users, and the mode of the file is corrected.
    ///
    /// # Errors
    /// Fails if the file can be neither read nor written.
    pub(crate) fn read_or_create(runtime_dir: &Path, data_dir_id: Uuid) -> io::Result<Self> {
        let file = key_file(runtime_dir, data_dir_id);
        if let Some(key) = repair_and_read_key_file(&file)? {
            return Ok(key);
        }
        let key = Self(SecretValue(random_bytes()));
        key.write(&file)?;
        Ok(key)
    }

    /// Returns true if a runtime directory has a file for the key.
    pub(crate) fn exists(runtime_dir: &Path, data_dir_id: Uuid) -> bool {
        key_file(runtime_dir, data_dir_id).symlink_metadata().is_ok()
    }

    /// Writes the key into a runtime directory that was created again.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) fn restore(&self, runtime_dir: &Path, data_dir_id: Uuid) -> io::Result<()> {
        self.write(&key_file(runtime_dir, data_dir_id))
    }

    /// Writes the key atomically.
    fn write(&self, file: &Path) -> io::Result<()> {
        let temporary_file = file.with_added_extension(std::process::id().to_string());
        match fs::remove_file(&temporary_file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut writer =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary_file)?;
        writer.write_all(&self.0.0)?;
        fs::rename(&temporary_file, file)
    }

    /// Returns the key of these bytes; `None` if they have another length.
    pub(crate) fn from_secret(secret: SecretValue) -> Option<Self> {
        (secret.0.len() == KEY_BYTES).then_some(Self(secret))
    }

    /// Returns the bytes of the key, for a process holder that this process has started.
    pub(crate) fn secret(&self) -> SecretValue {
        self.0.clone()
    }

    /// Returns the proof of a side for one connection.
    pub(crate) fn compute_proof(&self, side: PeerSide, nonces: &Nonces) -> Vec<u8> {
        self.mac(side, nonces).map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default()
    }

    /// Returns true if a proof is that of a side. Takes the same time for every wrong proof.
    pub(crate) fn is_valid_proof(&self, side: PeerSide, nonces: &Nonces, proof: &[u8]) -> bool {
        self.mac(side, nonces).is_some_and(|mac| mac.verify_slice(proof).is_ok())
    }

    fn mac(&self, side: PeerSide, nonces: &Nonces) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0.0).ok()?;
        mac.update(match side {
            PeerSide::Service => b"service",
            PeerSide::Holder => b"process holder",
        });
        for nonce in nonces {
            // A fixed length, so that no other two nonces have the same bytes.
            mac.update(nonce.get(..KEY_BYTES).filter(|_| nonce.len() == KEY_BYTES)?);
        }
        Some(mac)
    }

    /// Proves the key to the process holder at the other end of a socket, which proves it first.
    ///
    /// # Errors
    /// `PermissionDenied` if the other side does not know the key; otherwise an error of the socket.
    pub(crate) async fn authenticate(&self, socket: OwnedFd) -> io::Result<OwnedFd> {
        let socket = Arc::new(socket);
        let async_socket = register_fd(Arc::clone(&socket), Interest::READABLE)?;
        let own_nonce = random_bytes();
        send_packet(
            &socket,
            &HolderOrder::Challenge { supervisor_nonce: own_nonce.clone() }.encode(),
            &[],
        )?;
        let packet = async_socket.async_io(Interest::READABLE, receive_packet).await?;
        let packet = packet.ok_or(io::ErrorKind::ConnectionAborted)?;
        let Some(HolderEvent::ChallengeResponse { holder_nonce: nonce, proof }) =
            HolderEvent::decode(&packet.frame)
        else {
            return Err(io::ErrorKind::PermissionDenied.into());
        };
        let nonces = [own_nonce, nonce];
        if !self.is_valid_proof(PeerSide::Holder, &nonces, &proof) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let proof = self.compute_proof(PeerSide::Service, &nonces);
        send_packet(&socket, &HolderOrder::Authenticate { proof }.encode(), &[])?;
        drop(async_socket);
        Arc::into_inner(socket).ok_or_else(|| io::Error::other("the socket is in use"))
    }
}

/// Connection whose other side has not proved the key yet.
pub(crate) struct UnauthenticatedConnection {
    socket: OwnedFd,
    nonces: Option<Nonces>,
}

/// Progress of an [`UnauthenticatedConnection`].
pub(crate) enum AuthProgress {
    /// The peer has sent nothing more.
    Pending,
    /// The peer knows the key.
    Authenticated,
    /// The peer does not know the key, or is gone.
    Rejected,
}

impl UnauthenticatedConnection {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, nonces: None }
    }

    pub(crate) fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Reads what the peer has sent, without waiting.
    pub(crate) fn advance_authentication(&mut self, key: &HolderKey) -> AuthProgress {
        loop {
            let order = match receive_packet(&self.socket) {
                Ok(Some(packet)) => HolderOrder::decode(&packet.frame),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return AuthProgress::Pending;
                }
                Ok(None) | Err(_) => return AuthProgress::Rejected,
            };
            match (order, self.nonces.take()) {
                (Some(HolderOrder::Challenge { supervisor_nonce: service_nonce }), None) => {
                    let nonces = [service_nonce, random_bytes()];
                    let proof = key.compute_proof(PeerSide::Holder, &nonces);
                    let response =
                        HolderEvent::ChallengeResponse { holder_nonce: nonces[1].clone(), proof };
                    if send_packet(&self.socket, &response.encode(), &[]).is_err() {
                        return AuthProgress::Rejected;
                    }
                    self.nonces = Some(nonces);
                }
                (Some(HolderOrder::Authenticate { proof }), Some(nonces))
                    if key.is_valid_proof(PeerSide::Service, &nonces, &proof) =>
                {
                    return AuthProgress::Authenticated;
                }
                _ => return AuthProgress::Rejected,
            }
        }
    }
}

impl AsFd for UnauthenticatedConnection {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn key_file(runtime_dir: &Path, data_dir_id: Uuid) -> PathBuf {
    runtime_dir.join(format!("wardens-{}.key", data_dir_id.simple()))
}

fn random_bytes() -> Vec<u8> {
    [Uuid::new_v4(), Uuid::new_v4()].iter().flat_map(|id| *id.as_bytes()).collect()
}

fn repair_and_read_key_file(file: &Path) -> io::Result<Option<HolderKey>> {
    let metadata = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
        tracing::error!(file = %file.display(), "key file belongs to another user; replacing it");
        fs::remove_file(file)?;
        return Ok(None);
    }
    if metadata.mode() & 0o777 != 0o600 {
        let mode = format!("{:o}", metadata.mode() & 0o777);
        tracing::error!(file = %file.display(), mode, "key file had unexpected permissions; correcting them");
        fs::set_permissions(file, Permissions::from_mode(0o600))?;
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(HolderKey::from_secret(SecretValue(bytes)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt;

    use uuid::Uuid;

    use super::{AuthProgress, HolderKey, PeerSide, UnauthenticatedConnection, random_bytes};
    use crate::protocol::frame::{HolderEvent, HolderOrder};
    use crate::protocol::packet::{receive_packet, send_packet, socket_pair};

    fn create_key() -> (tempfile::TempDir, HolderKey) {
        let folder = tempfile::tempdir().unwrap();
        let key = HolderKey::read_or_create(folder.path(), Uuid::nil()).unwrap();
        (folder, key)
    }

    #[test]
    fn the_key_is_kept_and_its_mode_repaired() {
        let (folder, key) = create_key();
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        for mode in [0o000, 0o644] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let reopened = HolderKey::read_or_create(folder.path(), Uuid::nil()).unwrap();
            assert_eq!(reopened.secret(), key.secret());
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&file, "torn").unwrap();
        assert_ne!(
            HolderKey::read_or_create(folder.path(), Uuid::nil()).unwrap().secret(),
            key.secret()
        );
    }

    #[test]
    fn a_proof_is_valid_for_one_side_and_one_connection() {
        let ((_one, key), (_other, wrong)) = (create_key(), create_key());
        let nonces = [random_bytes(), random_bytes()];
        let proof = key.compute_proof(PeerSide::Service, &nonces);
        assert!(key.is_valid_proof(PeerSide::Service, &nonces, &proof));
        assert!(!key.is_valid_proof(PeerSide::Holder, &nonces, &proof));
        assert!(!key.is_valid_proof(
            PeerSide::Service,
            &[nonces[0].clone(), random_bytes()],
            &proof
        ));
        assert!(!wrong.is_valid_proof(PeerSide::Service, &nonces, &proof));
        // A nonce of another length proves nothing, not even with an empty proof.
        let short = [Vec::new(), random_bytes()];
        assert!(!key.is_valid_proof(
            PeerSide::Service,
            &short,
            &key.compute_proof(PeerSide::Service, &short)
        ));
    }

    async fn authenticates_peer(connection: OwnedFd, key: &HolderKey) -> bool {
        let mut connection = UnauthenticatedConnection::new(connection);
        loop {
            match connection.advance_authentication(key) {
                AuthProgress::Pending => tokio::task::yield_now().await,
                step => return matches!(step, AuthProgress::Authenticated),
            }
        }
    }

    #[tokio::test]
    async fn both_sides_prove_the_key() {
        let ((_one, right), (_other, wrong)) = (create_key(), create_key());
        for (service_key, holder_key, expected) in
            [(&right, &right, true), (&right, &wrong, false), (&wrong, &right, false)]
        {
            let (service, holder) = socket_pair().unwrap();
            let (accepted, is_peer_authenticated) = tokio::join!(
                service_key.authenticate(service),
                authenticates_peer(holder, holder_key)
            );
            let accepted = accepted.is_ok();
            assert_eq!((accepted, is_peer_authenticated), (expected, expected));
        }
    }

    #[test]
    fn an_unauthenticated_client_receives_a_proof_only() {
        let (_folder, key) = create_key();
        for orders in [
            vec![HolderOrder::List],
            vec![HolderOrder::Challenge { supervisor_nonce: random_bytes() }, HolderOrder::List],
        ] {
            let (service, holder) = socket_pair().unwrap();
            for order in &orders {
                send_packet(&service, &order.encode(), &[]).unwrap();
            }
            assert!(matches!(
                UnauthenticatedConnection::new(holder).advance_authentication(&key),
                AuthProgress::Rejected
            ));
            let events = std::iter::from_fn(|| receive_packet(&service).unwrap());
            let events: Vec<_> =
                events.filter_map(|packet| HolderEvent::decode(&packet.frame)).collect();
            assert!(
                events.iter().all(|event| matches!(event, HolderEvent::ChallengeResponse { .. })),
                "{events:?}"
            );
            assert_eq!(events.len(), orders.len() - 1);
        }
    }
}

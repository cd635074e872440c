//! Certificate authority of a test, and its certificates.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};

/// Authority with a key of its own, which no program trusts by default.
pub(crate) struct CertificateAuthority(CertifiedIssuer<'static, KeyPair>);

/// Certificate and its key in PEM form.
pub(crate) struct IssuedCertificate {
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
    /// Certificate in DER form.
    pub(crate) cert_der: Vec<u8>,
}

impl CertificateAuthority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the story's authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Returns the certificate of the authority in PEM form.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes the certificate of the authority into a folder; returns its path.
    pub(crate) fn write_certificate(&self, folder: &Path) -> PathBuf {
        let file = folder.join("ca.pem");
        fs::write(&file, self.pem()).unwrap();
        file
    }

    /// Issues a certificate for these names, with a new key.
    pub(crate) fn issue(&self, names: &[&str]) -> IssuedCertificate {
        self.sign(certificate_params(names))
    }

    /// Issues an expired certificate for these names.
    pub(crate) fn issue_expired(&self, names: &[&str]) -> IssuedCertificate {
        let mut params = certificate_params(names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> IssuedCertificate {
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        IssuedCertificate {
            cert_pem: cert.pem(),
            key_pem: key.serialize_pem(),
            cert_der: cert.der().to_vec(),
        }
    }
}

fn certificate_params(names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).unwrap()
}

impl IssuedCertificate {
    /// Writes the pair to `cert.pem` and `key.pem` of a folder, the certificate first.
    pub(crate) fn write_files(&self, folder: &Path) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(folder.join("cert.pem"), &self.cert_pem).unwrap();
        let key_file = folder.join("key.pem");
        fs::write(&key_file, &self.key_pem).unwrap();
        fs::set_permissions(key_file, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

//! A certificate with its key, as PEM files hold them.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};

use super::TlsError;

pub(super) struct Pair {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: Option<PrivateKeyDer<'static>>,
}

impl Pair {
    /// Reads PEM text; `path` is named in errors.
    ///
    /// # Errors
    /// [`TlsError::Unusable`] where a certificate or key cannot be read.
    pub fn parse(path: &Path, text: &str) -> Result<Self, TlsError> {
        let unusable = |error: pem::Error| TlsError::Unusable { path: path.into(), what: error.to_string() };
        let chain = CertificateDer::pem_slice_iter(text.as_bytes());
        let chain = chain.collect::<Result<_, _>>().map_err(unusable)?;
        let key = match PrivateKeyDer::from_pem_slice(text.as_bytes()) {
            Ok(key) => Some(key),
            Err(pem::Error::NoItemsFound) => None,
            Err(error) => return Err(unusable(error)),
        };
        Ok(Self { chain, key })
    }

    /// Serves with this certificate, by HTTP/2 before HTTP/1.1.
    ///
    /// # Errors
    /// [`TlsError::Unusable`] where there is no key, or it is not the certificate's.
    pub fn server_config(&self, path: &Path) -> Result<Arc<ServerConfig>, TlsError> {
        let unusable = |what: String| TlsError::Unusable { path: path.into(), what };
        let key = self.key.as_ref().ok_or_else(|| unusable("there is no private key".into()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), key.clone_key())
            .map_err(|error| unusable(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

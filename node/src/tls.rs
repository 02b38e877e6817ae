//! TLS for the HTTP ports: a certificate authority of the node's own, and a certificate for every name it has.
//!
//! At first start an authority (10 years, ECDSA P-256) is made; its certificate is `tls/ca.pem`, which clients
//! trust by `--cacert`. It issues the server's certificate, and a new one whenever the node's names change or
//! the old one nears its end. Key and certificate share one file, so that no crash can leave a pair that does
//! not belong together.

use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::files;

const DAY: Duration = Duration::from_secs(24 * 3600);
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 3600);
/// What browsers accept of a server's certificate.
const SERVER_LIFETIME: Duration = Duration::from_secs(397 * 24 * 3600);
/// A certificate with less than this left is replaced at start.
const SERVER_RENEW_BEFORE: Duration = Duration::from_secs(60 * 24 * 3600);

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{path} cannot be read or written; check that this user owns it", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} holds no usable certificate and key: {what}", path = .path.display())]
    Unusable { path: PathBuf, what: String },
    #[error("`{0}` cannot be part of a certificate; remove it from gateway.hosts")]
    Name(String),
    #[error("{folder} has no authority yet; `farthing init` or the first `farthing run` makes it", folder = .folder.display())]
    Missing { folder: PathBuf },
    #[error("no certificate could be made: {0}")]
    Made(String),
}

/// What a port needs to speak TLS.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub config: Arc<ServerConfig>,
    /// What clients trust; `None` for a certificate from elsewhere.
    pub ca_file: Option<PathBuf>,
    /// SHA-256 of the authority's certificate, for comparing by eye.
    pub ca_fingerprint: Option<String>,
    /// The name below `localhost` that this node alone has; `None` for a certificate from elsewhere.
    pub own_name: Option<String>,
}

/// Makes `ring` the cryptography of every TLS connection of this process. Repeating it is harmless.
pub fn install_provider() {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// TLS with the node's own authority in `data_dir`, for this machine's names and `names`.
///
/// # Errors
/// [`TlsError`]; an existing authority is never replaced, because clients trust it.
pub fn own(data_dir: &Path, names: &[String]) -> Result<ServerTls, TlsError> {
    let folder = data_dir.join("tls");
    fs::create_dir_all(&folder).map_err(|source| TlsError::Io { path: folder.clone(), source })?;
    let authority = Authority::load_or_create(&folder)?;
    let own_name = own_name(&folder)?;
    let mut all = own_names();
    all.insert(own_name.clone());
    all.extend(names.iter().map(|name| name.to_ascii_lowercase()));
    let pair = server_pair(&folder, &authority, &all)?;
    Ok(ServerTls {
        config: pair.server_config(&folder.join(SERVER_FILE))?,
        ca_file: Some(folder.join(CA_FILE)),
        ca_fingerprint: fingerprint(&authority.certificate),
        own_name: Some(own_name),
    })
}

/// TLS with a certificate from elsewhere.
///
/// # Errors
/// [`TlsError`] when the files are missing or do not belong together.
pub fn from_files(cert_file: &Path, key_file: &Path) -> Result<ServerTls, TlsError> {
    let chain = Pair::parse(cert_file, &read(cert_file)?)?.chain;
    let key = Pair::parse(key_file, &read(key_file)?)?.key;
    let config = Pair { chain, key }.server_config(cert_file)?;
    Ok(ServerTls { config, ca_file: None, ca_fingerprint: None, own_name: None })
}

/// A certificate that is on disk, to compare and to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// The public part, for handing out.
    pub file: PathBuf,
    /// SHA-256, as browsers show it.
    pub fingerprint: String,
}

/// The node's own authority in `data_dir`, as it was made. Nothing is made or written.
///
/// # Errors
/// [`TlsError::Missing`] before the first start.
pub fn authority(data_dir: &Path) -> Result<OnDisk, TlsError> {
    let folder = data_dir.join("tls");
    if !folder.join(AUTHORITY_FILE).exists() {
        return Err(TlsError::Missing { folder });
    }
    Ok(OnDisk { file: folder.join(CA_FILE), ..certificate(&folder.join(AUTHORITY_FILE))? })
}

/// The first certificate of a file.
///
/// # Errors
/// [`TlsError`] when there is none.
pub fn certificate(file: &Path) -> Result<OnDisk, TlsError> {
    let unusable = || TlsError::Unusable { path: file.into(), what: "no certificate".into() };
    let chain = Pair::parse(file, &read(file)?)?.chain;
    let fingerprint = chain.first().and_then(fingerprint).ok_or_else(unusable)?;
    Ok(OnDisk { file: file.into(), fingerprint })
}

const AUTHORITY_FILE: &str = "authority.pem";
const CA_FILE: &str = "ca.pem";
const SERVER_FILE: &str = "server.pem";
const NAME_FILE: &str = "own-name";

/// The name below `localhost` that this node alone has, made once: browsers keep what they store by name.
fn own_name(folder: &Path) -> Result<String, TlsError> {
    let path = folder.join(NAME_FILE);
    let io = |source| TlsError::Io { path: path.clone(), source };
    if !path.exists() {
        let name = format!("{}.localhost", uuid::Uuid::new_v4().simple());
        files::create_private(&path, name.as_bytes()).map_err(io)?;
    }
    let name = fs::read_to_string(&path).map_err(io)?;
    let label = name.trim().strip_suffix(".localhost").unwrap_or_default();
    if label.len() == 32 && label.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(name.trim().to_owned());
    }
    let what = "it is no name of this program's; remove it, and another is made".to_owned();
    Err(TlsError::Unusable { path, what })
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Authority {
    fn load_or_create(folder: &Path) -> Result<Self, TlsError> {
        let path = folder.join(AUTHORITY_FILE);
        if !path.exists() {
            let pem = make_authority().map_err(|error| TlsError::Made(error.to_string()))?;
            files::create_private(&path, pem.as_bytes())
                .map_err(|source| TlsError::Io { path: path.clone(), source })?;
        }
        let text = read(&path)?;
        let unusable = |what: String| TlsError::Unusable { path: path.clone(), what };
        let Pair { chain, key } = Pair::parse(&path, &text)?;
        let certificate = chain.into_iter().next().ok_or_else(|| unusable("no certificate".into()))?;
        let key = key.ok_or_else(|| unusable("no key".into()))?;
        let key = KeyPair::try_from(&key).map_err(|error| unusable(error.to_string()))?;
        let issuer =
            Issuer::from_ca_cert_der(&certificate, key).map_err(|error| unusable(error.to_string()))?;
        publish(&folder.join(CA_FILE), &certificate_part(&text))?;
        Ok(Self { issuer, certificate })
    }
}

fn make_authority() -> Result<Zeroizing<String>, rcgen::Error> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    // Two nodes' authorities in one trust store must be told apart.
    let number = uuid::Uuid::new_v4().simple().to_string();
    params.distinguished_name.push(DnType::CommonName, format!("Farthing node {}", &number[..8]));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid_for(&mut params, AUTHORITY_LIFETIME);
    let certificate = params.self_signed(&key)?;
    Ok(Zeroizing::new(certificate.pem() + &Zeroizing::new(key.serialize_pem())))
}

/// The public part is written again whenever it differs: people copy, edit and lose it.
fn publish(path: &Path, pem: &str) -> Result<(), TlsError> {
    if fs::read_to_string(path).is_ok_and(|existing| existing == pem) {
        return Ok(());
    }
    fs::write(path, pem).map_err(|source| TlsError::Io { path: path.into(), source })
}

fn certificate_part(text: &str) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    text.find(END).map_or_else(String::new, |at| format!("{}\n", &text[..at + END.len()]))
}

/// What the server's file says about itself, as a comment before its blocks.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    names: BTreeSet<String>,
    expires_secs: u64,
}

const ABOUT_PREFIX: &str = "farthing: ";

/// The stored certificate when it still serves, else a new one.
fn server_pair(folder: &Path, authority: &Authority, names: &BTreeSet<String>) -> Result<Pair, TlsError> {
    let path = folder.join(SERVER_FILE);
    if let Ok(text) = read(&path)
        && about(&text).is_some_and(|about| about.names == *names && about.serves_at(now()))
        && let Ok(pair) = Pair::parse(&path, &text)
        && pair.server_config(&path).is_ok()
    {
        return Ok(pair);
    }
    let text = make_server(authority, names)?;
    files::replace_private(&path, text.as_bytes())
        .map_err(|source| TlsError::Io { path: path.clone(), source })?;
    Pair::parse(&path, &text)
}

impl About {
    fn serves_at(&self, now: Duration) -> bool {
        Duration::from_secs(self.expires_secs) > now + SERVER_RENEW_BEFORE
    }
}

fn about(text: &str) -> Option<About> {
    serde_json::from_str(text.lines().next()?.strip_prefix(ABOUT_PREFIX)?).ok()
}

fn make_server(authority: &Authority, names: &BTreeSet<String>) -> Result<Zeroizing<String>, TlsError> {
    let made = |error: rcgen::Error| TlsError::Made(error.to_string());
    if let Some(bad) = names.iter().find(|name| CertificateParams::new(vec![(*name).clone()]).is_err()) {
        return Err(TlsError::Name(bad.clone()));
    }
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(made)?;
    let mut params = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>()).map_err(made)?;
    params.distinguished_name.push(DnType::CommonName, "Farthing node");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Strict verifiers (Python 3.13) insist on it.
    params.use_authority_key_identifier_extension = true;
    let expires = valid_for(&mut params, SERVER_LIFETIME);
    let certificate = params.signed_by(&key, &authority.issuer).map_err(made)?;
    let about = About { names: names.clone(), expires_secs: expires.as_secs() };
    let about = serde_json::to_string(&about).map_err(|error| TlsError::Made(error.to_string()))?;
    let key = Zeroizing::new(key.serialize_pem());
    Ok(Zeroizing::new(format!("{ABOUT_PREFIX}{about}\n{}{}", certificate.pem(), *key)))
}

/// From yesterday, because clocks differ, for `lifetime`. Answers the end, since the Unix epoch.
fn valid_for(params: &mut CertificateParams, lifetime: Duration) -> Duration {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let end = now() + lifetime;
    params.not_before = epoch + now().saturating_sub(DAY);
    params.not_after = epoch + end;
    end
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Names and addresses under which this machine is reached, as far as it knows.
fn own_names() -> BTreeSet<String> {
    let mut names = BTreeSet::from(["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()]);
    if let Ok(host) = fs::read_to_string("/proc/sys/kernel/hostname") {
        let host = host.trim().to_ascii_lowercase();
        if CertificateParams::new(vec![host.clone()]).is_ok() && !host.is_empty() && host.is_ascii() {
            names.insert(host);
        }
    }
    names.extend(lan_address().map(|address| address.to_string()));
    names
}

/// The address this machine would send from; asking the routing table sends nothing.
fn lan_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address reserved for documentation stands for "elsewhere".
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified())
}

struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: Option<PrivateKeyDer<'static>>,
}

impl Pair {
    fn parse(path: &Path, text: &str) -> Result<Self, TlsError> {
        let unusable = |error: io::Error| TlsError::Unusable { path: path.into(), what: error.to_string() };
        let chain =
            rustls_pemfile::certs(&mut text.as_bytes()).collect::<Result<_, _>>().map_err(unusable)?;
        let key = rustls_pemfile::private_key(&mut text.as_bytes()).map_err(unusable)?;
        Ok(Self { chain, key })
    }

    fn server_config(&self, path: &Path) -> Result<Arc<ServerConfig>, TlsError> {
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

fn read(path: &Path) -> Result<Zeroizing<String>, TlsError> {
    fs::read_to_string(path).map(Zeroizing::new).map_err(|source| TlsError::Io { path: path.into(), source })
}

/// SHA-256 in pairs of digits, as browsers show it.
fn fingerprint(certificate: &CertificateDer<'_>) -> Option<String> {
    let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?;
    let hash = suite.common.hash_provider.hash(certificate);
    Some(hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn server_file(folder: &Path) -> String {
        fs::read_to_string(folder.join("tls").join(SERVER_FILE)).unwrap()
    }

    #[test]
    fn a_certificate_is_kept_until_the_names_change() {
        let folder = tempfile::tempdir().unwrap();
        let first = own(folder.path(), &[]).unwrap();
        let before = server_file(folder.path());
        let again = own(folder.path(), &[]).unwrap();
        assert_eq!(server_file(folder.path()), before);
        assert_eq!(first.ca_fingerprint, again.ca_fingerprint);

        let renamed = own(folder.path(), &["Node.Example".into(), "10.9.8.7".into()]).unwrap();
        assert_ne!(server_file(folder.path()), before);
        let names = about(&server_file(folder.path())).unwrap().names;
        for name in ["localhost", "127.0.0.1", "::1", "node.example", "10.9.8.7"] {
            assert!(names.contains(name), "{name} is missing from {names:?}");
        }
        assert_eq!(renamed.ca_fingerprint, first.ca_fingerprint, "the authority stays");
        assert_eq!(first.ca_fingerprint.unwrap().len(), 32 * 3 - 1);
    }

    #[test]
    fn a_certificate_near_its_end_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        own(folder.path(), &[]).unwrap();
        let path = folder.path().join("tls").join(SERVER_FILE);
        let about = about(&server_file(folder.path())).unwrap();
        assert!(about.serves_at(now()));
        let renewal = Duration::from_secs(about.expires_secs) - SERVER_RENEW_BEFORE;
        assert!(about.serves_at(renewal - Duration::from_secs(1)));
        assert!(!about.serves_at(renewal));
        let old = server_file(folder.path()).replacen(&about.expires_secs.to_string(), "1", 1);
        fs::write(&path, &old).unwrap();
        own(folder.path(), &[]).unwrap();
        assert_ne!(server_file(folder.path()), old);
    }

    #[test]
    fn keys_are_private_and_the_authoritys_certificate_is_public() {
        let folder = tempfile::tempdir().unwrap();
        let tls = own(folder.path(), &[]).unwrap();
        for name in [AUTHORITY_FILE, SERVER_FILE] {
            let mode = fs::metadata(folder.path().join("tls").join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let ca_file = tls.ca_file.unwrap();
        let public = fs::read_to_string(&ca_file).unwrap();
        assert!(!public.contains("PRIVATE"));
        fs::remove_file(&ca_file).unwrap();
        own(folder.path(), &[]).unwrap();
        assert_eq!(fs::read_to_string(&ca_file).unwrap(), public);
    }

    #[test]
    fn a_damaged_authority_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        own(folder.path(), &[]).unwrap();
        let path = folder.path().join("tls").join(AUTHORITY_FILE);
        fs::write(&path, "nothing").unwrap();
        assert!(matches!(own(folder.path(), &[]), Err(TlsError::Unusable { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "nothing");
    }

    #[test]
    fn a_certificate_from_elsewhere_is_served_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        own(folder.path(), &[]).unwrap();
        let file = folder.path().join("tls").join(SERVER_FILE);
        assert!(from_files(&file, &file).is_ok());
        let other = folder.path().join("tls").join(AUTHORITY_FILE);
        assert!(matches!(from_files(&file, &other), Err(TlsError::Unusable { .. })), "the key is another's");
        assert!(matches!(from_files(&file, &folder.path().join("none")), Err(TlsError::Io { .. })));
    }
}

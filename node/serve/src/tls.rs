//! TLS for the HTTP ports: a certificate authority of the node's own, and a certificate for every name it has.
//!
//! At first start an authority ([`authority`]) is made; its certificate is `tls/ca.pem`, which clients
//! trust by `--cacert`. It issues the server's certificate, and a new one whenever the node's names change or
//! the old one nears its end. Key and certificate share one file, so that no crash can leave a pair that does
//! not belong together.

mod authority;
mod pair;

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    io,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use farthing_os::{clock, file_names, files};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::{ServerConfig, pki_types::CertificateDer};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use self::{authority::Authority, pair::Pair};

/// This program was written later: a clock that shows less is wrong, and what is made by it has to serve once it is set.
const WRITTEN: Duration = Duration::from_secs(1_793_491_200);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The longest lifetime that browsers accept of a server's certificate.
const SERVER_LIFETIME: Duration = Duration::from_secs(397 * 24 * 3600);
/// A certificate with less than this left is replaced at start.
const SERVER_RENEW_BEFORE: Duration = Duration::from_secs(60 * 24 * 3600);

/// An error that keeps a port from speaking TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{path} cannot be read or written", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} holds no usable certificate and key: {what}", path = .path.display())]
    Unusable { path: PathBuf, what: String },
    #[error("`{0}` cannot be part of a certificate")]
    Name(String),
    #[error("{folder} has no certificate authority yet", folder = .folder.display())]
    Missing { folder: PathBuf },
    #[error("the certificate could not be created: {0}")]
    Made(String),
}

impl TlsError {
    pub fn next_step(&self) -> Option<&str> {
        match self {
            Self::Io { source, .. } => Some(files::next_step(source)),
            Self::Name(_) => Some("remove it from gateway.hosts"),
            Self::Missing { .. } => Some("`farthing init` or the first `farthing run` creates it"),
            Self::Unusable { .. } => Some(
                "put the right file back; if it is the node's own file in its folder `tls`, you can move it away: the \
                 node makes a new one, and programs must trust that one",
            ),
            Self::Made(_) => None,
        }
    }
}

/// The parts that a port needs to speak TLS.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub config: Arc<ServerConfig>,
    /// The file of the certificate that clients trust; `None` for a certificate from elsewhere.
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
/// A name that this machine has by itself and the authority does not know is left out; for one of `names` a new authority
/// is made, which clients have to trust anew.
///
/// # Errors
/// [`TlsError`]; an authority that is damaged is never replaced.
pub fn own(data_dir: &Path, names: &[String]) -> Result<ServerTls, TlsError> {
    own_at(data_dir, names, now())
}

fn own_at(data_dir: &Path, names: &[String], now: Duration) -> Result<ServerTls, TlsError> {
    let now = now.max(WRITTEN);
    let folder = data_dir.join(file_names::TLS);
    let failed = |source| TlsError::Io { path: folder.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    // Others may pass, to what is public in it.
    fs::set_permissions(&folder, Permissions::from_mode(0o711)).map_err(failed)?;
    let own_name = own_name(&folder)?;
    let mut own = own_names();
    own.insert(own_name.clone());
    let chosen = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    check(&chosen)?;
    let authority = Authority::load_or_create(&folder, &own, &chosen, now)?;
    let (all, left_out): (BTreeSet<_>, BTreeSet<_>) =
        own.into_iter().chain(chosen).partition(|name| authority.vouches_for(name));
    if !left_out.is_empty() {
        let names = Vec::from_iter(left_out).join(", ");
        tracing::info!(
            names,
            "this machine has names that its certificate authority does not cover; list them in gateway.hosts to get a \
             new authority, which every client must trust again"
        );
    }
    let pair = server_pair(&folder, &authority, &all, now)?;
    Ok(ServerTls {
        config: pair.server_config(&folder.join(SERVER_FILE))?,
        ca_file: Some(folder.join(file_names::CA)),
        ca_fingerprint: authority.fingerprint(),
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
    let folder = data_dir.join(file_names::TLS);
    if !folder.join(file_names::AUTHORITY).exists() {
        return Err(TlsError::Missing { folder });
    }
    Ok(OnDisk { file: folder.join(file_names::CA), ..certificate(&folder.join(file_names::AUTHORITY))? })
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

const SERVER_FILE: &str = "server.pem";

/// The name below `localhost` that this node alone has, made once: browsers keep what they store by name.
fn own_name(folder: &Path) -> Result<String, TlsError> {
    let path = folder.join(file_names::OWN_NAME);
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
    let what = "this program did not make that name; remove the file, and a new one is made".to_owned();
    Err(TlsError::Unusable { path, what })
}

/// Facts about a file of ours, in a comment before its blocks.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    /// The names that the certificate is good for; of an authority, those that it may vouch for.
    names: BTreeSet<String>,
    expires_secs: u64,
    /// Not told by earlier programs.
    starts_secs: Option<u64>,
    /// Of the authority that issued it; its own has none.
    #[serde(default)]
    issuer: String,
}

const ABOUT_PREFIX: &str = "farthing: ";

/// The stored certificate when it still serves, else a new one.
fn server_pair(
    folder: &Path,
    authority: &Authority,
    names: &BTreeSet<String>,
    now: Duration,
) -> Result<Pair, TlsError> {
    let path = folder.join(SERVER_FILE);
    let issuer = authority.fingerprint().unwrap_or_default();
    let serves = |about: About| about.names == *names && about.issuer == issuer && about.serves_at(now);
    if let Ok(text) = read(&path)
        && about(&text).is_some_and(serves)
        && let Ok(pair) = Pair::parse(&path, &text)
        && pair.server_config(&path).is_ok()
    {
        return Ok(pair);
    }
    let text = make_server(authority, names, now)?;
    files::replace_private(&path, text.as_bytes())
        .map_err(|source| TlsError::Io { path: path.clone(), source })?;
    Pair::parse(&path, &text)
}

impl About {
    fn new(names: &BTreeSet<String>, (starts, expires): (Duration, Duration), issuer: String) -> Self {
        let (starts_secs, expires_secs) = (Some(starts.as_secs()), expires.as_secs());
        Self { names: names.clone(), expires_secs, starts_secs, issuer }
    }

    fn serves_at(&self, now: Duration) -> bool {
        let has_begun = self.starts_secs.is_none_or(|starts_secs| starts_secs <= now.as_secs());
        has_begun && Duration::from_secs(self.expires_secs) > now + SERVER_RENEW_BEFORE
    }

    /// The text of a file: this, and the blocks that it tells of.
    fn before(&self, certificate: &rcgen::Certificate, key: &KeyPair) -> Result<Zeroizing<String>, TlsError> {
        let about = serde_json::to_string(self).map_err(|error| TlsError::Made(error.to_string()))?;
        let key = Zeroizing::new(key.serialize_pem());
        Ok(Zeroizing::new(format!("{ABOUT_PREFIX}{about}\n{}{}", certificate.pem(), *key)))
    }
}

fn about(text: &str) -> Option<About> {
    serde_json::from_str(text.lines().next()?.strip_prefix(ABOUT_PREFIX)?).ok()
}

fn make_server(
    authority: &Authority,
    names: &BTreeSet<String>,
    now: Duration,
) -> Result<Zeroizing<String>, TlsError> {
    let made = |error: rcgen::Error| TlsError::Made(error.to_string());
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(made)?;
    let mut params = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>()).map_err(made)?;
    params.distinguished_name.push(DnType::CommonName, "Farthing node");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Strict verifiers (Python 3.13) insist on it.
    params.use_authority_key_identifier_extension = true;
    // From yesterday, because clocks differ.
    let valid = (now.saturating_sub(DAY), now + SERVER_LIFETIME);
    set_valid(&mut params, valid);
    let certificate = params.signed_by(&key, authority.issuer()).map_err(made)?;
    let issuer = authority.fingerprint().unwrap_or_default();
    let about = About::new(names, valid, issuer);
    about.before(&certificate, &key)
}

fn check(names: &BTreeSet<String>) -> Result<(), TlsError> {
    let bad = names.iter().find(|name| CertificateParams::new(vec![(*name).clone()]).is_err());
    bad.map_or(Ok(()), |bad| Err(TlsError::Name(bad.clone())))
}

fn set_valid(params: &mut CertificateParams, (starts, expires): (Duration, Duration)) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + starts;
    params.not_after = epoch + expires;
}

fn now() -> Duration {
    Duration::from_secs(clock::now_secs())
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
mod tests;

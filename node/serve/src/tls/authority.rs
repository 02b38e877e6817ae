//! The node's own certificate authority, which can vouch for this node and nothing else.
//!
//! Clients trust it for ten years, so its certificate says what it may vouch for (RFC 5280, 4.2.1.10): `localhost` with
//! everything below it, loopback, and the names and addresses that the node has when it is made. Whoever steals its key
//! is this node to those clients, and no other site.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    net::IpAddr,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::Duration,
};

use farthing_os::{file_names, files};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints,
};
use rustls::pki_types::CertificateDer;
use zeroize::Zeroizing;

use super::{About, DAY, Pair, TlsError, WRITTEN, about, fingerprint, read, set_valid};

pub(super) const LIFETIME: Duration = Duration::from_secs(3650 * 24 * 3600);
/// The names of every node; `localhost` stands for everything below it as well.
const ALWAYS: [&str; 3] = ["localhost", "127.0.0.0/8", "::1/128"];

/// The authority with its key.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    permitted: BTreeSet<String>,
    /// From when until when clients trust it, since the Unix epoch.
    valid: (Duration, Duration),
}

impl Authority {
    /// The authority of `folder`. A new one is made where there is none, or where that may vouch for any site, not for
    /// all of `chosen`, or is not valid; it may vouch for those and for `own`.
    pub(super) fn load_or_create(
        folder: &Path,
        own: &BTreeSet<String>,
        chosen: &BTreeSet<String>,
        now: Duration,
    ) -> Result<Self, TlsError> {
        let path = folder.join(file_names::AUTHORITY);
        let failed = |source| TlsError::Io { path: path.clone(), source };
        let make = || make(&permitted(own.union(chosen)), now);
        if !path.exists() {
            files::create_private(&path, make()?.as_bytes()).map_err(failed)?;
        }
        let mut text = read(&path)?;
        let mut authority = Self::parse(&path, &text)?;
        if let Some(why) = authority.falls_short(chosen, now) {
            let former = authority.fingerprint().unwrap_or_default();
            files::replace_private(&path, make()?.as_bytes()).map_err(failed)?;
            text = read(&path)?;
            authority = Self::parse(&path, &text)?;
            let now = authority.fingerprint().unwrap_or_default();
            tracing::warn!(
                former,
                now,
                "this node has a new certificate authority, because {why}; trust the new one with `farthing tls trust` \
                 wherever you trusted the old one, and remove the old one there"
            );
        }
        publish(&folder.join(file_names::CA), &certificate_part(&text))?;
        Ok(authority)
    }

    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, TlsError> {
        let unusable = |what: String| TlsError::Unusable { path: path.into(), what };
        let Pair { chain, key } = Pair::parse(path, text)?;
        let certificate = chain.into_iter().next().ok_or_else(|| unusable("no certificate".into()))?;
        let key = key.ok_or_else(|| unusable("no key".into()))?;
        let key = KeyPair::try_from(&key).map_err(|error| unusable(error.to_string()))?;
        let issuer =
            Issuer::from_ca_cert_der(&certificate, key).map_err(|error| unusable(error.to_string()))?;
        let about = about(text);
        let valid = about.as_ref().map_or((Duration::ZERO, Duration::MAX), |about| {
            let expires = Duration::from_secs(about.expires_secs);
            // Earlier programs let it begin a day before it was made.
            let starts = about.starts_secs.map(Duration::from_secs);
            (starts.unwrap_or_else(|| expires.saturating_sub(LIFETIME + DAY)), expires)
        });
        let permitted = about.map(|about| about.names).unwrap_or_default();
        Ok(Self { issuer, certificate, permitted, valid })
    }

    /// Returns the reason that it cannot stay, if there is one.
    fn falls_short(&self, chosen: &BTreeSet<String>, now: Duration) -> Option<&'static str> {
        // A clock that is wrong for sure judges nothing.
        let is_valid = now == WRITTEN || (self.valid.0 <= now && now < self.valid.1);
        if !is_valid {
            Some("the old certificate is not valid at the time of this machine's clock")
        } else if self.permitted.is_empty() {
            Some("anybody who stole the old key could imitate any site")
        } else if chosen.iter().all(|name| self.vouches_for(name)) {
            None
        } else {
            Some("gateway.hosts or panel.hosts has names that the old authority may not certify")
        }
    }

    /// Returns whether clients believe the authority that a server has this name.
    pub(super) fn vouches_for(&self, name: &str) -> bool {
        let name = bare(name);
        self.permitted.iter().any(|permitted| match (name.parse::<IpAddr>(), permitted.split_once('/')) {
            (Ok(ip), Some(_)) if permitted == ALWAYS[1] => ip.is_ipv4() && ip.is_loopback(),
            (Ok(ip), Some((only, _))) => only.parse() == Ok(ip),
            (Err(_), None) => name
                .strip_suffix(permitted.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
            _ => false,
        })
    }

    /// SHA-256 of its certificate, as browsers show it.
    pub(super) fn fingerprint(&self) -> Option<String> {
        fingerprint(&self.certificate)
    }

    pub(super) const fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }
}

/// A name as a constraint has it.
fn bare(name: &str) -> &str {
    name.strip_prefix("*.").unwrap_or(name).trim_end_matches('.')
}

/// Returns what an authority for `names` may vouch for: names with everything below them, and ranges of addresses.
fn permitted<'n>(names: impl Iterator<Item = &'n String>) -> BTreeSet<String> {
    let of = |name: &String| match name.parse::<IpAddr>() {
        Ok(ip) if ip.is_loopback() => None,
        Ok(ip) => Some(format!("{ip}/{}", if ip.is_ipv4() { 32 } else { 128 })),
        Err(_) => Some(bare(name).to_owned()),
    };
    ALWAYS.into_iter().map(str::to_owned).chain(names.filter_map(of)).collect()
}

fn subtree(permitted: &str) -> Option<GeneralSubtree> {
    let Some((address, bits)) = permitted.split_once('/') else {
        return Some(GeneralSubtree::DnsName(permitted.to_owned()));
    };
    let subnet = CidrSubnet::from_addr_prefix(address.parse().ok()?, bits.parse().ok()?);
    Some(GeneralSubtree::IpAddress(subnet))
}

fn make(permitted: &BTreeSet<String>, now: Duration) -> Result<Zeroizing<String>, TlsError> {
    let made = |error: rcgen::Error| TlsError::Made(error.to_string());
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(made)?;
    let mut params = CertificateParams::default();
    // Two nodes' authorities in one trust store must be told apart.
    let number = uuid::Uuid::new_v4().simple().to_string();
    params.distinguished_name.push(DnType::CommonName, format!("Farthing node {}", &number[..8]));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: permitted.iter().filter_map(|permitted| subtree(permitted)).collect(),
        excluded_subtrees: Vec::new(),
    });
    // From a date that has passed, so that a clock which is ahead now leaves a certificate that is valid later.
    let valid = (WRITTEN, now + LIFETIME);
    set_valid(&mut params, valid);
    let certificate = params.self_signed(&key).map_err(made)?;
    let about = About::new(permitted, valid, String::new());
    about.before(&certificate, &key)
}

/// The public part is written again whenever it differs: people copy, edit and lose it. Everybody may read it.
fn publish(path: &Path, pem: &str) -> Result<(), TlsError> {
    let failed = |source| TlsError::Io { path: path.into(), source };
    if fs::read_to_string(path).is_ok_and(|existing| existing == pem) {
        return Ok(());
    }
    files::replace_private(path, pem.as_bytes()).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(0o644)).map_err(failed)
}

fn certificate_part(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let part = text.find(BEGIN).zip(text.find(END)).and_then(|(begin, end)| text.get(begin..end + END.len()));
    part.map_or_else(String::new, |part| format!("{part}\n"))
}

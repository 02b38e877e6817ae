//! What a certificate is good for, when it is replaced, and what a stolen key can do.

use super::*;

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
    assert_ne!(renamed.ca_fingerprint, first.ca_fingerprint, "the authority was not made for these names");
    let fewer = own(folder.path(), &["sub.node.example".into()]).unwrap();
    assert_eq!(fewer.ca_fingerprint, renamed.ca_fingerprint, "it was made for this one");
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
    for name in [file_names::AUTHORITY, SERVER_FILE] {
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

/// Whether a client that trusts `own`'s authority believes a server that its key vouched for to be `name`.
fn is_believed(folder: &Path, name: &str) -> bool {
    let text = read(&folder.join("tls").join(file_names::AUTHORITY)).unwrap();
    let authority = Authority::parse(&folder.join(file_names::AUTHORITY), &text).unwrap();
    let stolen = make_server(&authority, &BTreeSet::from([name.to_owned()]), now()).unwrap();
    // OpenSSL, which curl, Python, Ruby and PHP ask, reads it from a file.
    fs::write(folder.join("stolen.pem"), &*stolen).unwrap();
    let stolen = Pair::parse(folder, &stolen).unwrap().chain;
    let mut roots = rustls::RootCertStore::empty();
    let public = fs::read_to_string(folder.join("tls").join(file_names::CA)).unwrap();
    roots.add(Pair::parse(folder, &public).unwrap().chain[0].clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let server = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let believed = rustls::client::danger::ServerCertVerifier::verify_server_cert(
        &*verifier.unwrap(),
        &stolen[0],
        &[],
        &server,
        &[],
        rustls::pki_types::UnixTime::now(),
    );
    let kind = if name.parse::<IpAddr>().is_ok() { "-verify_ip" } else { "-verify_hostname" };
    let mut openssl = std::process::Command::new("openssl");
    openssl
        .args(["verify", "-x509_strict", kind, name, "-CAfile"])
        .arg(folder.join("tls").join(file_names::CA));
    if let Ok(verified) = openssl.arg(folder.join("stolen.pem")).output() {
        let said = String::from_utf8_lossy(&verified.stderr);
        assert_eq!(verified.status.success(), believed.is_ok(), "{name}: {said} {believed:?}");
    }
    believed.is_ok()
}

#[test]
fn a_stolen_authority_passes_for_this_node_and_for_no_other_site() {
    let folder = tempfile::tempdir().unwrap();
    own(folder.path(), &["*.node.example".into(), "10.9.8.7".into(), "fd12::7".into()]).unwrap();
    for (name, believed) in [
        ("localhost", true),
        ("0123456789abcdef.localhost", true),
        ("127.0.0.1", true),
        ("127.200.3.4", true),
        ("::1", true),
        ("node.example", true),
        ("sub.node.example", true),
        ("10.9.8.7", true),
        ("fd12::7", true),
        ("example.com", false),
        ("example", false),
        ("evilnode.example", false),
        ("node.example.com", false),
        ("localhost.com", false),
        ("10.9.8.8", false),
        ("9.9.9.9", false),
        ("fd12::8", false),
        ("2620:fe::fe", false),
    ] {
        assert_eq!(is_believed(folder.path(), name), believed, "{name}");
    }
}

#[test]
fn an_authority_that_may_vouch_for_any_site_is_replaced_and_the_certificate_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tls").join(file_names::AUTHORITY);
    fs::create_dir(folder.path().join("tls")).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
    let former = params.self_signed(&key).unwrap().pem();
    fs::write(&path, former.clone() + &key.serialize_pem()).unwrap();
    let first = own(folder.path(), &[]).unwrap();
    assert!(!fs::read_to_string(&path).unwrap().contains(&former));
    assert!(is_believed(folder.path(), "localhost") && !is_believed(folder.path(), "example.com"));
    assert_eq!(authority(folder.path()).unwrap().fingerprint, first.ca_fingerprint.unwrap());
    // A certificate that another authority issued is not served, whatever its names.
    let served = server_file(folder.path());
    let served = served.replace(&about(&served).unwrap().issuer, "another");
    fs::write(folder.path().join("tls").join(SERVER_FILE), &served).unwrap();
    own(folder.path(), &[]).unwrap();
    assert_ne!(server_file(folder.path()), served);
}

#[test]
fn a_name_that_the_machine_came_by_since_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tls")).unwrap();
    let always = BTreeSet::from(["localhost".to_owned()]);
    Authority::load_or_create(&folder.path().join("tls"), &always, &BTreeSet::new(), now()).unwrap();
    let before = authority(folder.path()).unwrap();
    let own_name = own(folder.path(), &["deep.below.localhost".into()]).unwrap().own_name.unwrap();
    assert_eq!(authority(folder.path()).unwrap(), before);
    let names = ["127.0.0.1", "::1", "deep.below.localhost", "localhost", &own_name];
    assert_eq!(about(&server_file(folder.path())).unwrap().names, names.map(str::to_owned).into());
}

#[test]
fn a_damaged_authority_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    own(folder.path(), &[]).unwrap();
    let path = folder.path().join("tls").join(file_names::AUTHORITY);
    fs::write(&path, "nothing").unwrap();
    let refused = own(folder.path(), &[]).unwrap_err();
    assert!(matches!(refused, TlsError::Unusable { .. }));
    assert!(refused.next_step().is_some_and(|next| next.contains("the node makes a new one")));
    assert_eq!(fs::read_to_string(&path).unwrap(), "nothing");
}

#[test]
fn a_certificate_from_elsewhere_is_served_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    own(folder.path(), &[]).unwrap();
    let file = folder.path().join("tls").join(SERVER_FILE);
    assert!(from_files(&file, &file).is_ok());
    let other = folder.path().join("tls").join(file_names::AUTHORITY);
    assert!(matches!(from_files(&file, &other), Err(TlsError::Unusable { .. })), "the key is another's");
    assert!(matches!(from_files(&file, &folder.path().join("none")), Err(TlsError::Io { .. })));
}

#[test]
fn a_clock_that_was_wrong_when_the_authority_was_made_leaves_nothing_behind() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let wrong = [Duration::from_secs(60), now() + 9 * YEAR, now() + 15 * YEAR];
    for clock in wrong {
        let folder = tempfile::tempdir().unwrap();
        let made = own_at(folder.path(), &[], clock).unwrap();
        let then = own(folder.path(), &[]).unwrap();
        assert_eq!(then.ca_fingerprint, made.ca_fingerprint, "nobody has to trust another one");
        assert!(is_believed(folder.path(), "localhost"), "{clock:?}");
        assert!(about(&server_file(folder.path())).unwrap().serves_at(now()), "{clock:?}");
        // Nor when it is wrong later.
        let again = own_at(folder.path(), &[], Duration::from_secs(60)).unwrap();
        assert_eq!(again.ca_fingerprint, made.ca_fingerprint);
    }
}

#[test]
fn an_authority_that_is_not_valid_now_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tls").join(file_names::AUTHORITY);
    own(folder.path(), &[]).unwrap();
    // As earlier programs made them by a clock at the epoch, and by one that was ten years ahead.
    for expires in [authority::LIFETIME, now() + 2 * authority::LIFETIME] {
        let text = read(&path).unwrap();
        let about = About { starts_secs: None, expires_secs: expires.as_secs(), ..about(&text).unwrap() };
        let rest = text.split_once('\n').unwrap().1;
        let about = serde_json::to_string(&about).unwrap();
        fs::write(&path, format!("{ABOUT_PREFIX}{about}\n{rest}")).unwrap();
        let former = authority(folder.path()).unwrap();
        let by_wrong_clock = own_at(folder.path(), &[], Duration::from_secs(60)).unwrap();
        assert_eq!(
            by_wrong_clock.ca_fingerprint,
            Some(former.fingerprint.clone()),
            "a wrong clock judges nothing"
        );
        assert_ne!(own(folder.path(), &[]).unwrap().ca_fingerprint, Some(former.fingerprint));
        assert!(is_believed(folder.path(), "localhost"));
    }
}

//! Claims of real folders: which become a node's, which are left as they are, and what is closed in them.

use std::os::unix::net::UnixStream;

use super::*;

/// A claim of this user, to whom a wallet is a file that says so.
fn claimed(top: &Path) -> Result<Vec<PathBuf>, NotClaimed> {
    let own = fs::metadata(top).unwrap().uid();
    claim(top, own, |bytes| bytes == b"a wallet").unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("settings.toml");
    let own = fs::metadata(top.path()).unwrap().uid();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let refused = claim(top.path(), own, |_| false).unwrap_err().to_string();
    assert!(refused.contains("settings.toml is a pipe"), "{refused}");
}

#[test]
fn what_is_open_is_closed_and_what_is_closed_stays() {
    for (mode, is_folder, is_public, expected) in [
        (0o700, true, false, None),
        (0o711, true, false, None),
        (0o755, true, false, Some(0o711)),
        (0o2775, true, false, Some(0o2711)),
        (0o777, true, false, Some(0o711)),
        (0o600, false, false, None),
        (0o640, false, false, Some(0o600)),
        (0o644, false, false, Some(0o600)),
        (0o666, false, false, Some(0o600)),
        (0o644, false, true, None),
        (0o666, false, true, Some(0o644)),
    ] {
        assert_eq!(closed(mode, is_folder, is_public), expected, "{mode:o} {is_folder} {is_public}");
    }
}

#[test]
fn a_folder_is_claimed_with_everything_in_it() {
    let top = tempfile::tempdir().unwrap();
    let own = fs::metadata(top.path()).unwrap().uid();
    let mode = |name: &str| mode(&top.path().join(name));
    let set = |name: &str, mode| {
        fs::set_permissions(top.path().join(name), Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir_all(top.path().join("networks/lab")).unwrap();
    fs::create_dir_all(top.path().join("tls")).unwrap();
    for (name, open) in [
        ("networks/lab/catalog.redb", 0o644),
        (file_names::WALLET, 0o600),
        (file_names::LEDGER, 0o600),
        ("tls/ca.pem", 0o644),
    ] {
        fs::write(top.path().join(name), "").unwrap();
        set(name, open);
    }
    set("networks", 0o700);
    set("networks/lab", 0o755);
    set("tls", 0o711);
    set(".", 0o755);
    let open = claimed(top.path()).unwrap();
    let lab = top.path().join("networks/lab");
    assert_eq!(open, [top.path().into(), lab.clone(), lab.join("catalog.redb")]);
    assert_eq!((mode("."), mode("networks/lab"), mode("networks/lab/catalog.redb")), (0o711, 0o711, 0o600));
    assert_eq!(mode("tls/ca.pem"), 0o644);
    assert_eq!(claimed(top.path()), Ok(Vec::new()));
    // To any other user the same folder is somebody else's, and nothing of it is changed.
    set(".", 0o755);
    let foreign = NotClaimed::Foreign { path: top.path().into(), user: own };
    assert_eq!(claim(top.path(), own + 1, |_| false).unwrap(), Err(foreign));
    assert_eq!(mode("."), 0o755);
}

#[test]
fn a_folder_of_something_else_is_left_as_it_is_until_it_has_a_wallet_and_a_ledger() {
    let top = tempfile::tempdir().unwrap();
    let temporary = format!(".wallet.json.{}.tmp", "5f2a".repeat(8));
    let folders = [
        "tls",
        "backups",
        "networks",
        ".verify",
        ".restore",
        "lost+found",
        "replaced-2026-01-02",
        ".control.sock.new",
    ];
    for name in EXPECTED.iter().chain(&folders).chain(&[&*temporary, ".backup.5f2a.redb"]) {
        fs::create_dir(top.path().join(name)).unwrap();
    }
    fs::remove_dir(top.path().join(file_names::LEDGER)).unwrap();
    claimed(top.path()).unwrap();
    let diary = top.path().join("diary");
    fs::write(&diary, "dear diary").unwrap();
    for path in [top.path(), diary.as_path()] {
        open_to_all(path);
    }
    let occupied = |found: &str| Err(NotClaimed::Occupied { found: found.into() });
    assert_eq!(claimed(top.path()), occupied("diary"));
    // Other programs call theirs so, too.
    let wallet = top.path().join(file_names::WALLET);
    fs::write(&wallet, "{}").unwrap();
    assert_eq!(claimed(top.path()), occupied("diary"));
    // Whose it is comes second: nobody is told to give it to this user.
    let another = fs::metadata(top.path()).unwrap().uid() + 1;
    assert_eq!(claim(top.path(), another, |_| false).unwrap(), occupied("diary"));
    // A copy of a wallet is kept anywhere.
    fs::write(&wallet, "a wallet").unwrap();
    assert_eq!(claimed(top.path()), occupied("diary"));
    // Nor do folders of these names make it one.
    fs::remove_file(&wallet).unwrap();
    for name in [file_names::WALLET, file_names::LEDGER] {
        fs::create_dir(top.path().join(name)).unwrap();
    }
    assert_eq!(claimed(top.path()), occupied("diary"));
    assert_eq!((mode(top.path()), mode(&diary)), (0o755, 0o755), "something was changed");
    // People keep notes beside their node, and a damaged wallet is known by its ledger.
    for name in [file_names::WALLET, file_names::LEDGER] {
        fs::remove_dir(top.path().join(name)).unwrap();
        fs::write(top.path().join(name), "{").unwrap();
    }
    claimed(top.path()).unwrap();
    assert_eq!((mode(top.path()), mode(&diary)), (0o711, 0o700));
}

#[test]
fn a_restoration_that_was_cut_short_goes_on_in_a_folder_with_notes_in_it() {
    for moved in [file_names::WALLET, file_names::LEDGER] {
        let top = tempfile::tempdir().unwrap();
        let ready = top.path().join(file_names::RESTORE).join(file_names::RESTORE_READY);
        fs::create_dir(ready.parent().unwrap()).unwrap();
        let own = [file_names::WALLET, file_names::LEDGER].into_iter().filter(|name| *name != moved);
        let own = own.chain(["diary"]).map(|name| top.path().join(name));
        for path in own.chain([ready.clone()]) {
            fs::write(path, "").unwrap();
        }
        claimed(top.path()).unwrap_or_else(|refused| panic!("without {moved}: {refused:?}"));
        fs::remove_file(&ready).unwrap();
        claimed(top.path()).unwrap_err();
    }
}

#[test]
fn a_wallet_of_something_else_keeps_a_folder_from_becoming_a_nodes() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join(file_names::WALLET), "{}").unwrap();
    assert_eq!(claimed(top.path()), Err(NotClaimed::Occupied { found: file_names::WALLET.into() }));
    // One that a node opens is a beginning.
    fs::write(top.path().join(file_names::WALLET), "a wallet").unwrap();
    claimed(top.path()).unwrap();
}

#[test]
fn a_link_in_place_of_a_folder_keeps_a_folder_from_becoming_a_nodes_and_nothing_behind_it_is_changed() {
    for name in [file_names::TLS, file_names::BACKUPS, file_names::NETWORKS] {
        let (top, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = top.path().join(name);
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        open_to_all(elsewhere.path());
        open_to_all(top.path());
        assert_eq!(claimed(top.path()), Err(NotClaimed::Linked { found: name.into() }));
        assert_eq!((mode(top.path()), mode(elsewhere.path())), (0o755, 0o755), "{name}");
        // The user of a node may move a folder later, and files may be links from the first.
        for file in [file_names::WALLET, file_names::LEDGER] {
            std::os::unix::fs::symlink(elsewhere.path().join(file), top.path().join(file)).unwrap();
        }
        claimed(top.path()).unwrap();
        assert_eq!(mode(elsewhere.path()), 0o755, "{name}");
    }
}

#[test]
fn a_socket_that_an_early_end_left_keeps_no_folder_from_becoming_a_nodes() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("call.sock");
    let listener = socket::listen(&path, 0o660).unwrap();
    open_to_all(top.path());
    assert_eq!(claimed(top.path()), Err(NotClaimed::Occupied { found: "call.sock".into() }), "a program's");
    assert_eq!(mode(&path), 0o660);
    drop(listener);
    // A process that another test starts has it as well, until it runs its own program.
    while UnixStream::connect(&path).is_ok() {
        std::thread::yield_now();
    }
    let begun = top.path().join(".call.sock.new");
    fs::create_dir(&begun).unwrap();
    fs::write(begun.join("s"), "kept").unwrap();
    assert_eq!(claimed(top.path()), Err(NotClaimed::Occupied { found: ".call.sock.new".into() }));
    fs::remove_file(begun.join("s")).unwrap();
    fs::rename(&path, begun.join("s")).unwrap();
    claimed(top.path()).unwrap();
    fs::rename(begun.join("s"), &path).unwrap();
    claimed(top.path()).unwrap();
}

#[test]
fn an_expected_folder_has_nothing_in_it_but_what_a_node_puts_there() {
    let digits = "5f2a".repeat(8);
    for (file, is_nodes) in [
        ("backups/farthing-2026-01-02T030405Z-auto.backup", true),
        (&*format!("backups/.farthing-2026.backup.{digits}.tmp"), true),
        ("backups/photos/a.jpg", false),
        ("backups/.notes.tmp", false),
        ("backups/mysql.backup", false),
        ("backups/photos.backup.tar", false),
        ("backups/farthing-photos.backup.tar", false),
        ("tls/authority.pem", true),
        ("tls/site/index.html", false),
        ("networks/lab-8453/catalog.redb.damaged-1", true),
        ("networks/lab-8453/catalog-index/5f2a.store", true),
        ("networks/interfaces", false),
        ("replaced-2026-01-02T030405Z/tls/authority.pem", true),
        ("replaced-parts/list.csv", false),
        (".restore/ready", true),
        (".restore/tls/authority.pem", true),
        (".restore/diary", false),
        ("node.log/2026/january", false),
        ("lost+found/#12/a.jpg", true),
    ] {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        open_to_all(&path);
        let found = claimed(top.path());
        let occupied = NotClaimed::Occupied { found: file.into() };
        assert_eq!(found.err(), (!is_nodes).then_some(occupied), "{file}");
        assert_eq!(mode(&path) == 0o755, !is_nodes, "{file}");
    }
}

#[test]
fn what_is_refused_for_something_deep_in_it_is_changed_nowhere() {
    let top = tempfile::tempdir().unwrap();
    let tls = top.path().join("tls");
    fs::create_dir(&tls).unwrap();
    for number in 0..20 {
        fs::write(tls.join(format!("{number}.pem")), "").unwrap();
        open_to_all(&tls.join(format!("{number}.pem")));
    }
    let mode_of_pipe = Mode::from_raw_mode(0o600);
    let pipe = tls.join("pipe.pem");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode_of_pipe, 0).unwrap();
    for path in [top.path(), &tls] {
        open_to_all(path);
    }
    let own = fs::metadata(top.path()).unwrap().uid();
    claim(top.path(), own, |_| false).unwrap_err();
    assert_eq!((mode(top.path()), mode(&tls)), (0o755, 0o755));
    for number in 0..20 {
        assert_eq!(mode(&tls.join(format!("{number}.pem"))), 0o755);
    }
}

//! What other users and programs of the same machine see of a node, and what they can put in its way.

use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess, program};
use farthing_tests::{command::Ran, tell::tell};
use tokio::process::Command;

/// The user that nodes of these tests run as when the tests are run by root, and another one.
const USER: u32 = 65_534;
const STRANGER: u32 = 65_533;

/// A place that every user can look into, with the program in it, and the words that run it as [`USER`].
struct Place {
    folder: tempfile::TempDir,
    is_root: bool,
}

impl Place {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        fs::copy(program("farthing")?, folder.path().join("farthing"))?;
        let is_root = fs::metadata(folder.path())?.uid() == 0;
        Ok(Self { folder, is_root })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn user(&self) -> Result<u32> {
        Ok(if self.is_root { USER } else { fs::metadata(self.folder.path())?.uid() })
    }

    /// A folder of `user`, of this mode.
    fn make(&self, name: &str, user: u32, mode: u32) -> Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir(&path)?;
        self.give(&path, user, mode)?;
        Ok(path)
    }

    fn give(&self, path: &Path, user: u32, mode: u32) -> Result<()> {
        if self.is_root {
            chown(path, Some(user), Some(user))?;
        }
        Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
    }

    /// Becomes the program, with the careless mask that most systems start programs with.
    fn launcher(&self) -> Vec<String> {
        let user = format!("setpriv --reuid {USER} --regid {USER} --clear-groups");
        let as_user = if self.is_root { user.as_str() } else { "" };
        let program = self.path("farthing");
        let script = format!("umask 022; shift; exec {as_user} {} \"$@\"", program.display());
        vec!["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()]
    }

    /// Whether files of other users can be made; says so when not. Then the judgement alone is tested, beside the code.
    fn can_pose_as_others(&self) -> Result<bool> {
        const MISSING: &str = "only root can make the files of other users";
        if !self.is_root {
            ensure!(env::var_os("CI").is_none(), "{MISSING}: run these tests as root");
            tell(&format!("\n  SKIPPED: folders that another user had a hand in, because {MISSING}\n"));
        }
        Ok(self.is_root)
    }

    async fn init(&self, data: &Path) -> Result<Ran> {
        let words = self.launcher();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg("farthing")
            .args(["init", "--chain", "base-sepolia", "--data"])
            .arg(data);
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
        let code = output.status.code().context("ended by a signal")?;
        Ok(Ran { code, out: String::from_utf8(output.stdout)?, err: String::from_utf8(output.stderr)? })
    }
}

/// Everything below `folder`, with its mode.
fn modes(folder: &Path) -> Result<Vec<(PathBuf, u32)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            all.extend(modes(&path)?);
        }
        all.push((path, metadata.permissions().mode() & 0o7777));
    }
    Ok(all)
}

#[tokio::test]
async fn a_running_node_keeps_its_memory_and_its_files_to_itself() -> Result<()> {
    let place = Place::new()?;
    let data = place.make("data", place.user()?, 0o777)?;
    let chain = LocalChain::start().await?;
    let options = NodeOptions { launcher: place.launcher(), ..NodeOptions::new(&data) };
    let node = NodeProcess::start(&chain, options).await?;

    let pid = node.pid().context("it has ended")?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let user = format!("Uid:\t{}", place.user()?);
    ensure!(status.contains(&user), "the node runs as its user: {status}");
    // The system keeps these files for its own user when the process is not to be looked into.
    for file in ["environ", "mem", "maps"] {
        let owner = fs::metadata(format!("/proc/{pid}/{file}"))?.uid();
        ensure!(owner == 0, "/proc/PID/{file} belongs to the user {owner}, whose programs can read it");
    }

    let metadata = fs::metadata(&data)?;
    ensure!(metadata.mode() & 0o777 == 0o711, "the folder was open to all and is {:o}", metadata.mode());
    ensure!(node.log().contains("no longer can"), "{}", node.log());
    let found = modes(&data)?;
    let has = |end: &str| found.iter().any(|(path, _)| path.ends_with(end));
    ensure!(has("wallet.json") && has("catalog.redb") && has("network.redb"), "{found:?}");
    for (path, mode) in found {
        let others = if path.is_dir() { 0o066 } else { 0o077 };
        let is_public = path.ends_with("tls/ca.pem");
        ensure!(
            is_public || path.ends_with("node.log") || mode & others == 0,
            "{} is {mode:o}",
            path.display()
        );
        ensure!(
            !is_public || mode == 0o644,
            "clients of other users read the authority's certificate: {mode:o}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_folder_that_another_user_had_a_hand_in_is_refused_and_nothing_is_written_through_it() -> Result<()>
{
    let place = Place::new()?;
    if !place.can_pose_as_others()? {
        return Ok(());
    }
    let refused = |ran: &Ran, what: &str| {
        ensure!(ran.code != 0 && ran.err.contains("belongs to another user"), "{what}: {ran:?}");
        ensure!(ran.err.contains("chown") && ran.err.contains("--data"), "{what}: {ran:?}");
        Ok(())
    };
    let strangers = place.make("strangers", STRANGER, 0o777)?;
    refused(&place.init(&strangers).await?, "a folder of another user")?;
    ensure!(fs::read_dir(&strangers)?.next().is_none(), "nothing is put into it");

    // A link of another user in place of the folder, to one of the victim's own.
    let diary = place.make("diary", USER, 0o755)?;
    let link = place.path("link");
    symlink(&diary, &link)?;
    std::os::unix::fs::lchown(&link, Some(STRANGER), Some(STRANGER))?;
    refused(&place.init(&link).await?, "a link of another user")?;
    ensure!(fs::read_dir(&diary)?.next().is_none(), "nothing is put behind it");
    ensure!(fs::metadata(&diary)?.mode() & 0o777 == 0o755, "nothing is changed behind it");

    // A folder that was open for a while, with links where this node's files would be.
    let notes = place.path("notes");
    fs::write(&notes, "dear diary")?;
    place.give(&notes, USER, 0o644)?;
    for name in ["lock", "ledger.redb", "secrets.toml", "tls/ca.pem"] {
        let data = place.make(&format!("open-{}", name.replace('/', "-")), USER, 0o777)?;
        let planted = data.join(name);
        if let Some(parent) = planted.parent().filter(|parent| *parent != data) {
            fs::create_dir(parent)?;
            place.give(parent, USER, 0o777)?;
        }
        symlink(&notes, &planted)?;
        std::os::unix::fs::lchown(&planted, Some(STRANGER), Some(STRANGER))?;
        refused(&place.init(&data).await?, name)?;
        ensure!(fs::read_to_string(&notes)? == "dear diary", "{name} was written through");
        ensure!(fs::metadata(&notes)?.mode() & 0o777 == 0o644, "{name} was changed through");
    }

    // Whatever is found last is found before anything is changed.
    let late = place.make("late", USER, 0o755)?;
    for (name, user) in [("passphrase.txt", USER), ("node.log", STRANGER), ("secrets.toml", USER)] {
        fs::write(late.join(name), "")?;
        place.give(&late.join(name), user, 0o644)?;
    }
    let before = modes(&late)?;
    refused(&place.init(&late).await?, "a file of another user")?;
    ensure!(modes(&late)? == before, "the rights in a refused folder were changed");
    ensure!(fs::metadata(&late)?.mode() & 0o777 == 0o755, "the rights of a refused folder were changed");

    // A home that was mistyped is nothing to be given to this user.
    let home = place.make("home", STRANGER, 0o755)?;
    place.make("home/Documents", STRANGER, 0o755)?;
    let ran = place.init(&home).await?;
    ensure!(ran.code != 0 && ran.err.contains("`Documents` is there"), "{ran:?}");
    ensure!(!ran.err.contains("chown"), "{ran:?}");

    // The user's own links stay theirs.
    let (disk, own) = (place.make("disk", USER, 0o700)?, place.path("own"));
    symlink(&disk, &own)?;
    std::os::unix::fs::lchown(&own, Some(USER), Some(USER))?;
    place.init(&own).await?.ends_with(0)?;
    ensure!(disk.join("wallet.json").exists(), "the wallet is on the disk that the link leads to");
    Ok(())
}

/// Links that come and go while a node starts: whatever it finds, it writes through none of them.
#[tokio::test(flavor = "multi_thread")]
async fn links_that_another_user_plants_while_a_node_starts_lead_it_nowhere() -> Result<()> {
    let place = Place::new()?;
    if !place.can_pose_as_others()? {
        return Ok(());
    }
    let notes = place.path("notes");
    fs::write(&notes, "dear diary")?;
    place.give(&notes, USER, 0o644)?;
    for round in 0..8 {
        let data = place.make(&format!("data-{round}"), USER, 0o777)?;
        let names =
            "lock ledger.redb secrets.toml wallet.json console.json control.sock .control.sock.new tls";
        let script = format!(
            "cd {} && i=0; while [ $i -lt 400 ]; do for n in {names}; do ln -s {} $n; rm -f $n; done; i=$((i+1)); done",
            data.display(),
            notes.display()
        );
        let mut planting = Command::new("sh");
        planting.arg("-c").arg(&script).uid(STRANGER).gid(STRANGER).stderr(Stdio::null()).kill_on_drop(true);
        let mut planting = planting.spawn()?;
        let ran = place.init(&data).await?;
        // Either the folder was closed before anything lay in it, or what lay in it was a stranger's, or no node's wallet.
        let refusals = ["belongs to another user", "`wallet.json` is there"];
        ensure!(ran.code == 0 || refusals.iter().any(|refusal| ran.err.contains(refusal)), "{ran:?}");
        planting.kill().await?;
        ensure!(fs::read_to_string(&notes)? == "dear diary", "the notes were written through");
        ensure!(fs::metadata(&notes)?.mode() & 0o777 == 0o644, "their mode was changed");
    }
    Ok(())
}

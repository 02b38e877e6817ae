//! Somebody who follows a document: a folder, a shell with the built program first on its path, and what stands in the places
//! that every reader fills. Or a user of a clean root, in whose shell there is only what is installed there.

use std::{ffi::OsString, fs::File, path::PathBuf, process::Stdio};

use anyhow::{Context, Result, ensure};
use farthing_control::{ControlClient, endpoint};
use farthing_tests::{
    calls::free_port,
    command::{Ran, WHEN_SLOW, path},
    wait::eventually,
};
use farthing_values::Address;
use tokio::process::{Child, Command};

use super::{
    document::{Commands, Manner, holds},
    posing::Posing,
};

/// The one user of a clean root, with a group of the same name, and the home in that root.
const USER: &str = "seller";
const HOME: &str = "home/seller";
const CLEAN_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) struct Reader {
    place: Place,
    environment: Vec<(String, String)>,
    path: OsString,
    /// What the document says, and what is there in its place.
    filled: Vec<(&'static str, String)>,
    /// Commands that keep running; they end with the test.
    running: Vec<Child>,
}

/// Where commands are typed.
enum Place {
    /// In a folder of this machine.
    Here(tempfile::TempDir),
    /// In the user's home in another root.
    CleanRoot(PathBuf),
}

impl Reader {
    /// A reader with nothing but an installed program. The ports of 3000 to 3002 may be taken on this machine, so that others
    /// stand for them.
    pub(crate) async fn new(posing: &Posing) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [gateway, network, panel] = [free_port()?, free_port()?, free_port()?];
        let own = [
            ("FARTHING_NODE__DATA_DIR", folder.path().join("node").display().to_string()),
            ("FARTHING_GATEWAY__LISTEN", format!("127.0.0.1:{gateway}")),
            ("FARTHING_PANEL__LISTEN", format!("127.0.0.1:{panel}")),
            (
                "FARTHING_NETWORK__LISTEN",
                format!("/ip4/127.0.0.1/tcp/{network},/ip4/127.0.0.1/udp/{network}/quic-v1"),
            ),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let filled = vec![
            ("/dns4/node.example/tcp/3001", posing.bootstrap().await?),
            ("localhost:3000", format!("localhost:{gateway}")),
            ("Port 3001", format!("Port {network}")),
            ("localhost:3002", format!("localhost:{panel}")),
        ];
        let path = path()?;
        let home = ("HOME".to_owned(), folder.path().display().to_string());
        let environment = posing.environment().into_iter().chain(own).chain([home]).collect();
        Ok(Self { place: Place::Here(folder), environment, path, filled, running: Vec::new() })
    }

    /// A user of a clean root (`deploy/test/dist-test.sh`), where the node has its usual folder and its usual ports. The addresses of
    /// port 3001 are those of this machine alone, as for every reader here.
    pub(crate) async fn in_clean_root(posing: &Posing, root: PathBuf) -> Result<Self> {
        let listen = "/ip4/127.0.0.1/tcp/3001,/ip4/127.0.0.1/udp/3001/quic-v1";
        let own = [("FARTHING_NETWORK__LISTEN", listen.to_owned()), ("HOME", format!("/{HOME}"))];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let filled = vec![("/dns4/node.example/tcp/3001", posing.bootstrap().await?)];
        let environment = posing.environment().into_iter().chain(own).collect();
        let place = Place::CleanRoot(root);
        Ok(Self { place, environment, path: CLEAN_PATH.into(), filled, running: Vec::new() })
    }

    /// The folder in which commands are typed.
    pub(crate) fn folder(&self) -> PathBuf {
        match &self.place {
            Place::Here(folder) => folder.path().to_owned(),
            Place::CleanRoot(root) => root.join(HOME),
        }
    }

    /// The folder of the node.
    fn data(&self) -> PathBuf {
        let in_folder = match self.place {
            Place::Here(_) => "node",
            Place::CleanRoot(_) => ".local/share/farthing",
        };
        self.folder().join(in_folder)
    }

    /// From here on `there` is what stands where the document says `shown`.
    pub(crate) fn fill(&mut self, shown: &'static str, there: String) {
        self.filled.push((shown, there));
    }

    /// The reader's node, once it runs.
    pub(crate) fn node(&self) -> ControlClient {
        ControlClient::in_folder(&self.data())
    }

    pub(crate) async fn wallet(&self) -> Result<Address> {
        Ok(self.node().ask(endpoint::Status).await?.address.0)
    }

    /// Types the commands of a block, and sees that they do and print what the document says.
    pub(crate) async fn carry_out(&mut self, commands: &Commands) -> Result<()> {
        let script = self.in_place(&commands.script);
        let claimed = commands.prints.as_ref().map(|claimed| self.in_place(claimed));
        match commands.manner {
            Manner::Once => judge(&script, &self.shell(&script).await?, claimed.as_deref()),
            Manner::TakesAMoment => {
                let mut judged = Ok(());
                let seen = eventually("it prints what the document says", async || {
                    judged = judge(&script, &self.shell(&script).await?, claimed.as_deref());
                    Ok(judged.is_ok())
                })
                .await;
                judged.and(seen)
            }
            Manner::KeepsRunning => self.keep_running(&script, &claimed.unwrap_or_default()).await,
        }
    }

    fn in_place(&self, text: &str) -> String {
        let put = |text: String, (shown, there): &(&str, String)| text.replace(*shown, there);
        self.filled.iter().fold(text.to_owned(), put)
    }

    /// Both outputs come in the order in which they were written, as on a terminal.
    async fn shell(&self, script: &str) -> Result<Ran> {
        Ran::of(self.command(&format!("exec 2>&1\n{script}")).output().await?)
    }

    /// Starts a command that stays, and waits until it has said what is claimed and its node takes orders.
    async fn keep_running(&mut self, script: &str, claimed: &str) -> Result<()> {
        let log = self.folder().join("running.log");
        let file = File::create(&log)?;
        // The shell becomes the command, so that ending the one ends the other.
        let mut command = self.command(&format!("exec {script}"));
        let mut child = command.stdout(file.try_clone()?).stderr(file).spawn()?;
        let (node, claimed) = (self.node(), format!("…\n{claimed}\n…"));
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let up = eventually("it runs", async || {
            ensure!(child.try_wait()?.is_none(), "it has ended");
            Ok(holds(&claimed, &said()) && node.ask(endpoint::Status).await.is_ok())
        });
        let up = up.await;
        up.with_context(|| format!("`{script}` said\n{}\nand the document says\n{claimed}", said()))?;
        self.running.push(child);
        Ok(())
    }

    fn command(&self, script: &str) -> Command {
        let mut command = self.place.shell();
        command
            .args(["-eu", "-c", script])
            .current_dir(self.folder())
            .env_clear()
            .env("PATH", &self.path)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

impl Place {
    /// A shell as this place's user. What is named before it becomes the shell, so that ending the one ends the other.
    fn shell(&self) -> Command {
        let Self::CleanRoot(root) = self else { return Command::new("sh") };
        let mut command = Command::new("chroot");
        command.arg(format!("--userspec={USER}:{USER}")).arg(root);
        // A new root is entered at its top.
        command.args(["env".to_owned(), format!("--chdir=/{HOME}"), "sh".to_owned()]);
        command
    }
}

fn judge(script: &str, ran: &Ran, claimed: Option<&str>) -> Result<()> {
    ensure!(ran.code == 0, "`{script}` ended with {}:\n{}", ran.code, ran.out);
    let Some(claimed) = claimed else { return Ok(()) };
    let printed = ran.out.replace(WHEN_SLOW, "");
    ensure!(holds(claimed, &printed), "`{script}` printed\n{printed}\nand the document says\n{claimed}");
    Ok(())
}

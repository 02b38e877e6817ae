//! `farthing testnet down`: ends what `farthing testnet up` left running, from any other terminal.
//!
//! A network that is up listens on a socket in its temporary folder. Whoever connects ends it, and the connection lasts
//! until everything has stopped. Only its own user can connect. A folder whose network is gone answers nobody.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
};

/// The prefix of the names of temporary folders of networks that are up.
pub(super) const FOLDER_PREFIX: &str = "farthing-testnet-";
const SOCKET: &str = "stop.sock";
/// Nodes finish their calls first.
const STOPPED_WITHIN: Duration = Duration::from_secs(60);

/// The socket at which a network that is up can be told to stop.
#[derive(Debug)]
pub(super) struct Stop(UnixListener);

impl Stop {
    pub(super) fn listen(folder: &Path) -> anyhow::Result<Self> {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        let path = folder.join(SOCKET);
        let listener = UnixListener::bind(&path)
            .with_context(|| format!("cannot create a socket at {}", path.display()))?;
        Ok(Self(listener))
    }

    /// Waits until somebody wants the end; what is returned is dropped when it has come.
    pub(super) async fn wanted(&self) -> UnixStream {
        loop {
            if let Ok((asker, _)) = self.0.accept().await {
                return asker;
            }
            // Out of file descriptors, for instance: that passes.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Ends every network of this user on this machine, and returns how many there were.
pub async fn down() -> anyhow::Result<usize> {
    let mut ended = 0;
    for socket in sockets(&std::env::temp_dir()) {
        let Ok(mut network) = UnixStream::connect(&socket).await else { continue };
        let stopped = tokio::time::timeout(STOPPED_WITHIN, network.read_to_end(&mut Vec::new())).await;
        stopped.map_err(|_| {
            anyhow::anyhow!(
                "the network in {} still runs after {} s; stop the process of `farthing testnet up`",
                socket.parent().unwrap_or(&socket).display(),
                STOPPED_WITHIN.as_secs()
            )
        })??;
        ended += 1;
    }
    Ok(ended)
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    let networks = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX));
    networks.map(|entry| entry.path().join(SOCKET)).filter(|socket| socket.exists()).collect()
}
